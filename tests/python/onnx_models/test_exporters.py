"""Graphs as PyTorch and tf2onnx export them: they run as in ONNX Runtime, and their networks are found."""

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")

from onnx_models import graphs, onnx_tool

OPERATORS = ["LSTM", "GRU", "RNN"]
MODES = {"LSTM": "lstm", "GRU": "gru", "RNN": "rnn_tanh"}


def check(path, model, inputs):
    onnx.save(model, path)
    theirs, ours = onnx_tool.run_onnxruntime(path, inputs), onnx_tool.run(path, inputs)
    assert ours.keys() == theirs.keys()
    for name, value in theirs.items():
        assert ours[name].shape == value.shape
        np.testing.assert_allclose(ours[name], value, rtol=1e-5, atol=3e-6, err_msg=name)


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize("layers,dirs,opset", [(1, 1, 11), (1, 1, 14), (2, 2, 14), (3, 1, 17), (3, 2, 11)])
def test_torch_module(tmp_path, op, layers, dirs, opset):
    model, parameters = graphs.torch_module(op, layers, dirs, opset=opset)
    path = tmp_path / "m.onnx"
    for batch, time in [(4, 6), (1, 1), (3, 17)]:
        check(path, model, {"input": np.random.default_rng(1).uniform(-1, 1, (batch, time, 3)).astype(np.float32)})
    (found,), notes, left = onnx_tool.networks(path)
    assert not notes and {"fc.weight", "fc.bias"} <= set(left)
    assert (found["rnn_mode"], found["num_layers"]) == (MODES[op], str(layers))
    assert found["direction"] == ["unidirectional", "bidirectional"][dirs - 1]
    np.testing.assert_array_equal(found["params"], graphs.opaque(parameters))
    assert len(found["made of"]) == 3 * layers


@pytest.mark.parametrize("op", OPERATORS)
def test_torch_cell(tmp_path, op):
    """The weights are cut and joined by nodes."""
    model, parameters = graphs.torch_cell(op)
    path, random = tmp_path / "m.onnx", np.random.default_rng(1)
    draw = lambda width: random.uniform(-1, 1, (3, width)).astype(np.float32)
    inputs = {"x": draw(3), "h0": draw(5), "c0": draw(5)}
    check(path, model, {info.name: inputs[info.name] for info in model.graph.input})
    (found,), notes, _ = onnx_tool.networks(path)
    assert not notes and "initial_h" not in found
    assert {"weight_ih", "weight_hh", "bias_ih", "bias_hh"} <= set(found["made of"])
    np.testing.assert_array_equal(found["params"], graphs.opaque([[parameters]]))


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize("opset", [11, 14])
@pytest.mark.parametrize("reverse", [False, True])
def test_tf2onnx(tmp_path, op, opset, reverse):
    model, arrays = graphs.tf2onnx_model(op, opset, reverse=reverse)
    path = tmp_path / "m.onnx"
    check(path, model, {"ids": np.random.default_rng(1).integers(0, 11, (3, 7))})
    found, notes, left = onnx_tool.networks(path)
    if reverse:
        assert not found and "the direction is reverse" in notes[0] and "/Y" in notes[0]
        assert "lstm/W" in left
        return
    assert not notes and found[0]["made of"] == ["lstm/B", "lstm/R", "lstm/W"]
    if op != "RNN":
        assert found[0]["recurrent_activation"] == "hard_sigmoid(0.2, 0.5)"
    assert found[0]["rnn_mode"] == ("rnn_relu" if op == "RNN" else MODES[op])
    if op == "GRU":
        assert found[0]["reset_after"] == "false"


def in_branch(model, keep):
    """The model's nodes, and its weights but for those in `keep`, as a branch of If."""
    graph = model.graph
    inside = [tensor for tensor in graph.initializer if tensor.name not in keep]
    outside = [tensor for tensor in graph.initializer if tensor.name in keep]
    branch = helper.make_graph(graph.node, "branch", [], graph.output, inside)
    node = helper.make_node("If", ["choose"], [output.name + "_of_if" for output in graph.output],
                            then_branch=branch, else_branch=branch)
    outputs = [helper.make_tensor_value_info(name, 1, None) for name in node.output]
    choose = helper.make_tensor_value_info("choose", onnx.TensorProto.BOOL, [])
    made = helper.make_graph([node], "outer", [choose, *graph.input], outputs, outside)
    return helper.make_model(made, opset_imports=model.opset_import, ir_version=7)


def test_networks_in_branches(tmp_path):
    """Weights of the branch, and of the graph that it lies in."""
    model, parameters = graphs.torch_module(layers=2)
    onnx.save(in_branch(model, {"onnx::LSTM_0_W", "onnx::LSTM_1_R"}), tmp_path / "m.onnx")
    found, notes, _ = onnx_tool.networks(tmp_path / "m.onnx")
    assert not notes and len(found) == 2 and found[0]["name"] != found[1]["name"]
    for one in found:
        np.testing.assert_array_equal(one["params"], graphs.opaque(parameters))
    assert "onnx::LSTM_0_W" in found[0]["made of"]
    assert any(name.endswith("else_branch.onnx::LSTM_0_R") for one in found for name in one["made of"])
    assert "node 'scores_of_if' (If)" in onnx_tool.fault("run", tmp_path / "m.onnx")


def model_of(nodes, weights, inputs=("x",), outputs=("y",), **more):
    info = lambda name: helper.make_tensor_value_info(name, 1, None)
    graph = helper.make_graph(nodes, "g", list(map(info, inputs)), list(map(info, outputs)),
                              [numpy_helper.from_array(array, name) for name, array in weights.items()])
    opsets = [helper.make_opsetid("", 14), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=7, **more)


def weights(units=4, width=3, rows=16):
    random = np.random.default_rng(3)
    draw = lambda *shape: random.uniform(-1, 1, shape).astype(np.float32)
    return {"W": draw(1, rows, width), "R": draw(1, rows, units), "B": draw(1, 2 * rows)}


def lstm(*inputs, **attributes):
    return helper.make_node("LSTM", list(inputs), ["y"], name="rnn", hidden_size=4, **attributes)


def notes_of(path, model):
    onnx.save(model, path)
    found, notes, left = onnx_tool.networks(path)
    assert not found
    return notes, left


def test_what_is_quantised_is_named(tmp_path):
    arrays = weights()
    bytes_of = {"W": np.ones((1, 16, 3), np.int8), "scale": np.float32(0.5)}
    dequantize = helper.make_node("DequantizeLinear", ["W", "scale"], ["W_float"], name="deq")
    model = model_of([dequantize, lstm("x", "W_float", "R")], {"R": arrays["R"], **bytes_of})
    notes, left = notes_of(tmp_path / "m", model)
    assert "node 'rnn' (LSTM): W is quantised: it comes from DequantizeLinear 'deq'" in notes[0]
    assert "quantised nodes, of which no network is made: deq" in notes[1] and "W" in left
    node = helper.make_node("DynamicQuantizeLSTM", ["x", "W", "R"], ["y"], name="q", domain="com.microsoft")
    notes, _ = notes_of(tmp_path / "m", model_of([node], {"W": bytes_of["W"], "R": bytes_of["W"]}))
    assert "node 'q' (com.microsoft::DynamicQuantizeLSTM): it is quantised" in notes[0]
    assert "node 'q' (DynamicQuantizeLSTM)" in onnx_tool.fault("run", tmp_path / "m")


def test_what_is_unrolled_is_named(tmp_path):
    nodes, state = [], "x"
    for step in range(3):
        nodes.append(helper.make_node("MatMul", [state, "kernel"], [f"p{step}"]))
        nodes.append(helper.make_node("Tanh", [f"p{step}"], [state := f"h{step}"]))
    model = model_of(nodes, {"kernel": np.eye(3, dtype=np.float32)}, outputs=[state])
    notes, left = notes_of(tmp_path / "m", model)
    assert notes == ["[onnx] 'kernel' is a factor of 3 products, as in a network that is unrolled, of which no "
                     "network is made"]
    assert left == ["kernel"]


def test_steps_in_the_body_of_a_scan_are_named(tmp_path):
    info = lambda name: helper.make_tensor_value_info(name, 1, None)
    body = [helper.make_node("MatMul", ["h_in", "kernel"], ["p"]), helper.make_node("Add", ["p", "x_in"], ["s"]),
            helper.make_node("Tanh", ["s"], ["h_out"]), helper.make_node("Identity", ["h_out"], ["y_out"])]
    inner = helper.make_graph(body, "body", [info("h_in"), info("x_in")], [info("h_out"), info("y_out")])
    node = helper.make_node("Scan", ["h0", "x"], ["h", "y"], name="scan", body=inner, num_scan_inputs=1)
    model = model_of([node], {"kernel": np.eye(3, dtype=np.float32)}, inputs=["h0", "x"])
    notes, _ = notes_of(tmp_path / "m", model)
    assert notes == ["[onnx] node 'scan' (Scan): its body is a recurrent step in plain operators, of which no "
                     "network is made"]


TWO = {"direction": "bidirectional", "activations": ["Sigmoid", "Tanh", "Tanh", "Sigmoid", "Tanh", "Relu"]}
REFUSED = [
    ({"activations": ["Sigmoid", "Affine", "Tanh"]}, "the activation Affine has no activation_alpha"),
    ({"activations": ["Sigmoid", "Tanh"]}, "2 activations are there, expected 3 for each direction"),
    ({"activations": ["Sigmoid", "Swish", "Tanh"]}, "the activation is 'Swish'"),
    ({"direction": "sideways"}, "the direction is 'sideways'"), ({"clip": -1.0}, "clip is -1"),
    ({"layout": 2}, "layout is 2"), ({"color": 1}, "the attribute color is not known"),
    ({"clip": 1}, "the attribute clip is of another kind"),
]  # fmt: skip


@pytest.mark.parametrize("attributes,part", REFUSED)
def test_what_no_network_holds(tmp_path, attributes, part):
    notes, _ = notes_of(tmp_path / "m", model_of([lstm("x", "W", "R", "B", **attributes)], weights()))
    assert len(notes) == 1 and notes[0].startswith("[onnx] node 'rnn' (LSTM): ") and part in notes[0]
    assert part in onnx_tool.fault("run", tmp_path / "m")


def test_functions_that_differ_between_directions(tmp_path):
    """No network has them; a program runs each direction by itself, if the weights are of two."""
    notes, _ = notes_of(tmp_path / "m", model_of([lstm("x", "W", "R", "B", **TWO)], weights()))
    assert len(notes) == 1 and "the activations differ between the directions" in notes[0]
    assert "W is [1, 16, 3], expected 2 directions" in onnx_tool.fault("run", tmp_path / "m")


def test_weights_that_do_not_fit(tmp_path):
    for name, shape in [("W", (1, 16, 3, 1)), ("W", (1, 15, 3)), ("R", (2, 16, 4)), ("B", (1, 16)), ("R", (1, 16, 5))]:
        arrays = weights() | {name: np.zeros(shape, np.float32)}
        notes, _ = notes_of(tmp_path / "m", model_of([lstm("x", "W", "R", "B")], arrays))
        assert len(notes) == 1 and "expected" in notes[0], (name, shape)
        assert "node 'rnn'" in onnx_tool.fault("run", tmp_path / "m")


def test_weights_that_are_computed(tmp_path):
    """No network is made of them, but the graph runs."""
    arrays = weights()
    nodes = [helper.make_node("Mul", ["W", "two"], ["W2"]), lstm("x", "W2", "R", "B")]
    model = model_of(nodes, arrays | {"two": np.float32(2.0)})
    notes, _ = notes_of(tmp_path / "m", model)
    assert "W is computed when the model runs, expected constants" in notes[0]
    check(tmp_path / "m", model, {"x": np.ones((2, 1, 3), np.float32)})


def test_another_node_is_named_before_anything_runs(tmp_path):
    node = helper.make_node("Erf", ["x"], ["y"], name="last")
    onnx.save(model_of([node], {}), tmp_path / "m")
    complaint = onnx_tool.fault("run", tmp_path / "m")
    assert complaint.startswith("[onnx] node 'last' (Erf): no program runs this operator, expected one of Abs, Add")
