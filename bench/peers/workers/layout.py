"""The parameters of a problem, cut out of their flat buffer.

The buffer is OpenRNN's (and cuDNN's): of each layer and direction the input matrices and then the
recurrent ones, gates stacked as rows in the order lstm i f g o, gru r z n; after all matrices the
biases likewise.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from peers.workers.server import Array, Task

GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1}


@dataclass(frozen=True)
class Part:
    """One layer and direction: W [G*U, in], R [G*U, U], bW and bR [G*U]."""

    layer: int
    direction: int
    w: Array
    r: Array
    bw: Array
    br: Array

    def reordered(self, order: Sequence[int]) -> "Part":
        """The gates in another order: `order[k]` is the gate that comes to place k."""

        def turn(array: Array) -> Array:
            return np.concatenate([np.split(array, len(order))[k] for k in order])

        return Part(
            self.layer, self.direction, turn(self.w), turn(self.r), turn(self.bw), turn(self.br)
        )


def shapes(task: Task) -> list[tuple[int, int, int, int]]:
    """(layer, direction, rows, input width) of every part."""
    units, directions = task.number("units"), task.number("directions", 1)
    rows = GATES[task.text("cell")] * units
    return [
        (layer, direction, rows, task.number("input") if layer == 0 else directions * units)
        for layer in range(task.number("layers"))
        for direction in range(directions)
    ]


def parts_of(task: Task) -> list[Part]:
    """Every layer and direction of the problem."""
    buffer = np.asarray(task.array("params"), np.float32)
    units, at = task.number("units"), 0
    matrices: list[tuple[Array, Array]] = []
    for _, _, rows, width in shapes(task):
        w = buffer[at : at + rows * width].reshape(rows, width)
        at += rows * width
        matrices.append((w, buffer[at : at + rows * units].reshape(rows, units)))
        at += rows * units
    found = []
    for (layer, direction, rows, _), (w, r) in zip(shapes(task), matrices, strict=True):
        found.append(
            Part(layer, direction, w, r, buffer[at : at + rows], buffer[at + rows : at + 2 * rows])
        )
        at += 2 * rows
    return found


def buffer_of(parts: Sequence[Part]) -> Array:
    """The flat buffer again, of gradients for instance."""
    matrices = [array.reshape(-1) for part in parts for array in (part.w, part.r)]
    biases = [array.reshape(-1) for part in parts for array in (part.bw, part.br)]
    return np.concatenate(matrices + biases)
