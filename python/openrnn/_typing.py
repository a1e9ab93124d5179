"""Types of arguments, for annotations."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from openrnn._core import Tensor, Variable

#: A Tensor, a Variable, a NumPy array, anything with the buffer protocol or DLPack, numbers and
#: nested lists of them. Static types cannot say it more narrowly.
TensorLike: TypeAlias = Any
#: 'float32', openrnn.float32, numpy.float32 or a NumPy dtype.
DTypeLike: TypeAlias = Any
#: Sizes, None where one is not known.
ShapeLike: TypeAlias = Sequence[int | None]
#: f(shape, dtype=...) gives the initial value of a variable.
Initializer: TypeAlias = Any
#: f(tensor) gives a loss.
Regularizer: TypeAlias = Callable[[Tensor], Any]
Source: TypeAlias = Tensor | Variable

__all__ = [
    "DTypeLike",
    "Initializer",
    "Regularizer",
    "ShapeLike",
    "Source",
    "TensorLike",
]
