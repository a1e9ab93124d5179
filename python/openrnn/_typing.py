"""Types of arguments, for annotations."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

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

# The words of the options that are words (openrnn.network_options()).
InputMode: TypeAlias = Literal["linear_input", "skip_input", "auto_select"]
Direction: TypeAlias = Literal["unidirectional", "bidirectional"]
Math: TypeAlias = Literal["float32", "bf16", "bf16x3", "tf32", "fp16"]
WeightsDType: TypeAlias = Literal["none", "float16", "bfloat16", "int8"]
LayerNorm: TypeAlias = Literal["none", "products", "split_products", "gates"]
RecurrentDropoutForm: TypeAlias = Literal["state", "candidate"]

__all__ = [
    "DTypeLike",
    "Direction",
    "Initializer",
    "InputMode",
    "LayerNorm",
    "Math",
    "RecurrentDropoutForm",
    "Regularizer",
    "ShapeLike",
    "Source",
    "TensorLike",
    "WeightsDType",
]
