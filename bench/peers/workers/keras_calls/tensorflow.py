"""TensorFlow: in a tf.function, plain or compiled by XLA."""

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf


def use_threads(count: int) -> None:
    """Before anything is computed."""
    tf.config.threading.set_intra_op_parallelism_threads(count)
    tf.config.threading.set_inter_op_parallelism_threads(1)


def version() -> str:
    """'TensorFlow 2.21.0'."""
    return f"TensorFlow {tf.__version__}"


class Calls:
    """TensorFlow runs a function to the end before it returns."""

    def __init__(
        self, forward: Callable[[Any], Any], variables: list[Any], arrays: Any, jit: bool
    ) -> None:
        self.forward, self.variables = forward, variables
        self.x, self.r = (None if each is None else tf.constant(each) for each in arrays)
        step = self._training if self.r is not None else forward
        self.function = tf.function(step, jit_compile=jit)
        self.kernel = "XLA (jit_compile)" if jit else "TensorFlow ops in tf.function"

    def _training(self, x: tf.Tensor) -> tuple[tf.Tensor, list[tf.Tensor], list[tf.Tensor]]:
        sources = [x] + [variable.value for variable in self.variables]
        with tf.GradientTape() as tape:
            tape.watch(x)
            y, states = self.forward(x)
        return y, states, tape.gradient(y, sources, output_gradients=self.r)

    def call(self) -> None:
        """The function."""
        self.values = None  # frees the last ones first
        self.values = self.function(self.x)

    def outputs(self) -> tuple[Any, list[Any]]:
        """y and the states of the last call."""
        return self.values[0].numpy(), [state.numpy() for state in self.values[1]]

    def gradients(self) -> list[Any]:
        """Of x and the variables."""
        return [np.asarray(tf.convert_to_tensor(each)) for each in self.values[2]]
