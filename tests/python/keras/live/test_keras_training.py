"""Training: 200 steps beside plain Keras, fit, stateful layers, compiled models."""

import keras
import numpy as np
import openrnn.keras as ours
import pytest
from framework import BACKEND, EXACT, HAS_GRADIENTS, numpy_of, tensor_of

trains = pytest.mark.skipif(not HAS_GRADIENTS, reason="Keras's numpy backend has no gradients")
# Losses of 200 steps of Adam, which amplify what the roundings of one step differ in: the first 100
# steps, and all.
BOUND = {"float32": (1e-5, 5e-3), "float64": (1e-9, 1e-9) if EXACT else (1e-5, 1e-5)}


@pytest.fixture
def floats():
    """Sets floatx, and the policy of layers, which Keras takes from floatx once."""
    before, policy = keras.config.floatx(), keras.config.dtype_policy()

    def use(dtype):
        keras.config.set_floatx(dtype)
        keras.config.set_dtype_policy(dtype)

    yield use
    keras.config.set_floatx(before)
    keras.config.set_dtype_policy(policy)


def data(dtype, batch=6, time=7, width=3):
    random = np.random.default_rng(21)
    x = random.normal(size=(batch, time, width)).astype(dtype)
    return x, np.tanh(x.sum((1, 2)))[:, None].astype(dtype)


def build(place, seed=2, last="SimpleRNN", **options):
    keras.utils.set_random_seed(seed)
    model = keras.Sequential([
        keras.Input((7, 3)),
        place.LSTM(5, return_sequences=True, kernel_regularizer="l2", recurrent_constraint="max_norm",
                   **options),
        place.Bidirectional(place.GRU(3, return_sequences=True)),
        getattr(place, last)(4, activity_regularizer="l2"),
        keras.layers.Dense(1),
    ])
    model.compile(keras.optimizers.Adam(0.01), "mse")
    return model


@trains
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_losses_of_200_steps(dtype, floats):
    floats(dtype)
    x, y = data(dtype)
    losses = []
    # Under jax Keras's own SimpleRNN makes float32 of float64, which its loop refuses.
    last = "GRU" if BACKEND == "jax" and dtype == "float64" else "SimpleRNN"
    for place in (ours, keras.layers):
        model = build(place, last=last)
        found = []
        for _ in range(10):  # Keras keeps losses in float32
            model.fit(x, y, batch_size=3, epochs=10, shuffle=False, verbose=0)
            found.append(np.square(model.predict(x, verbose=0) - y).mean())
        losses.append(np.array(found))
    assert losses[0][-1] < 0.3 * losses[0][0]
    apart = abs(losses[0] - losses[1])
    assert apart[:5].max() <= BOUND[dtype][0] and apart.max() <= BOUND[dtype][1]


@trains
def test_fit_evaluate_predict():
    x, y = data("float32")
    made = []
    for place in (ours, keras.layers):
        model = build(place, dropout=0.2)
        model.fit(x, y, batch_size=4, epochs=3, verbose=0)
        made.append((model.evaluate(x, y, verbose=0), model.predict(x, verbose=0)))
    np.testing.assert_allclose(made[0][0], made[1][0], rtol=0, atol=1e-5)
    np.testing.assert_allclose(made[0][1], made[1][1], rtol=0, atol=1e-5)


def test_predict():
    x, _ = data("float32")
    models = [build(ours) if HAS_GRADIENTS else uncompiled(place) for place in (ours, keras.layers)]
    models[0].set_weights(models[1].get_weights())
    np.testing.assert_allclose(models[0].predict(x, verbose=0), models[1].predict(x, verbose=0),
                               rtol=0, atol=1e-6)


def uncompiled(place):
    keras.utils.set_random_seed(2)
    return keras.Sequential([keras.Input((7, 3)), place.LSTM(5, return_sequences=True), place.GRU(4)])


@trains
def test_stateful():
    """States run on from batch to batch, in fit, too; gradients stop between batches."""
    x, y = data("float32", batch=12)
    made = []
    for place in (ours, keras.layers):
        keras.utils.set_random_seed(5)
        model = keras.Sequential([
            keras.Input(batch_shape=(4, 7, 3)),
            # Keras's own other loops write into states that autograd needs.
            place.LSTM(5, return_sequences=True, stateful=True, use_cudnn=False),
            place.GRU(4, stateful=True, use_cudnn=False),
            keras.layers.Dense(1),
        ])
        model.compile("sgd", "mse")
        losses = model.fit(x, y, batch_size=4, epochs=3, shuffle=False, verbose=0).history["loss"]
        model(tensor_of(x[:4]))  # after fit Keras's jax trainer has states of zero
        states = [numpy_of(state) for layer in model.layers[:2] for state in layer.states]
        model.layers[0].reset_state()
        assert not numpy_of(model.layers[0].states[0]).any()
        made.append((losses, states))
    np.testing.assert_allclose(made[0][0], made[1][0], rtol=0, atol=1e-6)
    for a, b in zip(made[0][1], made[1][1], strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-5)
        assert abs(a).max() > 0


@pytest.mark.parametrize("name", ["LSTM", "GRU", "SimpleRNN"])
def test_stateful_calls(name):
    x = np.random.default_rng(1).normal(size=(2, 6, 3)).astype("float32")
    whole = getattr(ours, name)(4, return_sequences=True, seed=1)
    parts = getattr(ours, name)(4, return_sequences=True, seed=1, stateful=True)
    right = numpy_of(whole(tensor_of(x)))
    parts.build((2, 3, 3))
    parts.set_weights(whole.get_weights())
    found = np.concatenate([numpy_of(parts(tensor_of(x[:, :3]))), numpy_of(parts(tensor_of(x[:, 3:])))], 1)
    np.testing.assert_array_equal(found, right)
    with pytest.raises(ValueError, match="batch size"):
        parts(tensor_of(x[:1]))


def test_supports_jit():
    """Host functions of TensorFlow cannot be compiled by XLA; Keras's own loop can, unless told not to."""
    layer = ours.LSTM(3)
    assert layer.supports_jit == (BACKEND != "tensorflow")
    own = ours.LSTM(3, activation="gelu")
    assert own.supports_jit
    own.supports_jit = False
    assert not own.supports_jit and keras.layers.LSTM(3).supports_jit


@trains
def test_jit_compile():
    x, y = data("float32")
    model = build(ours)
    model.compile("adam", "mse", jit_compile=BACKEND == "jax" or "auto")
    assert model.jit_compile == (BACKEND == "jax")
    if BACKEND == "tensorflow":
        with pytest.warns(UserWarning, match="doesn't support `jit_compile=True`"):
            model.compile("adam", "mse", jit_compile=True)
        assert not model.jit_compile
        assert ours.LSTM(3, activation="gelu").supports_jit
    first, last = np.array(model.fit(x, y, epochs=3, verbose=0).history["loss"])[[0, -1]]
    assert last < first


@trains
def test_variable_lengths():
    """Batches and times that change from call to call."""
    model = keras.Sequential([keras.Input((None, 3)), ours.LSTM(4, return_sequences=True), ours.GRU(2)])
    model.compile("sgd", "mse")
    judge = keras.Sequential([keras.Input((None, 3)), keras.layers.LSTM(4, return_sequences=True),
                              keras.layers.GRU(2)])
    judge.set_weights(model.get_weights())
    random = np.random.default_rng(3)
    for batch, time in ((1, 1), (5, 3), (2, 9)):
        x = random.normal(size=(batch, time, 3)).astype("float32")
        np.testing.assert_allclose(model.predict(x, verbose=0), numpy_of(judge(tensor_of(x))),
                                   rtol=0, atol=1e-6)
        assert np.isfinite(model.train_on_batch(x, np.zeros((batch, 2), "float32")))
        judge.set_weights(model.get_weights())
