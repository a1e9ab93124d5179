"""Whole models of Keras's files compute, train and are written as Keras does it."""

import json
import subprocess
import zipfile

import numpy as np
import openrnn
import pytest

keras = pytest.importorskip("keras", minversion="3", reason="Keras 3 is not installed")

from files.file_tools import BUILD_DIR

L = keras.layers
KINDS = [".keras", ".h5"]
VOCABULARY, TIME, BATCH = 11, 7, 3
# Sums of at most some dozens of terms of size 1 through few layers.
TOLERANCE = {"float32": 4e-6, "float64": 2e-14}


def randomize(model, seed=1):
    """Weights that differ everywhere, biases too."""
    random = np.random.default_rng(seed)
    model.set_weights([random.uniform(-0.6, 0.6, w.shape).astype(w.dtype) for w in model.get_weights()])
    return model


def ids_of(batch=BATCH, time=TIME):
    """Zeros at the end, in the middle, at the front, and a row of nothing else."""
    ids = np.random.default_rng(3).integers(1, VOCABULARY, (batch, time))
    for row in range(batch):
        ids[row, : row % 2] = 0
        ids[row, time - row :] = 0
    ids[-1, :] = 0
    if batch > 1 and time > 3:
        ids[0, 2] = 0
    return ids


def x_of(width, dtype="float32", batch=BATCH, time=TIME):
    return np.random.default_rng(4).standard_normal((batch, time, width)).astype(dtype)


def saved(model, path):
    model.save(path)
    return path


def assert_same(model, loaded, x, dtype="float32"):
    wanted, found = eager(model, x), loaded.model.predict(x)
    if not isinstance(wanted, (list, tuple)):
        wanted, found = [wanted], [found]
    assert len(wanted) == len(found)
    for one, other in zip(wanted, found):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(other, one, rtol=0, atol=TOLERANCE[dtype])


def eager(model, x):
    """The outputs of Keras's model, without compiling a graph of it first."""
    outputs = model(x, training=False)
    return [np.asarray(y) for y in outputs] if isinstance(outputs, (list, tuple)) else np.asarray(outputs)


def sequential(*layers, shape=(None,), dtype="float32"):
    return randomize(keras.Sequential([keras.Input(shape, dtype=dtype), *layers]))


def sentiment(mask=True, dtype="float32"):
    return sequential(
        L.Embedding(VOCABULARY, 4, mask_zero=mask, name="words", dtype=dtype),
        L.SpatialDropout1D(0.2, dtype=dtype),
        L.Bidirectional(L.LSTM(5, return_sequences=True, dtype=dtype), name="both", dtype=dtype),
        L.GRU(6, name="reader", dtype=dtype),
        L.Dropout(0.5, dtype=dtype),
        L.Dense(5, activation="relu", name="middle", dtype=dtype),
        L.Dense(3, activation="softmax", name="head", dtype=dtype),
        dtype="int32",
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mask", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sentiment(tmp_path, kind, mask, dtype):
    model = sentiment(mask, dtype)
    loaded = openrnn.load(saved(model, tmp_path / f"m{kind}"))
    assert list(loaded) == ["both", "reader"] and loaded.not_understood == []
    assert [one["kind"] for one in loaded.layers] == [
        "input", "embedding", "dropout", "recurrent", "recurrent", "dropout", "dense", "dense"]
    assert_same(model, loaded, ids_of(), dtype)
    assert_same(model, loaded, ids_of(1, 1), dtype)
    assert loaded.model.get_layer("reader") is loaded["reader"].layer
    assert loaded.model.inputs == [("int32", (None, None))]
    assert loaded.model.outputs == [(dtype, (None, 3))]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["LSTM", "GRU", "SimpleRNN"])
@pytest.mark.parametrize("sequences", [True, False])
@pytest.mark.parametrize("backwards", [True, False])
def test_masking_and_direction(tmp_path, kind, name, sequences, backwards):
    layer = getattr(L, name)(5, return_sequences=sequences, go_backwards=backwards)
    model = sequential(L.Masking(0.5), layer, L.Dense(2), shape=(None, 3))
    x = x_of(3)
    x[0, 4:], x[1, 0], x[2], x[1, 3, 1] = 0.5, 0.5, 0.5, 0.5
    loaded = openrnn.load(saved(model, tmp_path / f"m{kind}"))
    assert_same(model, loaded, x)
    assert any("go_backwards" in note for note in loaded.notes) == backwards


@pytest.mark.parametrize("merge", ["concat", "sum", "ave", "mul", None])
@pytest.mark.parametrize("sequences", [True, False])
@pytest.mark.parametrize("mask", [False])
def test_merge_modes(tmp_path, merge, sequences, mask):
    inputs = keras.Input((None,), dtype="int32")
    x = L.Embedding(VOCABULARY, 4, mask_zero=mask)(inputs)
    y = L.Bidirectional(L.GRU(3, return_sequences=sequences), merge_mode=merge)(x)
    model = randomize(keras.Model(inputs, y))
    assert_same(model, openrnn.load(saved(model, tmp_path / "m.keras")), ids_of())


def test_cells_of_other_sizes(tmp_path):
    cells = [L.LSTMCell(5), L.GRUCell(4), L.LSTMCell(5, activation="relu")]
    model = sequential(L.Masking(0.0), L.RNN(cells, name="stack", return_sequences=True), L.Dense(2), shape=(None, 3))
    loaded = openrnn.load(saved(model, tmp_path / "m.keras"))
    assert list(loaded) == ["stack_0", "stack_1", "stack_2"]
    x = x_of(3)
    x[0, 2:5] = 0
    assert_same(model, loaded, x)


def test_equal_cells_stay_one_network(tmp_path):
    model = sequential(L.RNN([L.GRUCell(5) for _ in range(3)], name="stack"), L.Dense(2), shape=(None, 3))
    loaded = openrnn.load(saved(model, tmp_path / "m.keras"))
    assert list(loaded) == ["stack"] and loaded["stack"].options["num_layers"] == 3
    assert_same(model, loaded, x_of(3))
    openrnn.save(tmp_path / "again.keras", loaded)
    again = openrnn.load(tmp_path / "again.keras")
    assert list(again) == ["stack"]
    assert_same(model, again, x_of(3))
    assert_same(keras.models.load_model(tmp_path / "again.keras", compile=False), loaded, x_of(3))


def functional():
    """Branches of the same classes and shapes, states from layer to layer, a model inside."""
    source, target = keras.Input((None,), dtype="int32", name="source"), keras.Input((6, 3), name="target")
    x = L.Embedding(VOCABULARY, 4)(source)
    _, h, c = L.LSTM(5, return_state=True, name="encoder")(x)
    y = L.LSTM(5, return_sequences=True, name="decoder")(target, initial_state=[h, c])
    inner = keras.Sequential([L.Dense(4, activation="elu", name="deep"), L.ReLU(max_value=0.7)], name="inside")
    left, right = L.Dense(4, name="left", activation="silu")(y), L.Dense(4, name="right")(y)
    mixed = L.Add()([right, inner(y), L.Multiply()([left, right]), L.Average()([left, right])])
    out = L.TimeDistributed(L.Dense(3, activation="leaky_relu", name="timed"))(L.Concatenate()([mixed, left]))
    mean = L.GlobalAveragePooling1D()(L.LeakyReLU(negative_slope=0.3)(out))
    again = L.Flatten()(L.RepeatVector(3)(L.Subtract()([mean, L.Dense(3, name="from_state")(h)])))
    return randomize(keras.Model([target, source], [L.Reshape((3, 3))(again), out, mean]))


@pytest.mark.parametrize("kind", KINDS)
def test_functional(tmp_path, kind):
    model = functional()
    loaded = openrnn.load(saved(model, tmp_path / f"m{kind}"))
    assert loaded.not_understood == []
    inputs = [x_of(3, time=6), ids_of(time=9)]
    assert_same(model, loaded, inputs)
    with pytest.raises(openrnn.ArgumentError, match="expected a list of 2"):
        loaded.model(inputs[0])
    with pytest.raises(openrnn.ArgumentError, match=r"inputs\[0\] is float32 \[3, 6, 2\], expected float32 \[-1, 6, 3\]"):
        loaded.model([inputs[0][..., :2], inputs[1]])


def test_mean_with_a_mask(tmp_path):
    model = sequential(L.Embedding(VOCABULARY, 4, mask_zero=True), L.LSTM(3, return_sequences=True),
                       L.GlobalAveragePooling1D(), dtype="int32")
    x = ids_of()[:2]  # a row of nothing is 0 / 0 there, too
    assert_same(model, openrnn.load(saved(model, tmp_path / "m.keras")), x)


def test_stateful(tmp_path):
    model = randomize(keras.Sequential([
        keras.Input((4, 3), batch_size=2), L.LSTM(5, return_sequences=True, stateful=True),
        L.Bidirectional(L.GRU(3, stateful=True)), L.Dense(2)]))
    loaded = openrnn.load(saved(model, tmp_path / "m.keras"))
    x = x_of(3, batch=2, time=8)
    for part in (x[:, :4], x[:, 4:]):
        assert_same(model, loaded, part)
    for layer in model.layers[:2]:
        layer.reset_state()
    loaded.model.reset_states()
    assert_same(model, loaded, x[:, 4:])


@pytest.mark.parametrize("function", [
    "linear", "relu", "tanh", "sigmoid", "softmax", "exponential", "softsign", "silu", "hard_sigmoid", "hard_silu",
    "leaky_relu", "elu", "selu", "relu6"])
def test_functions(tmp_path, function):
    model = sequential(L.LSTM(5, return_sequences=True), L.Dense(4, activation=function), L.Activation(function), shape=(None, 3))
    model.set_weights([4 * w for w in model.get_weights()])
    loaded = openrnn.load(saved(model, tmp_path / "m.keras"))
    wanted, found = eager(model, x_of(3)), loaded.model.predict(x_of(3))
    np.testing.assert_allclose(found, wanted, rtol=4e-6, atol=4e-6)
    openrnn.save(tmp_path / "again.keras", loaded)
    again = keras.models.load_model(tmp_path / "again.keras", compile=False)
    np.testing.assert_allclose(eager(again, x_of(3)), wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("layer, why", [
    (lambda: L.Dense(2, activation="gelu"), "has the activation 'gelu', which is not computed here"),
    (lambda: L.Conv1D(2, 2, name="odd"), "the layer 'odd' is of class 'Conv1D', which is not computed here"),
    (lambda: L.Lambda(lambda x: x), "is of class 'Lambda'"),
    (lambda: L.GRU(3, activation="gelu", return_sequences=True), "no network was made from"),
    (lambda: L.TimeDistributed(L.Flatten()), "is a TimeDistributed 'Flatten'"),
    (lambda: L.ReLU(threshold=0.5), "has the option threshold"),
])
def test_what_is_not_computed_is_named(tmp_path, layer, why):
    model = sequential(L.LSTM(4, return_sequences=True, name="first"), layer(), shape=(6, 3))
    loaded = openrnn.load(saved(model, tmp_path / "m.keras"))
    assert "first" in loaded and loaded.layers == []
    assert any(note.startswith("the model is read as its networks alone: ") and why in note for note in loaded.notes), loaded.notes
    with pytest.raises(openrnn.UnsupportedError, match="no whole model that is computed here"):
        loaded.model


def test_a_layer_that_is_called_twice(tmp_path):
    inputs, dense = keras.Input((None, 3)), L.Dense(3, name="twice")
    model = keras.Model(inputs, dense(L.GRU(3, return_sequences=True)(dense(inputs))))
    loaded = openrnn.load(saved(model, tmp_path / "m.keras"))
    assert len(loaded) == 1 and any("'twice' is applied more than once" in note for note in loaded.notes)


# ---- Training ------------------------------------------------------------------------------------


@pytest.mark.parametrize("frozen", [False, True])
def test_gradients(tmp_path, frozen):
    import tensorflow as tf

    model = sentiment(dtype="float64")
    model.get_layer("words").trainable = not frozen
    loaded = openrnn.load(saved(model, tmp_path / "m.keras"))
    ids, target = ids_of(), np.random.default_rng(5).standard_normal((BATCH, 3))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model(ids, training=False) * target)
    wanted = tape.gradient(loss, model.trainable_variables)
    wanted = {v.path: np.asarray(tf.convert_to_tensor(g)) for v, g in zip(model.trainable_variables, wanted)}
    with openrnn.GradientTape() as ours:
        total = openrnn.reduce_sum(openrnn.multiply(loaded.model(ids, training=False), openrnn.Tensor(target)))
    graph = loaded.model
    found = ours.gradient(total, graph.trainable_variables)
    by_name = {v.name: g.numpy() for v, g in zip(graph.trainable_variables, found)}
    assert abs(total.numpy() - float(loss)) < 1e-13

    def same(variable, path):
        np.testing.assert_allclose(by_name[variable.name], next(g for p, g in wanted.items() if p.endswith(path)),
                                   rtol=0, atol=1e-13)

    same(graph.get_layer("head").kernel, "head/kernel")
    same(graph.get_layer("head").bias, "head/bias")
    assert (graph.get_layer("words").embeddings.name in by_name) != frozen
    if not frozen:
        same(graph.get_layer("words").embeddings, "words/embeddings")
    reader = loaded["reader"]
    gradient = by_name[reader.layer.kernel.name]
    parts = [g for p, g in wanted.items() if "reader" in p]
    weights, biases = openrnn.canonical_from_keras(
        parts, "gru", **{k: v for k, v in reader.options.items() if k in ("num_units", "input_size", "dtype")})
    np.testing.assert_allclose(gradient, np.concatenate([w.ravel() for w in [*weights, *biases]]), rtol=0, atol=1e-13)


def test_what_was_trained_is_saved(tmp_path):
    model = sentiment()
    loaded = openrnn.load(saved(model, tmp_path / "m.keras"))
    graph, optimizer = loaded.model, openrnn.train.AdamOptimizer(0.05)
    ids, before = ids_of(), loaded.model.predict(ids_of())
    for _ in range(3):
        with openrnn.GradientTape() as tape:
            loss = openrnn.reduce_mean(openrnn.square(graph(ids, training=True)))
        optimizer.apply_gradients(zip(tape.gradient(loss, graph.trainable_variables), graph.trainable_variables))
    after = graph.predict(ids)
    assert np.abs(after - before).max() > 1e-3
    for name in ("m.openrnn", "m.keras", "m.h5"):
        for given in (loaded, graph):
            openrnn.save(tmp_path / f"out{name[1:]}", given)
            again = openrnn.load(tmp_path / f"out{name[1:]}")
            assert again.model.predict(ids).tobytes() == after.tobytes()
    theirs = keras.models.load_model(tmp_path / "out.keras", compile=False)
    np.testing.assert_allclose(eager(theirs, ids), after, rtol=0, atol=4e-6)


# ---- There and back ------------------------------------------------------------------------------


@pytest.mark.parametrize("build", [sentiment, functional])
def test_round_trips(tmp_path, build):
    model = build()
    inputs = ids_of() if build is sentiment else [x_of(3, time=6), ids_of(time=9)]
    loaded = openrnn.load(saved(model, tmp_path / "first.keras"))
    wanted = loaded.model.predict(inputs)
    path = tmp_path / "first.keras"
    endings = [".openrnn", ".keras", ".h5", ".openrnn", ".keras"]
    if build is functional:
        endings = [".openrnn", ".openrnn"]
        for ending in KINDS:
            with pytest.raises(openrnn.UnsupportedError, match="has inputs other than the layer before it"):
                openrnn.save(tmp_path / f"refused{ending}", loaded)
            assert not (tmp_path / f"refused{ending}").exists()
    for number, ending in enumerate(endings):
        openrnn.save(tmp_path / f"{number}{ending}", openrnn.load(path))
        path = tmp_path / f"{number}{ending}"
        found = openrnn.load(path).model.predict(inputs)
        for one, other in zip(wanted if isinstance(wanted, list) else [wanted], found if isinstance(found, list) else [found]):
            assert one.tobytes() == other.tobytes()
        if ending != ".openrnn":
            theirs = keras.models.load_model(path, compile=False)
            assert_same(theirs, loaded, inputs)
    if build is functional:
        return
    weights = tmp_path / "w.weights.h5"
    openrnn.save(weights, loaded)
    again = build()
    for w in again.weights:
        w.assign(np.zeros(w.shape))
    again.load_weights(weights)
    for one, other in zip(again.get_weights(), model.get_weights(), strict=True):
        assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("optimizer, names", [
    (lambda: keras.optimizers.Adam(0.1), ["m", "v"]), (lambda: keras.optimizers.SGD(0.1, momentum=0.9), ["momentum"]),
    (lambda: keras.optimizers.RMSprop(0.1), ["rms"]), (lambda: keras.optimizers.Adagrad(0.1), ["accumulator"]),
    (lambda: keras.optimizers.SGD(0.1), []), (lambda: keras.optimizers.Nadam(0.1), None)])
def test_slots_of_optimizers(tmp_path, kind, optimizer, names):
    model = sentiment()
    model.get_layer("words").trainable = False
    model.compile(optimizer(), "mse")
    for seed in range(3):
        model.train_on_batch(ids_of(), np.random.default_rng(seed).standard_normal((BATCH, 3)))
    loaded = openrnn.load(saved(model, tmp_path / f"m{kind}"))
    assert_same(model, loaded, ids_of())
    if names is None:
        assert any("variables of the optimizer 'nadam" in note and "are not read" in note for note in loaded.notes)
        return
    theirs = [v.numpy() for v in model.optimizer.variables[2:]]
    weights = [v.path.split("/", 1)[1] for v in model.trainable_variables]
    slots = {slot: dict(zip(weights, theirs[i :: len(names)])) for i, slot in enumerate(names)}
    reader, head = loaded["reader"], loaded.layers[-1]
    assert sorted(reader.slots) == sorted(names) and sorted(head["slots"].get("kernel", {})) == sorted(names)
    for slot, by_weight in slots.items():
        np.testing.assert_array_equal(head["slots"]["kernel"][slot], by_weight["head/kernel"])
        np.testing.assert_array_equal(head["slots"]["bias"][slot], by_weight["head/bias"])
        parts = [by_weight[f"reader/gru_cell/{name}"] for name in ("kernel", "recurrent_kernel", "bias")]
        options = {k: v for k, v in reader.options.items() if k in ("num_units", "input_size")}
        canonical = openrnn.canonical_from_keras(parts, "gru", **options)
        wanted = np.concatenate([array.ravel() for both in canonical for array in both])
        np.testing.assert_array_equal(reader.slots[slot], wanted)
    openrnn.save(tmp_path / "out.openrnn", loaded)
    again = openrnn.load(tmp_path / "out.openrnn")
    for slot in names:
        np.testing.assert_array_equal(again["both"].slots[slot], loaded["both"].slots[slot])
        np.testing.assert_array_equal(again.layers[-1]["slots"]["bias"][slot], head["slots"]["bias"][slot])


def test_deep_copies(tmp_path):
    import copy
    import pickle

    loaded = openrnn.load(saved(sentiment(), tmp_path / "m.keras"))
    wanted = loaded.model.predict(ids_of())
    for made in (copy.deepcopy(loaded.model), pickle.loads(pickle.dumps(loaded.model))):
        assert made.predict(ids_of()).tobytes() == wanted.tobytes()
        made.get_layer("head").bias.assign(np.ones(3, "float32"))
        assert made.predict(ids_of()).tobytes() != wanted.tobytes()
    assert loaded.model.predict(ids_of()).tobytes() == wanted.tobytes()


# ---- The tool ------------------------------------------------------------------------------------


def tool(*arguments):
    return subprocess.run([BUILD_DIR / "openrnn", *map(str, arguments)], capture_output=True, text=True)


def test_the_tool(tmp_path):
    model = sentiment()
    path, ids = saved(model, tmp_path / "m.keras"), ids_of()
    np.save(tmp_path / "ids.npy", ids)
    done = tool("run", path, "--input", tmp_path / "ids.npy", "--output", tmp_path / "y.npy")
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), eager(model, ids), rtol=0, atol=4e-6)
    np.save(tmp_path / "one.npy", ids[0].astype("float64"))
    done = tool("run", path, "--input", tmp_path / "one.npy", "--output", tmp_path / "one_y.npy")
    assert np.load(tmp_path / "one_y.npy").shape == (3,) and done.returncode == 0
    np.testing.assert_array_equal(np.load(tmp_path / "one_y.npy"), np.load(tmp_path / "y.npy")[0])
    shown = tool("inspect", path).stdout
    assert "layer words: embedding, dim 4, mask_zero true, vocabulary 11 of" in shown
    assert "layer head: dense, activation softmax, units 3 of middle: float32 [-1, 3]" in shown
    listed = json.loads(tool("inspect", path, "--json").stdout)
    assert [one["kind"] for one in listed["layers"]][-2:] == ["dense", "dense"] and listed["not_understood"] == []
    for name in ("out.openrnn", "out.h5", "again.keras"):
        done = tool("convert", path, tmp_path / name)
        assert "model: 8 layers, largest difference 0 of 9 values" in done.stdout and "left out" not in done.stdout
    assert "8 layers, of which such a file has the weights alone\n" in tool("convert", path, tmp_path / "o.weights.h5").stdout
    done = tool("convert", path, tmp_path / "out.pt")
    assert done.returncode == 0 and "left out: 5 layers around the networks" in done.stdout and "words (embedding)" in done.stdout


def test_refusals_of_the_tool(tmp_path):
    path = saved(sentiment(), tmp_path / "m.keras")
    np.save(tmp_path / "ids.npy", ids_of())
    for flags, why in [(["--lengths", "n.npy"], "--lengths with a whole model"), (["--stream", "2"], "--stream with a whole model"),
                       (["--state", "s"], "--state with a whole model")]:
        done = tool("run", path, "--input", tmp_path / "ids.npy", "--output", tmp_path / "y.npy", *flags)
        assert done.returncode == 2 and why in done.stderr
    np.save(tmp_path / "bad.npy", np.full((2, 3), 0.5))
    done = tool("run", path, "--input", tmp_path / "bad.npy", "--output", tmp_path / "y.npy")
    assert done.returncode == 2 and "has 0.5 at 0, expected 32-bit integers" in done.stderr
    np.save(tmp_path / "bad.npy", np.full((2, 3), VOCABULARY))
    done = tool("run", path, "--input", tmp_path / "bad.npy", "--output", tmp_path / "y.npy")
    assert done.returncode == 2 and str(VOCABULARY) in done.stderr
    np.save(tmp_path / "bad.npy", np.zeros((2, 3, 4)))
    done = tool("run", path, "--input", tmp_path / "bad.npy", "--output", tmp_path / "y.npy")
    assert done.returncode == 2 and "expected [-1, -1] of the whole model, batch first" in done.stderr
    functional().save(tmp_path / "two.keras")
    done = tool("run", tmp_path / "two.keras", "--input", tmp_path / "ids.npy", "--output", tmp_path / "y.npy")
    assert done.returncode == 2 and "has 2 inputs" in done.stderr


# ---- Untrusted files -------------------------------------------------------------------------


def with_config(source, target, change):
    """The archive with another configuration."""
    with zipfile.ZipFile(source) as given, zipfile.ZipFile(target, "w") as made:
        for name in given.namelist():
            data = given.read(name)
            if name == "config.json":
                config = json.loads(data)
                change(config["config"])
                data = json.dumps(config).encode()
            made.writestr(name, data)
    return target


@pytest.mark.parametrize("change, why", [
    (lambda c: c["layers"][1]["config"].update(input_dim=12), "has embeddings float32 [11, 4], expected float32 [12, 4]"),
    (lambda c: c["layers"][1]["config"].update(input_dim=-1), "has vocabulary -1, expected 1 or more"),
    (lambda c: c["layers"][6]["config"].update(units=2**62), "has kernel float32 [6, 5]"),
    (lambda c: c["layers"][6]["config"].update(units="5"), "has no units"),
    (lambda c: c["layers"][5]["config"].update(rate=1e300), "has rate 1e+300, expected 0 to 1"),
    (lambda c: c["layers"][3]["config"].update(merge_mode="x"), "has merge 'x'"),
    (lambda c: c["layers"].pop(4), "has kernel float32"),
    (lambda c: c["layers"].insert(7, {"class_name": "RepeatVector", "config": {"name": "r", "n": 10**9}}), "expected at most"),
    (lambda c: c["layers"].insert(7, {"class_name": "Reshape", "config": {"name": "r", "target_shape": [2**40, 2**40]}}), "expected sizes"),
    (lambda c: c.update(layers=7), "it has no layers"),
])
def test_wrong_configurations(tmp_path, change, why):
    path = with_config(saved(sentiment(), tmp_path / "m.keras"), tmp_path / "x.keras", change)
    loaded = openrnn.load(path)
    assert loaded.layers == []
    assert any(why in note for note in loaded.notes), loaded.notes


def test_wrong_graphs(tmp_path):
    model = functional()
    model.save(tmp_path / "m.keras")

    def link(config, name, history):
        node = next(one for one in config["layers"] if one["name"] == name)
        node["inbound_nodes"][0]["args"][0]["config"]["keras_history"] = history

    for change, why in [
        (lambda c: link(c, "left", ["left", 0, 0]), "'left' is used before it is there"),
        (lambda c: link(c, "left", ["decoder", 0, 9]), "'decoder' is used before it is there"),
        (lambda c: link(c, "left", ["decoder", 1, 0]), "'decoder' is applied more than once"),
        (lambda c: link(c, "left", ["encoder", 0, 2]), "expected that of the first one"),
        (lambda c: c.update(output_layers=[["nothing", 0, 0]]), "'nothing' is used before it is there"),
        (lambda c: c.update(output_layers=[]), "no output"),
        (lambda c: c.update(input_layers=[["nothing", 0, 0]]), "it has no layer 'nothing'"),
    ]:
        loaded = openrnn.load(with_config(tmp_path / "m.keras", tmp_path / "x.keras", change))
        assert loaded.layers == [] and any(why in note for note in loaded.notes), (why, loaded.notes)


def test_wrong_own_files(tmp_path):
    loaded = openrnn.load(saved(sentiment(), tmp_path / "m.keras"))
    openrnn.save(tmp_path / "m.openrnn", loaded)
    data = (tmp_path / "m.openrnn").read_bytes()
    for old, new in [(b'\\"mask_zero\\":true', b'\\"mask_zero\\":null'), (b'\\"vocabulary\\":11', b'\\"vocabulary\\":12')]:
        assert data.count(old) == 1
        (tmp_path / "x.openrnn").write_bytes(data.replace(old, new))
        with pytest.raises(openrnn.FormatError, match="openrnn.layers has the checksum"):
            openrnn.load(tmp_path / "x.openrnn")
    broken = bytearray(data)
    broken[-1] ^= 1
    (tmp_path / "x.openrnn").write_bytes(bytes(broken))
    with pytest.raises(openrnn.FormatError, match="checksum"):
        openrnn.load(tmp_path / "x.openrnn")
