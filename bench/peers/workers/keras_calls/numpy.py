"""NumPy: forward alone, in a loop of Python."""

from collections.abc import Callable
from typing import Any

import numpy

from peers.workers import server


def use_threads(count: int) -> None:
    """Its BLAS was told by the environment."""


def version() -> str:
    """'NumPy 2.3.1'."""
    return f"NumPy {numpy.__version__}"


class Calls:
    """A call of the layers."""

    kernel = "NumPy"

    def __init__(
        self, forward: Callable[[Any], Any], variables: list[Any], arrays: Any, jit: bool
    ) -> None:
        self.forward = forward
        self.x, r = arrays
        if r is not None:
            raise server.Refused("Keras's numpy backend has no gradients")

    def call(self) -> None:
        """Forward."""
        self.values = self.forward(self.x)

    def outputs(self) -> tuple[Any, list[Any]]:
        """y and the states of the last call."""
        return self.values
