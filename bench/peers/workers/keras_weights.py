"""The parameters of a problem as the weights of Keras's layers, and their gradients out of them."""

import numpy as np

from peers.workers import layout
from peers.workers.server import Array

# The place of OpenRNN's gate at each place of Keras's (lstm i f c o, gru z r h), and back.
ORDERS = {"lstm": (0, 1, 2, 3), "gru": (1, 0, 2), "rnn_tanh": (0,)}


def weights_of(cell: str, part: layout.Part) -> list[Array]:
    """Kernel, recurrent kernel and bias (gru has both biases, the others their sum)."""
    ordered = part.reordered(ORDERS[cell])
    bias = np.stack([ordered.bw, ordered.br]) if cell == "gru" else ordered.bw + ordered.br
    return [np.ascontiguousarray(ordered.w.T), np.ascontiguousarray(ordered.r.T), bias]


def part_of(cell: str, like: layout.Part, arrays: list[Array]) -> layout.Part:
    """The inverse for gradients: that of a sum is that of both."""
    kernel, recurrent, bias = arrays
    bw, br = (bias[0], bias[1]) if cell == "gru" else (bias, bias)
    part = layout.Part(like.layer, like.direction, kernel.T, recurrent.T, bw, br)
    return part.reordered(ORDERS[cell])  # an exchange of two is its own inverse
