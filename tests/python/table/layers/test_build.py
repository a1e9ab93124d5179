"""build(input_shape): what it makes, from which initial values, and what it refuses."""

import numpy as np
import openrnn
import pytest
from model import numpy_layout
from table.support import (
    B, I, L, LSTM, T, U, array, assert_names, draw, error_text, make_spec, nothing_changes,
)  # fmt: skip

# (what, input_shape, error, what the message names)
WRONG_SHAPES = [
    ("rank 2", (3, 4), ValueError, ["2", "3"]),
    ("rank 4", (2, 3, 4, 5), ValueError, ["4", "3"]),
    ("rank 0", (), ValueError, ["0", "3"]),
    ("unknown last", (5, 3, None), ValueError, ["defined|None|unknown"]),
    ("all unknown", (None, None, None), ValueError, ["defined|None|unknown"]),
    ("unknown rank", None, (ValueError, TypeError), ["rank|shape|None"]),
]
SHAPES = [(None, None, I), (T, None, I), (None, B, I), (T, B, I), [None, None, I]]
SIZES = [  # (mode, L, U, I, direction, input_mode, parameters)
    ("lstm", 2, 7, 3, "unidirectional", "linear_input", 784),
    ("lstm", 2, 7, 3, "bidirectional", "linear_input", 1960),
    ("gru", 1, 100, 50, "unidirectional", "linear_input", 45600),
    ("gru", 2, 6, 8, "bidirectional", "linear_input", 1296),
    ("rnn_tanh", 2, 8, 4, "unidirectional", "linear_input", 256),
    ("rnn_relu", 3, 16, 10, "bidirectional", "linear_input", 4096),
    ("lstm", 1, 100, 100, "unidirectional", "skip_input", 40800),
    ("gru", 2, 4, 4, "bidirectional", "auto_select", 480),
    ("rnn_tanh", 1, 1, 1, "unidirectional", "skip_input", 3),
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_first_two_dimensions_may_be_unknown(kind, shape):
    layer = kind.layer(L, U)
    layer.build(shape)
    assert layer.built and layer.input_size == I
    assert layer.kernel.shape == (numpy_layout.params_size(make_spec(kind)),)


@pytest.mark.parametrize(
    "what, shape, error, parts", WRONG_SHAPES, ids=[row[0] for row in WRONG_SHAPES]
)
def test_wrong_shape(kind, what, shape, error, parts):
    layer = kind.layer(L, U)
    with nothing_changes(layer):
        assert_names(error_text(error, layer.build, shape), *parts)
    layer.build((None, None, I))
    assert layer.kernel.name == f"{kind.snake}/opaque_kernel"


def test_skip_input_of_another_width(kind, caller):
    layer = kind.layer(L, U, input_mode="skip_input")
    with nothing_changes(layer):
        assert_names(error_text(ValueError, layer.build, (None, None, I)), str(I), str(U))
    with nothing_changes(layer):
        assert_names(error_text(ValueError, caller, layer, draw(T, B, I)), str(I), str(U))


@pytest.mark.parametrize("row", SIZES, ids=["-".join(map(str, row)) for row in SIZES])
def test_number_of_parameters(row):
    mode, layers, units, inputs, direction, input_mode, wanted = row
    names = {"lstm": "CudnnLSTM", "gru": "CudnnGRU", "rnn_tanh": "CudnnRNNTanh"}
    cls = getattr(openrnn.cudnn_rnn, names.get(mode, "CudnnRNNRelu"))
    layer = cls(layers, units, direction=direction, input_mode=input_mode)
    layer.build((None, None, inputs))
    assert layer.count_params() == wanted


def test_second_build_does_nothing(kind):
    layer = kind.layer(L, U)
    layer.build((None, None, I))
    with nothing_changes(layer):
        layer.build((None, None, I + 1))
        layer.build((3,))
    assert layer.input_size == I


def test_input_spec(kind, caller):
    layer = kind.layer(L, U)
    caller(layer, draw(T, B, I))
    spec = layer.input_spec
    assert spec.ndim == 3
    assert {int(axis) % 3: int(size) for axis, size in spec.axes.items()} == {2: I}


@pytest.mark.parametrize("time, batch", [(1, 1), (T + 2, B), (T, B + 4), (2, 7)])
def test_time_and_batch_may_vary(kind, caller, time, batch):
    layer = kind.layer(L, U)
    caller(layer, draw(T, B, I))
    output, states = caller(layer, draw(time, batch, I))
    assert output.shape == (time, batch, U)
    assert [s.shape for s in states] == [(L, batch, U)] * kind.num_states
    assert len(layer.weights) == 1


@pytest.mark.parametrize(
    "shape, parts",
    [((T, B, I + 3), [str(I + 3), str(I)]), ((B, I), ["3", "2"]), ((1, T, B, I), ["3", "4"])],
    ids=["another depth", "rank 2", "rank 4"],
)
def test_later_calls_are_checked(kind, caller, shape, parts):
    layer = kind.layer(L, U)
    layer.build((None, None, I))
    with nothing_changes(layer):
        assert_names(error_text(ValueError, caller, layer, draw(*shape)), *parts)


def test_default_initial_values(kind, direction):
    layer = kind.layer(2, 8, direction=direction, seed=3)
    layer.build((None, None, 6))
    spec = make_spec(kind, direction, num_layers=2, num_units=8, input_size=6)
    weights, biases = numpy_layout.params_to_canonical(spec, array(layer.kernel))
    for weight in weights:
        limit = np.sqrt(6.0 / sum(weight.shape))
        # 48 to 128 uniform numbers: the largest is below 0.85 of the limit once in 10^3 to 10^9.
        assert 0.85 * limit < np.abs(weight).max() <= limit
        assert weight.min() < 0 < weight.max()
    assert all(np.all(bias == 0.0) for bias in biases)
    same_shape = [w.tobytes() for w in weights if w.shape == weights[0].shape]
    assert len(set(same_shape)) == len(same_shape), "every matrix has numbers of its own"


def test_initial_values_follow_the_seed(kind):
    kernels = []
    for seed in (5, 5, 6):
        openrnn.reset_default_graph()
        layer = kind.layer(L, U, seed=seed)
        layer.build((None, None, I))
        kernels.append(array(layer.kernel))
    assert np.array_equal(kernels[0], kernels[1])
    assert not np.array_equal(kernels[0], kernels[2])


def test_without_a_seed_the_graph_seed_decides(kind):
    kernels = []
    for _ in range(2):
        openrnn.reset_default_graph()
        openrnn.set_random_seed(77)
        layers = [kind.layer(L, U), kind.layer(L, U)]
        for layer in layers:
            layer.build((None, None, I))
            kernels.append(array(layer.kernel))
    assert np.array_equal(kernels[0], kernels[2]) and np.array_equal(kernels[1], kernels[3])
    assert not np.array_equal(kernels[0], kernels[1])


def test_initializers_see_each_canonical_tensor(kind, direction):
    asked = {"kernel": [], "bias": []}

    def recording(which, start):
        def fill(shape, dtype=None):
            asked[which].append((tuple(shape), np.dtype(dtype).name))
            count = int(np.prod(shape))
            return start + len(asked[which]) + np.arange(count).reshape(shape) / 64.0

        return fill

    layer = kind.layer(
        L, U, direction=direction, dtype="float64",
        kernel_initializer=recording("kernel", 0.0), bias_initializer=recording("bias", 100.0),
    )  # fmt: skip
    layer.build((None, None, I))
    assert [shape for shape, _ in asked["kernel"]] == layer.canonical_weight_shapes
    assert [list(shape) for shape, _ in asked["bias"]] == layer.canonical_bias_shapes
    assert {dtype for rows in asked.values() for _, dtype in rows} == {"float64"}
    spec = make_spec(kind, direction)
    weights, biases = numpy_layout.params_to_canonical(spec, array(layer.kernel))
    for k, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        wanted = k + 1 + np.arange(weight.size).reshape(weight.shape) / 64.0
        np.testing.assert_array_equal(weight, wanted)
        np.testing.assert_array_equal(bias, 101.0 + k + np.arange(U) / 64.0)


def test_initializer_that_fails_changes_nothing(kind, caller):
    def fails(shape, dtype=None):
        raise KeyError("no numbers today")

    layer = kind.layer(L, U, bias_initializer=fails)
    with nothing_changes(layer):
        assert_names(error_text(KeyError, layer.build, (None, None, I)), "no numbers today")
    with nothing_changes(layer):
        assert_names(error_text(KeyError, caller, layer, draw(T, B, I)), "no numbers today")


def test_initializer_of_the_wrong_shape_changes_nothing(kind):
    layer = kind.layer(L, U, kernel_initializer=lambda shape, dtype=None: np.zeros((2, 9)))
    with nothing_changes(layer):
        error_text(ValueError, layer.build, (None, None, I))


def test_bias_constant_acts_twice():
    """Each gate has two biases, so a constant b adds 2 b before the activation."""
    half = openrnn.initializers.constant(0.25)
    layer = openrnn.cudnn_rnn.CudnnRNNTanh(
        1, 3, kernel_initializer=openrnn.initializers.zeros(), bias_initializer=half
    )
    output, _ = layer(draw(1, 2, 4))
    np.testing.assert_allclose(array(output), np.full((1, 2, 3), np.tanh(0.5)), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_one_variable_of_the_layers_dtype(kind, dtype):
    layer = kind.layer(L, U, dtype=dtype)
    layer.build((None, None, I))
    assert [v.name for v in openrnn.global_variables()] == [f"{kind.snake}/opaque_kernel"]
    assert openrnn.trainable_variables()[0].name == layer.kernel.name
    assert layer.kernel.dtype == layer.dtype == dtype


def test_building_makes_the_saveable_and_says_so(kind):
    layer = kind.layer(L, U)
    assert layer.built is False
    layer.build((None, None, I))
    assert layer.built is True
    kept = openrnn.get_collection(openrnn.GraphKeys.SAVEABLE_OBJECTS)
    assert len(kept) == 1 and kept[0].name == f"{kind.snake}/opaque_kernel_saveable"
    assert layer.saveable.name == kept[0].name


def test_projection_builds():
    layer = LSTM.layer(2, 6, direction="bidirectional", num_proj=4)
    layer.build((None, None, 5))
    assert layer.count_params() == 1296


def first_weight(make, shape):
    """The first weight of a layer in a graph of its own."""
    openrnn.reset_default_graph()
    layer = make()
    layer.build(shape)
    return layer.weights[0].numpy().copy()


@pytest.mark.parametrize("make, shape", [
    (lambda seed: openrnn.layers.Dense(3, seed=seed), (2, 4)),
    (lambda seed: openrnn.layers.Embedding(5, 3, seed=seed), (2, 4)),
    (lambda seed: openrnn.cudnn_rnn.CudnnLSTM(1, 3, seed=seed), (2, 2, 4)),
], ids=["dense", "embedding", "lstm"])
def test_the_seed_of_a_layer_decides_its_first_values(make, shape):
    five, again, six = (first_weight(lambda s=s: make(s), shape) for s in (5, 5, 6))
    np.testing.assert_array_equal(five, again)
    assert not np.array_equal(five, six)


def test_the_seed_of_dropout_decides_its_masks():
    x = np.ones((4, 50), np.float32)
    five, again, six = (openrnn.layers.Dropout(0.5, seed=s)(x, training=True).numpy()
                        for s in (5, 5, 6))
    np.testing.assert_array_equal(five, again)
    assert not np.array_equal(five, six)
