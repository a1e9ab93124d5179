"""Bidirectional: both directions in one call of the engine, or in two where its layers differ."""

import keras
import numpy as np
import openrnn.keras as ours
import pytest
from framework import (
    BACKEND, HAS_GRADIENTS, as_list, call, count_calls, error_of, gradients, numpy_of, tensor_of,
)  # fmt: skip
from openrnn.keras import _bidirectional

SIZES = (3, 6, 4)
MERGES = ["concat", "sum", "mul", "ave", None]


def drawn(*shape, seed=1, dtype="float32"):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def mask_of(kind):
    if kind == "none":
        return None
    mask = np.random.default_rng(4).random(SIZES[:2]) < 0.6
    mask[-1] = False
    return np.arange(6) < np.array([[6], [2], [0]]) if kind == "padded" else mask


def built(name, merge="concat", **options):
    keras.utils.set_random_seed(3)
    layer = ours.Bidirectional(
        getattr(ours, name)(5, bias_initializer="uniform", **options), merge_mode=merge)
    layer.build((None, None, SIZES[2]))
    return layer


def inputs_of(layer, states, dtype="float32"):
    x = [drawn(*SIZES, dtype=dtype)]
    count = 2 * len(layer.forward_layer.state_size) if states else 0
    return x + [drawn(SIZES[0], 5, seed=7 + n, dtype=dtype) for n in range(count)]


def compare(layer, inputs, mask, monkeypatch, calls=1):
    """One call and two: the same bits, and gradients up to the order of sums."""
    kwargs = {} if mask is None else {"mask": tensor_of(mask)}
    tensors = [tensor_of(each) for each in inputs]

    def results():
        outputs = [numpy_of(each) for each in flat(call(layer, tensors, kwargs))]
        if not HAS_GRADIENTS:
            return outputs, []
        scales = [drawn(*each.shape, seed=30 + n) for n, each in enumerate(outputs)]
        return outputs, gradients(layer, inputs, scales, **kwargs)

    with monkeypatch.context() as patch:
        counted = count_calls(patch)
        found = results()
        assert {place.directions for place in counted} == ({2} if calls == 1 else {1})
    with monkeypatch.context() as patch:
        patch.setattr(_bidirectional, "alike", lambda layer: False)
        counted = count_calls(patch)
        right = results()
        assert {place.directions for place in counted} == {1}
    for a, b in zip(found[0], right[0], strict=True):
        np.testing.assert_array_equal(a, b)
    for a, b in zip(found[1], right[1], strict=True):
        size = max(1.0, abs(b).max())
        np.testing.assert_allclose(a / size, b / size, rtol=0, atol=2e-6)


def flat(outputs):
    return [each for output in as_list(outputs) for each in as_list(output)]


@pytest.mark.parametrize("states", [False, True])
@pytest.mark.parametrize("sequences", [False, True])
@pytest.mark.parametrize("mask", ["none", "padded", "holes"])
@pytest.mark.parametrize("name", ["LSTM", "GRU", "SimpleRNN"])
def test_one_call_has_the_bits_of_two(name, mask, sequences, states, monkeypatch):
    layer = built(name, return_sequences=sequences, return_state=True)
    # Keras's loop shows initial states where nothing counts yet, which is then left to it.
    shows = BACKEND in ("jax", "numpy") and mask != "none" and states and not sequences
    compare(layer, inputs_of(layer, states), mask_of(mask), monkeypatch, calls=2 if shows else 1)


@pytest.mark.parametrize("state", [False, True])
@pytest.mark.parametrize("merge", MERGES)
def test_merges(merge, state, monkeypatch):
    layer = built("GRU", merge, return_sequences=True, return_state=state)
    judge = keras.layers.Bidirectional(
        keras.layers.GRU(5, return_sequences=True, return_state=state, use_cudnn=False),
        merge_mode=merge)
    judge.build((None, None, SIZES[2]))
    judge.set_weights(layer.get_weights())
    x = tensor_of(drawn(*SIZES))
    found, right = layer(x), judge(x)
    assert type(found) is type(right)
    for a, b in zip(flat(found), flat(right), strict=True):
        np.testing.assert_allclose(numpy_of(a), numpy_of(b), rtol=0, atol=1e-6)
    compare(layer, inputs_of(layer, False), None, monkeypatch)


def test_a_symbolic_call_has_keras_s_shapes():
    layer = built("LSTM", return_sequences=True, return_state=True)
    found = layer(keras.Input((None, 4)))
    assert [tuple(each.shape) for each in found] == [(None, None, 10), *[(None, 5)] * 4]


# Of the layers and of the wrapper: one that has half weights of its own rounds none of theirs.
@pytest.mark.parametrize(("policy", "around"), [
    ("mixed_bfloat16", "mixed_bfloat16"), ("mixed_float16", "mixed_float16"),
    ("mixed_bfloat16", "bfloat16"),
])  # fmt: skip
def test_half_precision(policy, around, monkeypatch):
    layer = built("LSTM", "sum", return_sequences=True, dtype=policy)
    wrapper = ours.Bidirectional(layer.forward_layer, merge_mode="sum", dtype=around)
    x = tensor_of(drawn(*SIZES))
    found = []
    for calls in (1, 2):
        with monkeypatch.context() as patch:
            if calls == 2:
                patch.setattr(_bidirectional, "alike", lambda layer: False)
            counted = count_calls(patch)
            found.append(wrapper(x))
            assert len(counted) == (calls if policy == around else 2)
    assert keras.backend.standardize_dtype(found[0].dtype) == policy.removeprefix("mixed_")
    np.testing.assert_array_equal(*(numpy_of(keras.ops.cast(each, "float32")) for each in found))


def with_layers(forward, backward):
    return lambda: ours.Bidirectional(forward(), backward_layer=backward())


DIFFERENT = {
    "activation": with_layers(
        lambda: ours.LSTM(5), lambda: ours.LSTM(5, activation="elu", go_backwards=True)),
    "units": with_layers(lambda: ours.GRU(5), lambda: ours.GRU(3, go_backwards=True)),
    "class": with_layers(lambda: ours.GRU(5), lambda: ours.SimpleRNN(5, go_backwards=True)),
    "reversed": with_layers(lambda: ours.GRU(5, go_backwards=True), lambda: ours.GRU(5)),
    "dropout": lambda: ours.Bidirectional(ours.LSTM(5, dropout=0.2)),
    "activity": lambda: ours.Bidirectional(ours.LSTM(5, activity_regularizer="l2")),
}


@pytest.mark.parametrize("kind", DIFFERENT)
def test_layers_that_differ_have_a_call_each(kind, monkeypatch):
    layer = DIFFERENT[kind]()
    layer.build(SIZES)
    calls, x = count_calls(monkeypatch), tensor_of(drawn(*SIZES))
    layer(x)
    assert [place.directions for place in calls] == [1, 1]
    if kind == "activity":
        assert len(layer.losses) == 2


@pytest.mark.parametrize("given", ["mask", "states", "neither"])
@pytest.mark.parametrize("name", ["LSTM", "GRU", "SimpleRNN"])
def test_what_a_call_is_given_reaches_both_directions(name, given):
    """With dropout Keras's loop calls one layer after the other: masks, states, and training."""
    x, found = drawn(*SIZES), []
    for place in (ours, keras.layers):
        keras.utils.set_random_seed(3)
        inner = getattr(place, name)(5, dropout=0.5, seed=7, return_sequences=True)
        layer = place.Bidirectional(inner)
        layer.build(SIZES)
        count = 2 * len(layer.forward_layer.state_size if name == "LSTM" else [5])
        kwargs = {"mask": tensor_of(mask_of("holes"))} if given == "mask" else {}
        if given == "states":
            kwargs["initial_state"] = [tensor_of(drawn(3, 5, seed=9 + n)) for n in range(count)]
        found.append([numpy_of(layer(tensor_of(x), training=training, **kwargs))
                      for training in (True, True, False, None)])  # fmt: skip
        found[-1].append(numpy_of(layer(tensor_of(x), training=False)))
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-6)
    first, second, without, plain, alone = found[0]
    assert abs(first - second).max() > 0.01 and abs(first - without).max() > 0.01
    np.testing.assert_array_equal(plain, without)
    assert np.array_equal(alone, without) == (given == "neither")


def test_stateful_layers_keep_their_states(monkeypatch):
    layer = ours.Bidirectional(ours.GRU(5, stateful=True))
    layer.build(SIZES)
    calls = count_calls(monkeypatch)
    layer(tensor_of(drawn(*SIZES)))
    assert [place.directions for place in calls] == [1, 1]
    assert all(abs(numpy_of(each.states[0])).max() > 0
               for each in (layer.forward_layer, layer.backward_layer))


class Louder(ours.GRU):
    def call(self, *args, **kwargs):
        return 2 * super().call(*args, **kwargs)


def test_somebody_s_subclass_is_called(monkeypatch):
    # Keras makes layers anew from their configuration.
    with keras.saving.custom_object_scope({"Louder": Louder}):
        layer = ours.Bidirectional(Louder(5))
    layer.build(SIZES)
    calls, x = count_calls(monkeypatch), tensor_of(drawn(*SIZES))
    plain = ours.Bidirectional(ours.GRU(5))
    plain.build(SIZES)
    plain.set_weights(layer.get_weights())
    found = numpy_of(layer(x))
    assert [place.directions for place in calls] == [1, 1]
    np.testing.assert_array_equal(found, 2 * numpy_of(plain(x)))


def doubled(own):
    return lambda *args, **kwargs: 2 * own(*args, **kwargs)


def doubled_loop(own):
    def loop(*args, **kwargs):
        last, outputs, states = own(*args, **kwargs)
        return 2 * last, 2 * outputs, states

    return loop


def overridden(name, change):
    return lambda layer: setattr(layer, name, change(getattr(layer, name)))


SOMEBODY_S = {"call": overridden("call", doubled), "inner_loop": overridden("inner_loop", doubled_loop)}
if BACKEND == "torch":
    SOMEBODY_S["hook"] = lambda layer: layer.register_forward_hook(lambda _, x, y: 2 * y)
    SOMEBODY_S["pre hook"] = lambda layer: layer.register_forward_pre_hook(lambda _, x: (0 * x[0],))


@pytest.mark.parametrize("side", ["forward_layer", "backward_layer"])
@pytest.mark.parametrize("kind", SOMEBODY_S)
def test_what_somebody_put_on_a_layer_is_run(kind, side, monkeypatch):
    layer, x = built("GRU"), drawn(*SIZES)
    plain, nothing = numpy_of(layer(tensor_of(x))), numpy_of(layer(tensor_of(0 * x)))
    SOMEBODY_S[kind](getattr(layer, side))
    calls = count_calls(monkeypatch)
    found = numpy_of(layer(tensor_of(x)))
    assert [place.directions for place in calls] == [1, 1]
    its, other = (slice(5), slice(5, 10)) if side == "forward_layer" else (slice(5, 10), slice(5))
    np.testing.assert_array_equal(found[:, other], plain[:, other])
    right = nothing if kind == "pre hook" else 2 * plain
    np.testing.assert_array_equal(found[:, its], right[:, its])


def test_installed_bidirectional(monkeypatch):
    layer = keras.layers.Bidirectional(keras.layers.LSTM(5, use_cudnn=False, return_sequences=True))
    layer.build(SIZES)
    x = tensor_of(drawn(*SIZES))
    before, own = numpy_of(layer(x)), vars(keras.layers.Bidirectional)["call"]
    with ours.install():
        calls = count_calls(monkeypatch)
        found = numpy_of(layer(x))
        assert [place.directions for place in calls] == [2]
    np.testing.assert_allclose(found, before, rtol=0, atol=1e-6)
    assert vars(keras.layers.Bidirectional)["call"] is own
    layer(x)
    assert len(calls) == 1


def test_errors_are_still_keras_s():
    layer = built("LSTM")
    with pytest.raises(ValueError, match="expected ndim=3"):
        layer(tensor_of(drawn(3, 4)))


@pytest.mark.parametrize("wrong", ["width", "dimensions", "merge_mode"])
def test_errors_are_those_of_keras_layers(wrong):
    found = []
    for place in (ours, keras.layers):
        layer = place.Bidirectional(place.LSTM(5, name="inner"), name="both")
        layer.build((None, None, SIZES[2]))
        if wrong == "merge_mode":
            layer.merge_mode = "max"
        sizes = {"width": (3, 6, 2), "dimensions": (3, 4), "merge_mode": SIZES}[wrong]
        found.append(error_of(layer, tensor_of(drawn(*sizes))))
    assert found[0] == found[1]


@pytest.mark.skipif(BACKEND != "torch", reason="torch alone asks for some of the gradients")
@pytest.mark.parametrize("direction", [0, 1])
def test_gradients_of_the_states_of_one_direction(direction):
    layer = built("GRU", return_sequences=True)

    def gradient(wanted):
        x, *states = [tensor_of(each) for each in inputs_of(layer, True)]
        for d in wanted:
            states[d].requires_grad_()
        y = layer(x, initial_state=states)
        y.backward(tensor_of(drawn(*y.shape, seed=30)))
        return numpy_of(states[direction].grad)

    found = gradient([direction])
    assert abs(found).max() > 0.01
    np.testing.assert_array_equal(found, gradient([0, 1]))
