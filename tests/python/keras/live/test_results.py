"""Outputs, states and gradients against Keras's generic loop, RNN(LSTMCell(..))."""

import keras
import numpy as np
import openrnn.keras as ours
import pytest
from framework import EXACT, HAS_GRADIENTS, call, generic, gradients, numpy_of, tensor_of

CELLS = {
    "lstm": ("LSTM", {}),
    "gru": ("GRU", {}),
    "gru_before": ("GRU", {"reset_after": False}),
    "rnn": ("SimpleRNN", {}),
    "rnn_relu": ("SimpleRNN", {"activation": "relu"}),
}
ACTIVATIONS = {
    "own": {},
    "softsign": {"activation": "softsign", "recurrent_activation": "hard_sigmoid"},
    "elu": {"activation": "elu", "recurrent_activation": "sigmoid"},
    "linear": {"activation": None, "recurrent_activation": "tanh"},
    "relu": {"activation": "relu", "recurrent_activation": "softplus"},
}
# Of float32 the sums of both sides: some hundred roundings, of values about one.
TOLERANCE = {"float32": 3e-5, "float64": 1e-12 if EXACT else 3e-5}


def options_of(cell, activations, bias):
    name, options = CELLS[cell]
    chosen = dict(ACTIVATIONS[activations])
    if name == "SimpleRNN":
        chosen.pop("recurrent_activation", None)
    return name, {**chosen, **options, "use_bias": bias, "bias_initializer": "uniform"}


def mask_of(kind, batch, time, random):
    mask = np.ones((batch, time), bool)
    if kind == "padded":
        mask = np.arange(time) < random.integers(0, time + 1, (batch, 1))
    elif kind == "holes":
        mask = random.random((batch, time)) < 0.6
        mask[-1] = False
    return None if kind == "none" else mask


@pytest.fixture(autouse=True)
def floats():
    """Keras makes floatx of arrays that it is given, whatever the dtype of the layer."""
    yield
    keras.config.set_floatx("float32")


def compare(layer, judge, inputs, mask, dtype, random):
    kwargs = {} if mask is None else {"mask": tensor_of(mask)}
    found, right = (
        [numpy_of(each) for each in call(one, [tensor_of(a) for a in inputs], kwargs)]
        for one in (layer, judge)
    )
    assert len(found) == len(right)
    for a, b in zip(found, right, strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        size = max(1.0, abs(b).max(initial=0))
        np.testing.assert_allclose(a / size, b / size, rtol=0, atol=TOLERANCE[dtype])
    if not HAS_GRADIENTS:
        return
    scales = [random.normal(size=each.shape).astype(dtype) for each in right]
    found, right = (gradients(one, inputs, scales, **kwargs) for one in (layer, judge))
    for a, b in zip(found, right, strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        size = max(1.0, abs(b).max(initial=0))
        np.testing.assert_allclose(a / size, b / size, rtol=0, atol=TOLERANCE[dtype])


def check(cell, dtype, activations, bias, more, loop, mask, states, sizes):
    batch, time, width, units = sizes
    random = np.random.default_rng(sum(sizes))
    name, options = options_of(cell, activations, bias)
    keras.config.set_floatx(dtype)
    layer = getattr(ours, name)(
        units, return_state=True, dtype=dtype, seed=3, **loop, **more, **options)
    layer.build((batch, time, width))
    assert ours.why_not(layer) == ""
    judge = generic(layer, getattr(keras.layers, f"{name}Cell")(units, dtype=dtype, **options), dtype)
    inputs = [random.normal(size=(batch, time, width)).astype(dtype)]
    if states:
        inputs += [random.normal(size=(batch, units)).astype(dtype) for _ in layer.state_size]
    compare(layer, judge, inputs, mask_of(mask, batch, time, random), dtype, random)


@pytest.mark.parametrize("sizes", [(3, 5, 4, 6), (1, 1, 1, 1), (2, 7, 17, 3)])
@pytest.mark.parametrize("states", [False, True])
@pytest.mark.parametrize("zero", [False, True])
@pytest.mark.parametrize("sequences", [False, True])
@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("mask", ["none", "whole", "padded", "holes"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("cell", CELLS)
def test_the_loop(cell, dtype, mask, backwards, sequences, zero, states, sizes):
    loop = {"return_sequences": sequences, "go_backwards": backwards, "zero_output_for_mask": zero}
    check(cell, dtype, "own", True, {}, loop, mask, states, sizes)


@pytest.mark.parametrize("more", [{}, {"implementation": 1}, {"unroll": True}], ids=str)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("activations", ACTIVATIONS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("cell", CELLS)
def test_the_cell(cell, dtype, activations, bias, more):
    if cell.startswith("rnn"):
        more = {key: value for key, value in more.items() if key != "implementation"}
    check(cell, dtype, activations, bias, more, {"return_sequences": True}, "holes", True, (3, 5, 4, 6))


@pytest.mark.parametrize("name", ["LSTM", "GRU", "SimpleRNN"])
def test_equal_seeds_give_plain_weights(name):
    made = []
    for place in (ours, keras.layers):
        keras.utils.set_random_seed(11)
        layer = getattr(place, name)(3)
        layer.build((2, 4, 5))
        made.append(layer)
    assert isinstance(made[0], type(made[1]))
    assert [w.path for w in made[0].weights] == [w.path.replace(made[1].name, made[0].name)
                                                 for w in made[1].weights]
    for a, b in zip(made[0].get_weights(), made[1].get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", ["LSTM", "GRU", "SimpleRNN"])
def test_dropout_of_inputs(name):
    """Keras draws the masks, in both: with equal seeds the results are equal."""
    x = np.random.default_rng(5).normal(size=(4, 6, 3)).astype("float32")
    found = []
    for place in (ours, keras.layers):
        keras.utils.set_random_seed(3)
        layer = getattr(place, name)(5, dropout=0.5, seed=7, return_sequences=True)
        found.append([numpy_of(layer(tensor_of(x), training=training))
                      for training in (True, True, False)])
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-6)
    assert abs(found[0][0] - found[0][1]).max() > 0.01


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
@pytest.mark.parametrize("name", ["LSTM", "GRU", "SimpleRNN"])
def test_mixed_precision(name, policy):
    """Weights and inputs are rounded as Keras does it; then the engine rounds outputs alone."""
    random = np.random.default_rng(6)
    layer = getattr(ours, name)(4, return_sequences=True, return_state=True, dtype=policy, seed=1)
    x = random.normal(size=(3, 6, 5)).astype("float32")
    outputs = layer(tensor_of(x))
    half = policy[len("mixed_"):]
    assert {keras.backend.standardize_dtype(each.dtype) for each in outputs} == {half}
    exact = getattr(ours, name)(4, return_sequences=True, return_state=True, dtype="float32")
    exact.build(x.shape)
    rounded = [numpy_of(keras.ops.cast(keras.ops.cast(tensor_of(w), half), "float32"))
               for w in (*layer.get_weights(), x)]
    exact.set_weights(rounded[:-1])
    for a, b in zip(outputs, exact(tensor_of(rounded[-1])), strict=True):
        np.testing.assert_array_equal(numpy_of(keras.ops.cast(a, "float32")),
                                      numpy_of(keras.ops.cast(keras.ops.cast(b, half), "float32")))
    if HAS_GRADIENTS:
        scales = [np.ones(each.shape, half) if half == "float16" else np.ones(each.shape, "float32")
                  for each in outputs]
        found = gradients(layer, [x], scales)
        assert all(np.isfinite(each).all() and abs(each).max() > 0 for each in found)


@pytest.mark.parametrize("merge", ["concat", "sum", "mul", "ave", None])
@pytest.mark.parametrize("name", ["LSTM", "GRU"])
@pytest.mark.parametrize("mask", ["none", "padded", "holes"])
@pytest.mark.parametrize("given", [ours, keras.layers], ids=["ours", "plain"])
def test_bidirectional(merge, name, mask, given):
    random = np.random.default_rng(8)
    layer = ours.Bidirectional(getattr(given, name)(3, return_sequences=True), merge_mode=merge)
    assert type(layer.forward_layer) is type(layer.backward_layer) is getattr(ours, name)
    # Plain layers in mask's presence take the generic loop, which is right; without one Keras has
    # loops of its own.
    judge = keras.layers.Bidirectional(
        getattr(keras.layers, name)(3, return_sequences=True, use_cudnn=False), merge_mode=merge)
    x = random.normal(size=(2, 5, 4)).astype("float32")
    for each in (layer, judge):
        each.build(x.shape)
    judge.set_weights(layer.get_weights())
    compare(layer, judge, [x], mask_of(mask, 2, 5, random), "float32", random)


def test_masks_of_an_embedding():
    random = np.random.default_rng(9)
    tokens = random.integers(0, 3, (4, 9))
    found = []
    for place in (ours, keras.layers):
        keras.utils.set_random_seed(4)
        model = keras.Sequential([keras.layers.Embedding(3, 4, mask_zero=True),
                                  place.LSTM(5, return_sequences=True), place.GRU(3)])
        found.append(numpy_of(model(tensor_of(tokens))))
    np.testing.assert_allclose(*found, rtol=0, atol=1e-6)
