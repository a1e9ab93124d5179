"""Engines against ONNX Runtime's LSTM, GRU and RNN with every attribute that they have; and what
ONNX Runtime does where ONNX's text leaves it open, which docs/cells_reference.md says."""

from itertools import product

import numpy as np
import pytest

pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")

import onnx_cells
import rnn_capi
from model.cells import cell_problems
from model.cells.cell_activations import FUNCTIONS, sigmoid
from model.cells.cell_spec import CellSpec

ACTIVATIONS = [
    *(name for name in FUNCTIONS if name != "linear"), "affine(0.5, 0.25)", "leaky_relu(0.3)",
    "thresholded_relu(0.25)", "scaled_tanh(1.25, 0.5)", "hard_sigmoid(0.5, 0.375)", "elu(0.75)",
]  # fmt: skip
PLACES = ["activation", "recurrent_activation", "output_activation"]


def check(spec, lengths):
    # For a row of length zero ONNX Runtime gives zeros in place of the initial state.
    lengths = np.array([4, 1, 3]) if lengths else None
    problem = cell_problems.make(spec, dtype=np.float32, lengths=lengths)
    wanted = onnx_cells.run(problem)
    for engine in ["reference", "cpu"]:
        cell_problems.assert_close(rnn_capi.run(engine, problem), wanted, np.float32)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize(
    "mode,place",
    [*product(["lstm"], PLACES), *product(["gru"], PLACES[:2]), ("rnn_tanh", PLACES[0])],
)
def test_each_activation(activation, mode, place):
    spec = CellSpec(mode, 1, 5, 3, direction="bidirectional", **{place: activation})
    check(spec, "mixed")


@pytest.mark.parametrize("lengths", [None, "mixed"])
@pytest.mark.parametrize("direction", ["unidirectional", "bidirectional"])
@pytest.mark.parametrize("clip", [None, (-0.5, 0.5)])
@pytest.mark.parametrize("peepholes", [False, True])
@pytest.mark.parametrize("coupled", [False, True])
@pytest.mark.parametrize("use_bias", [True, False])
@pytest.mark.parametrize("acts", [(None, None, None), ("elu(0.5)", "hard_sigmoid", "softsign")])
def test_lstm(lengths, direction, clip, peepholes, coupled, use_bias, acts):
    spec = CellSpec(
        "lstm", 1, 5, 3, direction=direction, gate_clip=clip, use_peepholes=peepholes,
        coupled_gates=coupled, use_bias=use_bias, **dict(zip(PLACES, acts)),
    )  # fmt: skip
    check(spec, lengths)


@pytest.mark.parametrize("lengths", [None, "mixed"])
@pytest.mark.parametrize("direction", ["unidirectional", "bidirectional"])
@pytest.mark.parametrize("clip", [None, (-0.5, 0.5)])
@pytest.mark.parametrize("reset_after", [True, False])
@pytest.mark.parametrize("use_bias", [True, False])
@pytest.mark.parametrize("acts", [(None, None), ("leaky_relu(0.3)", "hard_sigmoid")])
def test_gru(lengths, direction, clip, reset_after, use_bias, acts):
    spec = CellSpec(
        "gru", 1, 5, 3, direction=direction, gate_clip=clip, reset_after=reset_after,
        use_bias=use_bias, **dict(zip(PLACES, acts)),
    )  # fmt: skip
    check(spec, lengths)


@pytest.mark.parametrize("mode", ["rnn_tanh", "rnn_relu"])
@pytest.mark.parametrize("lengths", [None, "mixed"])
@pytest.mark.parametrize("direction", ["unidirectional", "bidirectional"])
@pytest.mark.parametrize("clip", [None, (-0.5, 0.5)])
@pytest.mark.parametrize("use_bias", [True, False])
def test_plain(mode, lengths, direction, clip, use_bias):
    check(CellSpec(mode, 1, 5, 3, direction=direction, gate_clip=clip, use_bias=use_bias), lengths)


def one_unit(operator, biases, initial=0.0, **attributes):
    """Y, Y_h (and Y_c) of one unit and one step whose weights are zero."""
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[operator]
    zeros, start = np.zeros((1, gates, 1), np.float32), np.full((1, 1, 1), initial, np.float32)
    inputs = {"X": np.zeros((1, 1, 1), np.float32), "W": zeros, "R": zeros}
    inputs["B"] = np.array([[*biases, *[0.0] * gates]], np.float32)
    inputs["initial_h"] = start
    if operator == "LSTM":
        inputs["initial_c"] = start
    if "P" in attributes:
        inputs["P"] = np.array([attributes.pop("P")], np.float32)
    outputs = ["Y", "Y_h", "Y_c"][: 2 + (operator == "LSTM")]
    found = onnx_cells.run_node(operator, inputs, outputs, hidden_size=1, **attributes)
    return [float(found[name].item()) for name in outputs]


def test_clip_is_of_what_enters_gates_and_candidate_only():
    """i, o, f and g are those of 0.5; the cell is 1.53, and h that of the whole cell."""
    _, h, c = one_unit("LSTM", [9, 9, 9, 9], initial=2.0, clip=0.5)
    cell = sigmoid(0.5) * 2.0 + sigmoid(0.5) * np.tanh(0.5)
    assert cell > 1.5
    np.testing.assert_allclose([h, c], [sigmoid(0.5) * np.tanh(cell), cell], rtol=1e-5)


def test_clip_comes_after_the_peepholes():
    """i = σ(clip(-1.9 + 2)) and not σ(clip(-1.9) + 2); o sees the new cell in the same way."""
    _, _, c = one_unit("LSTM", [-1.9, 0, 0, 9], initial=2.0, clip=0.5, P=[1, 0, 0])
    np.testing.assert_allclose(c, 0.5 * 2.0 + sigmoid(0.1) * np.tanh(0.5), rtol=1e-5)
    _, h, c = one_unit("LSTM", [9, -1.5, 9, 9], initial=2.0, clip=0.5, P=[0, 1, 0])
    np.testing.assert_allclose(h, sigmoid(c - 1.5) * np.tanh(c), rtol=1e-5)


@pytest.mark.parametrize(
    "name,text",
    [("HardSigmoid", "hard_sigmoid"), ("LeakyRelu", "leaky_relu"), ("Elu", "elu")],
)
def test_defaults_that_are_ours(name, text):
    for number in (-3.0, -1.25, 0.5, 2.75):
        found = one_unit("RNN", [number], activations=[name])[0]
        function, defaults, _ = FUNCTIONS[text]
        np.testing.assert_allclose(found, function(number, *defaults), rtol=1e-5)


def test_defaults_of_its_own():
    """Without numbers Affine and ScaledTanh are 0 everywhere, as their alpha is 0, and the
    threshold of ThresholdedRelu is 0, where ONNX's operator of that name has 1."""
    for number in (-1.25, 0.5, 2.75):
        value = lambda name: one_unit("RNN", [number], activations=[name])[0]
        assert value("Affine") == 0.0 and value("ScaledTanh") == 0.0
        assert value("ThresholdedRelu") == max(number, 0.0)
    assert one_unit("RNN", [0.5], activations=["Affine"], activation_beta=[0.25])[0] == 0.25


def test_a_number_goes_to_the_next_function_that_takes_one():
    """Sigmoid takes none, so the first alpha is LeakyRelu's."""
    how = {"activations": ["Sigmoid", "LeakyRelu", "Tanh"]}
    *_, c = one_unit("LSTM", [0.1, 0.2, 0.3, -0.4], initial=0.5, activation_alpha=[0.3], **how)
    np.testing.assert_allclose(c, sigmoid(0.3) * 0.5 + sigmoid(0.1) * -0.4 * 0.3, rtol=1e-5)


def test_on_its_threshold_thresholded_relu_is_0():
    """As here; ONNX's text of the recurrent operators says x there."""
    how = {"activations": ["ThresholdedRelu"], "activation_alpha": [1.0]}
    assert one_unit("RNN", [1.0], **how)[0] == 0.0
    assert one_unit("RNN", [1.25], **how)[0] == 1.25
