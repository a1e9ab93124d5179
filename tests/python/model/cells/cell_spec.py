"""Networks with the options of a cell: their names, their parameters, in NumPy.

Written from docs/cells_reference.md alone.
"""

from dataclasses import dataclass, fields

import numpy as np

from model.numpy_layout import Spec

PEEPHOLES = (0, 1, 3)  # i, f and o among the gates i, f, c, o
PARTS = 5


@dataclass(frozen=True)
class CellSpec(Spec):
    """A network; every field after those of Spec is an option of openrnn by its name.

    An activation is a text such as "leaky_relu(0.1)", or None for the cell's own."""

    forget_bias: float = 0.0
    reset_after: bool = True
    activation: str = None
    recurrent_activation: str = None
    output_activation: str = None
    use_peepholes: bool = False
    coupled_gates: bool = False
    proj_clip: tuple = None
    gate_clip: tuple = None
    use_bias: bool = True
    single_bias: bool = False
    layer_norm: str = None
    layer_norm_cell: str = None
    layer_norm_epsilon: float = 1e-5
    zoneout: float = 0.0
    zoneout_cell: float = 0.0
    recurrent_dropout: float = 0.0
    recurrent_dropout_form: str = "state"

    @property
    def options(self):
        """Those that are not at their defaults, by name."""
        own = [f for f in fields(CellSpec) if f.name == "cell_clip" or f not in fields(Spec)]
        values = {f.name: (getattr(self, f.name), f.default) for f in own}
        return {name: value for name, (value, default) in values.items() if value != default}

    @property
    def biases_per_gate(self):
        return 0 if not self.use_bias else 1 if self.single_bias else 2

    @property
    def gains_per_gate(self):
        return {None: 0, "gates": 1}.get(self.layer_norm, 2)


def shapes(spec):
    """Per pseudo-layer (matrices, biases, peepholes, gains of gates, gain and bias of the cell), each
    a list of shapes by slot."""
    units, gates = spec.num_units, spec.num_gates
    found = []
    for pseudo in range(spec.num_pseudo):
        layer = pseudo // spec.num_dirs
        width = 0 if layer == 0 and spec.skip else spec.input_width(layer)
        matrices = [(units, width)] * gates + [(units, spec.state_width)] * gates
        if spec.num_proj:
            matrices.append((spec.num_proj, units))
        biases = [(units,)] * (gates * spec.biases_per_gate)
        gains = [(units,)] * (gates * spec.gains_per_gate)
        cell = [(units,)] * (2 * (spec.layer_norm_cell is not None))
        found.append((matrices, biases, [(units,)] * (3 * spec.use_peepholes), gains, cell))
    return found


def params_size(spec):
    return sum(int(np.prod(shape)) for parts in shapes(spec) for part in parts for shape in part)


def split(spec, buffer):
    """The parts of `shapes` per pseudo-layer of a buffer [..., size]: in it are all matrices, then
    all biases, then all peepholes and so on, each by layer and direction."""
    every, at = shapes(spec), 0
    found = [tuple([] for _ in range(PARTS)) for _ in range(spec.num_pseudo)]
    for part in range(PARTS):
        for pseudo, parts in enumerate(every):
            for shape in parts[part]:
                size = int(np.prod(shape))
                piece = buffer[..., at : at + size]
                found[pseudo][part].append(piece.reshape(*buffer.shape[:-1], *shape))
                at += size
    assert at == buffer.shape[-1], (at, buffer.shape)
    return found


def join(parts):
    """The buffer again, from what `split` gives."""
    return np.concatenate([np.ravel(t) for n in range(PARTS) for p in parts for t in p[n]])
