"""A recurrent call and its gradient on NumPy's arrays.

Letters: B batch, T time, I inputs, U units, D directions. x [B, T, I], states [B, U], mask [B, T]
of bool or None; y [B, T, D*U], or [B, D*U] of the last steps. Lists of arrays are as Place says.
"""

from __future__ import annotations

import itertools
import threading
from typing import Any

import numpy as np

from openrnn.errors import UnsupportedError
from openrnn.keras._cells import Place


def forward(
    place: Place, arrays: Any, mask: Any, saving: bool, threads: int = 0
) -> tuple[list[Any], Any]:
    """The outputs, and what backward needs, None without `saving`.

    `threads`: as PyTorch says, on whose threads the call and its backward run; 0: on ours.
    """
    x = arrays[0]
    batch, steps = x.shape[:2]
    width = place.directions * place.units
    shapes = place.outputs(
        (batch, steps, width) if place.flags[1] else (batch, width), (batch, place.units)
    )
    made = [None if shape is None else np.empty(shape, x.dtype) for shape in shapes]
    return made, place.cell.forward(arrays, mask, place.flags, saving, made, threads)


def backward(saved: Any, grads: Any, likes: Any, wanted: Any) -> list[Any]:
    """Gradients of arrays of those shapes and dtypes, None where not `wanted`.

    `grads` are those of the outputs, None for zeros.
    """
    made = [
        np.empty(*like) if like is not None and want else None
        for like, want in zip(likes, wanted, strict=True)
    ]
    saved.backward(list(grads), made)
    return made


def likes(arrays: Any) -> list[Any]:
    """Shape and dtype of each; None of None."""
    return [None if each is None else (each.shape, each.dtype) for each in arrays]


def present(arrays: Any) -> list[Any]:
    """Those that are there."""
    return [each for each in arrays if each is not None]


def unpacked(there: Any, arrays: Any) -> list[Any]:
    """The inverse: arrays at the places that are `there`, None elsewhere."""
    given = iter(arrays)
    return [next(given) if each else None for each in there]


# Saved calls that a graph of TensorFlow names by a number. A number without one is computed again,
# so that what no backward pass takes may be thrown away.
MOST_BYTES = 1 << 30
MOST_CALLS = 256
# The number of none.
NONE = np.array(0, np.int32)

_lock = threading.Lock()
_numbers = itertools.count(1)
_kept: dict[int, Any] = {}


def keep(saved: Any) -> np.ndarray[Any, Any]:
    """The number of a saved call, an int32."""
    with _lock:
        number = next(_numbers) & 0x7FFFFFFF
        _kept[number] = saved
        total = sum(each.bytes for each in _kept.values())
        while len(_kept) > 1 and (total > MOST_BYTES or len(_kept) > MOST_CALLS):
            total -= _kept.pop(next(iter(_kept))).bytes
    return np.array(number, np.int32)


def taken(place: Place, number: Any, arrays: Any, mask: Any) -> Any:
    """The saved call of a number, which is then free; computed again if it is not there."""
    with _lock:
        saved = _kept.pop(int(number), None)
    return forward(place, arrays, mask, True)[1] if saved is None else saved


def refuse_second() -> None:
    """Raises for a second derivative."""
    raise UnsupportedError(
        "[openrnn.keras] a second derivative of a recurrent layer, expected a first one: "
        "keras.layers's own has second ones"
    )
