"""Operations with NumPy's shapes: broadcasting, reductions along axes, views, comparisons.

Shapes broadcast as NumPy's do, and a gradient is summed over what was broadcast. `axis` is an
integer, several in a tuple, or None for all; a negative one counts from the end.
"""

from collections.abc import Sequence

import numpy as np

from openrnn import _arguments, _core
from openrnn._core import Tensor
from openrnn._typing import DTypeLike, TensorLike

Axis = int | Sequence[int] | None


def _integers(call: str, name: str, given: int | Sequence[int] | None) -> list[int]:
    if given is None:
        return []
    if not isinstance(given, (list, tuple)) and np.ndim(given) == 0:
        given = [given]  # type: ignore[list-item]
    values = _arguments.as_list(call, name, given, "integers")
    return [_arguments.as_integer(call, f"an element of {name}", one) for one in values]


# ---- Elementwise


def maximum(x: TensorLike, y: TensorLike) -> Tensor:
    """The larger one, NaN where one is; of equal ones x gets the gradient.

    Examples
    --------
    >>> openrnn.maximum([1.0, 5.0], 3.0).numpy()
    array([3., 5.], dtype=float32)
    """
    return _core.maximum(x, y)


def minimum(x: TensorLike, y: TensorLike) -> Tensor:
    """The smaller one, NaN where one is; of equal ones x gets the gradient.

    Examples
    --------
    >>> openrnn.minimum([1.0, 5.0], 3.0).numpy()
    array([1., 3.], dtype=float32)
    """
    return _core.minimum(x, y)


def pow(x: TensorLike, y: TensorLike) -> Tensor:  # noqa: A001 - TensorFlow's name
    """x to the power y, within 2 ulp; the gradient to y is 0 where x <= 0.

    Examples
    --------
    >>> openrnn.pow([1.0, 2.0, 3.0], 2.0).numpy().round(4)
    array([1., 4., 9.], dtype=float32)
    """
    return _core.pow(x, y)


def log(x: TensorLike) -> Tensor:
    """The natural logarithm, within 2 ulp: -inf of 0 and of subnormals, NaN below.

    Examples
    --------
    >>> openrnn.log([0.0, 1.0, np.e]).numpy().round(4)
    array([-inf,   0.,   1.], dtype=float32)
    """
    return _core.log(x)


def clip_by_value(
    t: TensorLike, clip_value_min: TensorLike, clip_value_max: TensorLike
) -> Tensor:
    """t within two bounds, numbers or tensors that broadcast.

    The gradient passes where t is between them or on one, else it goes to the bound.

    Examples
    --------
    >>> openrnn.clip_by_value([-2.0, 0.5, 9.0], 0.0, 1.0).numpy()
    array([0. , 0.5, 1. ], dtype=float32)
    """
    return _core.clip_by_value(t, clip_value_min, clip_value_max)


def where(condition: TensorLike, x: TensorLike, y: TensorLike) -> Tensor:
    """x where the condition is true, else y; all three broadcast.

    What is not chosen does not matter, NaN neither, and its gradient is 0.

    Examples
    --------
    >>> openrnn.where([True, False], [1.0, 2.0], -1.0).numpy()
    array([ 1., -1.], dtype=float32)
    """
    return _core.where(condition, x, y)


def equal(x: TensorLike, y: TensorLike) -> Tensor:
    """x == y, elementwise, as a tensor of bool. The operator == compares identity instead.

    Examples
    --------
    >>> openrnn.equal([1, 2], [1, 3]).numpy()
    array([ True, False])
    """
    return _core.equal(x, y)


def not_equal(x: TensorLike, y: TensorLike) -> Tensor:
    """x != y, elementwise, as a tensor of bool.

    Examples
    --------
    >>> openrnn.not_equal([1, 2], [1, 3]).numpy()
    array([False,  True])
    """
    return _core.not_equal(x, y)


def less(x: TensorLike, y: TensorLike) -> Tensor:
    """x < y, as a tensor of bool.

    Examples
    --------
    >>> openrnn.less([1, 2, 3], 2).numpy()
    array([ True, False, False])
    """
    return _core.less(x, y)


def less_equal(x: TensorLike, y: TensorLike) -> Tensor:
    """x <= y, as a tensor of bool.

    Examples
    --------
    >>> openrnn.less_equal([1, 2, 3], 2).numpy()
    array([ True,  True, False])
    """
    return _core.less_equal(x, y)


def greater(x: TensorLike, y: TensorLike) -> Tensor:
    """x > y, as a tensor of bool.

    Examples
    --------
    >>> openrnn.greater([1, 2, 3], 2).numpy()
    array([False, False,  True])
    """
    return _core.greater(x, y)


def greater_equal(x: TensorLike, y: TensorLike) -> Tensor:
    """x >= y, as a tensor of bool.

    Examples
    --------
    >>> openrnn.greater_equal([1, 2, 3], 2).numpy()
    array([False,  True,  True])
    """
    return _core.greater_equal(x, y)


def logical_not(x: TensorLike) -> Tensor:
    """Whether x is false, or 0.

    Examples
    --------
    >>> openrnn.logical_not([True, False]).numpy()
    array([False,  True])
    """
    return _core.logical_not(x)


def logical_and(x: TensorLike, y: TensorLike) -> Tensor:
    """Whether both are true, or not 0.

    Examples
    --------
    >>> openrnn.logical_and([True, True, False], [True, False, False]).numpy()
    array([ True, False, False])
    """
    return _core.logical_and(x, y)


def logical_or(x: TensorLike, y: TensorLike) -> Tensor:
    """Whether one is true, or not 0.

    Examples
    --------
    >>> openrnn.logical_or([True, True, False], [True, False, False]).numpy()
    array([ True,  True, False])
    """
    return _core.logical_or(x, y)


# ---- Reductions


def reduce_sum(input_tensor: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The sum along axes; float32 for float16 and bfloat16.

    Examples
    --------
    >>> openrnn.reduce_sum([[1.0, 2.0], [3.0, 4.0]], axis=0).numpy()
    array([4., 6.], dtype=float32)
    >>> openrnn.reduce_sum([[1.0, 2.0], [3.0, 4.0]]).item()
    10.0
    """
    return _core.reduce_sum(input_tensor, axis, keepdims)


def reduce_mean(input_tensor: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The mean along axes, 0 where there is nothing; float32 for float16 and bfloat16.

    Examples
    --------
    >>> openrnn.reduce_mean([[1.0, 2.0], [3.0, 4.0]], axis=1, keepdims=True).numpy()
    array([[1.5],
           [3.5]], dtype=float32)
    """
    return _core.reduce_mean(input_tensor, axis, keepdims)


def reduce_max(input_tensor: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The maximum, NaN where there is one; equal elements share the gradient.

    Examples
    --------
    >>> openrnn.reduce_max([[1.0, 2.0], [3.0, 4.0]], axis=1).numpy()
    array([2., 4.], dtype=float32)
    """
    return _core.reduce_max(input_tensor, axis, keepdims)


def reduce_min(input_tensor: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The minimum, NaN where there is one; equal elements share the gradient.

    Examples
    --------
    >>> openrnn.reduce_min([[1.0, 2.0], [3.0, 4.0]], axis=1).numpy()
    array([1., 3.], dtype=float32)
    """
    return _core.reduce_min(input_tensor, axis, keepdims)


def reduce_variance(input_tensor: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The mean of squared distances from the mean.

    Examples
    --------
    >>> openrnn.reduce_variance([[1.0, 5.0], [3.0, 3.0]], axis=1).numpy()
    array([4., 0.], dtype=float32)
    """
    return _core.reduce_variance(input_tensor, axis, keepdims)


def reduce_std(input_tensor: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The root of reduce_variance; its gradient is no number where that is 0.

    Examples
    --------
    >>> openrnn.reduce_std([[1.0, 5.0], [3.0, 3.0]], axis=1).numpy()
    array([2., 0.], dtype=float32)
    """
    return _core.reduce_std(input_tensor, axis, keepdims)


def reduce_logsumexp(
    input_tensor: TensorLike, axis: Axis = None, keepdims: bool = False
) -> Tensor:
    """log(sum(exp(x))), without overflow.

    Examples
    --------
    >>> round(openrnn.reduce_logsumexp([1000.0, 1000.0]).item(), 2)
    1000.69
    """
    return _core.reduce_logsumexp(input_tensor, axis, keepdims)


def argmax(input: TensorLike, axis: int = 0) -> Tensor:  # noqa: A002 - TensorFlow's name
    """The place of the first maximum along an axis, as int32. The first NaN counts as one.

    Examples
    --------
    >>> openrnn.argmax([1.0, 7.0, 7.0]).item()
    1
    """
    return _core.argmax(input, axis)


def argmin(input: TensorLike, axis: int = 0) -> Tensor:  # noqa: A002 - TensorFlow's name
    """The place of the first minimum along an axis, as int32. The first NaN counts as one.

    Examples
    --------
    >>> openrnn.argmin([[1.0, 7.0], [5.0, 2.0]], axis=1).numpy()
    array([0, 1], dtype=int32)
    """
    return _core.argmin(input, axis)


# ---- Shapes


def broadcast_to(input: TensorLike, shape: Sequence[int]) -> Tensor:  # noqa: A002
    """The tensor in a shape that it broadcasts to.

    Examples
    --------
    >>> openrnn.broadcast_to([1.0, 2.0], (2, 2)).numpy()
    array([[1., 2.],
           [1., 2.]], dtype=float32)
    """
    return _core.broadcast_to(input, shape)


def transpose(a: TensorLike, perm: Sequence[int] | None = None) -> Tensor:
    """Dimension i of the result is perm[i] of a; None: all in reverse.

    Examples
    --------
    >>> x = np.zeros((2, 3, 4), "float32")
    >>> openrnn.transpose(x).shape, openrnn.transpose(x, (1, 0, 2)).shape
    ((4, 3, 2), (3, 2, 4))
    """
    return _core.transpose(a, _integers("transpose", "perm", perm))


def tile(input: TensorLike, multiples: Sequence[int]) -> Tensor:  # noqa: A002
    """The tensor repeated, multiples[i] times along axis i.

    Examples
    --------
    >>> openrnn.tile([1.0, 2.0], [2]).numpy()
    array([1., 2., 1., 2.], dtype=float32)
    """
    return _core.tile(input, _integers("tile", "multiples", multiples))


def expand_dims(input: TensorLike, axis: int) -> Tensor:  # noqa: A002
    """A dimension of size 1 before that axis; -1: at the end.

    Examples
    --------
    >>> openrnn.expand_dims([1.0, 2.0], 0).shape, openrnn.expand_dims([1.0, 2.0], -1).shape
    ((1, 2), (2, 1))
    """
    return _core.expand_dims(input, axis)


def squeeze(input: TensorLike, axis: Axis = None) -> Tensor:  # noqa: A002
    """Without those dimensions of size 1, None: without all of them.

    Examples
    --------
    >>> x = np.zeros((1, 3, 1), "float32")
    >>> openrnn.squeeze(x).shape, openrnn.squeeze(x, 0).shape
    ((3,), (3, 1))
    """
    if isinstance(axis, (list, tuple)) and not axis:
        return _core.convert(input, None, None)
    return _core.squeeze(input, _integers("squeeze", "axis", axis))


def gather(params: TensorLike, indices: TensorLike, axis: int = 0) -> Tensor:
    """params at the indices of one axis, which the shape of the indices replaces.

    Examples
    --------
    >>> openrnn.gather([[1.0, 2.0], [3.0, 4.0]], [1, 0, 1], axis=1).numpy()
    array([[2., 1., 2.],
           [4., 3., 4.]], dtype=float32)
    """
    return _core.gather(params, indices, axis)


def zeros(
    shape: Sequence[int], dtype: DTypeLike = "float32", *, device: str | None = None
) -> Tensor:
    """A tensor of 0.

    Examples
    --------
    >>> openrnn.zeros([2]).numpy()
    array([0., 0.], dtype=float32)
    """
    return _filled("zeros", shape, 0.0, dtype, device)


def ones(
    shape: Sequence[int], dtype: DTypeLike = "float32", *, device: str | None = None
) -> Tensor:
    """A tensor of 1.

    Examples
    --------
    >>> openrnn.ones([2], "int32").numpy()
    array([1, 1], dtype=int32)
    """
    return _filled("ones", shape, 1.0, dtype, device)


def _filled(
    call: str, shape: Sequence[int], value: float, dtype: DTypeLike, device: str | None
) -> Tensor:
    sizes = _integers(call, "shape", shape)
    if any(size < 0 for size in sizes):
        from openrnn.errors import ArgumentError

        raise ArgumentError(f"[{call}] shape is {tuple(sizes)}, expected sizes of 0 or above")
    return Tensor(np.full(sizes, value), dtype, device=device)


def zeros_like(tensor: TensorLike) -> Tensor:
    """0 in the shape and dtype of a tensor.

    Examples
    --------
    >>> openrnn.zeros_like([[1.0, 2.0]]).numpy()
    array([[0., 0.]], dtype=float32)
    """
    return _core.full_like(tensor, 0.0)


def ones_like(tensor: TensorLike) -> Tensor:
    """1 in the shape and dtype of a tensor.

    Examples
    --------
    >>> openrnn.ones_like([3.0, 4.0]).numpy()
    array([1., 1.], dtype=float32)
    """
    return _core.full_like(tensor, 1.0)


# ---- Products


def einsum(equation: str, *operands: TensorLike) -> Tensor:
    """Sums of products of one operand or two, as 'bij,bjk->bik' says.

    Without '->': the letters that occur once, in alphabetical order. No letter twice in an operand.

    Examples
    --------
    >>> openrnn.einsum("ij,jk->ik", [[1.0, 2.0]], [[3.0], [4.0]]).numpy()
    array([[11.]], dtype=float32)
    """
    return _core.einsum(equation, list(operands))
