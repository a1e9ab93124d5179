"""Operations on tensors, each with a gradient, under TensorFlow's names."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from openrnn import _arguments, _core
from openrnn._core import Tensor
from openrnn._typing import DTypeLike, TensorLike

bfloat16 = "bfloat16"
float16 = "float16"
float32 = "float32"
float64 = "float64"
int32 = "int32"
int64 = "int64"

_ADD, _SUBTRACT, _MULTIPLY, _DIVIDE = range(4)


def constant(
    value: TensorLike, dtype: DTypeLike = None, *, device: str | None = None
) -> Tensor:
    """A new Tensor with a copy of the value. Python's floats are float32, its integers int32.

    Without a device it is on the default one, and is copied to where it is used.

    Examples
    --------
    >>> openrnn.constant([1.0, 2.0]).dtype, openrnn.constant([1, 2], "int64").dtype
    (dtype('float32'), dtype('int64'))
    """
    return Tensor(value, dtype, device=device)


def convert_to_tensor(
    value: TensorLike, dtype: DTypeLike = None, *, device: str | None = None
) -> Tensor:
    """The same as constant(); a Tensor of that dtype is returned with its history.

    Examples
    --------
    >>> openrnn.convert_to_tensor([1.0, 2.0]).dtype, openrnn.convert_to_tensor(np.ones(3)).dtype
    (dtype('float32'), dtype('float64'))
    """
    return _core.convert(value, dtype, device)


def from_dlpack(
    x: Any, /, *, device: str | None = None, copy: bool | None = None
) -> Tensor:
    """A Tensor over the memory of anything with DLPack, on the cpu or a GPU, without a copy.

    The owner of that memory must not change it while the Tensor, or what was computed from it under
    a tape, exists. copy True: always a copy; False: never, BufferError if one is needed.

    Examples
    --------
    >>> x = np.array([1.0, 2.0], "float32")
    >>> openrnn.from_dlpack(x).numpy()
    array([1., 2.], dtype=float32)
    """
    return _core.from_dlpack(x, device, copy)


def matmul(
    a: TensorLike, b: TensorLike, transpose_a: bool = False, transpose_b: bool = False
) -> Tensor:
    """op(a) [.., M, K] times op(b) [.., K, N]; leading dimensions broadcast.

    Examples
    --------
    >>> openrnn.matmul([[1.0, 2.0]], [[3.0, 4.0]], transpose_b=True).numpy()
    array([[11.]], dtype=float32)
    """
    return _core.matmul(a, b, transpose_a, transpose_b)


def add(x: TensorLike, y: TensorLike) -> Tensor:
    """x + y, of shapes that broadcast.

    Examples
    --------
    >>> openrnn.add([[1.0], [2.0]], [10.0, 20.0]).numpy()
    array([[11., 21.],
           [12., 22.]], dtype=float32)
    """
    return _core.combine(_ADD, x, y)


def subtract(x: TensorLike, y: TensorLike) -> Tensor:
    """x - y, of shapes that broadcast.

    Examples
    --------
    >>> openrnn.subtract([1.0, 2.0], 5.0).numpy()
    array([-4., -3.], dtype=float32)
    """
    return _core.combine(_SUBTRACT, x, y)


def multiply(x: TensorLike, y: TensorLike) -> Tensor:
    """x * y, of shapes that broadcast.

    Examples
    --------
    >>> openrnn.multiply([1.0, 2.0], [3.0, 4.0]).numpy()
    array([3., 8.], dtype=float32)
    """
    return _core.combine(_MULTIPLY, x, y)


def divide(x: TensorLike, y: TensorLike) -> Tensor:
    """x / y, of shapes that broadcast.

    Examples
    --------
    >>> openrnn.divide([1.0, 2.0], 4.0).numpy()
    array([0.25, 0.5 ], dtype=float32)
    """
    return _core.combine(_DIVIDE, x, y)


def add_n(inputs: Sequence[TensorLike]) -> Tensor:
    """The sum of several tensors of one shape, from left to right.

    Examples
    --------
    >>> openrnn.add_n([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]).numpy()
    array([ 9., 12.], dtype=float32)
    """
    return _core.add_n(inputs)


def square(x: TensorLike) -> Tensor:
    """x * x.

    Examples
    --------
    >>> openrnn.square([-3.0, 0.5]).numpy()
    array([9.  , 0.25], dtype=float32)
    """
    return _core.square(x)


def sqrt(x: TensorLike) -> Tensor:
    """The square root; its gradient at 0 is infinite.

    Examples
    --------
    >>> openrnn.sqrt([9.0, 0.25]).numpy()
    array([3. , 0.5], dtype=float32)
    """
    return _core.sqrt(x)


def abs(x: TensorLike) -> Tensor:  # noqa: A001 - TensorFlow's name
    """The absolute value; its gradient at 0 is 0.

    Examples
    --------
    >>> openrnn.abs([-3.0, 0.5]).numpy()
    array([3. , 0.5], dtype=float32)
    """
    return _core.abs(x)


def exp(x: TensorLike) -> Tensor:
    """e to the power x.

    Examples
    --------
    >>> openrnn.exp([0.0, 1.0]).numpy().round(4)
    array([1.    , 2.7183], dtype=float32)
    """
    return _core.exp(x)


def negative(x: TensorLike) -> Tensor:
    """-x.

    Examples
    --------
    >>> openrnn.negative([-3.0, 0.5]).numpy()
    array([ 3. , -0.5], dtype=float32)
    """
    return _core.negative(x)


def tanh(x: TensorLike) -> Tensor:
    """The hyperbolic tangent.

    Examples
    --------
    >>> openrnn.tanh([0.0, 1.0]).numpy().round(4)
    array([0.    , 0.7616], dtype=float32)
    """
    return _core.tanh(x)


def sigmoid(x: TensorLike) -> Tensor:
    """1 / (1 + exp(-x)).

    Examples
    --------
    >>> openrnn.sigmoid([0.0, 1.0]).numpy().round(4)
    array([0.5   , 0.7311], dtype=float32)
    """
    return _core.sigmoid(x)


def cast(x: TensorLike, dtype: DTypeLike) -> Tensor:
    """In another dtype; the gradient has the dtype of x. Integers and bool have none.

    To integers towards 0; raises ArgumentError for an element that the dtype does not hold.

    Examples
    --------
    >>> openrnn.cast([-1.7, 2.7], "int32").numpy()
    array([-1,  2], dtype=int32)
    """
    return _core.cast(x, dtype)


def reshape(tensor: TensorLike, shape: Sequence[int]) -> Tensor:
    """The same elements under other dimensions, of which one may be -1.

    Examples
    --------
    >>> openrnn.reshape([1.0, 2.0, 3.0, 4.0], (2, -1)).numpy()
    array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    return _core.reshape(tensor, shape)


def concat(values: Sequence[TensorLike], axis: int) -> Tensor:
    """Joined along an axis; a negative one counts from the end.

    Examples
    --------
    >>> openrnn.concat([[[1.0], [2.0]], [[3.0], [4.0]]], axis=1).numpy()
    array([[1., 3.],
           [2., 4.]], dtype=float32)
    """
    return _core.concat(values, axis)


def split(
    value: TensorLike, num_or_size_splits: int | Sequence[int], axis: int = 0
) -> list[Tensor]:
    """Parts along an axis: a number of equal ones, or ones of these sizes.

    Examples
    --------
    >>> [part.numpy().tolist() for part in openrnn.split([1.0, 2.0, 3.0, 4.0], 2)]
    [[1.0, 2.0], [3.0, 4.0]]
    >>> [part.shape for part in openrnn.split([1.0, 2.0, 3.0, 4.0], [1, 3])]
    [(1,), (3,)]
    """
    if isinstance(num_or_size_splits, (int, np.integer)):
        value = convert_to_tensor(value)
        axis = _arguments.as_integer("split", "axis", axis)
        if not -value.ndim <= axis < value.ndim:
            from openrnn.errors import ArgumentError

            raise ArgumentError(f"[split] axis is {axis}, expected one of shape {value.shape}")
        size, count = value.shape[axis], int(num_or_size_splits)
        if size is None or count < 1 or size % count:
            from openrnn.errors import ArgumentError

            raise ArgumentError(
                f"[split] {count} parts of shape {value.shape} along axis {axis}, expected a "
                "number that divides its size"
            )
        return _core.split(value, axis, [size // count] * count)
    sizes = _arguments.as_list("split", "num_or_size_splits", num_or_size_splits, "sizes")
    return _core.split(value, axis, sizes)


def slice(input_: TensorLike, begin: Sequence[int], size: Sequence[int]) -> Tensor:  # noqa: A001
    """The elements from `begin`, `size` along each axis; -1 is all the rest.

    Examples
    --------
    >>> openrnn.slice([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], [0, 1], [-1, 2]).numpy()
    array([[2., 3.],
           [5., 6.]], dtype=float32)
    """
    result = convert_to_tensor(input_)
    begin, size = (
        [
            _arguments.as_integer("slice", f"an element of {name}", one)
            for one in _arguments.as_list("slice", name, given, "numbers")
        ]
        for name, given in (("begin", begin), ("size", size))
    )
    if not len(begin) == len(size) == result.ndim:
        from openrnn.errors import ArgumentError

        raise ArgumentError(
            f"[slice] begin {list(begin)} and size {list(size)} for shape {result.shape}, "
            "expected one number for each axis"
        )
    for axis, (first, count) in enumerate(zip(begin, size, strict=True)):
        whole = result.shape[axis]
        if count == -1:
            count = -1 if whole is None else whole - first
        if first != 0 or (count != whole and count != -1):
            result = _core.slice_axis(result, axis, first, count)
    return result


def stack(values: Sequence[TensorLike]) -> Tensor:
    """Along a new leading axis.

    Examples
    --------
    >>> openrnn.stack([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]).shape
    (3, 2)
    """
    return _core.stack(values)


def unstack(value: TensorLike) -> list[Tensor]:
    """The parts along the leading axis.

    Examples
    --------
    >>> [part.numpy().tolist() for part in openrnn.unstack([[1.0, 2.0], [3.0, 4.0]])]
    [[1.0, 2.0], [3.0, 4.0]]
    """
    return _core.unstack(value)


def transpose_leading(x: TensorLike) -> Tensor:
    """[A, B, ..] to [B, A, ..]: between time-major and batch-major.

    Examples
    --------
    >>> openrnn.transpose_leading(np.zeros((7, 2, 5), "float32")).shape
    (2, 7, 5)
    """
    return _core.transpose_leading(x)


def reverse_sequence(
    input: TensorLike,  # noqa: A002 - TensorFlow's name
    seq_lengths: TensorLike = None,
    time_major: bool = True,
) -> Tensor:
    """Each row's first steps in reverse, the rest as they are; no lengths: everything.

    Examples
    --------
    >>> x = openrnn.reshape([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], (2, 3, 1))
    >>> openrnn.reverse_sequence(x, [3, 2], time_major=False).numpy()[:, :, 0]
    array([[3., 2., 1.],
           [5., 4., 6.]], dtype=float32)
    """
    return _core.reverse_sequence(input, seq_lengths, time_major)


def one_hot(indices: TensorLike, depth: int, dtype: DTypeLike = float32) -> Tensor:
    """Rows of 0 with one 1; an index below 0 gives a row of 0.

    Examples
    --------
    >>> openrnn.one_hot([1, -1], 3).numpy()
    array([[0., 1., 0.],
           [0., 0., 0.]], dtype=float32)
    """
    return _core.one_hot(indices, depth, dtype)


def stop_gradient(input: TensorLike) -> Tensor:  # noqa: A002 - TensorFlow's name
    """The same value without history.

    Examples
    --------
    >>> w = openrnn.Variable(3.0)
    >>> with openrnn.GradientTape() as tape:
    ...     loss = w * openrnn.stop_gradient(w)
    >>> tape.gradient(loss, w).item()
    3.0
    """
    return _core.stop_gradient(input)


def clip_by_global_norm(
    t_list: Sequence[TensorLike], clip_norm: float
) -> tuple[list[Tensor | None], Tensor]:
    """Every tensor times clip_norm * min(1 / norm, 1 / clip_norm), and the norm of them all.

    None stays None. Raises ArgumentError for a norm that is not finite.

    Examples
    --------
    >>> clipped, norm = openrnn.clip_by_global_norm([[3.0], None, [4.0]], 1.0)
    >>> norm.item(), [one if one is None else round(one.item(), 4) for one in clipped]
    (5.0, [0.6, None, 0.8])
    """
    return _core.clip_by_global_norm(t_list, clip_norm)
