"""PyTorch: eagerly, without gradients recorded, or with backward."""

from collections.abc import Callable
from typing import Any

import torch


def use_threads(count: int) -> None:
    """Before anything is computed."""
    torch.set_num_threads(count)


def version() -> str:
    """'PyTorch 2.15.0'."""
    return f"PyTorch {torch.__version__}"


class Calls:
    """As a trainer of Keras calls a model: predict without gradients, fit with backward."""

    def __init__(
        self, forward: Callable[[Any], Any], variables: list[Any], arrays: Any, jit: bool
    ) -> None:
        self.forward = forward
        self.parameters = [variable.value for variable in variables]
        self.x, self.r = (None if each is None else torch.from_numpy(each) for each in arrays)
        if self.r is not None:
            self.x.requires_grad_()
        self.kernel = "PyTorch, eager"

    def call(self) -> None:
        """Forward, or forward and backward."""
        self.values = None  # frees the last ones first
        if self.r is None:
            with torch.no_grad():
                self.values = self.forward(self.x)
            return
        for each in (self.x, *self.parameters):
            each.grad = None
        self.values = self.forward(self.x)
        self.values[0].backward(self.r)

    def outputs(self) -> tuple[Any, list[Any]]:
        """y and the states of the last call."""
        y, states = self.values
        return y.detach().numpy(), [state.detach().numpy() for state in states]

    def gradients(self) -> list[Any]:
        """Of x and the variables."""
        return [each.grad.numpy() for each in (self.x, *self.parameters)]
