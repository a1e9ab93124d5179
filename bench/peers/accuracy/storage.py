"""What float32 storage allows: networks in NumPy whose sums of products are made in float64 and
rounded once. Everything that an engine keeps or hands on (gates, h, c and the gradients of each) is
in the dtype, and what is done element by element is done in it, with multiply-adds rounded once."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from peers.workers.layout import Part

Array = NDArray[Any]
Gates = tuple[Array, ...]


def wide(array: Array) -> Array:
    """As float64."""
    return array.astype(np.float64)


def fused(a: Array, b: Array, c: Array) -> Array:
    """a * b + c, rounded once."""
    return (wide(a) * b + c).astype(a.dtype)


def tanh(a: Array) -> Array:
    """In float64, rounded once."""
    return np.tanh(wide(a)).astype(a.dtype)


def sigmoid(a: Array) -> Array:
    """In float64, rounded once."""
    with np.errstate(over="ignore"):
        return (1.0 / (1.0 + np.exp(-wide(a)))).astype(a.dtype)


class Lstm:
    """Gates i f g o. `forward` has their sums, split where a cell needs it; both give what is kept."""

    split = False

    @staticmethod
    def forward(a: Sequence[Array], h: Array, c: Array) -> tuple[Array, Array, Gates]:
        """(h, c, saved) of a step."""
        i, f, o = sigmoid(a[0]), sigmoid(a[1]), sigmoid(a[3])
        g = tanh(a[2])
        new = fused(f, c, i * g)
        return o * tanh(new), new, (i, f, g, o, c, new)

    @staticmethod
    def backward(dh: Array, dc: Array, saved: Gates) -> tuple[Gates, Gates, Array, Array]:
        """(input-side, recurrent-side gate gradients, direct part of dh', dc') of a step."""
        i, f, g, o, old, new = saved
        one, tc = np.ones_like(dh), tanh(new)
        dc = fused(dh * o, fused(-tc, tc, one), dc)
        da = (
            (dc * g) * (i * (one - i)), (dc * old) * (f * (one - f)),
            (dc * i) * fused(-g, g, one), (dh * tc) * (o * (one - o)),
        )  # fmt: skip
        return da, da, np.zeros_like(dh), dc * f


class Gru:
    """Gates r z n, the reset gate after the recurrent product."""

    split = True

    @staticmethod
    def forward(a: Sequence[Array], h: Array, c: Array) -> tuple[Array, Array, Gates]:
        """As Lstm's; the sums are r, z and of the candidate the input's and the recurrent part."""
        r, z = sigmoid(a[0]), sigmoid(a[1])
        n = tanh(fused(r, a[3], a[2]))
        return fused(z, h, (np.ones_like(z) - z) * n), c, (r, z, n, a[3], h)

    @staticmethod
    def backward(dh: Array, dc: Array, saved: Gates) -> tuple[Gates, Gates, Array, Array]:
        """As Lstm's."""
        r, z, n, part, old = saved
        one = np.ones_like(dh)
        dn = (dh * (one - z)) * fused(-n, n, one)
        dz = (dh * (old - n)) * (z * (one - z))
        dr = (dn * part) * (r * (one - r))
        return (dr, dz, dn), (dr, dz, dn * r), dh * z, dc


class Tanh:
    """A plain network."""

    split = False

    @staticmethod
    def forward(a: Sequence[Array], h: Array, c: Array) -> tuple[Array, Array, Gates]:
        """As Lstm's."""
        new = tanh(a[0])
        return new, c, (new,)

    @staticmethod
    def backward(dh: Array, dc: Array, saved: Gates) -> tuple[Gates, Gates, Array, Array]:
        """As Lstm's."""
        da = (dh * fused(-saved[0], saved[0], np.ones_like(dh)),)
        return da, da, np.zeros_like(dh), dc


CELLS: dict[str, Any] = {"lstm": Lstm, "gru": Gru, "rnn_tanh": Tanh}


@dataclass
class Direction:
    """One layer and direction over a whole sequence, in the order in which it runs."""

    cell: Any
    part: Part
    dtype: DTypeLike
    saved: list[Gates] = field(default_factory=list)

    def forward(self, x: Array, start: Sequence[Array]) -> tuple[Array, Array, Array]:
        """(y [T, B, U], h, c), from h and c of `start`, zero where it has none."""
        units = self.part.r.shape[1]
        zeros = [np.zeros((x.shape[1], units))] * (2 - len(start))
        h, c = (state.astype(self.dtype) for state in (*start, *zeros))
        self.x, recurrent = x, wide(self.part.r).T
        from_input, bias = wide(x) @ wide(self.part.w).T + self.part.bw, wide(self.part.br)
        outputs = [h]
        for row in from_input:
            other = wide(h) @ recurrent + bias
            sums = np.split(row + other, row.shape[1] // units, axis=1)
            if self.cell.split:
                sums[2:] = [row[:, 2 * units :], other[:, 2 * units :]]
            h, c, kept = self.cell.forward([a.astype(self.dtype) for a in sums], h, c)
            self.saved.append(kept)
            outputs.append(h)
        self.h = np.stack(outputs)
        return self.h[1:], h, c

    def backward(self, dy: Array) -> tuple[Array, Part]:
        """(dx in float64, gradients), from zero gradients of the last states."""
        input_side, recurrent_side = [], []
        carry = np.zeros(dy.shape[1:])
        dc = np.zeros(dy.shape[1:], self.dtype)
        for row, kept in zip(dy[::-1], self.saved[::-1], strict=True):
            dh = (row + carry).astype(self.dtype)
            inner, outer, direct, dc = self.cell.backward(dh, dc, kept)
            input_side.append(np.concatenate(inner, axis=1))
            recurrent_side.append(np.concatenate(outer, axis=1))
            carry = wide(recurrent_side[-1]) @ wide(self.part.r) + direct
        da, dq = wide(np.stack(input_side[::-1])), wide(np.stack(recurrent_side[::-1]))
        sums = (
            np.tensordot(da, wide(self.x), ((0, 1), (0, 1))),
            np.tensordot(dq, wide(self.h[:-1]), ((0, 1), (0, 1))),
            da.sum((0, 1)), dq.sum((0, 1)),
        )  # fmt: skip
        mine = Part(self.part.layer, self.part.direction, *(s.astype(self.dtype) for s in sums))
        return da @ wide(self.part.w), mine


def run(
    cell: str, parts: Sequence[Part], x: Array, r: Array, dtype: DTypeLike = np.float32,
    states: Sequence[Array] = (),
) -> tuple[dict[str, Array], list[Part]]:  # fmt: skip
    """(y, hn, cn, dx; gradients of the parts) of a network from `states`, h and of an LSTM c
    [L*D, B, U], zero where there are none; the loss is sum(y * r). Directions of a layer follow each
    other in `parts`."""
    both = 1 + max(part.direction for part in parts)
    nets = [Direction(CELLS[cell], part, dtype) for part in parts]
    y, last = x.astype(dtype), []
    for first in range(0, len(nets), both):
        outputs = []
        for place, net in enumerate(nets[first : first + both], first):
            way = -1 if net.part.direction else 1
            out, h, c = net.forward(y[::way], [state[place] for state in states])
            outputs.append(out[::way])
            last.append((h, c))
        y = np.concatenate(outputs, axis=2)
    dy, gradients = r.astype(dtype), []
    for first in reversed(range(0, len(nets), both)):
        pieces = np.split(dy, both, axis=2)
        total = 0.0
        for net, piece in zip(nets[first : first + both], pieces, strict=True):
            way = -1 if net.part.direction else 1
            dx, part = net.backward(piece[::way])
            total = total + dx[::way]
            gradients.append(part)
        dy = np.asarray(total).astype(dtype)
    found = {"y": y, "hn": np.stack([h for h, _ in last]), "dx": dy}
    if cell == "lstm":
        found["cn"] = np.stack([c for _, c in last])
    return found, sorted(gradients, key=lambda part: (part.layer, part.direction))
