"""What the package answers to wrong arguments, and at the edge of what it takes, word for word.

tests/golden/python_answers.txt holds the calls, each with its answer in the line behind it: an
error, or a value. OPENRNN_REGENERATE_GOLDEN=1 writes the answers anew; a new row is a line with a
call.
"""

import os
from pathlib import Path

import ml_dtypes
import numpy as np
import openrnn
import pytest
from openrnn import cudnn_rnn, initializers, layers, losses, nn, regularizers, train
from openrnn.cudnn_rnn import ops
from openrnn.nn import rnn_cell

KEPT = Path(__file__).resolve().parents[2] / "golden" / "python_answers.txt"
MARK = "    "


def dense():
    """A layer that is built, of three inputs and two units."""
    layer = layers.Dense(2, kernel_initializer="ones", name="dense")
    layer.build((None, 3))
    return layer


def model():
    """An input of three numbers, and a layer of two units."""
    given = openrnn.Input((3,), name="given")
    return openrnn.Model(given, layers.Dense(2, kernel_initializer="ones", name="dense")(given))


def fit(network=None, data=None, loss="mean_squared_error", **more):
    """train.fit() of five samples, quietly."""
    data = (np.ones((5, 3), "float32"), np.ones((5, 2), "float32")) if data is None else data
    given = {"optimizer": train.GradientDescentOptimizer(0.125), "progress": False, **more}
    return train.fit(model() if network is None else network, data, loss, **given)


class NoCall(layers.Layer):
    """A layer of a user's without a call()."""


class NoResult(layers.Layer):
    """A layer of a user's whose call() forgets its result."""

    def call(self, x):
        """Nothing."""


class NoCell(rnn_cell.RNNCell):
    """A cell of a user's without a call()."""

    state_size = output_size = 2


class NoPair(NoCell):
    """A cell of a user's whose call() returns what it is told."""

    def __init__(self, result, state_size=2):
        super().__init__(name="own")
        self.result, self.state_size = result, state_size

    def call(self, inputs, state):
        """The same each time."""
        return self.result


def names():
    """What a row may use; variables are new for each."""
    return {
        "np": np, "openrnn": openrnn, "cudnn_rnn": cudnn_rnn, "initializers": initializers,
        "layers": layers, "losses": losses, "nn": nn, "regularizers": regularizers, "train": train, "ops": ops,
        "rnn_cell": rnn_cell, "dense": dense, "model": model, "fit": fit, "NoCall": NoCall,
        "NoResult": NoResult, "NoCell": NoCell, "NoPair": NoPair, "bfloat16": ml_dtypes.bfloat16,
        "x": np.arange(6, dtype="float32").reshape(2, 3),
        "w": openrnn.Variable([1.0, 2.0], name="w"), "sgd": train.GradientDescentOptimizer(0.125),
    }  # fmt: skip


def plain(value):
    """Tensors and arrays as nested lists."""
    if type(value) in (list, tuple):
        return type(value)(plain(one) for one in value)
    value = value.numpy() if hasattr(value, "numpy") else value
    return value.tolist() if hasattr(value, "tolist") else value


def answer(call):
    """In one line."""
    with openrnn.Graph().as_default():
        try:
            value = eval(call, names())  # noqa: S307 - a row of a file of ours
        except Exception as error:  # noqa: BLE001 - of any class: that is what is looked at
            return f"{type(error).__name__}: {error}".replace("\n", "\\n")
    return f"= {plain(value)!r}"


@pytest.mark.filterwarnings("ignore")
def test_answers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = KEPT.read_text(encoding="utf-8").splitlines()
    calls = [line for line in lines if not line.startswith(MARK)]
    found = [line for call in calls for line in (call, MARK + answer(call))]
    if os.environ.get("OPENRNN_REGENERATE_GOLDEN"):
        KEPT.write_text("".join(f"{line}\n" for line in found), encoding="utf-8")
        lines = found
    assert found == lines
    assert len(calls) == len(set(calls))
