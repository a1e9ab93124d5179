"""Functional models of Keras 3 with masks, which its files hold as operations, compute as Keras does."""

import json
import zipfile

import numpy as np
import openrnn
import pytest

keras = pytest.importorskip("keras", minversion="3", reason="Keras 3 is not installed")

L, K = keras.layers, keras.ops
KINDS = [".keras", ".h5"]
VOCABULARY, TIME, VALUE = 11, 7, 0.5
# Rows of [B, T] whose steps count: masked at the end, in the middle, at the front, nowhere, everywhere.
COUNTS = np.array([[1, 1, 1, 1, 1, 0, 0], [1, 1, 0, 1, 1, 1, 1], [0, 0, 1, 1, 0, 1, 1], [1] * 7, [0] * 7], bool)


def ids():
    return np.where(COUNTS, np.random.default_rng(3).integers(1, VOCABULARY, COUNTS.shape), 0).astype("int32")


def values():
    x = np.random.default_rng(4).standard_normal((*COUNTS.shape, 3)).astype("float32")
    x[3, 1, 1] = VALUE  # one of three elements: the step counts
    return np.where(COUNTS[..., None], x, np.float32(VALUE))


def words(shape=(None,), **options):
    inputs = keras.Input(shape, dtype="int32")
    return inputs, L.Embedding(VOCABULARY, 4, mask_zero=True, **options)(inputs)


def masked():
    inputs = keras.Input((None, 3))
    return inputs, L.Masking(VALUE)(inputs)


def model_of(inputs, outputs):
    """With weights that differ everywhere, biases too."""
    model, random = keras.Model(inputs, outputs), np.random.default_rng(1)
    model.set_weights([random.uniform(-0.6, 0.6, w.shape).astype(w.dtype) for w in model.get_weights()])
    return model


def listed(outputs):
    return [np.asarray(y) for y in (outputs if isinstance(outputs, (list, tuple)) else [outputs])]


def assert_same(tmp_path, inputs, outputs, x, predict=False):
    """The loaded models, of both kinds of files."""
    model = model_of(inputs, outputs)
    wanted = listed(model.predict(x, verbose=0) if predict else model(x, training=False))
    made = []
    for kind in KINDS:
        model.save(tmp_path / f"m{kind}")
        loaded = openrnn.load(tmp_path / f"m{kind}")
        assert loaded.not_understood == [] and loaded.layers, loaded.notes
        found = listed(loaded.model.predict(x))
        assert len(wanted) == len(found)
        for one, other in zip(wanted, found):
            assert one.shape == other.shape
            np.testing.assert_allclose(other, one, rtol=0, atol=1e-5)
        made.append(loaded)
    return made


def assert_networks_alone(tmp_path, inputs, outputs, why):
    model = model_of(inputs, outputs)
    for kind in KINDS:
        model.save(tmp_path / f"m{kind}")
        loaded = openrnn.load(tmp_path / f"m{kind}")
        assert loaded.layers == []
        assert any("networks alone" in note and why in note for note in loaded.notes), loaded.notes


@pytest.mark.parametrize("name", ["LSTM", "GRU", "SimpleRNN"])
@pytest.mark.parametrize("source", [words, masked])
@pytest.mark.parametrize("sequences", [True, False])
def test_a_layer(tmp_path, name, source, sequences):
    inputs, x = source()
    y = L.Dense(2, name="head")(getattr(L, name)(5, return_sequences=sequences, name="reader")(x))
    loaded, _ = assert_same(tmp_path, inputs, y, ids() if source is words else values(), predict=True)
    assert [one["kind"] for one in loaded.layers] == [
        "input", "embedding" if source is words else "masking", "recurrent", "dense"]
    openrnn.save(tmp_path / "again.keras", loaded)
    again = keras.models.load_model(tmp_path / "again.keras", compile=False)
    given = ids() if source is words else values()
    np.testing.assert_allclose(np.asarray(again(given)), loaded.model.predict(given), rtol=0, atol=1e-5)


def stacked(x):
    x = L.Bidirectional(L.LSTM(3, return_sequences=True), merge_mode="sum")(L.Dropout(0.2)(x))
    return L.GRU(4)(L.LSTM(3, return_sequences=True, go_backwards=True)(x))


def of_each_direction(x):
    return [L.LSTM(2)(y) for y in L.Bidirectional(L.GRU(3, return_sequences=True), merge_mode=None)(x)]


def inside(x):
    inner = keras.Sequential([L.Dense(4, activation="tanh"), L.LSTM(3, return_sequences=True)])
    return L.GRU(2)(inner(x))


def model_inside(x):
    given = keras.Input((None, x.shape[-1]))
    inner = keras.Model(given, L.LSTM(3, return_sequences=True)(L.Masking(9.0)(given)))
    return L.GRU(2)(inner(x))


@pytest.mark.filterwarnings("ignore:Layer .* does not support masking")
@pytest.mark.parametrize("source", [words, masked])
@pytest.mark.parametrize("build", [
    stacked, of_each_direction, inside, model_inside,
    lambda x: L.Bidirectional(L.GRU(3))(x),
    lambda x: L.RNN([L.LSTMCell(3), L.GRUCell(4)])(x),
    lambda x: L.Concatenate()([L.LSTM(3)(x), L.GRU(3)(x)]),
    lambda x: L.GRU(2)(L.TimeDistributed(L.Dense(3, activation="tanh"))(L.LSTM(3, return_sequences=True)(x))),
    lambda x: L.LSTM(2)(L.Activation("softmax")(L.LSTM(3, return_sequences=True)(x))),
    lambda x: L.LSTM(3, return_sequences=True, zero_output_for_mask=True)(x),
    lambda x: L.LSTM(3)(L.Masking(0.0)(x)),
])
def test_layers_behind(tmp_path, source, build):
    inputs, x = source()
    assert_same(tmp_path, inputs, build(x), ids() if source is words else values())


@pytest.mark.filterwarnings("ignore:Layer .* does not support masking")
def test_where_masks_end(tmp_path):
    inputs, x = words()
    assert_same(tmp_path, inputs, L.GlobalAveragePooling1D()(L.LSTM(3, return_sequences=True)(x)), ids()[:4])
    inputs, x = words((TIME,))
    assert_same(tmp_path, inputs, L.Dense(2)(L.Flatten()(L.LSTM(3, return_sequences=True)(x))), ids())


def test_masks_that_are_given(tmp_path):
    inputs, embedding = keras.Input((None,), dtype="int32"), L.Embedding(VOCABULARY, 4, mask_zero=True)
    assert_same(tmp_path, inputs, L.LSTM(3)(embedding(inputs), mask=embedding.compute_mask(inputs)), ids())
    inputs, x = words()
    assert_same(tmp_path, inputs, L.Bidirectional(L.GRU(3))(x, mask=inputs != 0), ids())
    inputs, x = masked()
    assert_same(tmp_path, inputs, L.GRU(3)(x, mask=K.any(K.not_equal(inputs, VALUE), axis=-1)), values())


@pytest.mark.parametrize("wrap", [lambda layer: layer, L.Bidirectional])
@pytest.mark.parametrize("sequences", [True, False])
@pytest.mark.parametrize("given", [True, False])
def test_states_beside_a_mask(tmp_path, wrap, sequences, given):
    """Keras 3 hands no mask to a layer that is called with states, unless one is given."""
    source, x = words()
    states = wrap(L.LSTM(3, return_state=True))(x)[1:]
    target, z = masked()
    named = {"mask": K.any(K.not_equal(target, VALUE), axis=-1)} if given else {}
    y = wrap(L.LSTM(3, return_sequences=sequences, name="decoder"))(z, initial_state=states, **named)
    behind = L.GRU(2)(y) if sequences else L.Dense(2)(y)
    loaded, _ = assert_same(tmp_path, [source, target], [y, behind], [ids()[[3, 0, 2, 1, 4]], values()])
    decoder = next(one for one in loaded.layers if one["name"] in ("decoder", "bidirectional_1") or len(one["inputs"]) > 1)
    assert decoder["options"].get("uses_mask", True) == given
    openrnn.save(tmp_path / "m.openrnn", loaded)
    again = openrnn.load(tmp_path / "m.openrnn")
    for one, other in zip(loaded.model.predict([ids(), values()]), again.model.predict([ids(), values()])):
        assert one.tobytes() == other.tobytes()


def test_stateful_layers_with_masked_steps_first(tmp_path):
    model = keras.Sequential([
        keras.Input((TIME,), batch_size=5, dtype="int32"), L.Embedding(VOCABULARY, 4, mask_zero=True),
        L.LSTM(3, stateful=True, return_sequences=True), L.GRU(2, stateful=True, return_sequences=True)])
    weights = np.random.default_rng(1)
    model.set_weights([weights.uniform(-0.6, 0.6, w.shape) for w in model.get_weights()])
    model.save(tmp_path / "m.keras")
    loaded = openrnn.load(tmp_path / "m.keras")
    for x in (ids(), ids()[::-1], ids()):
        np.testing.assert_allclose(loaded.model.predict(x), np.asarray(model(x, training=False)), rtol=0, atol=1e-5)


@pytest.mark.parametrize("mask", [
    lambda i: K.not_equal(i, 1), lambda i: K.not_equal(i, i), lambda i: K.greater(i, 0),
    lambda i: K.logical_and(K.not_equal(i, 0), K.not_equal(i, 3)), lambda i: K.any(K.not_equal(K.expand_dims(i, -1), 0), axis=-1)])
def test_other_masks_are_refused(tmp_path, mask):
    inputs, x = words()
    other = mask(inputs)
    assert_networks_alone(tmp_path, inputs, L.LSTM(3)(x, mask=other), "the ")


def test_masks_of_other_values_are_refused(tmp_path):
    inputs, other = keras.Input((None,), dtype="int32"), keras.Input((None,), dtype="int32", name="other")
    x = L.Embedding(VOCABULARY, 4)(inputs)
    assert_networks_alone(tmp_path, inputs, L.LSTM(3, name="r")(x, mask=K.not_equal(inputs, 0)),
                          "'r' is called with the mask 'not_equal")
    inputs, x = words()
    assert_networks_alone(tmp_path, [inputs, other], L.LSTM(3)(x, mask=K.not_equal(other, 0)), "which is not that of its input")
    flags = keras.Input((None,), dtype="bool", name="flags")
    assert_networks_alone(tmp_path, [inputs, flags], L.LSTM(3)(x, mask=flags), "is called with the mask 'flags'")
    assert_networks_alone(tmp_path, inputs, [L.LSTM(3)(x), K.not_equal(inputs, 0)], "is used as values")
    assert_networks_alone(tmp_path, inputs, L.LSTM(3)(x, None, K.not_equal(inputs, 0)), "no layer's output")


def test_operations(tmp_path):
    inputs = keras.Input((None, 3))
    mixed = K.concatenate([inputs * inputs + inputs, K.softmax(inputs)], axis=-1)
    assert_same(tmp_path, inputs, L.LSTM(3)(mixed), values())
    assert_networks_alone(tmp_path, inputs, K.average(L.LSTM(3, return_sequences=True)(inputs), axis=1), "of class 'Average'")
    inputs, x = words()
    assert_networks_alone(tmp_path, inputs, L.LSTM(3)(K.softmax(x)), "on values with a mask")
    assert_networks_alone(tmp_path, inputs, L.LSTM(3)(x + L.LSTM(4, return_sequences=True)(x)), "an operation on values with a mask")
    assert_networks_alone(tmp_path, inputs, L.Add()([x, L.LSTM(4, return_sequences=True)(x)]), "merges inputs with a mask")


def test_wrong_masks(tmp_path):
    inputs, x = masked()
    model_of(inputs, L.LSTM(3, name="reader")(x)).save(tmp_path / "m.keras")

    def node(config, kind):
        return next(one for one in config["layers"] if one["class_name"] == kind)

    def call(config, kind):
        return node(config, kind)["inbound_nodes"][0]

    for change, why in [
        (lambda c: node(c, "Any")["config"].update(axis=1), "computes no mask"),
        (lambda c: node(c, "Any")["config"].update(keepdims=True), "computes no mask"),
        (lambda c: node(c, "Any").update(inbound_nodes=[]), "computes no mask"),
        (lambda c: call(c, "Any").update(args=[7]), "computes no mask"),
        (lambda c: call(c, "NotEqual")["args"].pop(), "computes no mask"),
        (lambda c: call(c, "NotEqual")["args"].__setitem__(1, "0.5"), "computes no mask"),
        (lambda c: call(c, "NotEqual")["args"].__setitem__(1, 0.25), "is not that of its input"),
        (lambda c: node(c, "Masking")["config"].update(mask_value=[0.5]), "has the option mask_value of this form"),
        (lambda c: call(c, "LSTM")["kwargs"].update(mask=7), "a mask that is no layer's output"),
        (lambda c: call(c, "LSTM")["kwargs"].update(mask=[[]]), "a mask that is no layer's output"),
        (lambda c: call(c, "LSTM")["kwargs"].update(mask=[None, ["any", 0, 0]]), "is not that of its input"),
        (lambda c: call(c, "LSTM")["kwargs"].update(mask=["nothing", 0, 0]), "is not that of its input"),
    ]:
        with zipfile.ZipFile(tmp_path / "m.keras") as given, zipfile.ZipFile(tmp_path / "x.keras", "w") as made:
            for name in given.namelist():
                data = given.read(name)
                if name == "config.json":
                    config = json.loads(data.decode().replace('"any_', '"any'))
                    for one in config["config"]["layers"]:
                        if one["class_name"] == "Any":
                            one["name"] = one["config"]["name"]
                    change(config["config"])
                    data = json.dumps(config).encode()
                made.writestr(name, data)
        loaded = openrnn.load(tmp_path / "x.keras")
        assert loaded.layers == [] and any(why in note for note in loaded.notes), (why, loaded.notes)


@pytest.mark.parametrize("name,used", [("LSTM", [0, 1, 2, 3, 4, 5]), ("LSTM", [5]), ("GRU", [0, 1, 2, 3]), ("GRU", [3])])
def test_every_output_of_two_directions(tmp_path, name, used):
    """Apart, each with its states: two outputs, then the states forwards and backwards."""
    inputs, x = masked()
    outputs = L.Bidirectional(getattr(L, name)(4, return_state=True), merge_mode=None)(x)
    assert_same(tmp_path, inputs, [L.Dense(2)(outputs[place]) for place in used], values())
