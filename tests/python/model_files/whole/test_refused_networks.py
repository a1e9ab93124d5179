"""Files whose tensors look like a network and are none: a note says why, every tensor is named as left,
and nothing fails. What is no file of its kind is a FormatError that names it."""

import json
import struct

import h5py
import numpy as np
import onnx
import openrnn
import pytest
from onnx import TensorProto, helper, numpy_helper

LIMIT = "expected 1 to 4194304"


def zeros(*shape, dtype="float32"):
    return np.zeros(shape, dtype)


def safetensors(folder, tensors):
    head, data = {}, b""
    names = {"float32": "F32", "int32": "I32", "float64": "F64"}
    for name, array in tensors.items():
        bounds = [len(data), len(data) + array.nbytes]
        head[name] = {"dtype": names[array.dtype.name], "shape": array.shape, "data_offsets": bounds}
        data += array.tobytes()
    text = json.dumps(head).encode()
    (folder / "m.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    return folder / "m.safetensors"


def onnx_model(folder, op, w, r, domain="", **attributes):
    weights = [numpy_helper.from_array(zeros(*w), "W"), numpy_helper.from_array(zeros(*r), "R")]
    node = helper.make_node(op, ["x", "W", "R"], ["y"], name="one", domain=domain, **attributes)
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "xy"]
    opsets = [helper.make_opsetid("", 14)] + [helper.make_opsetid(domain, 1)] * bool(domain)
    graph = helper.make_graph([node], "g", infos[:1], infos[1:], weights)
    (folder / "m.onnx").write_bytes(helper.make_model(graph, opset_imports=opsets).SerializeToString())
    onnx.load(folder / "m.onnx")
    return folder / "m.onnx"


def keras_h5(folder, layers):
    with h5py.File(folder / "m.h5", "w") as file:
        file.attrs["layer_names"] = [name.encode() for name in layers]
        file.attrs["keras_version"] = b"2.4.0"
        for layer, arrays in layers.items():
            group = file.create_group(layer)
            group.attrs["weight_names"] = [f"{layer}/{name}:0".encode() for name in arrays]
            for name, array in arrays.items():
                group[f"{layer}/{name}:0"] = array
    return folder / "m.h5"


def checkpoint(folder, tensors):
    tf = pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
    tf.raw_ops.SaveV2(
        prefix=str(folder / "m"), tensor_names=list(tensors), shape_and_slices=[""] * len(tensors),
        tensors=[tf.constant(array) for array in tensors.values()],
    )  # fmt: skip
    return folder / "m.index"


def nothing(path, why, left):
    loaded = openrnn.load(path)
    assert list(loaded) == [] and sorted(loaded.not_understood) == sorted(left)
    assert any(note.endswith(why) for note in loaded.notes), loaded.notes


TORCH = {
    "expected 0 (off) to num_units = 3": {
        "weight_ih_l0": zeros(12, 3), "weight_hh_l0": zeros(12, 5), "weight_hr_l0": zeros(5, 3)},
    "it has no weight_hh_l1": {
        "weight_ih_l0": zeros(12, 3), "weight_hh_l0": zeros(12, 3), "weight_ih_l1": zeros(12, 3)},
    "weight_ih is int32, expected floating point": {
        "weight_ih_l0": zeros(12, 3, dtype="int32"), "weight_hh_l0": zeros(12, 3, dtype="int32")},
    "weight_hh_l0 is float64 [12, 3], expected float32 [12, 3]": {
        "weight_ih_l0": zeros(12, 3), "weight_hh_l0": zeros(12, 3, dtype="float64")},
}  # fmt: skip


@pytest.mark.parametrize("why", TORCH)
def test_pytorch(tmp_path, why):
    path = safetensors(tmp_path, {f"a.{name}": array for name, array in TORCH[why].items()})
    nothing(path, why, [f"a.{name}" for name in TORCH[why]])
    assert openrnn.load(path).notes[0].startswith("no network was made from 'a.weight_hh_l0' and the like: ")


def test_a_plain_network_of_pytorch_asks_for_its_mode(tmp_path):
    path = safetensors(tmp_path, {"a.weight_ih_l0": zeros(3, 2), "a.weight_hh_l0": zeros(3, 3)})
    with pytest.raises(openrnn.ArgumentError) as caught:
        openrnn.load(path)
    assert str(caught.value) == (
        f"[load_networks] the network 'a' in {path} is a plain one, of which PyTorch's files do not say tanh or "
        "relu, expected the hint mode: rnn_tanh or rnn_relu"
    )
    assert openrnn.load(path, rnn_mode="rnn_relu")["a"].options["rnn_mode"] == "rnn_relu"


@pytest.mark.parametrize("why, op, w, r, options", [
    (f"[RnnSpec] num_units is 0, {LIMIT}", "LSTM", (1, 0, 3), (1, 0, 0), {"hidden_size": 0}),
    (f"[RnnSpec] input_size is 0, {LIMIT}", "GRU", (1, 9, 0), (1, 9, 3), {"hidden_size": 3}),
    ("clip is -1, expected a finite number above 0", "GRU", (1, 9, 3), (1, 9, 3), {"hidden_size": 3, "clip": -1.0}),
    ("the activation is 'Sin', expected one that ONNX has", "RNN", (1, 3, 3), (1, 3, 3), {"activations": ["Sin"]}),
    ("R is float32 [2, 12, 3], expected float32 [1, 12, 3]", "LSTM", (1, 12, 3), (2, 12, 3), {"hidden_size": 3}),
])
def test_onnx(tmp_path, why, op, w, r, options):
    path = onnx_model(tmp_path, op, w, r, **options)
    nothing(path, why, ["W", "R"])
    assert openrnn.load(path).notes == [f"[onnx] node 'one' ({op}): {why}"]


def test_an_operator_of_another_domain(tmp_path):
    path = onnx_model(tmp_path, "LSTM", (1, 12, 3), (1, 12, 3), domain="mine")
    nothing(path, "it is no operator of ONNX's own, expected RNN, LSTM or GRU", ["W", "R"])
    assert openrnn.load(path).notes[0].startswith("[onnx] node 'one' (mine::LSTM): ")


def lstm(**other):
    return {"kernel": zeros(2, 12), "recurrent_kernel": zeros(3, 12), "bias": zeros(12), **other}


@pytest.mark.parametrize("why, arrays", [
    ("kernel:0' has shape [0, 12], expected two sizes of at least 1", lstm(kernel=zeros(0, 12))),
    ("its kernel is int32, expected floating point", {k: v.astype("int32") for k, v in lstm().items()}),
    ("bias:0' is float64 [12], which does not fit the others", lstm(bias=zeros(12, dtype="float64"))),
    ("bias:0' is float32 [11], which does not fit the others", lstm(bias=zeros(11))),
])
def test_keras(tmp_path, why, arrays):
    path = keras_h5(tmp_path, {"net": arrays, "good": lstm()})
    loaded = openrnn.load(path)
    assert list(loaded) == ["good"]
    assert sorted(loaded.not_understood) == sorted(f"net/net/{name}:0" for name in arrays)
    (note,) = (note for note in loaded.notes if note.startswith("no network was made from 'net': "))
    assert note.endswith(why)


CELL = "a/rnn/multi_rnn_cell/cell_%d/%s_cell/%s"


@pytest.mark.parametrize("kind, why, arrays", [
    ("lstm", "[RnnSpec] num_proj is 9, expected 0 (off) to num_units = 4", {
        (0, "kernel"): zeros(5, 16), (0, "bias"): zeros(16), (0, "projection/kernel"): zeros(4, 9)}),
    ("basic_lstm", f"[RnnSpec] input_size is 0, {LIMIT}", {(0, "kernel"): zeros(4, 16), (0, "bias"): zeros(16)}),
    ("basic_lstm", "bias is float64 [12], expected float32 [12]", {
        (0, "kernel"): zeros(5, 12), (0, "bias"): zeros(12, dtype="float64")}),
    ("basic_lstm", "bias is float32 [11], expected float32 [12]", {
        (0, "kernel"): zeros(5, 12), (0, "bias"): zeros(12), (1, "kernel"): zeros(6, 12), (1, "bias"): zeros(11)}),
    ("basic_lstm", "it has no bias", {(0, "kernel"): zeros(5, 12), (0, "bias"): zeros(12), (1, "kernel"): zeros(6, 12)}),
    ("basic_lstm", "float32, forget_bias 1, single_bias true", {
        (0, "kernel"): zeros(5, 12), (0, "bias"): zeros(12), (0, "w_f_diag"): zeros(3)}),
])
def test_tensorflow(tmp_path, kind, why, arrays):
    tensors = {CELL % (layer, kind, name): array for (layer, name), array in arrays.items()}
    nothing(checkpoint(tmp_path, tensors), why, list(tensors))


# Of other sizes than one above the other has, or with one missing between: each is a network.
@pytest.mark.parametrize("second, rows", [(1, 9), (2, 6)])
def test_cells_of_tensorflow_that_are_apart(tmp_path, second, rows):
    tensors = {}
    for layer, size in ((0, 5), (second, rows)):
        random = np.random.default_rng(layer).uniform(-0.5, 0.5, (size, 12))
        tensors[CELL % (layer, "basic_lstm", "kernel")] = random.astype("float32")
        tensors[CELL % (layer, "basic_lstm", "bias")] = zeros(12)
    loaded = openrnn.load(checkpoint(tmp_path, tensors), forget_bias=0.5)
    names = [f"a/rnn/multi_rnn_cell/cell_{layer}/basic_lstm_cell" for layer in (0, second)]
    assert list(loaded) == names and loaded.not_understood == []
    assert loaded.notes == ["the 2 cells at 'a' do not make one network: each is one of its own"]
    for name, inputs in zip(names, (2, rows - 3), strict=True):
        layer = loaded[name].layer
        assert (layer.num_layers, layer.num_units, layer.input_size) == (1, 3, inputs)
        x = np.random.default_rng(9).normal(size=(4, 2, inputs)).astype("float32")
        h, c = zeros(2, 3), zeros(2, 3)
        for step in x:
            i, j, f, o = np.split(np.hstack([step, h]) @ tensors[f"{name}/kernel"], 4, axis=1)
            c = c / (1 + np.exp(-f - 0.5)) + np.tanh(j) / (1 + np.exp(-i))
            h = np.tanh(c) / (1 + np.exp(-o))
        np.testing.assert_allclose(layer(x, training=False)[0][-1], h, atol=1e-6)


def test_a_damaged_graph_of_tensorflow(tmp_path):
    tf = pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
    with tf.Graph().as_default() as graph:
        tf.constant(np.arange(12, dtype="float32").reshape(3, 4), name="a/b")
        tf.constant(np.arange(5, dtype="float32"), name="a/c")
    data, path = graph.as_graph_def().SerializeToString(), tmp_path / "g.pb"
    path.write_bytes(data)
    assert sorted(openrnn.load(path).not_understood) == ["a/b", "a/c"]
    for damaged in (data[:-9], data + b"\x0a\x7f", data + b"\x0f"):
        path.write_bytes(damaged)
        with pytest.raises(openrnn.FormatError) as caught:
            openrnn.load(path)
        assert str(caught.value).startswith(f"[{path} @ ")
        assert str(caught.value).endswith("] the graph is damaged or cut short behind this place")


def test_layers_of_rtneural_that_do_not_fit_one_another(tmp_path):
    cell = {"type": "lstm", "activation": "", "shape": [None, None, 1],
            "weights": [[[1, 2, 3, 4]], [[1, 2, 3, 4]], [1, 2, 3, 4]]}  # fmt: skip
    for dense, why in [
        ({"activation": "", "weights": [[[1], [2]], [1]]},
         "[layers] the layer 'layers.1' (dense) has kernel float32 [2, 1], expected float32 [1, 1]"),
        ({"activation": "odd", "weights": [[[1]], [1]]}, "'layers.1' has the activation 'odd', which is not computed here"),
    ]:  # fmt: skip
        model = {"in_shape": [None, None, 1], "layers": [cell, {"type": "dense", "shape": [None, None, 1], **dense}]}
        (tmp_path / "m.json").write_text(json.dumps(model))
        loaded = openrnn.load(tmp_path / "m.json")
        assert list(loaded) == ["layers.0"] and loaded.layers == []
        assert loaded.notes == [f"the model is read as its networks alone: {why}"]
        assert loaded.not_understood == ["layers.1.weights.0", "layers.1.weights.1"]
