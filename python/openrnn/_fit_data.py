"""Batches of what fit(), evaluate() and predict() are given."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from openrnn import _arguments, _core
from openrnn._structure import flatten, pack
from openrnn.errors import ArgumentError


class Axes(NamedTuple):
    """Where the samples of a batch lie."""

    x: int
    y: int


class Batch(NamedTuple):
    """Inputs, labels and the number of samples."""

    x: Any
    y: Any
    size: int


def as_axes(call: str, batch_axis: Any) -> Axes:
    """One axis for inputs and labels, or one of each."""
    if not isinstance(batch_axis, (tuple, list)):
        axis = _arguments.as_integer(call, "batch_axis", batch_axis)
        batch_axis = (axis, axis)
    if len(batch_axis) != 2:
        raise ArgumentError(
            f"[{call}] batch_axis has {len(batch_axis)} parts, expected one axis, or those of "
            "inputs and labels"
        )
    axes = Axes(*(_arguments.as_integer(call, "batch_axis", one) for one in batch_axis))
    if min(axes) < 0:
        raise ArgumentError(f"[{call}] batch_axis is {tuple(axes)}, expected 0 or more")
    return axes


def positive(call: str, name: str, value: Any) -> int:
    """An integer of at least 1."""
    number = _arguments.as_integer(call, name, value)
    if number < 1:
        raise ArgumentError(f"[{call}] {name} is {number}, expected 1 or more")
    return number


def _array(call: str, name: str, value: Any) -> NDArray[Any]:
    if isinstance(value, (_core.Tensor, _core.Variable)):
        return value.numpy()
    array = np.asarray(value)
    if array.dtype == object:
        raise ArgumentError(f"[{call}] {name} is no array of numbers, expected one")
    return array


def _is_tensor(value: Any) -> bool:
    """Of a library whose slices are NumPy's."""
    return hasattr(value, "__dlpack__") and not isinstance(value, _core.Variable)


def _is_several(value: Any) -> bool:
    """Whether it is a list or tuple of arrays, not one array of lists."""
    return isinstance(value, (tuple, list)) and any(
        hasattr(one, "__array__") or hasattr(one, "__dlpack__") for one in flatten(value)
    )


class Samples:
    """An array with its samples along an axis; a list or tuple of arrays is several of them.

    Of several, those of one dimension, such as lengths, have them along that. `kept`: tensors of
    any library stay what they are; else all becomes arrays of NumPy.
    """

    def __init__(
        self, call: str, name: str, value: Any, axis: int, kept: bool = False
    ) -> None:
        several = _is_several(value)
        self._form = value if several else None
        given = flatten(value) if several else [value]
        self._arrays = [one if kept and _is_tensor(one) else _array(call, name, one)
                        for one in given]  # fmt: skip
        self._axes = [0 if several and array.ndim == 1 else axis for array in self._arrays]
        sizes = set()
        for array, along in zip(self._arrays, self._axes):
            if array.ndim <= along:
                raise ArgumentError(
                    f"[{call}] {name} has shape {tuple(array.shape)}, expected more than {along} "
                    f"dimensions, as batch_axis is {along}"
                )
            sizes.add(array.shape[along])
        if len(sizes) != 1:
            raise ArgumentError(
                f"[{call}] {name} has {sorted(sizes)} samples, expected one number of all its arrays"
            )
        self.count = int(sizes.pop())
        if self.count == 0:
            raise ArgumentError(f"[{call}] the data has no samples, expected some")

    def take(self, rows: NDArray[Any]) -> Any:
        """Those samples, in the structure of what was given."""
        taken = [np.take(array, rows, axis=axis) for array, axis in zip(self._arrays, self._axes)]
        return pack(self._form, iter(taken))

    def part(self, first: int, count: int) -> Any:
        """`count` samples from `first` on, in the structure of what was given."""
        chosen = slice(first, first + count)
        cut = [array[(slice(None),) * axis + (chosen,)]
               for array, axis in zip(self._arrays, self._axes)]  # fmt: skip
        return pack(self._form, iter(cut))


def pieces(rows: NDArray[Any], size: int) -> Iterator[NDArray[Any]]:
    """The rows in groups of that size, the last one of what is left."""
    return (rows[start : start + size] for start in range(0, len(rows), size))


class Arrays:
    """Arrays (x, y), each with the samples along its axis, cut into batches.

    A list or tuple as x is one of several inputs.
    """

    def __init__(self, call: str, x: Any, y: Any, batch_size: int, axes: Axes) -> None:
        self._batch_size = batch_size
        self._x, self._y = Samples(call, "x", x, axes.x), Samples(call, "y", y, axes.y)
        self.samples = self._x.count
        if self._y.count != self.samples:
            raise ArgumentError(
                f"[{call}] x has {self.samples} samples along axis {axes.x} and y {self._y.count} "
                f"along axis {axes.y}, expected as many (batch_axis)"
            )

    def batches(self, order: NDArray[Any] | None) -> Iterator[Batch]:
        """The batches of one epoch, the samples in that order."""
        rows = np.arange(self.samples) if order is None else order
        for part in pieces(rows, self._batch_size):
            yield Batch(self._x.take(part), self._y.take(part), len(part))


class BatchRows:
    """A batch to cut into parts."""

    def __init__(self, batch: Batch, axes: Axes) -> None:
        self._x = Samples("fit", "the x of a batch", batch.x, axes.x, kept=True)
        self._y = Samples("fit", "the y of a batch", batch.y, axes.y, kept=True)
        if self._x.count != batch.size:
            raise ArgumentError(
                f"[fit] x has {self._x.count} samples along axis {axes.x} and y {batch.size} along "
                f"axis {axes.y}, expected as many (batch_axis)"
            )

    def part(self, first: int, count: int) -> Batch:
        """`count` samples from `first` on."""
        return Batch(self._x.part(first, count), self._y.part(first, count), count)


class Batches:
    """An iterable of batches (x, y), or a function that returns one for each epoch."""

    def __init__(
        self, call: str, source: Any, axes: Axes, steps: int | None, epochs: int
    ) -> None:
        self._call, self._axes, self._steps = call, axes, steps
        self._make: Callable[[], Iterator[Any]]
        if callable(source) and not isinstance(source, Iterable):
            self._make = lambda: iter(source())
        elif isinstance(source, Iterator):
            if steps is None and epochs > 1:
                raise ArgumentError(
                    f"[{call}] the data is a {type(source).__name__}, which ends with its first "
                    f"epoch, and epochs is {epochs}: expected a list of batches, a function that "
                    "returns a new iterator, or for the data of training steps_per_epoch"
                )
            self._make = lambda: source
        else:
            self._make = lambda: iter(source)

    def batches(self, order: NDArray[Any] | None) -> Iterator[Batch]:
        """The batches of one epoch, as they come."""
        taken = 0
        source = self._make()
        while self._steps is None or taken < self._steps:
            try:
                one = next(source)
            except StopIteration:
                break
            taken += 1
            yield self._checked(one)
        if taken == 0 or (self._steps is not None and taken < self._steps):
            wanted = "some" if self._steps is None else f"{self._steps}, the steps of an epoch"
            raise ArgumentError(f"[{self._call}] the data gave {taken} batches, expected {wanted}")

    def _checked(self, one: Any) -> Batch:
        if not isinstance(one, (tuple, list)) or len(one) != 2:
            raise ArgumentError(
                f"[{self._call}] a batch is a {type(one).__name__}, expected a pair (x, y)"
            )
        x, y = one
        shape = np.shape(flatten(y)[0] if _is_several(y) else y)
        if len(shape) <= self._axes.y or shape[self._axes.y] == 0:
            raise ArgumentError(
                f"[{self._call}] the labels of a batch have shape {shape}, expected samples along "
                f"axis {self._axes.y} (batch_axis)"
            )
        return Batch(x, y, int(shape[self._axes.y]))


Data = Arrays | Batches


def as_data(
    call: str, given: Any, batch_size: int, axes: Axes, steps: int | None, epochs: int
) -> Data:
    """Two arrays in a tuple, or what gives batches."""
    if isinstance(given, tuple) and len(given) == 2 and not _is_pair_of_batches(given):
        if steps is not None:
            raise ArgumentError(
                f"[{call}] steps_per_epoch is {steps} with arrays, expected it with an iterator "
                "of batches alone"
            )
        return Arrays(call, *given, batch_size, axes)
    if isinstance(given, (str, bytes, dict)) or not (
        isinstance(given, Iterable) or callable(given)
    ):
        raise TypeError(
            f"[{call}] data is a {type(given).__name__}, expected a pair of arrays (x, y), an "
            "iterable of such batches, or a function that returns one"
        )
    if hasattr(given, "__array__"):
        raise TypeError(
            f"[{call}] data is one array of type {type(given).__name__}, expected a pair (x, y)"
        )
    return Batches(call, given, axes, steps, epochs)


def _is_pair_of_batches(given: Any) -> bool:
    return all(
        isinstance(one, tuple) and len(one) == 2 and _is_several(one) for one in given
    )
