"""RNN, LSTM and GRU with every attribute and optional input against ONNX Runtime, by each version of the operators."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")

from onnx_models import onnx_tool
from onnx_models.graphs import GATES

FUNCTIONS = {"RNN": 1, "GRU": 2, "LSTM": 3}
TIME, BATCH, WIDTH, UNITS = 5, 4, 3, 7
# Each with a list of functions as long as the longest, alphas and betas in the order in which they are taken.
ACTIVATIONS = {
    "none": (None, [], []),
    "plain": (["Softsign", "Relu", "Softplus"], [], []),
    "numbers": (["HardSigmoid", "LeakyRelu", "Affine"], [0.25, 0.5, 0.75], [0.375, 0.125]),
    "defaults": (["HardSigmoid", "Elu", "leakyrelu"], [], []),
    "mixed": (["Sigmoid", "ScaledTanh", "ThresholdedRelu"], [1.25, 0.1], [0.5]),
}


def node_attributes(op, direction, clip, activations, special):
    count, dirs = FUNCTIONS[op], 2 if direction == "bidirectional" else 1
    found = {"hidden_size": UNITS, "direction": direction} | ({"clip": 0.5} if clip else {})
    names, alphas, betas = ACTIVATIONS[activations]
    if names:
        with_alpha = [n for n in names[:count] if n in ("HardSigmoid", "LeakyRelu", "Affine", "ScaledTanh", "ThresholdedRelu")]
        with_beta = [n for n in names[:count] if n in ("HardSigmoid", "Affine", "ScaledTanh")]
        found["activations"] = names[:count] * dirs
        if alphas:
            found["activation_alpha"] = alphas[: len(with_alpha)] * dirs
        if betas:
            found["activation_beta"] = betas[: len(with_beta)] * dirs
    if special:
        found |= {"RNN": {}, "GRU": {"linear_before_reset": 1}, "LSTM": {"input_forget": 1}}[op]
    return {name: value for name, value in found.items() if value != []}


def make(op, direction, clip, activations, special, given, opset, layout=0, dtype=np.float32):
    """A model with one node whose weights are constants, and inputs for it."""
    random = np.random.default_rng(len(op) + len(activations))
    draw = lambda *shape: random.uniform(-1, 1, shape).astype(dtype)
    dirs, rows = 2 if direction == "bidirectional" else 1, GATES[op] * UNITS
    weights = {"W": draw(dirs, rows, WIDTH), "R": draw(dirs, rows, UNITS)}
    inputs = {"X": draw(TIME, BATCH, WIDTH)}
    if "bias" in given:
        weights["B"] = draw(dirs, 2 * rows)
    if "peepholes" in given and op == "LSTM":
        weights["P"] = draw(dirs, 3 * UNITS)
    if "lengths" in given:
        inputs["sequence_lens"] = np.array([5, 1, 3, 4], np.int32)
    if "states" in given:
        inputs["initial_h"] = draw(dirs, BATCH, UNITS)
        if op == "LSTM":
            inputs["initial_c"] = draw(dirs, BATCH, UNITS)
    if layout:
        inputs = {name: a if a.ndim == 1 else a.swapaxes(0, 1).copy() for name, a in inputs.items()}
    order = ["X", "W", "R", "B", "sequence_lens", "initial_h", "initial_c", "P"][: 8 if op == "LSTM" else 6]
    names = [name if name in weights or name in inputs else "" for name in order]
    outputs = ["Y", "Y_h", "Y_c"][: 2 + (op == "LSTM")]
    attributes = node_attributes(op, direction, clip, activations, special) | ({"layout": layout} if layout else {})
    kind = lambda a: TensorProto.INT32 if a.dtype == np.int32 else helper.np_dtype_to_tensor_dtype(a.dtype)
    graph = helper.make_graph(
        [helper.make_node(op, names, outputs, **attributes)], "g",
        [helper.make_tensor_value_info(name, kind(a), a.shape) for name, a in inputs.items()],
        [helper.make_tensor_value_info(name, kind(weights["W"]), None) for name in outputs],
        [numpy_helper.from_array(a, name) for name, a in weights.items()],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=7), inputs


GIVEN = ["", "bias", "bias lengths", "bias states", "bias lengths states peepholes", "states peepholes", "lengths"]


@pytest.mark.parametrize("op", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("clip", [False, True])
@pytest.mark.parametrize("activations", list(ACTIVATIONS))
@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("opset", [7, 14, 22])
def test_against_onnxruntime(tmp_path, op, direction, clip, activations, special, given, opset):
    model, inputs = make(op, direction, clip, activations, special, given, opset)
    onnx.save(model, tmp_path / "m")
    theirs, ours = onnx_tool.run_onnxruntime(tmp_path / "m", inputs), onnx_tool.run(tmp_path / "m", inputs)
    for name, value in theirs.items():
        np.testing.assert_allclose(ours[name], value, rtol=1e-5, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("op", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("clip", [False, True])
@pytest.mark.parametrize("constant", [False, True])
def test_functions_by_direction(tmp_path, op, given, clip, constant):
    """Each direction with functions and numbers of its own, in both layouts."""
    count = FUNCTIONS[op]
    names = ["HardSigmoid", "LeakyRelu", "Affine"][:count] + ["Softsign", "Elu", "ScaledTanh"][-count:]
    alphas = [0.25, 0.5, 0.75][:count] + [0.4, 1.5][-min(count, 2) :]
    betas = ([0.375, 0.125] if count == 3 else [0.375]) + [0.5]
    found = []
    for layout in (0, 1):
        model, inputs = make(op, "bidirectional", clip, "none", False, given, 14, layout)
        more = {"activations": names, "activation_alpha": alphas, "activation_beta": betas}
        model.graph.node[0].attribute.extend(helper.make_attribute(*each) for each in more.items())
        if not constant:
            for tensor in model.graph.initializer:
                inputs[tensor.name] = numpy_helper.to_array(tensor)
                value = helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
                model.graph.input.append(value)
            del model.graph.initializer[:]
        onnx.save(model, tmp_path / "m")
        found.append(onnx_tool.run(tmp_path / "m", inputs))
        if layout == 0:
            theirs = onnx_tool.run_onnxruntime(tmp_path / "m", inputs)
    for name, value in theirs.items():
        np.testing.assert_allclose(found[0][name], value, rtol=1e-5, atol=1e-5, err_msg=name)
        moved = found[0][name]
        moved = moved.transpose(2, 0, 1, 3) if name == "Y" else moved.swapaxes(0, 1)
        np.testing.assert_array_equal(found[1][name], moved, err_msg=name)


def test_thresholdedrelu_without_its_number(tmp_path):
    """That of the operator of this name, 1; ONNX Runtime takes 0."""
    model, inputs = make("RNN", "forward", False, "none", False, "bias", 14)
    model.graph.node[0].attribute.append(helper.make_attribute("activations", ["ThresholdedRelu"]))
    onnx.save(model, tmp_path / "m")
    without = onnx_tool.run(tmp_path / "m", inputs)
    model.graph.node[0].attribute.append(helper.make_attribute("activation_alpha", [1.0]))
    onnx.save(model, tmp_path / "m")
    for name, value in onnx_tool.run_onnxruntime(tmp_path / "m", inputs).items():
        assert (value == 0).any() and (value > 1).any()
        np.testing.assert_allclose(without[name], value, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("op", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("given", GIVEN)
def test_batch_major_layout(tmp_path, op, direction, given):
    """layout 1, which ONNX Runtime refuses: the same bits in other places."""
    results = []
    for layout in (0, 1):
        model, inputs = make(op, direction, False, "none", False, given, 14, layout)
        onnx.save(model, tmp_path / "m")
        results.append(onnx_tool.run(tmp_path / "m", inputs))
    for name, value in results[0].items():
        moved = value.transpose(2, 0, 1, 3) if name == "Y" else value.swapaxes(0, 1)
        np.testing.assert_array_equal(results[1][name], moved, err_msg=name)


@pytest.mark.parametrize("op", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_other_dtypes(tmp_path, op, dtype):
    """Near to float32; ONNX Runtime has these three operators in float32 alone."""
    found = {}
    for name in ("float32", dtype):
        model, inputs = make(op, "bidirectional", True, "none", True, "bias lengths states", 14, dtype=np.dtype(name))
        onnx.save(model, tmp_path / "m")
        found[name] = onnx_tool.run(tmp_path / "m", inputs)
    for name, value in found[dtype].items():
        assert value.dtype == dtype
        np.testing.assert_allclose(value, found["float32"][name], atol=1e-2 if dtype == "float16" else 1e-6)


@pytest.mark.parametrize("op", ["RNN", "GRU", "LSTM"])
def test_first_version(tmp_path, op):
    """Version 1 has output_sequence, and the same equations where the reset gate is before the product."""
    model, inputs = make(op, "forward", False, "none", False, "bias", 7)
    onnx.save(model, tmp_path / "new")
    model.opset_import[0].version = 1
    model.graph.node[0].attribute.append(helper.make_attribute("output_sequence", 1))
    onnx.save(model, tmp_path / "old")
    new, old = onnx_tool.run(tmp_path / "new", inputs), onnx_tool.run(tmp_path / "old", inputs)
    for name, value in new.items():
        np.testing.assert_array_equal(old[name], value)
    assert len(onnx_tool.networks(tmp_path / "old")[0]) == 1


FAULTS = [
    ({"X": np.zeros((5, 4, 2), np.float32)}, "X is float32 [5, 4, 2], expected float32 of three dimensions, the last 3"),
    ({"X": np.zeros((5, 4), np.float32)}, "X is float32 [5, 4], expected float32"),
    ({"X": np.zeros((5, 4, 3), np.float64)}, "'X' is float64, expected float32"),
    ({"initial_h": np.zeros((1, 3, 7), np.float32)}, "initial_h is float32 [1, 3, 7], expected float32 [1, 4, 7]"),
    ({"sequence_lens": np.array([5, 1, 6, 4], np.int32)}, "sequence_lens has 6 at row 2, expected 0 to 5"),
    ({"sequence_lens": np.array([5, 1, -1, 4], np.int32)}, "sequence_lens has -1 at row 2, expected 0 to 5"),
    ({"sequence_lens": np.array([5, 1], np.int32)}, "sequence_lens is int32 [2], expected int32 [4]"),
    ({"Z": np.zeros(1, np.float32)}, "'Z' is given, expected inputs of the graph"),
    ({"X": None}, "'X' is not given, expected it"),
]


@pytest.mark.parametrize("changed,part", FAULTS)
def test_inputs_that_do_not_fit(tmp_path, changed, part):
    model, inputs = make("LSTM", "reverse", False, "none", False, "bias lengths states", 14)
    onnx.save(model, tmp_path / "m")
    given = {name: array for name, array in (inputs | changed).items() if array is not None}
    assert part in onnx_tool.fault("run", tmp_path / "m", arrays=given)


def test_rows_of_length_zero(tmp_path):
    """They end in their initial state, and put out zeros."""
    model, inputs = make("GRU", "bidirectional", False, "none", False, "bias lengths states", 14)
    inputs["sequence_lens"][1] = 0
    onnx.save(model, tmp_path / "m")
    found = onnx_tool.run(tmp_path / "m", inputs)
    np.testing.assert_array_equal(found["Y_h"][:, 1], inputs["initial_h"][:, 1])
    assert not found["Y"][:, :, 1].any() and found["Y"][:, :, 0].all()
