"""Networks of Keras's files compute what Keras computes, and files that we write are Keras's."""

import h5py
import json
import numpy as np
import openrnn
import pytest

keras = pytest.importorskip("keras", minversion="3", reason="Keras 3 is not installed")

from files.file_tools import call_tool, from_line, run_tool, to_line
from tool.tool_runs import good

CLASSES = ["LSTM", "GRU", "SimpleRNN"]
KINDS = [".h5", ".weights.h5", ".keras"]
INPUTS, UNITS, TIME, BATCH = 3, 5, 7, 2
# Sums of at most 20 terms of size 1 through 7 steps.
TOLERANCE = {"float32": 2e-6, "float64": 1e-14}


def randomize(model, seed=1):
    """Weights that differ everywhere, biases too."""
    random = np.random.default_rng(seed)
    model.set_weights([random.uniform(-0.7, 0.7, w.shape).astype(w.dtype) for w in model.get_weights()])


def make(*layers, inputs=INPUTS):
    model = keras.Sequential([keras.Input((None, inputs), dtype=layers[0].dtype), *layers])
    randomize(model)
    return model


def save(model, path):
    if str(path).endswith(".weights.h5"):
        model.save_weights(path)
    else:
        model.save(path)
    return path


def x_of(dtype="float32", inputs=INPUTS, batch=BATCH, time=TIME):
    return np.random.default_rng(2).standard_normal((batch, time, inputs)).astype(dtype)


def listed(path, *hints):
    lines = [line.split("\t") for line in call_tool("model_file", "networks", path, *hints).splitlines()]
    networks = {line[1]: line[2] for line in lines if line[0] == "network"}
    return networks, [line[1] for line in lines if line[0] == "other"], [line[1] for line in lines if line[0] == "note"]


def run(path, *xs, hints=()):
    """The outputs of the networks of a file on inputs [B, T, I]."""
    lines = [to_line("x", x.swapaxes(0, 1)) for x in xs]
    out = call_tool("model_file", "run", path, *hints, stdin="\n".join(lines) + "\n")
    return [y.swapaxes(0, 1) for _, y in map(from_line, out.splitlines())]


def assert_same(path, model, dtype="float32", hints=()):
    x = x_of(dtype)
    (y,) = run(path, x, hints=hints)
    np.testing.assert_allclose(y, model.predict_on_batch(x), rtol=0, atol=TOLERANCE[dtype])


def layer_of(name, /, **how):
    return getattr(keras.layers, name)(UNITS, return_sequences=True, **how)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("use_bias", [True, False])
@pytest.mark.parametrize("reset_after", [True, False])
def test_layers(tmp_path, kind, both, name, use_bias, reset_after):
    how = {"name": "mine", "use_bias": use_bias} | ({"reset_after": reset_after} if name == "GRU" else {})
    layer = layer_of(name, **how)
    if both:
        layer = keras.layers.Bidirectional(layer, name="both")
    model = make(layer)
    path = save(model, tmp_path / f"m{kind}")
    # Weights alone do not say it, unless the shape of a bias does.
    silent = name == "GRU" and not use_bias and kind == ".weights.h5"
    hints = [f"reset_after={str(reset_after).lower()}"] if silent else []
    networks, others, notes = listed(path, *hints)
    assert list(networks) == ["both" if both else "mine"] and others == []
    assert bool(notes) == (kind == ".weights.h5" and name != "SimpleRNN")
    assert_same(path, model, hints=hints)
    if silent:
        assert "expected the hint reset_after" in run_tool("model_file", "networks", path).stderr


@pytest.mark.parametrize("kind", [".h5", ".keras"])
@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("activation", ["tanh", "relu", "linear", "softsign", "softplus", "elu", "hard_sigmoid", "sigmoid"])
def test_activations(tmp_path, kind, name, both, activation):
    how = {"activation": activation} | ({} if name == "SimpleRNN" else {"recurrent_activation": "hard_sigmoid"})
    layer = layer_of(name, **how)
    model = make(keras.layers.Bidirectional(layer) if both else layer)
    path = save(model, tmp_path / f"m{kind}")
    x, close = 0.2 * x_of(), {"rtol": 1e-5, "atol": 1e-5}  # some of them grow
    np.testing.assert_allclose(run(path, x)[0], model.predict_on_batch(x), **close)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16"])
def test_dtypes(tmp_path, kind, dtype):
    model = make(layer_of("LSTM", dtype=dtype, recurrent_initializer="zeros"))
    path = save(model, tmp_path / f"m{kind}")
    if dtype == "float64":
        return assert_same(path, model, dtype)
    if kind == ".h5" and dtype == "bfloat16":  # Keras itself loses there what the bytes are
        return
    networks, _, _ = listed(path)
    assert [dtype in text for text in networks.values()] == [True]
    back = tmp_path / "back.keras"
    call_tool("model_file", "convert", path, back, "keras")
    found = [array.tobytes() for array in map(lambda line: from_line(line)[1], call_tool("model_file", "dump", back).splitlines())]
    assert found == [array.tobytes() for array in model.get_weights()]
    if dtype == "float16":  # TensorFlow cannot make a bfloat16 layer's first values, of which Keras wants some
        assert [w.dtype.name for w in keras.models.load_model(back).get_weights()] == [dtype] * 3


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_with_other_layers(tmp_path, kind):
    layers = keras.layers
    model = keras.Sequential([
        keras.Input((None,)), layers.Embedding(11, 4, mask_zero=True), layers.Dropout(0.5), layers.LSTM(5, return_sequences=True),
        layers.LSTM(6, return_sequences=True, name="second"), layers.Bidirectional(layers.GRU(3, return_sequences=True)),
        layers.TimeDistributed(layers.Dense(7)), layers.Dense(2)])
    model.compile("adam", "mse")
    model.train_on_batch(np.ones((2, 4)), np.ones((2, 4, 2)))
    path = save(model, tmp_path / f"m{kind}")
    networks, others, _ = listed(path)
    assert len(networks) == 3 and "second" in networks
    assert any("5 units, input size 4" in text for text in networks.values())
    assert any("gru" in text and "input size 6, bidirectional" in text for text in networks.values())
    # An embedding, two times two of Dense: layers where there is a configuration.
    assert len([name for name in others if "optimizer" not in name]) == (5 if kind == ".weights.h5" else 0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_inside_a_model(tmp_path, kind):
    inner = keras.Sequential([keras.Input((None, INPUTS)), layer_of("LSTM", name="deep", activation="relu")], name="inside")
    model = keras.Sequential([keras.Input((None, INPUTS)), inner, layer_of("GRU", name="flat")])
    randomize(model)
    path = save(model, tmp_path / f"m{kind}")
    networks, others, _ = listed(path)
    assert len(networks) == 2 and others == []
    if kind == ".weights.h5":
        return
    x = 0.1 * x_of()
    deep = inner.predict_on_batch(x)
    order = [("5 units, input size 3" in text and "lstm" in text) for text in networks.values()]
    ys = run(path, *[x if is_deep else deep for is_deep in order])
    wanted = [deep if is_deep else model.predict_on_batch(x) for is_deep in order]
    for y, want in zip(ys, wanted):
        np.testing.assert_allclose(y, want, rtol=0, atol=5e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("count", [1, 3])
def test_cells_in_an_rnn(tmp_path, kind, name, count):
    cells = [getattr(keras.layers, name + "Cell")(UNITS) for _ in range(count)]
    model = make(keras.layers.RNN(cells if count > 1 else cells[0], return_sequences=True, name="stack"))
    path = save(model, tmp_path / f"m{kind}")
    networks, others, _ = listed(path)
    assert list(networks) == ["stack"] and others == []
    assert_same(path, model)


def test_what_is_no_network_is_said(tmp_path):
    layers = keras.layers
    for layer, why in [
        (layer_of("GRU", activation="gelu"), "the activation is 'gelu'"),
        (layers.Bidirectional(layers.RNN([layers.LSTMCell(5), layers.GRUCell(5)], return_sequences=True)), "several cells in two directions"),
    ]:
        networks, others, notes = listed(save(make(layer), tmp_path / "m.keras"))
        assert networks == {} and len(others) in (3, 12) and why in notes[0]
    model = keras.Sequential([keras.Input((None, 6, 3)), layers.ConvLSTM1D(2, 2, return_sequences=True)])
    networks, others, notes = listed(save(model, tmp_path / "m.keras"))
    assert networks == {} and len(others) == 3
    assert len(notes) == 1 and "is of class 'ConvLSTM1D', which is not computed here" in notes[0]
    networks, others, notes = listed(save(make(layer_of("LSTM", go_backwards=True, name="back")), tmp_path / "m.keras"))
    assert list(networks) == ["back"] and others == [] and "'back' has go_backwards" in notes[0]
    path = save(make(layers.Bidirectional(layer_of("LSTM"), merge_mode="sum")), tmp_path / "m.h5")
    networks, _, notes = listed(path)
    assert len(networks) == 1 and "merge_mode 'sum'" in notes[0]


# ---- Files of Keras 1 and 2, made by hand as those wrote them ------------------------------------------------------


def numpy_weights(name, seed=3):
    """Arrays of the layer as Keras 3 has them, with one bias a gate."""
    gates = {"LSTM": 4, "GRU": 3, "SimpleRNN": 1}[name]
    random = np.random.default_rng(seed)
    shapes = [(INPUTS, gates * UNITS), (UNITS, gates * UNITS), (gates * UNITS,)]
    return [random.uniform(-0.7, 0.7, shape).astype(np.float32) for shape in shapes]


def write_h5(path, layers, config=None, version=None):
    """`layers`: {name: {weight name: array}}."""
    with h5py.File(path, "w") as file:
        root = file
        if config is not None:
            file.attrs["model_config"] = json.dumps(config).encode()
            root = file.create_group("model_weights")
        root.attrs["layer_names"] = [name.encode() for name in layers]
        if version:
            root.attrs["keras_version"] = version.encode()
        for layer, arrays in layers.items():
            group = root.create_group(layer)
            group.attrs["weight_names"] = [name.encode() for name in arrays]
            for name, array in arrays.items():
                group[name] = array


def keras_model(name, weights, /, **how):
    if name == "GRU":
        how["reset_after"] = weights[2].ndim == 2 if len(weights) > 2 else False
    model = make(layer_of(name, **how))
    model.set_weights(weights)
    return model


@keras.saving.register_keras_serializable()
def hard_sigmoid_of_keras_2(x):
    return keras.ops.clip(0.2 * x + 0.5, 0.0, 1.0)


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("with_config", [True, False])
@pytest.mark.parametrize("both", [False, True])
def test_keras_1(tmp_path, name, with_config, both):
    sides = [numpy_weights(name, seed) for seed in ((3, 4) if both else (3,))]
    gates = {"LSTM": "icfo", "GRU": "zrh", "SimpleRNN": ""}[name]
    place = {gate: k for k, gate in enumerate("ifco" if name == "LSTM" else gates)}
    arrays = {}
    for side, weights in zip(["forward_l_1", "backward_l_1"] if both else ["l_1"], sides):
        if not gates:
            arrays |= {f"{side}_{letter}:0": array for letter, array in zip("WUb", weights)}
        for gate in gates:
            part = slice(place[gate] * UNITS, (place[gate] + 1) * UNITS)
            arrays |= {f"{side}_{letter}_{gate}:0": array[..., part] for letter, array in zip("WUb", weights)}
    inner = {"name": "l_1", "output_dim": UNITS, "activation": "tanh"}
    if gates:
        inner["inner_activation"] = "hard_sigmoid"
    layer = {"class_name": name, "config": inner}
    if both:
        layer = {"class_name": "Bidirectional", "config": {"name": "both_1", "merge_mode": "concat", "layer": layer}}
    config = {"class_name": "Sequential", "config": [layer]} if with_config else None
    write_h5(tmp_path / "m", {"both_1" if both else "l_1": arrays}, config)
    how = {} if name == "SimpleRNN" else {"recurrent_activation": hard_sigmoid_of_keras_2}
    if name == "GRU":
        how["reset_after"] = False
    inside = layer_of(name, **how)
    model = make(keras.layers.Bidirectional(inside) if both else inside)
    model.set_weights([array for side in sides for array in side])
    asked = name != "SimpleRNN" and not with_config
    assert_same(tmp_path / "m", model, hints=["recurrent_activation=hard_sigmoid"] if asked else [])
    if asked:
        assert "expected the hint recurrent_activation" in run_tool("model_file", "networks", tmp_path / "m").stderr


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("version", ["2.1.6", "2.2.4-tf", "2.4.0", "2.11.0"])
@pytest.mark.parametrize("cell", ["", "lstm_cell_1/"])
def test_keras_2(tmp_path, name, version, cell):
    weights = numpy_weights(name)
    arrays = {f"l_1/{cell}{part}:0": array for part, array in zip(["kernel", "recurrent_kernel", "bias"], weights)}
    inner = {"name": "l_1", "units": UNITS, "activation": "tanh", "recurrent_activation": "hard_sigmoid", "use_bias": True}
    config = {"class_name": "Sequential", "config": {"name": "s", "layers": [
        {"class_name": "Dropout", "config": {"name": "d"}}, {"class_name": name, "config": inner}]}}
    write_h5(tmp_path / "whole", {"d": {}, "l_1": arrays}, config, version)
    write_h5(tmp_path / "weights", {"d": {}, "l_1": arrays}, None, version)
    plain = name == "SimpleRNN"
    assert_same(tmp_path / "whole", keras_model(
        name, weights, **({} if plain else {"recurrent_activation": hard_sigmoid_of_keras_2})))
    if version in ("2.1.6", "2.2.4-tf") and not plain:
        assert "expected the hint recurrent_activation" in run_tool("model_file", "networks", tmp_path / "weights").stderr
        assert_same(tmp_path / "weights", keras_model(name, weights, recurrent_activation=hard_sigmoid_of_keras_2),
                    hints=["recurrent_activation=hard_sigmoid"])
    else:
        assert_same(tmp_path / "weights", keras_model(name, weights))


@pytest.mark.parametrize("name", ["LSTM", "GRU"])
@pytest.mark.parametrize("with_config", [True, False])
def test_cudnn_layers(tmp_path, name, with_config):
    """By the rule that Keras 2 itself converted them with."""
    gates = {"LSTM": 4, "GRU": 3}[name]
    kernel, recurrent, _ = numpy_weights(name)
    biases = np.random.default_rng(5).uniform(-0.7, 0.7, (2, gates * UNITS)).astype(np.float32)

    def by_gates(array, change):
        return np.hstack([change(block) for block in np.hsplit(array, gates)])

    stored = [by_gates(kernel, lambda k: k.T.reshape(k.shape)), by_gates(recurrent, lambda k: k.T), biases.reshape(-1)]
    arrays = {f"l_1/{part}:0": array for part, array in zip(["kernel", "recurrent_kernel", "bias"], stored)}
    config = {"class_name": "Sequential", "config": {"layers": [
        {"class_name": f"CuDNN{name}", "config": {"name": "l_1", "units": UNITS}}]}}
    write_h5(tmp_path / "m", {"l_1": arrays}, config if with_config else None, "2.2.4")
    hints = [] if with_config else ["recurrent_activation=sigmoid"]
    model = keras_model(name, [kernel, recurrent, biases.sum(0) if name == "LSTM" else biases])
    assert_same(tmp_path / "m", model, hints=hints)


# ---- What we write -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("to", KINDS)
@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("reset_after", [True, False])
def test_keras_reads_what_we_write(tmp_path, to, both, name, reset_after):
    how = {"reset_after": reset_after} if name == "GRU" else {}
    layers = [layer_of(name, name="a", **how), layer_of(name, name="b", use_bias=False, **how)]
    if both:
        layers = [keras.layers.Bidirectional(layer, name=layer.name) for layer in layers]
    model = make(*layers)
    save(model, tmp_path / "m.keras")
    form = {".h5": "keras_h5", ".weights.h5": "keras_weights", ".keras": "keras"}[to]
    call_tool("model_file", "convert", tmp_path / "m.keras", tmp_path / f"out{to}", form)
    if to == ".weights.h5":
        again = make(*[type(layer).from_config(layer.get_config()) for layer in layers])
        again.load_weights(tmp_path / f"out{to}")
    else:
        again = keras.models.load_model(tmp_path / f"out{to}", compile=False)
        found, wanted = again.predict_on_batch(x_of()), model.predict_on_batch(x_of())
        np.testing.assert_array_equal(found, wanted)
    for one, other in zip(again.get_weights(), model.get_weights(), strict=True):
        assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("reset_after", [True, False])
def test_canonical_form(name, both, reset_after):
    how = {"reset_after": reset_after} if name == "GRU" else {}
    layer = layer_of(name, **how)
    model = make(keras.layers.Bidirectional(layer) if both else layer)
    mode = {"LSTM": "lstm", "GRU": "gru", "SimpleRNN": "rnn_tanh"}[name]
    options = how | {"num_units": UNITS, "input_size": INPUTS, "direction": "bidirectional" if both else "unidirectional"}
    if not (name == "GRU" and reset_after):
        options["single_bias"] = True
    weights, biases = openrnn.canonical_from_keras(model.get_weights(), mode, **options)
    again = openrnn.keras_from_canonical(weights, biases, mode, **options)
    for one, other in zip(again, model.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)
    gates = {"LSTM": [0, 1, 2, 3], "GRU": [1, 0, 2], "SimpleRNN": [0]}[name]  # ours in Keras's order
    for gate, block in enumerate(gates):
        expected = model.get_weights()[0][:, block * UNITS : (block + 1) * UNITS].T
        np.testing.assert_array_equal(weights[gate], expected)
    with pytest.raises(openrnn.ArgumentError, match="expected"):
        openrnn.canonical_from_keras(model.get_weights()[1:], mode, **options)


@pytest.mark.parametrize("to", KINDS)
def test_layers_of_one_network_are_one_again(tmp_path, to):
    model = make(keras.layers.RNN([keras.layers.GRUCell(UNITS) for _ in range(3)], return_sequences=True, name="a.b"))
    save(model, tmp_path / "m.keras")
    form = {".h5": "keras_h5", ".weights.h5": "keras_weights", ".keras": "keras"}[to]
    call_tool("model_file", "convert", tmp_path / "m.keras", tmp_path / f"out{to}", form)
    networks, _, _ = listed(tmp_path / f"out{to}")
    assert list(networks) == ["a.b"] and "3 layers" in networks["a.b"]
    assert_same(tmp_path / f"out{to}", model)
    if to != ".weights.h5":
        again = keras.models.load_model(tmp_path / f"out{to}", compile=False)
        np.testing.assert_allclose(again.predict_on_batch(x_of()), model.predict_on_batch(x_of()), rtol=0, atol=2e-6)


@pytest.mark.parametrize("kind", ["keras", "h5", "weights.h5"])
def test_what_keras_says_of_its_own_layers_is_not_left_out(tmp_path, kind):
    path = save(make(keras.layers.LSTM(3, return_sequences=True)), tmp_path / f"m.{kind}")
    for ending in ("safetensors", "json", "again.h5", "again.keras", "again.weights.h5"):
        lines = good("convert", path, tmp_path / f"m.{ending}").stdout.splitlines()
        notes = [line for line in lines[1:-1] if not line.startswith("note: ")]
        assert lines[0].startswith("network") and notes == [], ending
        assert len(lines) == 2 + (kind == "weights.h5")


def test_a_layer_that_is_listed_twice_is_one(tmp_path):
    path = tmp_path / "m.h5"
    names = ("kernel", "recurrent_kernel", "bias")
    weights = zip(names, numpy_weights("LSTM"), strict=True)
    write_h5(path, {"lstm": {f"lstm/{name}:0": array for name, array in weights}}, version="2.4.0")
    with h5py.File(path, "r+") as file:
        file.attrs["layer_names"] = [b"lstm", b"lstm"]
    assert list(openrnn.load(path)) == ["lstm"]


def test_a_network_without_a_name(tmp_path):
    weights = np.random.default_rng(4).standard_normal((4 * UNITS, INPUTS)).astype(np.float32)
    recurrent = np.random.default_rng(5).uniform(-0.5, 0.5, (4 * UNITS, UNITS)).astype(np.float32)
    bias = np.linspace(-1, 1, 4 * UNITS, dtype=np.float32)
    named = {"weight_ih_l0": weights, "weight_hh_l0": recurrent, "bias_ih_l0": bias, "bias_hh_l0": 0 * bias}
    lines = [to_line(name, array) for name, array in named.items()]
    call_tool("model_file", "torch", tmp_path / "m.pt", stdin="\n".join(lines) + "\n")
    call_tool("model_file", "convert", tmp_path / "m.pt", tmp_path / "m.keras", "keras")
    model = keras.models.load_model(tmp_path / "m.keras", compile=False)
    assert model.layers[-1].name == "rnn"
    for path in ("m.pt", "m.keras"):
        assert_same(tmp_path / path, model)


def test_what_keras_cannot_hold(tmp_path):
    weights = [np.zeros((4 * UNITS, n), np.float32) for n in (INPUTS, 2)] + [np.zeros((2, UNITS), np.float32)]
    lines = [to_line(f"{name}_l0", array) for name, array in zip(["weight_ih", "weight_hh", "weight_hr"], weights)]
    call_tool("model_file", "torch", tmp_path / "m.pt", stdin="\n".join(lines) + "\n")
    done = run_tool("model_file", "convert", tmp_path / "m.pt", tmp_path / "m.keras", "keras")
    assert done.returncode != 0 and "has num_proj 2, which a .keras file cannot hold" in done.stderr
    save(make(layer_of("LSTM", activation="relu")), tmp_path / "m.h5")
    done = run_tool("model_file", "convert", tmp_path / "m.h5", tmp_path / "m.weights.h5", "keras_weights")
    assert done.returncode != 0 and "has activation relu" in done.stderr
    assert not (tmp_path / "m.keras").exists() and not (tmp_path / "m.weights.h5").exists()
