"""A recurrent call and its gradient on NumPy's arrays.

x [B, T, I], states [B, U], mask [B, T] of bool or None; y [B, T, U], or [B, U] of the last step.
"""

from __future__ import annotations

import itertools
import threading
from typing import Any

import numpy as np

from openrnn.errors import UnsupportedError
from openrnn.keras._cells import Place


def forward(place: Place, arrays: Any, mask: Any, saving: bool) -> tuple[Any, Any, Any, Any]:
    """y, hn, cn (None without a c), and what backward needs, None without `saving`.

    `arrays` are x, h0, c0, kernel, recurrent_kernel and bias, None where there is none.
    """
    x, h0, c0, kernel, recurrent, bias = arrays
    batch, steps = x.shape[:2]
    shape = (batch, steps, place.units) if place.flags[1] else (batch, place.units)
    y = np.empty(shape, x.dtype)
    hn = np.empty((batch, place.units), x.dtype)
    cn = np.empty((batch, place.units), x.dtype) if place.lstm else None
    weights = (kernel, recurrent, bias)
    saved = place.cell.forward(x, h0, c0, weights, mask, place.flags, saving, (y, hn, cn))
    return y, hn, cn, saved


def backward(saved: Any, grads: Any, likes: Any, wanted: Any) -> list[Any]:
    """Gradients of arrays of those shapes and dtypes, None where not `wanted`.

    `grads` are those of y, hn and cn, None for zeros.
    """
    made = [
        np.empty(*like) if like is not None and want else None
        for like, want in zip(likes, wanted, strict=True)
    ]
    saved.backward(tuple(grads), tuple(made[:3]), tuple(made[3:]))
    return made


def likes(arrays: Any) -> list[Any]:
    """Shape and dtype of each; None of None."""
    return [None if each is None else (each.shape, each.dtype) for each in arrays]


# Saved calls that a graph names by a number. A number without one is computed again, so that what
# no backward pass takes may be thrown away.
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
    return forward(place, arrays, mask, True)[3] if saved is None else saved


def refuse_second() -> None:
    """Raises for a second derivative."""
    raise UnsupportedError(
        "[openrnn.keras] a second derivative of a recurrent layer, expected a first one: "
        "keras.layers's own has second ones"
    )
