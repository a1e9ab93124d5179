"""NumPy's protocols for a Tensor or Variable: operators record, no call drops a gradient."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from openrnn import _core
from openrnn._core import Tensor, Variable

_ADD, _SUBTRACT, _MULTIPLY, _DIVIDE = range(4)


def _matmul(a: Any, b: Any) -> Tensor:
    # Of an array and a tensor only: the tensor's own method, as NumPy's would call this again.
    return a.__matmul__(b) if isinstance(a, (Tensor, Variable)) else b.__rmatmul__(a)


# The operators of Python that a Tensor has. An array on their left calls the ufunc.
_OPERATORS: dict[Any, Callable[..., Tensor]] = {
    np.add: lambda a, b: _core.combine(_ADD, a, b),
    np.subtract: lambda a, b: _core.combine(_SUBTRACT, a, b),
    np.multiply: lambda a, b: _core.combine(_MULTIPLY, a, b),
    np.true_divide: lambda a, b: _core.combine(_DIVIDE, a, b),
    np.matmul: _matmul,
    np.power: _core.pow,
    np.less: _core.less,
    np.less_equal: _core.less_equal,
    np.greater: _core.greater,
    np.greater_equal: _core.greater_equal,
}

# Functions whose result depends on shapes alone, or is one truth value.
_WITHOUT_GRADIENT = {
    np.shape,
    np.ndim,
    np.size,
    np.zeros_like,
    np.ones_like,
    np.empty_like,
    np.full_like,
    np.allclose,
    np.array_equal,
}


def _tensors(values: Any) -> Iterable[Any]:
    if isinstance(values, (Tensor, Variable)):
        yield values
    elif isinstance(values, (list, tuple)):
        for one in values:
            yield from _tensors(one)
    elif isinstance(values, dict):
        yield from _tensors(list(values.values()))


def _arrays(values: Any) -> Any:
    if isinstance(values, (Tensor, Variable)):
        return np.asarray(values)
    if isinstance(values, (list, tuple)) and any(True for _ in _tensors(values)):
        return [_arrays(one) for one in values]
    if isinstance(values, dict):
        return {key: _arrays(one) for key, one in values.items()}
    return values


def _require_no_gradient(name: str, values: Any) -> None:
    for one in _tensors(values):
        if _core.would_record(one):
            raise TypeError(
                f"[numpy.{name}] a {type(one).__name__} whose gradient is being recorded, which "
                "NumPy would drop; expected an operation of openrnn, or .numpy() for the value "
                "without gradient"
            )


def array_ufunc(self: Any, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """Operators give a Tensor; other ufuncs work on values that need no gradient."""
    if method == "__call__" and not kwargs and ufunc in _OPERATORS:
        return _OPERATORS[ufunc](*inputs)
    _require_no_gradient(ufunc.__name__, [inputs, kwargs])
    return getattr(ufunc, method)(*_arrays(list(inputs)), **_arrays(kwargs))


def array_function(self: Any, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """NumPy's functions work on values that need no gradient."""
    if function not in _WITHOUT_GRADIENT:
        _require_no_gradient(function.__name__, [args, kwargs])
    return function(*_arrays(list(args)), **_arrays(kwargs))


for _class in (Tensor, Variable):
    setattr(_class, "__array_ufunc__", array_ufunc)
    setattr(_class, "__array_function__", array_function)
    # pandas looks at this instead: its Series and DataFrame leave the operator to a Tensor.
    setattr(_class, "__pandas_priority__", 10000)
