"""Networks with the options of a cell: their names, their parameters, in NumPy.

Written from docs/cells_reference.md alone.
"""

from dataclasses import dataclass, fields

import numpy as np

from model.numpy_layout import Spec

PEEPHOLES = (0, 1, 3)  # i, f and o among the gates i, f, c, o


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


def shapes(spec):
    """Per pseudo-layer (matrices, biases, peepholes), each a list of shapes by slot."""
    units, gates = spec.num_units, spec.num_gates
    found = []
    for pseudo in range(spec.num_pseudo):
        layer = pseudo // spec.num_dirs
        width = 0 if layer == 0 and spec.skip else spec.input_width(layer)
        matrices = [(units, width)] * gates + [(units, spec.state_width)] * gates
        if spec.num_proj:
            matrices.append((spec.num_proj, units))
        biases = [(units,)] * (gates * spec.biases_per_gate)
        found.append((matrices, biases, [(units,)] * (3 * spec.use_peepholes)))
    return found


def params_size(spec):
    return sum(int(np.prod(shape)) for parts in shapes(spec) for part in parts for shape in part)


def split(spec, buffer):
    """Per pseudo-layer (matrices, biases, peepholes) of a buffer [..., size]: in it are all
    matrices, then all biases, then all peepholes, each by layer and direction."""
    every, found, at = shapes(spec), [([], [], []) for _ in range(spec.num_pseudo)], 0
    for part in range(3):
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
    return np.concatenate([np.ravel(t) for n in range(3) for p in parts for t in p[n]])
