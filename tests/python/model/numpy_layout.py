"""What the parameters of a recurrent network are and where each one lies, in NumPy.

A second specification: it shares nothing with the C++ code and reads like the definition.
T time, B batch, I input size, U units, P projection, L layers, D directions, O = P or U, G gates.
A pseudo-layer p = layer * D + direction. Matrices act on column vectors: [rows = U, width].
"""

from dataclasses import dataclass

import numpy as np

GATES = {"lstm": "ifco", "gru": "rzn", "rnn_tanh": "h", "rnn_relu": "h"}
CELL_NAMES = {
    "lstm": "cudnn_compatible_lstm_cell",
    "gru": "cudnn_compatible_gru_cell",
    "rnn_tanh": "basic_rnn_cell",
    "rnn_relu": "basic_rnn_cell",
}


@dataclass(frozen=True)
class Spec:
    """One network. num_proj 0: no projection; cell_clip: None or (lowest, highest) of an LSTM."""

    mode: str
    num_layers: int
    num_units: int
    input_size: int
    input_mode: str = "linear_input"
    direction: str = "unidirectional"
    num_proj: int = 0
    cell_clip: tuple = None

    @property
    def has_cell(self):
        """Whether there is a second state: of an lstm, and of a gru with a projection."""
        return self.mode == "lstm" or (self.mode == "gru" and self.num_proj > 0)

    @property
    def num_gates(self):
        return len(GATES[self.mode])

    @property
    def num_dirs(self):
        return 2 if self.direction == "bidirectional" else 1

    @property
    def num_pseudo(self):
        return self.num_layers * self.num_dirs

    @property
    def skip(self):
        """Whether layer 0 has no input matrices."""
        same = self.input_size == self.num_units
        return self.input_mode == "skip_input" or (self.input_mode == "auto_select" and same)

    @property
    def state_width(self):
        """O: the width of h, which is that of one direction's output."""
        return self.num_proj or self.num_units

    def input_width(self, layer):
        """in_l: what enters every direction of the layer."""
        return self.input_size if layer == 0 else self.num_dirs * self.state_width


@dataclass(frozen=True)
class Region:
    """One matrix or bias inside the opaque buffer; a missing input matrix has shape (U, 0)."""

    pseudo: int
    slot: int
    shape: tuple
    offset: int

    @property
    def size(self):
        return int(np.prod(self.shape))


def _weight_shapes(spec, layer):
    units, gates = spec.num_units, spec.num_gates
    width = 0 if layer == 0 and spec.skip else spec.input_width(layer)
    shapes = [(units, width)] * gates + [(units, spec.state_width)] * gates
    return shapes + ([(spec.num_proj, units)] if spec.num_proj else [])


def regions(spec):
    """(weights, biases): all matrices by pseudo-layer and slot, then all biases, without gaps."""
    weights, biases, offset = [], [], 0
    for pseudo in range(spec.num_pseudo):
        for slot, shape in enumerate(_weight_shapes(spec, pseudo // spec.num_dirs)):
            weights.append(Region(pseudo, slot, shape, offset))
            offset += weights[-1].size
    for pseudo in range(spec.num_pseudo):
        for slot in range(2 * spec.num_gates):
            biases.append(Region(pseudo, slot, (spec.num_units,), offset))
            offset += spec.num_units
    return weights, biases


def params_size(spec):
    last = regions(spec)[1][-1]
    return last.offset + last.size


def params_to_canonical(spec, buffer):
    """(list of matrices, list of biases), layer by layer, forward before backward, slot by slot."""
    assert buffer.shape == (params_size(spec),), buffer.shape
    return tuple(
        [buffer[r.offset : r.offset + r.size].reshape(r.shape) for r in part]
        for part in regions(spec)
    )


def canonical_to_params(spec, weights, biases):
    """The inverse; every tensor is taken flat."""
    parts = [np.ravel(tensor) for tensor in list(weights) + list(biases)]
    wanted = [r.size for part in regions(spec) for r in part]
    assert [p.size for p in parts] == wanted, ([p.size for p in parts], wanted)
    return np.concatenate(parts)


def pseudo_layers(spec, buffer):
    """Per pseudo-layer its (weights, biases), each a list by slot."""
    weights, biases = params_to_canonical(spec, buffer)
    per_weights, per_biases = len(weights) // spec.num_pseudo, 2 * spec.num_gates
    return [
        (
            weights[p * per_weights : (p + 1) * per_weights],
            biases[p * per_biases : (p + 1) * per_biases],
        )
        for p in range(spec.num_pseudo)
    ]


# ---- The format of TensorFlow's cells ------------------------------------------------------------


def cell_prefix(spec, pseudo, scope=""):
    """Where TensorFlow's own cells keep the variables of this pseudo-layer."""
    layer, direction = divmod(pseudo, spec.num_dirs)
    cell = CELL_NAMES[spec.mode]
    if spec.num_dirs == 1:
        name = f"rnn/multi_rnn_cell/cell_{layer}/{cell}"
    else:
        side = ("fw", "bw")[direction]
        name = f"stack_bidirectional_rnn/cell_{layer}/bidirectional_rnn/{side}/{cell}"
    return f"{scope}/{name}" if scope else name


def _joined(weights, gates, slots):
    """[W | R] per gate, the gates stacked as rows, transposed: [in_l + O, len(slots) * U]."""
    return np.vstack([np.hstack([weights[k], weights[gates + k]]) for k in slots]).T


def _pseudo_to_tf(spec, weights, biases):
    gates = spec.num_gates
    summed = [biases[k] + biases[gates + k] for k in range(gates)]
    if spec.mode == "gru":
        kernels = [
            ("gates/kernel", _joined(weights, gates, (0, 1))),
            ("candidate/input_projection/kernel", weights[2].T),
            ("candidate/hidden_projection/kernel", weights[5].T),
        ]
        vectors = [
            ("gates/bias", np.concatenate(summed[:2])),
            ("candidate/input_projection/bias", biases[2]),
            ("candidate/hidden_projection/bias", biases[5]),
        ]
        return kernels, vectors
    # TensorFlow's LSTM cells have the blocks i, c, f, o.
    order = (0, 2, 1, 3) if spec.mode == "lstm" else (0,)
    kernels = [("kernel", _joined(weights, gates, order))]
    if spec.num_proj:
        kernels.append(("projection/kernel", weights[8].T))
    return kernels, [("bias", np.concatenate([summed[k] for k in order]))]


def to_tf(spec, buffer, scope=""):
    """All (name, tensor) pairs: the kernels of every pseudo-layer, then the biases of every one."""
    kernels, vectors = [], []
    for pseudo, (weights, biases) in enumerate(pseudo_layers(spec, buffer)):
        prefix = cell_prefix(spec, pseudo, scope)
        for found, out in zip(_pseudo_to_tf(spec, weights, biases), (kernels, vectors)):
            out.extend((f"{prefix}/{suffix}", tensor) for suffix, tensor in found)
    return kernels + vectors


def _split_joined(kernel, slots, units, width, weights, gates):
    for block, k in enumerate(slots):
        joined = kernel[:, block * units : (block + 1) * units].T
        weights[k], weights[gates + k] = joined[:, :width], joined[:, width:]


def _pseudo_from_tf(spec, pseudo, tensors):
    units, gates = spec.num_units, spec.num_gates
    width = _weight_shapes(spec, pseudo // spec.num_dirs)[0][1]
    weights, biases = [None] * (2 * gates), [None] * (2 * gates)
    gru = spec.mode == "gru"
    order = (0, 1) if gru else (0, 2, 1, 3) if spec.mode == "lstm" else (0,)
    prefix = "gates/" if gru else ""
    _split_joined(tensors[prefix + "kernel"], order, units, width, weights, gates)
    for block, k in enumerate(order):
        half = 0.5 * tensors[prefix + "bias"][block * units : (block + 1) * units]
        biases[k], biases[gates + k] = half, half
    if gru:
        for slot, side in ((2, "input"), (5, "hidden")):
            weights[slot] = tensors[f"candidate/{side}_projection/kernel"].T
            biases[slot] = tensors[f"candidate/{side}_projection/bias"]
    if spec.num_proj:
        weights.append(tensors["projection/kernel"].T)
    return weights, biases


def from_tf(spec, tensors, scope=""):
    """The buffer from named tensors; a summed bias is put half into each of its two places."""
    weights, biases = [], []
    for pseudo in range(spec.num_pseudo):
        prefix = cell_prefix(spec, pseudo, scope) + "/"
        own = {name[len(prefix) :]: t for name, t in tensors.items() if name.startswith(prefix)}
        found = _pseudo_from_tf(spec, pseudo, own)
        weights += found[0]
        biases += found[1]
    return canonical_to_params(spec, weights, biases)
