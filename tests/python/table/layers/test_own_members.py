"""The layer's own members: constructor values, shapes, modes; before and after the first call."""

import inspect

import numpy as np
import openrnn
import pytest
from table.support import LSTM, B, I, KINDS, L, T, U, array, assert_names, draw, error_text

DEFAULTS = [
    ("num_layers", inspect.Parameter.empty),
    ("num_units", inspect.Parameter.empty),
    ("input_mode", "linear_input"),
    ("direction", "unidirectional"),
    ("dropout", 0.0),
    ("seed", None),
    ("dtype", "float32"),
    ("kernel_initializer", None),
    ("bias_initializer", None),
    ("name", None),
]
CONSTANTS = [
    ("CUDNN_LSTM", "lstm"),
    ("CUDNN_GRU", "gru"),
    ("CUDNN_RNN_TANH", "rnn_tanh"),
    ("CUDNN_RNN_RELU", "rnn_relu"),
    ("CUDNN_RNN_UNIDIRECTION", "unidirectional"),
    ("CUDNN_RNN_BIDIRECTION", "bidirectional"),
    ("CUDNN_INPUT_LINEAR_MODE", "linear_input"),
    ("CUDNN_INPUT_SKIP_MODE", "skip_input"),
    ("CUDNN_INPUT_AUTO_MODE", "auto_select"),
]
# (member, input_mode, direction, what it is for L layers of U units)
VALUES = [
    ("num_layers", "linear_input", "unidirectional", L),
    ("num_units", "linear_input", "unidirectional", U),
    ("input_mode", "linear_input", "unidirectional", "linear_input"),
    ("input_mode", "skip_input", "unidirectional", "skip_input"),
    ("input_mode", "auto_select", "unidirectional", "auto_select"),
    ("direction", "linear_input", "unidirectional", "unidirectional"),
    ("direction", "linear_input", "bidirectional", "bidirectional"),
    ("num_dirs", "linear_input", "unidirectional", 1),
    ("num_dirs", "linear_input", "bidirectional", 2),
]


def ids(rows):
    return ["-".join(str(part) for part in row[:-1]) for row in rows]


@pytest.mark.parametrize("name, wanted", CONSTANTS, ids=[row[0] for row in CONSTANTS])
def test_constant(name, wanted):
    assert getattr(openrnn.cudnn_rnn, name) == wanted


def test_constructor_arguments_keep_name_order_and_default(kind):
    found = list(inspect.signature(kind.layer).parameters.values())
    positional = [p for p in found if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert [p.name for p in positional] == [name for name, _ in DEFAULTS]
    for parameter, (name, default) in zip(positional, DEFAULTS, strict=True):
        assert parameter.default == default, name
    newer = {p.name: p.default for p in found if p.kind is p.KEYWORD_ONLY}
    assert newer["num_proj"] is None
    assert newer["trainable"] is True
    assert newer["activity_regularizer"] is None


def test_all_arguments_by_position(kind):
    ones, zeros = openrnn.initializers.ones(), openrnn.initializers.zeros()
    layer = kind.layer(
        2, 3, "linear_input", "bidirectional", 0.25, 9, "float64", ones, zeros, "enc"
    )
    config = layer.get_config()
    wanted = {"num_layers": 2, "num_units": 3, "input_mode": "linear_input"}
    assert {key: config[key] for key in wanted} == wanted
    assert config["direction"] == "bidirectional"
    assert (config["dropout"], config["seed"], config["dtype"]) == (0.25, 9, "float64")
    assert (config["name"], layer.name, layer.dtype) == ("enc", "enc", "float64")
    layer.build((None, None, 4))
    kernels = array(layer.kernel)
    biases = 2 * 2 * 2 * kind.gates * 3
    assert np.all(kernels[:-biases] == 1.0) and np.all(kernels[-biases:] == 0.0)


@pytest.mark.parametrize("member, input_mode, direction, wanted", VALUES, ids=ids(VALUES))
def test_value_before_and_after_a_call(kind, caller, member, input_mode, direction, wanted):
    layer = kind.layer(L, U, input_mode=input_mode, direction=direction)
    assert getattr(layer, member) == wanted
    caller(layer, draw(T, B, U))
    assert getattr(layer, member) == wanted


def test_rnn_mode(kind):
    assert kind.layer(L, U).rnn_mode == kind.mode


@pytest.mark.parametrize("input_mode", ["linear_input", "auto_select"])
def test_input_size_is_known_once_built(kind, caller, input_mode):
    layer = kind.layer(L, U, input_mode=input_mode)
    message = error_text(ValueError, lambda: layer.input_size)
    assert_names(message, "unknown since (the )?layer has not been built")
    caller(layer, draw(T, B, I))
    assert layer.input_size == I and isinstance(layer.input_size, int)


def test_saveable_is_none_until_built(kind, caller):
    layer = kind.layer(L, U)
    assert layer.saveable is None
    caller(layer, draw(T, B, I))
    assert isinstance(layer.saveable, kind.saveable)
    kept = layer.saveable
    caller(layer, draw(T + 1, B, I))
    assert layer.saveable is kept


def test_kernel_is_the_opaque_variable(kind, caller):
    layer = kind.layer(L, U)
    caller(layer, draw(T, B, I))
    assert layer.kernel is layer.trainable_weights[0] or (
        layer.kernel.name == layer.trainable_weights[0].name
    )
    assert layer.kernel.name.endswith(kind.snake + "/opaque_kernel")
    assert layer.kernel.shape == (layer.count_params(),)


@pytest.mark.parametrize("direction, dirs", [("unidirectional", 1), ("bidirectional", 2)])
@pytest.mark.parametrize("batch", [1, 7])
def test_state_shape(kind, direction, dirs, batch):
    found = kind.layer(3, 4, direction=direction).state_shape(batch)
    assert type(found) is tuple and len(found) == kind.num_states
    assert all(type(shape) is list for shape in found)
    assert list(found) == [[3 * dirs, batch, 4]] * kind.num_states


def test_state_shape_with_projection():
    found = LSTM.layer(3, 4, direction="bidirectional", num_proj=2).state_shape(5)
    assert found == ([6, 5, 2], [6, 5, 4])


@pytest.mark.parametrize(
    "input_mode, input_size",
    [("linear_input", I), ("linear_input", U), ("skip_input", U), ("auto_select", I),
     ("auto_select", U)],
)  # fmt: skip
def test_canonical_weight_shapes(kind, direction, input_mode, input_size):
    dirs, gates = (2 if direction == "bidirectional" else 1), kind.gates
    layer = kind.layer(L, U, input_mode=input_mode, direction=direction)
    layer.build((None, None, input_size))
    skipped = input_mode == "skip_input" or (input_mode == "auto_select" and input_size == U)
    first = [(U, 0 if skipped else input_size)] * gates + [(U, U)] * gates
    deeper = [(U, dirs * U)] * gates + [(U, U)] * gates
    found = layer.canonical_weight_shapes
    assert found == first * dirs + deeper * dirs
    assert type(found) is list and all(type(shape) is tuple for shape in found)


def test_canonical_weight_shapes_before_build(kind):
    message = error_text(RuntimeError, lambda: kind.layer(L, U).canonical_weight_shapes)
    assert_names(
        message, kind.name, "canonical_weight_shapes", "before (the )?input shape is known"
    )


def test_canonical_weight_shapes_with_projection():
    layer = LSTM.layer(2, 4, direction="bidirectional", num_proj=3)
    layer.build((None, None, 5))
    first = [(4, 5)] * 4 + [(4, 3)] * 4 + [(3, 4)]
    deeper = [(4, 6)] * 4 + [(4, 3)] * 4 + [(3, 4)]
    assert layer.canonical_weight_shapes == first * 2 + deeper * 2


def test_canonical_bias_shapes_need_no_build(kind, direction):
    layer = kind.layer(L, U, direction=direction)
    wanted = [[U]] * (2 * kind.gates * layer.num_dirs * L)
    assert layer.canonical_bias_shapes == wanted
    layer.build((None, None, I))
    assert layer.canonical_bias_shapes == wanted
    assert all(type(shape) is list for shape in layer.canonical_bias_shapes)


@pytest.mark.parametrize("kind", KINDS, ids=[kind.mode for kind in KINDS])
def test_layers_are_layers(kind):
    assert issubclass(kind.layer, openrnn.layers.Layer)
