"""The compatible cells beside NumPy: the same buffer, seen as the cells' variables."""

from dataclasses import dataclass

import numpy as np
import openrnn
from model import numpy_layout
from table.support import array, draw, make_spec


def rnn_cell():
    return openrnn.nn.rnn_cell


@dataclass(frozen=True)
class CellKind:
    """One cell: its mode, name, and variables by suffix with their shapes for (I, U)."""

    mode: str
    name: str
    variables: tuple

    def make(self, units, **kw):
        rnn = openrnn.cudnn_rnn
        return {
            "lstm": lambda: rnn.CudnnCompatibleLSTMCell(units, **kw),
            "gru": lambda: rnn.CudnnCompatibleGRUCell(units, **kw),
            "rnn_tanh": lambda: rnn_cell().BasicRNNCell(units, **kw),
            "rnn_relu": lambda: rnn_cell().BasicRNNCell(units, activation="relu", **kw),
        }[self.mode]()

    def shapes(self, inputs, units):
        return {suffix: tuple(f(inputs, units)) for suffix, f in self.variables}


CELLS = [
    CellKind("lstm", "cudnn_compatible_lstm_cell", (
        ("kernel", lambda i, u: (i + u, 4 * u)), ("bias", lambda i, u: (4 * u,)))),
    CellKind("gru", "cudnn_compatible_gru_cell", (
        ("gates/kernel", lambda i, u: (i + u, 2 * u)), ("gates/bias", lambda i, u: (2 * u,)),
        ("candidate/input_projection/kernel", lambda i, u: (i, u)),
        ("candidate/hidden_projection/kernel", lambda i, u: (u, u)),
        ("candidate/input_projection/bias", lambda i, u: (u,)),
        ("candidate/hidden_projection/bias", lambda i, u: (u,)))),
    CellKind("rnn_tanh", "basic_rnn_cell", (
        ("kernel", lambda i, u: (i + u, u)), ("bias", lambda i, u: (u,)))),
    CellKind("rnn_relu", "basic_rnn_cell", (
        ("kernel", lambda i, u: (i + u, u)), ("bias", lambda i, u: (u,)))),
]  # fmt: skip


def fill_variables(seed=3):
    """Distinct numbers in every variable of the graph; {name: array}."""
    found = {}
    for k, variable in enumerate(openrnn.global_variables()):
        variable.assign(draw(*variable.shape, seed=seed + k, dtype=variable.dtype))
        found[variable.name] = array(variable).copy()
    return found


def buffer_of(cell_kind, values, direction="unidirectional", scope="", **sizes):
    """(spec, opaque buffer) of cells that stand where TensorFlow's stand in a stack."""
    kind = type("Named", (), {"mode": cell_kind.mode})
    spec = make_spec(kind, direction, **sizes)
    return spec, numpy_layout.from_tf(spec, {k: np.asarray(v) for k, v in values.items()}, scope)


def flat_state(state):
    """h, or [h, c] of an LSTMStateTuple."""
    return [array(state.h), array(state.c)] if hasattr(state, "c") else [array(state)]
