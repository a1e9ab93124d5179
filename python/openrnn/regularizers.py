"""Losses of weights. Any function of a Tensor that returns one will do, too."""

from typing import Any

from openrnn import _arguments, _core
from openrnn._core import Tensor
from openrnn._typing import TensorLike


class _Scaled:
    """A loss with a factor."""

    def __init__(self, scale: float) -> None:
        self.scale = _arguments.as_number(type(self).__name__, "scale", scale)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {"scale": self.scale}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "_Scaled":
        """The inverse of get_config()."""
        return cls(**config)


class l1(_Scaled):  # noqa: N801 - TensorFlow's name
    """scale * sum |x|.

    Examples
    --------
    >>> openrnn.regularizers.l1(0.5)([3.0, -4.0]).item()
    3.5
    """

    def __call__(self, x: TensorLike) -> Tensor:
        """The loss of x."""
        return _core.l1(x, self.scale)


class l2(_Scaled):  # noqa: N801 - TensorFlow's name
    """scale * sum x^2 / 2, as TensorFlow's l2_regularizer.

    Examples
    --------
    >>> openrnn.regularizers.l2(0.5)([3.0, -4.0]).item()
    6.25
    """

    def __call__(self, x: TensorLike) -> Tensor:
        """The loss of x."""
        return _core.l2(x, self.scale)
