"""JAX: one function of the variables and x under jit, as in the programs of Keras's trainer."""

from collections.abc import Callable
from typing import Any

from peers.workers import server

server.set_up_jax()

import jax  # noqa: E402
import keras  # noqa: E402
import numpy as np  # noqa: E402


def use_threads(count: int) -> None:
    """XLA takes the cores that the process may use, and its flag is older than this call."""


def version() -> str:
    """'JAX 0.10.2'."""
    return f"JAX {jax.__version__}"


class Calls:
    """Until the results are there."""

    def __init__(
        self, forward: Callable[[Any], Any], variables: list[Any], arrays: Any, jit: bool
    ) -> None:
        self.variables = [variable.value for variable in variables]
        self.x, self.r = (None if each is None else jax.numpy.asarray(each) for each in arrays)
        self.kernel = "XLA CPU, jit"

        def outputs(values: list[Any], x: Any) -> Any:
            mapping = list(zip(variables, values, strict=True))
            with keras.StatelessScope(state_mapping=mapping):
                y, states = forward(x)
            return y, states

        def step(values: list[Any], x: Any, r: Any) -> Any:
            y, backward, states = jax.vjp(outputs, values, x, has_aux=True)
            return y, states, backward(r)

        self.function = jax.jit(outputs if self.r is None else step)

    def call(self) -> None:
        """The function."""
        self.values = None  # frees the last ones first
        more = () if self.r is None else (self.r,)
        self.values = jax.block_until_ready(self.function(self.variables, self.x, *more))

    def outputs(self) -> tuple[Any, list[Any]]:
        """y and the states of the last call."""
        return np.asarray(self.values[0]), [np.asarray(state) for state in self.values[1]]

    def gradients(self) -> list[Any]:
        """Of x and the variables."""
        of_variables, dx = self.values[2]
        return [np.asarray(each) for each in (dx, *of_variables)]
