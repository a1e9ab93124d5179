"""Files of RTNeural as Keras's weights, and of NeuralAmpModeler, whose model is written out in NumPy."""

import json

import numpy as np
import openrnn
import pytest

from tool.tool_runs import good

X = np.random.default_rng(0).standard_normal((9, 2, 3)).astype("float32")


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


@pytest.mark.parametrize("name", ["LSTM", "GRU"])
def test_rtneural_layers_compute_what_keras_does(name, tmp_path):
    keras = pytest.importorskip("keras", reason="Keras is not installed")
    layers = [getattr(keras.layers, name)(units, return_sequences=True) for units in (5, 4)]
    y = np.swapaxes(X, 0, 1)
    for layer in layers:
        layer.build(y.shape)
        random = np.random.default_rng(y.shape[-1])
        layer.set_weights([random.uniform(-0.7, 0.7, w.shape) for w in layer.get_weights()])
        y = np.asarray(layer(y))
    described = [{"type": name.lower(), "activation": "", "shape": [None, None, layer.units],
                  "weights": [w.tolist() for w in layer.get_weights()]} for layer in layers]
    (tmp_path / "m.json").write_text(json.dumps({"in_shape": [None, None, 3], "layers": described}))
    model = openrnn.load(tmp_path / "m.json")
    assert model.kind == "a file of RTNeural" and list(model) == ["layers.0", "layers.1"]
    found = X
    for network in model.values():
        found = network.layer(found, training=False)[0].numpy()
    np.testing.assert_allclose(np.swapaxes(found, 0, 1), y, rtol=0, atol=1e-6)
    openrnn.save(tmp_path / "again.json", {key: network.layer for key, network in model.items()})
    again = json.loads((tmp_path / "again.json").read_text())
    for layer, wanted in zip(again["layers"], layers, strict=True):
        for array, weights in zip(layer["weights"], wanted.get_weights(), strict=True):
            np.testing.assert_array_equal(np.float32(array), weights)


def nam_outputs(config, weights, x):
    """One sample after another, as NeuralAmpModelerCore's LSTM takes them from the list of weights."""
    weights = np.asarray(weights, np.float64)
    inputs, hidden, layers = config["input_size"], config["hidden_size"], config["num_layers"]
    taken = 0

    def take(*shape):
        nonlocal taken
        size = int(np.prod(shape))
        taken += size
        return weights[taken - size : taken].reshape(shape)

    cells = []
    for layer in range(layers):
        width = inputs if layer == 0 else hidden
        cells.append([take(4 * hidden, width + hidden), take(4 * hidden), take(hidden), take(hidden)])
    head, bias = take(hidden), take(1)
    assert taken == len(weights)
    states, outputs = [], []
    for sample in x:
        value = sample
        for cell in cells:
            matrix, offset, h, c = cell
            i, f, g, o = np.split(matrix @ np.concatenate([value, h]) + offset, 4)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
            cell[2:] = h, c
            value = h
        states.append(value)
        outputs.append(head @ value + bias[0])
    return np.array(states), np.array(outputs)


def nam_file(path, layers):
    """A file of the format, and the states and outputs of its model over X of the first row."""
    config = {"input_size": 3, "hidden_size": 5, "num_layers": layers}
    count = sum(20 * ((3 if layer == 0 else 5) + 5) + 20 + 10 for layer in range(layers)) + 6
    weights = np.random.default_rng(1).uniform(-0.7, 0.7, count).astype("float32").tolist()
    path.write_text(json.dumps({"version": "0.5.2", "architecture": "LSTM", "config": config, "weights": weights,
                                "metadata": {"name": "an amplifier", "gain": 0.25}, "sample_rate": 48000}))
    return nam_outputs(config, weights, X[:, 0])


@pytest.mark.parametrize("layers", [1, 2])
def test_a_neural_amp_model(layers, tmp_path):
    path = tmp_path / "amp.nam"
    states, outputs = nam_file(path, layers)
    model = openrnn.load(path)
    assert model.kind == "a file of NeuralAmpModeler" and not model.notes and not model.not_understood
    network = model.network
    # [L, U] as the state of one row.
    h, c = (np.asarray(state).reshape(layers, 1, 5) for state in network.initial_state)
    y = network.layer(X[:, :1], initial_state=(h, c), training=False)[0].numpy()[:, 0]
    np.testing.assert_allclose(y, states, rtol=0, atol=1e-6)
    assert [layer["kind"] for layer in model.layers] == ["input", "recurrent", "dense"]
    assert model.model.outputs == [("float32", (None, None, 1))]
    # Each row begins with those states.
    rows = np.stack([X[:, 0], X[:, 1], X[:, 0]])
    np.testing.assert_allclose(model.model.predict(rows)[[0, 2], :, 0], [outputs, outputs], rtol=0, atol=1e-5)


@pytest.mark.parametrize("layers", [1, 2])
def test_the_tool_knows_the_whole_amplifier(layers, tmp_path):
    path = tmp_path / "amp.nam"
    states, outputs = nam_file(path, layers)
    np.save(tmp_path / "x.npy", X[:, 0])
    good("run", path, "--input", tmp_path / "x.npy", "--output", tmp_path / "y.npy")
    np.testing.assert_allclose(np.load(tmp_path / "y.npy")[:, 0], outputs, rtol=0, atol=1e-5)
    good("run", path, "--network", "lstm", "--input", tmp_path / "x.npy", "--output", tmp_path / "y.npy",
         "--stream", "4")
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), states, rtol=0, atol=1e-6)
    text = good("inspect", path).stdout
    assert f"lstm, {layers} layer" in text and "metadata.name: 'an amplifier'" in text
    assert f"initial_h of {5 * layers} values" in text and "dense, units 1 of lstm" in text
    for before, after in (("amp.nam", "amp.openrnn"), ("amp.openrnn", "again.nam")):
        text = good("convert", tmp_path / before, tmp_path / after).stdout
        assert "model: 3 layers, largest difference 0 of" in text and "left out" not in text
    again, given = (json.loads((tmp_path / name).read_text()) for name in ("again.nam", "amp.nam"))
    np.testing.assert_array_equal(np.float32(again.pop("weights")), np.float32(given.pop("weights")))
    assert again == given


def test_an_amplifier_of_layers_made_here(tmp_path):
    nam_file(tmp_path / "amp.nam", 1)
    loaded = openrnn.load(tmp_path / "amp.nam")
    head = loaded.model.get_layer("head")
    head.kernel.assign(head.kernel.numpy() * 2)
    wanted = loaded.model.predict(X)
    for name, model in (("a.nam", loaded), ("b.nam", loaded.model)):
        openrnn.save(tmp_path / name, model)
        np.testing.assert_array_equal(openrnn.load(tmp_path / name).model.predict(X), wanted)


FUNCTIONS = {
    "": lambda x: x,
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0),
    "sigmoid": sigmoid,
    "softmax": lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True),
    "elu": lambda x: np.where(x > 0, x, np.exp(np.minimum(x, 0)) - 1),
}


def lstm_outputs(weights, x):
    """[B, T, I] to [B, T, U], gates i f c o."""
    kernel, recurrent, bias = weights
    h = c = np.zeros((x.shape[0], recurrent.shape[0]))
    outputs = []
    for t in range(x.shape[1]):
        i, f, g, o = np.split(x[:, t] @ kernel + h @ recurrent + bias, 4, axis=-1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        outputs.append(h)
    return np.stack(outputs, axis=1)


def gru_outputs(weights, x):
    """The same of gates z r h, with two biases."""
    kernel, recurrent, bias = weights
    h = np.zeros((x.shape[0], recurrent.shape[0]))
    outputs = []
    for t in range(x.shape[1]):
        a_z, a_r, a_h = np.split(x[:, t] @ kernel + bias[0], 3, axis=-1)
        b_z, b_r, b_h = np.split(h @ recurrent + bias[1], 3, axis=-1)
        z = sigmoid(a_z + b_z)
        h = z * h + (1 - z) * np.tanh(a_h + sigmoid(a_r + b_r) * b_h)
        outputs.append(h)
    return np.stack(outputs, axis=1)


CELLS = {"lstm": (4, lstm_outputs), "gru": (3, gru_outputs)}


def rtneural_file(path, kinds):
    """A file of layers (type, units or None, activation), and what it computes of X as [B, T, I]."""
    random, width, layers = np.random.default_rng(3), 3, []
    y = X.astype("float64")

    def draw(*shape):
        return random.uniform(-0.9, 0.9, shape).astype("float32")

    for kind, units, activation in kinds:
        weights = []
        if kind in CELLS:
            gates, outputs = CELLS[kind]
            biases = (2, 3 * units) if kind == "gru" else (4 * units,)
            weights = [draw(width, gates * units), draw(units, gates * units), draw(*biases)]
            y = outputs(weights, y)
        elif units:
            weights = [draw(width, units), draw(units)]
            y = y @ weights[0] + weights[1]
        if kind not in CELLS:
            y = FUNCTIONS[activation](y)
        width = units or width
        layers.append({"type": kind, "activation": activation, "shape": [None, None, width],
                       "weights": [w.tolist() for w in weights]})
    path.write_text(json.dumps({"in_shape": [None, None, 3], "layers": layers}))
    return y


MODELS = {
    "lstm and dense": [("lstm", 5, "tanh"), ("dense", 1, "")],
    "gru and dense": [("gru", 4, ""), ("time-distributed-dense", 2, "tanh")],
    "several": [("dense", 4, "relu"), ("gru", 5, ""), ("activation", None, "elu"), ("lstm", 4, ""), ("dense", 6, "elu"),
                ("activation", None, "softmax"), ("dense", 2, "sigmoid")],
    "two lstm": [("lstm", 3, ""), ("lstm", 3, ""), ("dense", 3, "softmax")],
    "no dense": [("activation", None, "relu"), ("gru", 3, ""), ("activation", None, "sigmoid")],
    **{f"activation {name}": [("lstm", 4, ""), ("dense", 3, ""), ("activation", None, name)] for name in FUNCTIONS},
}


@pytest.mark.parametrize("name", MODELS)
def test_whole_models_of_rtneural(name, tmp_path):
    path = tmp_path / "m.json"
    wanted = rtneural_file(path, MODELS[name])
    loaded = openrnn.load(path)
    assert not loaded.notes and not loaded.not_understood
    found = loaded.model.predict(X)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-6)
    for before, after in (("m.json", "m.openrnn"), ("m.openrnn", "again.json")):
        openrnn.save(tmp_path / after, openrnn.load(tmp_path / before))
        np.testing.assert_array_equal(openrnn.load(tmp_path / after).model.predict(X), found)
    first, again = (json.loads((tmp_path / file).read_text()) for file in ("m.json", "again.json"))
    assert again["in_shape"] == first["in_shape"] and len(again["layers"]) == len(first["layers"])
    for layer, given in zip(again["layers"], first["layers"], strict=True):
        assert layer["shape"] == given["shape"] and len(layer["weights"]) == len(given["weights"])
        for one, other in zip(layer["weights"], given["weights"], strict=True):
            np.testing.assert_array_equal(np.float32(one), np.float32(other))


def test_the_tool_knows_whole_models_of_rtneural(tmp_path):
    path = tmp_path / "m.json"
    wanted = rtneural_file(path, MODELS["several"])
    np.save(tmp_path / "x.npy", X)
    good("run", path, "--input", tmp_path / "x.npy", "--output", tmp_path / "y.npy")
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), wanted, rtol=0, atol=2e-6)
    assert "dense, activation sigmoid, units 2 of layers.5" in good("inspect", path).stdout
    for target in ("m.openrnn", "again.json", "m.keras"):
        assert "model: 8 layers, largest difference 0 of" in good("convert", path, tmp_path / target).stdout


@pytest.mark.parametrize("kind", ["conv1d", "prelu", "batchnorm"])
def test_other_layers_leave_the_networks(kind, tmp_path):
    path = tmp_path / "m.json"
    rtneural_file(path, [("gru", 4, ""), ("dense", 4, "")])
    described = json.loads(path.read_text())
    described["layers"].insert(1, {"type": kind, "shape": [None, None, 4], "weights": [[1.0, 2.0, 3.0, 4.0]]})
    path.write_text(json.dumps(described))
    loaded = openrnn.load(path)
    assert list(loaded) == ["layers.0"] and loaded.layers == []
    with pytest.raises(openrnn.errors.UnsupportedError, match=f"'layers.1' is of the type '{kind}'"):
        loaded.model  # noqa: B018


def test_what_such_files_cannot_hold_is_refused_by_name(tmp_path):
    rtneural_file(tmp_path / "m.json", MODELS["several"])
    model = openrnn.load(tmp_path / "m.json")
    with pytest.raises(openrnn.errors.UnsupportedError, match="'layers.0' has the kind dense .*NeuralAmpModeler"):
        openrnn.save(tmp_path / "m.nam", model)
    both = openrnn.layers.LSTM(4, direction="bidirectional", seed=1)
    both.build((None, None, 3))
    graph = openrnn.layers.LayerGraph(
        [{"name": "x", "kind": "input", "inputs": [], "options": {"shape": [-1, -1, 3]}},
         {"name": "both", "kind": "recurrent", "inputs": [("x", 0)], "options": {"network": "both"}}],
        [("both", 0)], {"both": both})
    with pytest.raises(openrnn.errors.UnsupportedError, match="'both' is bidirectional"):
        openrnn.save(tmp_path / "b.json", graph)
    with pytest.raises(openrnn.errors.ArgumentError, match="a dense layer of 1 unit"):
        openrnn.save(tmp_path / "b.nam", graph)
    assert not list(tmp_path.glob("*.nam")) and not (tmp_path / "b.json").exists()


def test_networks_alone_of_a_model_with_other_layers(tmp_path):
    rtneural_file(tmp_path / "m.json", [("gru", 4, ""), ("dense", 3, ""), ("lstm", 4, "")])
    model = openrnn.load(tmp_path / "m.json")
    openrnn.save(tmp_path / "one.json", {"gru": model["layers.0"]})
    found = openrnn.load(tmp_path / "one.json")
    assert [layer["kind"] for layer in found.layers] == ["input", "recurrent"]
    np.testing.assert_array_equal(found["gru"].params, model["layers.0"].params)
    with pytest.raises(openrnn.errors.UnsupportedError, match="'layers.2' has another input size"):
        openrnn.save(tmp_path / "both.json", dict(model))


@pytest.mark.parametrize(("kind", "options", "sentence"), [
    ("dense", {"units": True}, "the option 'units' is 'bool'"),
    ("dropout", {"rate": True}, "the option 'rate' is 'bool'"),
    ("dropout", {"rate": "0.5"}, "the option 'rate' is 'str'"),
    ("dense", {"units": 2, "use_bias": 1}, "the option 'use_bias' is 'int'"),
])  # fmt: skip
def test_options_have_the_types_of_their_defaults(kind, options, sentence):
    """A bool is an int to Python, and counts no units."""
    made = {"dense": openrnn.layers.Dense(1), "dropout": openrnn.layers.Dropout(0.5)}[kind]
    with pytest.raises(TypeError, match=sentence):
        openrnn.layers.LayerGraph(
            [{"name": "x", "kind": "input", "inputs": [], "options": {"shape": [-1, 3]}},
             {"name": "y", "kind": kind, "inputs": [("x", 0)], "options": options}],
            [("y", 0)], {"y": made})
