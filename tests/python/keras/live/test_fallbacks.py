"""What takes Keras's own loop, with its results; weights that change; saved calls; refusals."""

import keras
import numpy as np
import openrnn
import openrnn.keras as ours
import pytest
from framework import (
    BACKEND, HAS_GRADIENTS, count_calls, error_of, generic, gradients, numpy_of, tensor_of,
)  # fmt: skip
from openrnn.keras import _host, _loop

trains = pytest.mark.skipif(not HAS_GRADIENTS, reason="Keras's numpy backend has no gradients")


def inputs(time=5):
    return np.random.default_rng(17).normal(size=(3, time, 4)).astype("float32")


def cube(a):
    return a * a * a


class OwnCell(keras.layers.LSTMCell):
    pass


def test_reasons():
    assert ours.why_not(ours.LSTM(3)) == ours.why_not(keras.layers.GRU(3)) == ""
    assert "activation gelu, expected one of elu, " in ours.why_not(ours.LSTM(3, activation="gelu"))
    assert "recurrent_activation cube" in ours.why_not(ours.GRU(3, recurrent_activation=cube))
    assert "a OwnCell, expected Keras's own" in ours.why_not(keras.layers.RNN(OwnCell(3)))
    with pytest.raises(openrnn.ArgumentError, match=r"\[why_not\] a Dense, expected a recurrent"):
        ours.why_not(keras.layers.Dense(3))
    assert "use_cudnn=True" in ours.why_not(ours.LSTM(3, use_cudnn=True))


@pytest.mark.parametrize("options", [{"activation": cube}, {"activation": "gelu"},
                                     {"recurrent_activation": "silu"}], ids=["cube", "gelu", "silu"])
@pytest.mark.parametrize("name", ["LSTM", "GRU"])
def test_other_activations(name, options):
    keras.utils.set_random_seed(4)
    layer = getattr(ours, name)(3, return_sequences=True, **options)
    layer.build((3, 5, 4))
    assert ours.why_not(layer)
    judge = generic(layer, getattr(keras.layers, f"{name}Cell")(3, **options), "float32")
    x = tensor_of(inputs())
    np.testing.assert_allclose(numpy_of(layer(x)), numpy_of(judge(x)), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("options", [{"recurrent_dropout": 0.4},
                                     {"dropout": 0.4, "implementation": 1}], ids=str)
def test_random_masks_inside_the_steps(options, monkeypatch):
    """Keras draws and applies them in training; outside of it the engine computes."""
    calls = count_calls(monkeypatch)
    x, found = tensor_of(inputs()), []
    for place in (ours, keras.layers):
        keras.utils.set_random_seed(5)
        # Keras refuses a list of masks unless it takes the generic loop.
        layer = place.LSTM(3, seed=2, use_cudnn=False if place is keras.layers else "auto", **options)
        found.append([numpy_of(layer(x, training=True)), numpy_of(layer(x))])
        assert len(calls) == 1
    np.testing.assert_allclose(found[0], found[1], rtol=0, atol=1e-6)
    assert abs(found[0][0] - found[0][1]).max() > 1e-3


def test_masks_in_other_forms():
    layer = ours.LSTM(3, return_sequences=True)
    mask = np.array([[1, 1, 0, 1, 0]] * 3, bool)
    x = tensor_of(inputs())
    right = numpy_of(layer(x, mask=tensor_of(mask)))
    for other in (mask.astype("int32"), mask.astype("float32")):
        np.testing.assert_array_equal(numpy_of(layer(x, mask=tensor_of(other))), right)
    assert abs(right - numpy_of(layer(x))).max() > 1e-3


def test_weights_are_never_stale():
    layer = ours.GRU(3)
    x = tensor_of(inputs())
    first = numpy_of(layer(x))
    layer.cell.kernel.assign(layer.cell.kernel * 2.0)
    second = numpy_of(layer(x))
    assert abs(first - second).max() > 1e-3
    if BACKEND == "torch":
        layer.cell.kernel.value.data.mul_(0.5)  # behind Keras's back
    else:
        layer.cell.kernel.assign(layer.cell.kernel * 0.5)
    np.testing.assert_array_equal(numpy_of(layer(x)), first)


def test_errors_are_keras_s():
    layer = ours.LSTM(3)
    layer.build((None, None, 4))
    with pytest.raises(ValueError, match="expected ndim=3"):
        layer(tensor_of(inputs()[0]))
    with pytest.raises(ValueError, match="positive integer"):
        ours.LSTM(0)


@pytest.mark.parametrize("sizes", [(3, 5, 3), (3, 5, 6), (5, 4)], ids=str)
@pytest.mark.parametrize("name", ["LSTM", "GRU", "SimpleRNN"])
def test_errors_are_those_of_keras_layers(name, sizes):
    found = []
    for place in (ours, keras.layers):
        layer = getattr(place, name)(3, name="layer")
        layer.build((None, None, 4))
        found.append(error_of(layer, tensor_of(np.ones(sizes, "float32"))))
    assert found[0] == found[1]


@pytest.mark.skipif(BACKEND != "tensorflow", reason="of calls that a graph names by a number")
@pytest.mark.parametrize("training", [True, False])
def test_saved_calls_may_be_gone(training, monkeypatch):
    """A gradient of what was thrown away is computed from a second forward pass, the same bits."""
    layer = ours.LSTM(3, return_sequences=True)
    x, mask = inputs(), np.array([[1, 1, 0, 1, 0]] * 3, bool)
    scales = [np.random.default_rng(4).normal(size=(3, 5, 3)).astype("float32")]
    layer.build(x.shape)
    kwargs = {"mask": tensor_of(mask), "training": training}
    right = gradients(layer, [x], scales, **kwargs)
    before = len(_host._kept)
    own = _host.keep

    def lost(saved):
        number = own(saved)
        _host._kept.pop(int(number))
        return number

    monkeypatch.setattr(_host, "keep", lost)
    for a, b in zip(gradients(layer, [x], scales, **kwargs), right, strict=True):
        np.testing.assert_array_equal(a, b)
    assert len(_host._kept) == before


def test_saved_calls_are_bounded(monkeypatch):
    class Saved:
        bytes = 10

    monkeypatch.setattr(_host, "_kept", {})
    monkeypatch.setattr(_host, "MOST_BYTES", 35)
    numbers = [int(_host.keep(Saved())) for _ in range(5)]
    assert list(_host._kept) == numbers[-3:]
    monkeypatch.setattr(_host, "MOST_CALLS", 2)
    numbers.append(int(_host.keep(Saved())))
    assert list(_host._kept) == numbers[-2:]


def second_derivative(layer, x):
    if BACKEND == "torch":
        leaf = tensor_of(x).requires_grad_()
        import torch

        (first,) = torch.autograd.grad((layer(leaf) ** 2).sum(), leaf, create_graph=True)
        return torch.autograd.grad(first.sum(), leaf)
    if BACKEND == "tensorflow":
        import tensorflow as tf

        leaf = tensor_of(x)
        with tf.GradientTape() as outer:
            outer.watch(leaf)
            with tf.GradientTape() as inner:
                inner.watch(leaf)
                loss = tf.reduce_sum(layer(leaf) ** 2)
            first = inner.gradient(loss, leaf)
        return outer.gradient(first, leaf)
    import jax

    def slope(leaf):
        return jax.grad(lambda a: (layer(a) ** 2).sum())(leaf).sum()

    return jax.grad(slope)(tensor_of(x))


@trains
def test_second_derivatives_are_refused():
    layer = ours.LSTM(3)
    layer.build((3, 5, 4))
    kinds = {"torch": RuntimeError, "tensorflow": openrnn.UnsupportedError,
             "jax": openrnn.UnsupportedError}
    with pytest.raises(kinds[BACKEND]):
        second_derivative(layer, inputs())


@pytest.mark.skipif(BACKEND != "torch", reason="of torch.compile")
def test_torch_compile_leaves_the_call_alone():
    import torch

    layer = ours.LSTM(3)
    layer.build((3, 5, 4))
    x = tensor_of(inputs())
    compiled = torch.compile(lambda a: layer(a) * 2, backend="eager")
    np.testing.assert_array_equal(numpy_of(compiled(x)), numpy_of(layer(x) * 2))


def test_on_a_gpu_keras_computes(monkeypatch):
    monkeypatch.setattr(_loop.engine_backend(), "on_cpu", lambda x: False)
    monkeypatch.setattr(_loop.engine_backend(), "run", None)
    assert numpy_of(ours.LSTM(3)(tensor_of(inputs()))).shape == (3, 3)


def test_a_saved_call_is_taken_under_the_lock(monkeypatch):
    """Another thread may go through all of them, to find the oldest."""
    held = []

    class Watched(dict):
        def pop(self, *given):
            held.append(_host._lock.locked())
            return super().pop(*given)

    monkeypatch.setattr(_host, "_kept", Watched({7: "saved"}))
    assert _host.taken(None, np.array(7), None, None) == "saved"
    assert held == [True] and not _host._lock.locked()
