"""Layers, connections and outputs as the extension takes and gives them: each kind, each option."""

import numpy as np
import openrnn
import pytest
from openrnn import _core, layers

NOTHING = (None, None, None, None, None)


def number(*shape, dtype="float32"):
    return (np.arange(np.prod(shape)).reshape(shape) * 0.75 - 1.5).astype(dtype)


def place(name, index=0):
    return (name, index)


def layer(name, kind, inputs=(), weights=None, slots=None, **options):
    inputs = [place(one) if isinstance(one, str) else one for one in inputs]
    return {
        "name": name, "kind": kind, "inputs": inputs, "options": options,
        "weights": weights or {}, "slots": slots or {},
    }  # fmt: skip


def networks():
    lstm = layers.LSTM(3, direction="bidirectional", num_proj=2)
    lstm.build((None, None, 4))
    return [
        {
            "name": "net", "options": _core.network_of_layer(lstm), "params": lstm.kernel.numpy(),
            "initial_h": None, "initial_c": None, "slots": {},
        }
    ]  # fmt: skip


def described():
    """A layer of each kind, each option another value than its default where there is one."""
    dense = {"kernel": number(4, 5), "bias": number(5)}
    moments = {"m": number(4, 5) + 1, "v": number(4, 5) + 2}
    recurrent = {
        "network": "net", "return_sequences": False, "return_state": True, "merge": "sum",
        "stateful": True, "zero_output_for_mask": True, "uses_mask": False, "trainable": False,
        "initial_h": [0.5, 1.0, 1.5, 2.0], "initial_c": [0.25, 1.0, 1.5, 2.0, 3.0, 4.0],
    }  # fmt: skip
    table = {"embeddings": number(6, 4)}
    return [
        layer("words", "input", shape=[2, 3], dtype="int32"),
        layer("numbers", "input", shape=[-1, 3, 4]),
        layer("rows", "embedding", ["words"], table, {"embeddings": {"m": number(6, 4) + 3}},
              vocabulary=6, dim=4, mask_zero=True, dtype="float32", trainable=False),
        layer("masked", "masking", ["numbers"], mask_value=-1.5),
        layer("both", "recurrent", ["rows"], **recurrent),
        layer("dense", "dense", ["numbers"], dense,
              {"kernel": moments, "bias": {"m": number(5) + 4}},
              units=5, activation="tanh", use_bias=True, trainable=False),
        layer("plain", "dense", ["numbers"], {"kernel": number(4, 5) * 2},
              units=5, activation="elu", use_bias=False),
        layer("soft", "activation", ["dense"], activation="softmax"),
        layer("drop", "dropout", ["plain"], rate=0.25),
        layer("flat", "reshape", ["numbers"], shape=[-1, 6]),
        layer("twice", "repeat", [place("both", 2)], count=7),
        layer("mean", "time_mean", ["numbers"]),
        layer("joined", "concat", ["dense", "plain", "soft"], axis=1),
        layer("sum", "add", ["dense", "plain", "soft"]),
        layer("difference", "subtract", ["plain", "dense"]),
        layer("product", "multiply", ["soft", "plain"]),
        layer("middle", "average", ["soft", "plain", "soft"]),
    ]  # fmt: skip


OUTPUTS = [place("both", 4), place("sum"), place("both", 1), place("numbers"), place("both", 2)]


def saved(path, given, outputs, file_kind=0, nets=(), values=None):
    _core.save_networks(str(path), list(nets), values or {}, None, file_kind, given, outputs)
    return _core.load_networks(str(path), *NOTHING)


def assert_same(found, wanted):
    assert list(found) == ["name", "kind", "inputs", "options", "weights", "slots", "tensors"]
    for key in ("name", "kind", "inputs", "options"):
        assert found[key] == wanted[key], key
    kinds = {name: type(value) for name, value in wanted["options"].items()}
    assert {name: type(value) for name, value in found["options"].items()} == kinds
    assert list(found["weights"]) == list(wanted["weights"])
    assert {name: set(one) for name, one in found["slots"].items()} == {
        name: set(one) for name, one in wanted["slots"].items()
    }
    for name, values in wanted["weights"].items():
        np.testing.assert_array_equal(found["weights"][name], values)
        assert found["weights"][name].dtype == values.dtype
        for slot, numbers in wanted["slots"].get(name, {}).items():
            np.testing.assert_array_equal(found["slots"][name][slot], numbers)
            assert found["slots"][name][slot].dtype == numbers.dtype


def test_every_kind_of_layer_comes_back_whole(tmp_path):
    given = described()
    found = saved(tmp_path / "a.openrnn", given, OUTPUTS, nets=networks())
    assert len(found["layers"]) == len(given)
    for one, wanted in zip(found["layers"], given, strict=True):
        assert_same(one, wanted)
    assert found["outputs"] == OUTPUTS
    assert [one["name"] for one in found["networks"]] == ["net"]
    tensors = {one["name"]: one["tensors"] for one in found["layers"]}
    assert tensors["dense"] == [
        f"layers/dense/{name}"
        for name in ("kernel", "bias", "slots/m/bias", "slots/m/kernel", "slots/v/kernel")
    ]
    assert tensors["rows"] == ["layers/rows/embeddings", "layers/rows/slots/m/embeddings"]
    assert not tensors["both"] and not tensors["words"]


def test_the_model_has_a_layer_of_every_kind(tmp_path):
    given = {one["kind"] for one in described()}
    with pytest.raises(openrnn.ArgumentError) as caught:
        saved(tmp_path / "a.openrnn", [layer("x", "none", y=1)], [], nets=networks())
    text = "[layers] the kind of layer 'none', expected one of "
    assert str(caught.value).startswith(text)
    *named, last = str(caught.value)[len(text) :].split(", ")
    last, more = last.split(" and ")
    more = int(more.removesuffix(" more"))
    assert {*named, last} <= given and len(named) + 1 + more == len(given)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_model_of_few_layers_keeps_its_outputs(tmp_path, count):
    given = [
        layer("x", "input", shape=[2, 4], dtype="float64"),
        layer("d", "dense", ["x"], {"kernel": number(4, 5, dtype="float64")},
              units=5, use_bias=False),
        layer("e", "activation", ["d"], activation="tanh"),
    ][:count]  # fmt: skip
    last = place(given[-1]["name"])
    for outputs in ([last], [place("x")], [place("x"), last]):
        found = saved(tmp_path / "a.openrnn", given, outputs, nets=networks())
        assert found["outputs"] == outputs and len(found["networks"]) == 1
        for one, wanted in zip(found["layers"], given, strict=True):
            assert_same(one, wanted)


@pytest.mark.parametrize("count", [1, 2])
def test_a_loaded_model_of_few_layers_is_saved_again(tmp_path, count):
    given = [
        layer("x", "input", shape=[2, 4]),
        layer("d", "dense", ["x"], {"kernel": number(4, 5)}, units=5, use_bias=False),
    ][:count]
    saved(tmp_path / "a.openrnn", given, [place("x")] * 2, nets=networks())
    model = openrnn.load(tmp_path / "a.openrnn")
    openrnn.save(tmp_path / "b.openrnn", model)
    again = openrnn.load(tmp_path / "b.openrnn")
    assert [tuple(one) for one in again.outputs] == [place("x")] * 2
    assert [one["name"] for one in again.layers] == [one["name"] for one in given]
    x = number(2, 4)
    for found in again.model.predict(x):
        np.testing.assert_array_equal(found, x)


def test_layers_without_weights_or_slots_in_their_descriptions(tmp_path):
    given = described()
    for one in given:
        del one["slots"]
        if not one["weights"]:
            del one["weights"]
    found = saved(tmp_path / "a.openrnn", given, OUTPUTS, nets=networks())
    for one, wanted in zip(found["layers"], given, strict=True):
        assert one["slots"] == {} and one["options"] == wanted["options"]
        assert list(one["weights"]) == list(wanted.get("weights", {}))


# Kind of layer, option, value.
WRONG = {
    "a number for a whole one": ("repeat", "count", 2.5),
    "a truth value for a number": ("dropout", "rate", True),
    "a truth value for a whole number": ("concat", "axis", True),
    "a whole number for a truth value": ("dense", "use_bias", 1),
    "a text for a list": ("input", "shape", "1"),
    "a number for a text": ("activation", "activation", 1),
    "nothing for a text": ("recurrent", "network", None),
}


@pytest.mark.parametrize("name", WRONG)
def test_an_option_has_the_type_of_its_default(tmp_path, name):
    kind, option, value = WRONG[name]
    given = [layer("x", "input", shape=[2, 4]), layer("y", kind, ["x"], **{option: value})]
    with pytest.raises(TypeError) as caught:
        saved(tmp_path / "a.openrnn", given, [place("y")], nets=networks())
    given_type = type(value).__name__
    assert str(caught.value) == (
        f"[layers] the option '{option}' is '{given_type}', expected the type of its default"
    )


def test_a_whole_number_is_a_number_too(tmp_path):
    given = [layer("x", "input", shape=[2, 4]), layer("y", "dropout", ["x"], rate=1)]
    found = saved(tmp_path / "a.openrnn", given, [place("y")], nets=networks())
    assert found["layers"][1]["options"] == {"rate": 1.0}
    assert type(found["layers"][1]["options"]["rate"]) is float


VALUES = {
    "none": None, "yes": True, "no": False, "whole": -(2**63), "number": 0.1, "text": "a b",
    "small": 1e-300, "integers": [1, -2, 2**62], "numbers": [0.1, 1e300], "words": ["b", "a"],
}  # fmt: skip


def test_values_of_every_kind_come_back(tmp_path):
    found = saved(tmp_path / "a.openrnn", [], [], nets=networks(), values=VALUES)
    values = found["values"]
    assert values == VALUES and [type(one) for one in values.values()] == [
        type(VALUES[name]) for name in values
    ]
    assert found["layers"] == [] and found["outputs"] == []
