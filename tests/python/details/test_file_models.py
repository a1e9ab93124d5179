"""Networks and whole models of files: what they hold, say and refuse."""

import pathlib

import numpy as np
import openrnn
import pytest
from openrnn import layers
from openrnn._files import _whole

ROOT = pathlib.Path(__file__).resolve().parents[3]
X = np.random.default_rng(1).normal(size=(5, 4, 3)).astype("float32")


def test_the_layers_of_a_file_s_model_are_a_copy(tmp_path):
    lstm = layers.LSTM(4)
    lstm.build((None, None, 3))
    openrnn.save(tmp_path / "lstm.json", lstm)
    loaded = openrnn.load(tmp_path / "lstm.json")
    model = loaded.model
    model.layers.clear()
    assert list(model.layers) == ["layers.0"] and loaded.model is model
    with pytest.raises(openrnn.ArgumentError) as raised:
        model.get_layer("other")
    assert str(raised.value) == "[get_layer] name is 'other', expected one of ['layers.0']"
    assert model.get_layer("layers.0") is loaded.layer
    config = model.get_config()
    assert config["name"] == model.name and config["outputs"] == loaded.outputs
    x = np.ones((2, 5, 3), "float32")
    np.testing.assert_array_equal(model.predict(x), model(x).numpy())

    class Doubled(layers.LayerGraph):
        def call(self, inputs, training=False):
            return super().call(inputs, training) * (3.0 if training else 2.0)

    doubled = Doubled(config["description"], config["outputs"], config["made"], name="doubled")
    np.testing.assert_array_equal(doubled(x), 2.0 * model(x).numpy())
    np.testing.assert_array_equal(doubled(x, training=True), 3.0 * model(x).numpy())
    np.testing.assert_array_equal(doubled.predict(x), 2.0 * model.predict(x))


def described(*layers_):
    """Layers of a file, each with the one before it as its input; and the last one's output."""
    shape = {"name": "input", "kind": "input", "options": {"shape": [-1, -1], "dtype": "int32"}}
    every, before = [], None
    for one in (shape, *layers_):
        every.append({"weights": {}, "inputs": [(before, 0)] if before else [], **one})
        before = one["name"]
    return every, [(before, 0)]


def test_layers_of_descriptions(tmp_path):
    table, kernel = np.arange(28.0).reshape(7, 4), np.ones((4, 2))
    layers_, outputs = described(
        {"name": "words", "kind": "embedding", "options": {"vocabulary": 7, "dim": 4, "trainable": False},
         "weights": {"embeddings": table}},
        {"name": "drop", "kind": "dropout", "options": {"rate": 0.75}},
        {"name": "some", "kind": "dense", "options": {"units": 2, "activation": "relu", "use_bias": False},
         "weights": {"kernel": kernel}},
        {"name": "none", "kind": "dropout", "options": {}},
        {"name": "last", "kind": "dense", "options": {"units": 2, "activation": "elu"},
         "weights": {"kernel": -np.eye(2), "bias": np.array([0.5, 0.25])}},
        {"name": "linear", "kind": "dense", "options": {"units": 1}, "weights": {
            "kernel": np.array([[1.0], [2.0]]), "bias": np.array([0.0])}},
    )  # fmt: skip
    graph = _whole.make_graph(layers_, outputs, lambda name: None)
    words, some = graph.layers["words"], graph.layers["some"]
    assert (words.input_dim, words.output_dim, words.dtype, words.trainable) == (7, 4, "float64", False)
    assert (some.units, some.activation, some.use_bias, some.dtype) == (2, "relu", False, "float64")
    assert graph.layers["drop"].rate == 0.75 and graph.layers["none"].rate == 0.0 and some.trainable
    given = np.array([[1, 6, 0]], "int32")
    y = np.array([0.5, 0.25]) - np.maximum(table[given] @ kernel, 0)
    wanted = np.where(y > 0, y, np.expm1(y)) @ [[1.0], [2.0]]
    np.testing.assert_allclose(graph(given), wanted, rtol=1e-12)
    assert graph.layers["last"].activation is None and graph.layers["linear"].activation is None
    graph = _whole.make_graph(layers_[:4], [("some", 0)], lambda name: None)
    words, some = graph.layers["words"], graph.layers["some"]
    np.testing.assert_array_equal(graph(given), np.maximum(table[given] @ kernel, 0))
    dropped = np.unique(np.concatenate([graph(given, training=True).numpy() for _ in range(20)]))
    assert dropped.max() > 2 * graph(given).numpy().max() and 0.0 in dropped
    assert graph.trainable_weights == [some.kernel]
    words.embeddings.assign(2 * table)
    again = {one["name"]: one for one in _whole.layers_of(graph)}
    assert list(again) == ["input", "words", "drop", "some"]
    np.testing.assert_array_equal(again["words"]["weights"]["embeddings"], 2 * table)
    assert list(again["some"]["weights"]) == ["kernel"] and again["drop"]["weights"] == {}
    assert again["drop"]["options"] == {"rate": 0.75} and again["words"]["inputs"] == [("input", 0)]


def test_several_inputs_and_outputs_of_a_file_s_model():
    tables = np.arange(8.0).reshape(4, 2), -np.arange(6.0).reshape(3, 2)
    layers_ = []
    for name, table in zip("ab", tables, strict=True):
        layers_ += [
            {"name": name, "kind": "input", "inputs": [], "weights": {},
             "options": {"shape": [-1, -1], "dtype": "int32"}},
            {"name": name * 2, "kind": "embedding", "inputs": [(name, 0)], "weights": {"embeddings": table},
             "options": {"vocabulary": len(table), "dim": 2}},
        ]  # fmt: skip
    graph = _whole.make_graph(layers_, [("bb", 0), ("aa", 0)], lambda name: None)
    a, b = np.array([[1, 3]], "int32"), np.array([[2, 0]], "int32")
    for given in ([a, b], (a, b)):
        for outputs in (graph(given), graph.predict(given)):
            assert isinstance(outputs, list)
            np.testing.assert_array_equal(outputs[0], tables[1][b])
            np.testing.assert_array_equal(outputs[1], tables[0][a])
    assert all(isinstance(one, np.ndarray) for one in graph.predict([a, b]))
    with pytest.raises(openrnn.ArgumentError) as raised:
        graph(a)
    assert str(raised.value) == f"[{graph.name}] the inputs are a ndarray, expected a list of 2"


def test_what_a_network_of_a_file_holds(tmp_path):
    layer = layers.RNN(4, activation="relu", seed=1)
    layer.build((None, None, 3))
    openrnn.save(tmp_path / "a.safetensors", {"net": layer})
    model = openrnn.load(tmp_path / "a.safetensors", rnn_mode="rnn_relu")
    network = model["net"]
    assert (model.not_understood, model.notes, model.layers, model.outputs) == ([], [], [], [])
    assert network.tensors == [f"net.{name}_l0" for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
    assert network.initial_state is None and network.slots == {} and network.name == "net"
    made = network.layer
    assert made.get_config()["activation"] == "relu" and made.rnn_mode == "rnn_relu"
    assert network.options["rnn_mode"] == "rnn_relu" and network.options["input_size"] == 3
    np.testing.assert_array_equal(made(X[0][:, None])[0], layer(X[0][:, None])[0].numpy())
    np.testing.assert_array_equal(model.tensor("net.bias_hh_l0"), np.zeros(4))
    openrnn.save(tmp_path / "b.openrnn", network, values={"rate": 3})
    again = openrnn.load(tmp_path / "b.openrnn")
    assert list(again) == ["net"] and again.metadata == {"rate": 3}
    openrnn.save(tmp_path / "c.openrnn", again)
    assert openrnn.load(tmp_path / "c.openrnn").metadata == {"rate": 3}
    assert openrnn.load(tmp_path / "b.openrnn").layer.get_config()["activation"] == "relu"
    tanh = layers.RNN(4)
    tanh.build((None, None, 3))
    openrnn.save(tmp_path / "d.pt", tanh)
    found = openrnn.load(tmp_path / "d.pt", rnn_mode="rnn_tanh").layer
    assert type(found) is layers.RNN and found.get_config()["activation"] == "tanh"


def test_a_graph_is_saved_with_the_weights_of_now(tmp_path):
    lstm = layers.LSTM(4, seed=1)
    lstm.build((None, None, 3))
    openrnn.save(tmp_path / "lstm.json", lstm)
    graph = openrnn.load(tmp_path / "lstm.json").model
    kernel = graph.layers["layers.0"].kernel
    kernel.assign(2.0 * kernel.numpy())
    openrnn.save(tmp_path / "again.json", graph)
    again = openrnn.load(tmp_path / "again.json")
    np.testing.assert_array_equal(again.layer.kernel, kernel.numpy())
    np.testing.assert_array_equal(again.model.predict(X), graph.predict(X))


def test_networks_of_files_say_what_they_are(tmp_path):
    encoder, decoder = layers.LSTM(4), layers.GRU(2)
    encoder.build((None, None, 3))
    decoder.build((None, None, 4))
    path = tmp_path / "two.openrnn"
    openrnn.save(path, {"encoder": encoder, "decoder": decoder})
    model = openrnn.load(path)
    network = model["decoder"]
    assert repr(network).startswith("<openrnn network 'decoder' rnn_mode='gru', num_layers=1, ")
    assert repr(model) == f"<openrnn model of a file of OpenRNN: {[model['encoder'], network]}>"
    with pytest.raises(openrnn.ArgumentError) as raised:
        model.network  # noqa: B018
    assert str(raised.value) == (
        "[load] the file has 2 networks, expected one: ['encoder', 'decoder']"
    )
    with pytest.raises(openrnn.UnsupportedError) as raised:
        model.model  # noqa: B018
    assert str(raised.value).startswith(
        "[load] a file of OpenRNN has no whole model that is computed here, only networks"
    )
    with pytest.raises(TypeError) as raised:
        openrnn.load(path, network=3)
    assert str(raised.value) == "[load] network is 'int', expected a dictionary of options"
    with pytest.raises(TypeError, match=r"^\[load\] forget_bias is 'str', expected a number$"):
        openrnn.load(path, forget_bias="1")
    with pytest.raises(TypeError) as raised:
        openrnn.save(path, {"encoder": 3})
    assert str(raised.value) == (
        "[save] 'encoder' is a int, expected a built recurrent layer or a network of load()"
    )
    openrnn.save(tmp_path / "one.safetensors", model["encoder"])
    alone = openrnn.load(tmp_path / "one.safetensors").network
    np.testing.assert_array_equal(alone.params, model["encoder"].params)
    state = {"weight_ih_l0": np.ones((8, 3))}
    with pytest.raises(openrnn.ArgumentError) as raised:
        openrnn.canonical_from_torch(state, "rnn_tanh", num_layers=1, num_units=8, input_size=3)
    assert str(raised.value) == (
        "[canonical_from_torch] a state with ['weight_ih_l0'], expected ['weight_ih_l0', "
        "'weight_hh_l0', 'bias_ih_l0', 'bias_hh_l0']"
    )


def test_slots_of_layers_are_kept_also_when_the_model_is_made(tmp_path):
    """What an optimizer keeps of each weight, by the weight's name and its own."""
    loaded = openrnn.load(ROOT / "fuzz/corpus/json_model/good_rtneural")
    (head,) = (one for one in loaded.layers if one["kind"] == "dense")
    slots = {name: {f"{slot}_of_{name}": np.full_like(values, number)
                    for number, slot in enumerate("mv", 2)}
             for name, values in head["weights"].items()}  # fmt: skip
    head["slots"] = slots

    def kept():
        openrnn.save(tmp_path / "m.openrnn", loaded)
        return {one["name"]: one["slots"] for one in openrnn.load(tmp_path / "m.openrnn").layers}

    first = kept()
    assert list(first[head["name"]]) == list(slots)
    for name, of_weight in slots.items():
        found = first[head["name"]][name]
        assert {slot: value.tolist() for slot, value in found.items()} == {
            slot: value.tolist() for slot, value in of_weight.items()}  # fmt: skip
    assert all(not one for name, one in first.items() if name != head["name"])
    assert loaded.model is not None
    np.testing.assert_equal(kept(), first)


@pytest.mark.parametrize("kind", [list, tuple])
def test_one_input_may_be_nested_lists_and_several_are_a_list(kind):
    """A list is the values of the only input, else one value for each of them."""
    shape = {"shape": [-1, 2], "dtype": "float32"}
    inputs = [{"name": name, "kind": "input", "options": shape, "inputs": [], "weights": {}}
              for name in "ab"]  # fmt: skip
    add = {"name": "sum", "kind": "add", "options": {}, "inputs": [("a", 0), ("b", 0)],
           "weights": {}}  # fmt: skip
    kernel = np.array([[1.0, 2.0, 4.0], [8.0, 16.0, 32.0]], "float32")
    dense = {"name": "d", "kind": "dense", "options": {"units": 3}, "inputs": [("a", 0)],
             "weights": {"kernel": kernel, "bias": np.zeros(3, "float32")}}  # fmt: skip
    one = _whole.make_graph([inputs[0], dense], [("d", 0)], None)
    values = [[1.0, 2.0], [3.0, 4.0]]
    given = kind(kind(row) for row in values)
    np.testing.assert_array_equal(one(given), np.array(values) @ kernel)
    np.testing.assert_array_equal(one.predict(given), np.array(values) @ kernel)
    two = _whole.make_graph([*inputs, add], [("sum", 0)], None)
    np.testing.assert_array_equal(two(kind([values, values[::-1]])), [[4.0, 6.0], [4.0, 6.0]])
    with pytest.raises(openrnn.ArgumentError) as refused:
        two(np.ones((2, 2, 2), "float32"))
    assert str(refused.value) == (
        f"[{two.name}] the inputs are a ndarray, expected a list of 2")
