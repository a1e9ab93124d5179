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


@pytest.mark.parametrize("layers", [1, 2])
def test_a_neural_amp_model(layers, tmp_path):
    config = {"input_size": 3, "hidden_size": 5, "num_layers": layers}
    count = sum(20 * ((3 if layer == 0 else 5) + 5) + 20 + 10 for layer in range(layers)) + 6
    weights = np.random.default_rng(1).uniform(-0.7, 0.7, count).astype("float32").tolist()
    path = tmp_path / "amp.nam"
    path.write_text(json.dumps({"version": "0.5.0", "architecture": "LSTM", "config": config, "weights": weights,
                                "metadata": {"name": "an amplifier"}, "sample_rate": 48000}))
    states, outputs = nam_outputs(config, weights, X[:, 0])
    model = openrnn.load(path)
    assert model.kind == "a file of NeuralAmpModeler" and not model.notes
    network = model.network
    # [L, U] as the state of one row.
    h, c = (np.asarray(state).reshape(layers, 1, 5) for state in network.initial_state)
    y = network.layer(X[:, :1], initial_state=(h, c), training=False)[0].numpy()[:, 0]
    np.testing.assert_allclose(y, states, rtol=0, atol=1e-6)
    head, bias = model.metadata["head.weight"], model.metadata["head.bias"]
    np.testing.assert_allclose(y @ np.asarray(head) + bias, outputs, rtol=0, atol=1e-5)
    np.save(tmp_path / "x.npy", X[:, :1])
    good("run", path, "--input", tmp_path / "x.npy", "--output", tmp_path / "y.npy", "--stream", "4")
    np.testing.assert_allclose(np.load(tmp_path / "y.npy")[:, 0], states, rtol=0, atol=1e-6)
    text = good("inspect", path).stdout
    assert f"lstm, {layers} layer" in text and "metadata.name: 'an amplifier'" in text
    assert "largest difference 0 of" in good("convert", path, tmp_path / "amp.openrnn").stdout
