"""What the engine computes of Keras's calls: networks of cells, masks, states, layers that are alike."""

import itertools
from types import SimpleNamespace

import keras
import numpy as np
import openrnn
import openrnn.keras as ours
import pytest
from framework import BACKEND, numpy_of, tensor_of
from openrnn.keras import _bidirectional, _cells, _host, _loop
from test_jax_stand_in import FLAGS, call_of

ACTIVATIONS = {
    "tanh": "tanh", "sigmoid": "sigmoid", "relu": "relu", "linear": "linear", "elu": "elu",
    "hard_sigmoid": f"hard_sigmoid({1 / 6!r}, 0.5)", "softsign": "softsign", "softplus": "softplus",
}  # fmt: skip


def test_networks_of_cells():
    base = {"num_units": 4, "input_size": 3, "dtype": "float64"}
    options = lambda cell: _cells.options_of(cell, 3, "float64")
    for name, mode in (("LSTM", "lstm"), ("GRU", "gru"), ("SimpleRNN", "rnn_tanh")):
        for bias in (True, False):
            cell = getattr(keras.layers, f"{name}Cell")(4, use_bias=bias)
            wanted = {**base, "rnn_mode": mode, "use_bias": bias}
            if name == "GRU":
                wanted["reset_after"] = True
            elif bias:
                wanted["single_bias"] = True
            assert options(cell) == wanted
    one = keras.layers.GRUCell(4, reset_after=False)
    assert options(one) == {**base, "rnn_mode": "gru", "use_bias": True, "reset_after": False, "single_bias": True}
    for theirs, mine in ACTIVATIONS.items():
        lstm = options(keras.layers.LSTMCell(4, activation=theirs, recurrent_activation=theirs))
        gru = options(keras.layers.GRUCell(4, activation=theirs, recurrent_activation=theirs))
        rnn = options(keras.layers.SimpleRNNCell(4, activation=theirs))
        plain, gates = theirs == "tanh", theirs == "sigmoid"
        for each, output in ((lstm, True), (gru, False)):
            assert each.get("activation") == (None if plain else mine)
            assert each.get("output_activation") == (mine if output and not plain else None)
            assert each.get("recurrent_activation") == (None if gates else mine)
        assert rnn["rnn_mode"] == ("rnn_relu" if theirs == "relu" else "rnn_tanh")
        assert rnn.get("activation") == (None if theirs in ("tanh", "relu") else mine)
        assert "recurrent_activation" not in rnn and "output_activation" not in rnn


def test_places_are_made_once():
    lstm, gru = keras.layers.LSTMCell(4), keras.layers.GRUCell(5)
    flags = (False, True, False)
    place = _cells.place_of(lstm, 3, "float32", flags)
    assert _cells.place_of(lstm, 3, "float32", flags) is place
    assert (place.units, place.directions, place.lstm, place.flags, place.function) == (4, 1, True, flags, None)
    other = _cells.place_of(lstm, 3, "float32", (True, True, False))
    assert other is not place and other.cell is place.cell and other.flags == (True, True, False)
    for changed in (_cells.place_of(lstm, 2, "float32", flags), _cells.place_of(lstm, 3, "float64", flags),
                    _cells.place_of(lstm, 3, "float32", flags, both=True)):
        assert changed.cell is not place.cell
    assert changed.directions == 2
    assert place.outputs("y", "s") == ["y", "s", "s"] and changed.outputs("y", "s") == ["y", "s", "s", "s", "s"]
    found = _cells.place_of(gru, 3, "float32", flags, both=True)
    assert found.outputs("y", "s") == ["y", "s", None, "s", None] and not found.lstm and found.units == 5


class Unhashable:
    __hash__ = None

    def __call__(self, a):
        return a


class OwnCell(keras.layers.LSTMCell):
    pass


def test_reasons_whole(monkeypatch):
    names = "elu, hard_sigmoid, linear, relu, sigmoid, softplus, softsign, tanh"
    for layer, text in (
        (ours.LSTM(3, activation="gelu"), f"activation gelu, expected one of {names}"),
        (ours.GRU(3, recurrent_activation="silu"), f"recurrent_activation silu, expected one of {names}"),
        (ours.LSTM(3, activation=Unhashable()), f"activation Unhashable, expected one of {names}"),
        (keras.layers.RNN(OwnCell(3)), "a OwnCell, expected Keras's own LSTMCell, GRUCell or SimpleRNNCell"),
        (ours.LSTM(3, use_cudnn=True), "use_cudnn=True, expected 'auto' or False"),
        (ours.LSTM(3, use_cudnn=False), ""), (ours.LSTM(3, dtype="float16"), ""),
        (ours.LSTM(3, dtype="mixed_bfloat16"), ""), (ours.LSTM(3, dtype="float64"), ""),
    ):  # fmt: skip
        assert ours.why_not(layer) == text
    with pytest.raises(openrnn.ArgumentError) as raised:
        ours.why_not(keras.layers.Dense(3))
    assert str(raised.value) == "[why_not] a Dense, expected a recurrent layer of Keras"
    with pytest.raises(openrnn.ArgumentError) as raised:
        ours.convert({})
    assert str(raised.value) == "[convert] a dict, expected a model or a layer of Keras"
    assert _loop.DTYPES == {"float64": "float64", "float32": "float32", "float16": "float32", "bfloat16": "float32"}
    monkeypatch.delitem(_loop.DTYPES, "float16")
    text = "dtype float16, expected one of float64, float32, bfloat16"
    assert ours.why_not(ours.LSTM(3, dtype="mixed_float16")) == text
    monkeypatch.setattr(keras.backend, "backend", lambda: "openvino")
    text = "Keras's backend is openvino, expected one of torch, tensorflow, jax, numpy"
    assert ours.why_not(ours.LSTM(3)) == text and _loop.engine_backend() is None


def test_a_backend_that_cannot_be_imported(monkeypatch):
    def missing(name):
        def fail(module):
            assert module == "openrnn.keras._jax"
            raise ModuleNotFoundError("no such thing", name=name)

        return SimpleNamespace(import_module=fail)

    find = _loop._backend.__wrapped__
    monkeypatch.setattr(_loop, "importlib", missing("jax"))
    assert find("jax") == (None, "no such thing")
    monkeypatch.setattr(_loop, "importlib", missing("numpy.more"))
    with pytest.raises(ModuleNotFoundError, match="no such thing"):
        find("jax")


def test_masks_that_the_engine_reads():
    x = tensor_of(np.ones((2, 5, 3), "float32"))
    mask = np.array([[1, 0, 1, 1, 0], [0, 1, 1, 0, 1]], bool)
    for given, fits in (
        (mask, True), (mask.astype("int32"), True), ([mask], True), ((mask, None), True), (mask[:, :, None], True),
        (mask.T, False), (mask[0], False), (mask[:1], False), (mask[:, :4], False),
        (np.stack([mask, mask], -1), False),
    ):  # fmt: skip
        good, found = _loop.mask_of(given, x)
        assert good is fits
        if fits:
            assert keras.backend.standardize_dtype(found.dtype) == "bool"
            np.testing.assert_array_equal(numpy_of(found), mask)
        else:
            assert found is None
    for nothing in (None, [], (), [None]):
        assert _loop.mask_of(nothing, x) == (True, None)
    for shape in ((None, 5, 3), (2, None, 3), (None, None, 3)):
        assert _loop.mask_of(mask, SimpleNamespace(shape=shape))[0] is True
    assert _loop.mask_of(mask, SimpleNamespace(shape=(None, 4, 3)))[0] is False


def test_sequences_and_states_that_fit():
    cell = SimpleNamespace(kernel=np.zeros((3, 8)))
    for shape, good in (((2, 5, 3), True), ((None, None, 3), True), ((2, 5, 4), False), ((2, 0, 3), False),
                        ((2, 5, 0), False), ((2, 3), False), ((1, 2, 5, 3), False), ((2, 5, None), False)):
        assert _loop.is_readable(SimpleNamespace(shape=shape), cell) is good
    empty = SimpleNamespace(kernel=np.zeros((0, 8)))
    assert _loop.is_readable(SimpleNamespace(shape=(2, 5, 0)), empty) is False
    state = lambda *shape: SimpleNamespace(shape=shape)
    for batch, states, good in (
        (2, [state(2, 4)], True), (2, [state(None, 4), state(2, 4)], True), (None, [state(7, 4)], True),
        (2, [state(2, 4), state(2, 3)], False), (2, [state(1, 4)], False), (2, [state(2, 4, 1)], False),
        (2, [state(4)], False), (2, [], True),
    ):  # fmt: skip
        assert _loop.states_fit(states, SimpleNamespace(shape=(batch, 5, 3)), 4) is good


def test_what_a_call_is_made_of():
    x = tensor_of(np.ones((2, 5, 3), "float32"))
    assert _loop.cast(x, "float32") is x
    assert keras.backend.standardize_dtype(_loop.cast(x, "float64").dtype) == "float64"
    cell = lambda n, bias: SimpleNamespace(kernel=n, recurrent_kernel=n + 1, bias=n + 2, use_bias=bias)
    found = _loop.tensors([cell(10.0, True), cell(20.0, False)], 1.0, [[2.0, 3.0], [4.0]], "float32")
    assert [None if each is None else float(each) for each in found] == [1, 2, 3, 4, None, 10, 11, 12, 20, 21, None]
    for flags in itertools.product((False, True), repeat=3):
        layer = SimpleNamespace(go_backwards=flags[0], return_sequences=flags[1], zero_output_for_mask=flags[2])
        assert _loop.flags_of(layer) == flags


def test_what_is_shown_before_the_first_step(monkeypatch):
    """Keras's loops of jax and numpy show the initial state there, unless unrolled."""
    shows = _loop.shows_initial
    for backend in ("jax", "numpy", "tensorflow", "torch"):
        monkeypatch.setattr(keras.backend, "backend", lambda backend=backend: backend)
        for unroll, zero in itertools.product((False, True), repeat=2):
            layer = SimpleNamespace(unroll=unroll, zero_output_for_mask=zero)
            assert shows(layer) is (backend in ("jax", "numpy") and not unroll and not zero)
    monkeypatch.undo()
    monkeypatch.setattr(_loop, "shows_initial", lambda layer: True)
    random = np.random.default_rng(2)
    mask = np.array([[0, 0, 1, 0], [1, 0, 0, 0], [0, 0, 0, 0], [0, 1, 0, 1]], bool)
    h0 = random.normal(size=(4, 2)).astype("float32")
    for backwards, sequences in itertools.product((False, True), repeat=2):
        layer = SimpleNamespace(go_backwards=backwards, return_sequences=sequences, zero_output_for_mask=False)
        y = random.normal(size=(4, 4, 2) if sequences else (4, 2)).astype("float32")
        walked = mask[:, ::-1] if backwards else mask
        before = np.logical_not(np.logical_or.accumulate(walked, 1))
        if sequences:
            wanted = np.where(before[:, :, None], h0[:, None], y)
        else:
            wanted = np.where(before[:, -1:], h0, y)
        found = _loop._before_the_first(layer, tensor_of(y), tensor_of(h0), tensor_of(mask))
        np.testing.assert_array_equal(numpy_of(found), wanted)
        assert _loop._before_the_first(layer, y, h0, None) is y
        monkeypatch.setattr(_loop, "shows_initial", lambda layer: False)
        assert _loop._before_the_first(layer, y, h0, mask) is y
        monkeypatch.setattr(_loop, "shows_initial", lambda layer: True)


# What makes the layers of a Bidirectional differ, or more than loops, on either side.
CHANGES = {
    "stateful": True, "activity_regularizer": keras.regularizers.L2(), "call": lambda: None,
    "inner_loop": lambda: None, "_forward_pre_hooks": {1: 1}, "_forward_hooks": {1: 1},
    "_backward_pre_hooks": {1: 1}, "_backward_hooks": {1: 1}, "built": False, "return_sequences": True,
    "zero_output_for_mask": True, "unroll": True, "autocast": False,
}  # fmt: skip


def set_plainly(layer, name, value):
    vars(layer)[name] = value


@pytest.mark.parametrize("side", ["forward_layer", "backward_layer"])
def test_layers_that_are_alike(side):
    made = lambda **more: ours.Bidirectional(ours.GRU(3, **more))
    for name, value in CHANGES.items():
        layer = made()
        layer.build((2, 5, 4))
        assert _bidirectional.alike(layer) is True
        set_plainly(getattr(layer, side), name, value)
        assert not _bidirectional.alike(layer), name
    for name in ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks"):
        layer = made()
        layer.build((2, 5, 4))
        set_plainly(getattr(layer, side), name, {})  # as PyTorch has them
        assert _bidirectional.alike(layer)
    for name, value in (("dropout", 0.5), ("recurrent_dropout", 0.5), ("use_bias", False), ("units", 2),
                        ("reset_after", False), ("activation", keras.activations.relu)):  # fmt: skip
        layer = made()
        layer.build((2, 5, 4))
        set_plainly(getattr(layer, side).cell, name, value)
        assert not _bidirectional.alike(layer), name
    layer = made()
    layer.build((2, 5, 4))
    set_plainly(getattr(layer, side), "go_backwards", side == "forward_layer")
    assert not _bidirectional.alike(layer)


def test_states_of_both_directions():
    layer = ours.Bidirectional(ours.LSTM(3))
    layer.build((2, 5, 4))
    x = tensor_of(np.ones((2, 5, 4), "float32"))
    given = [np.full((2, 3), n, "float32") for n in range(4)]
    forward, backward = _bidirectional._states(layer, x, given)
    assert [numpy_of(each)[0, 0] for each in (*forward, *backward)] == [0, 1, 2, 3]
    for wrong in (given[:3], [*given, given[0]], given[0], [*given[:3], np.ones((2, 2), "float32")],
                  [np.ones((1, 3), "float32"), *given[1:]]):
        assert _bidirectional._states(layer, x, wrong) is None
    zeros = _bidirectional._states(layer, x, None)
    assert [[numpy_of(each).shape for each in half] for half in zeros] == [[(2, 3), (2, 3)]] * 2
    assert not any(numpy_of(each).any() for half in zeros for each in half)


def test_arrays_that_are_there():
    a, b = np.zeros((2, 3), "float32"), np.zeros(4)
    assert _host.likes([a, None, b]) == [((2, 3), np.float32), None, ((4,), np.float64)]
    assert _host.present([1, None, 0, None, 2]) == [1, 0, 2]
    assert _host.unpacked([True, False, True], [5, 6]) == [5, None, 6]
    assert _host.NONE == 0 and _host.NONE.dtype == np.int32 and _host.NONE.shape == ()


def test_numbers_of_saved_calls(monkeypatch):
    """Positive numbers of 32 bits, also after many calls."""
    monkeypatch.setattr(_host, "_kept", {})
    monkeypatch.setattr(_host, "_numbers", itertools.count(0x80000005))
    saved = SimpleNamespace(bytes=1)
    number = _host.keep(saved)
    assert number == 5 and number.dtype == np.int32 and number.shape == ()
    assert _host.taken(None, number, None, None) is saved and not _host._kept
    assert (_host.MOST_BYTES, _host.MOST_CALLS) == (1 << 30, 256)
    # One that is too large alone is kept; what goes is the oldest.
    monkeypatch.setattr(_host, "MOST_BYTES", 10)
    large = [SimpleNamespace(bytes=n) for n in (4, 20, 3, 7)]
    left = []
    for each in large:
        _host.keep(each)
        left.append(list(_host._kept.values()))
    assert left == [large[:1], large[1:2], large[2:3], large[2:4]]
    with pytest.raises(openrnn.UnsupportedError) as raised:
        _host.refuse_second()
    assert str(raised.value) == ("[openrnn.keras] a second derivative of a recurrent layer, expected a first one: "
                                 "keras.layers's own has second ones")


@pytest.mark.skipif(BACKEND != "tensorflow", reason="of host functions of TensorFlow")
@pytest.mark.parametrize("both", [False, True])
def test_host_functions(both, monkeypatch):
    """Their shapes are known where those of the arguments are; what backward needs is kept in training."""
    import tensorflow as tf
    from openrnn.keras import _tensorflow

    saves, own = [], _host.forward
    monkeypatch.setattr(_host, "forward", lambda *args: saves.append(args[3]) or own(*args))

    def shapes_and_outputs(place, arrays, training):
        shapes = []

        @tf.function(input_signature=[tf.TensorSpec([None, None, 2], tf.float32)])
        def run(x):
            found = _tensorflow.run(place, [x, *arrays[1:]], None, training)
            shapes.extend(None if each is None else tuple(each.shape) for each in found)
            return [each for each in found if each is not None]

        outputs = run(arrays[0])
        return shapes, outputs

    for name, flags, training in (("LSTM", FLAGS[0], True), ("GRU", (False, False, False), False)):
        place, arrays, _ = call_of(name, both, None, flags)
        shapes, outputs = shapes_and_outputs(place, arrays, training)
        width, steps = 8 if both else 4, (None,) if flags[1] else ()
        states = [(None, 4), (None, 4) if name == "LSTM" else None] * (2 if both else 1)
        assert shapes == [(None, *steps, width), *states]
        right = [each for each in own(place, arrays, None, False)[0] if each is not None]
        for a, b in zip(outputs, right, strict=True):
            np.testing.assert_array_equal(a, b)
    assert saves == [True, False]
    for devices in ([], ["a GPU"]):
        monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind, d=devices: d if kind == "GPU" else [1])
        assert _tensorflow.on_cpu(None) is (not devices)
