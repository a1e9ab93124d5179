"""One recurrent layer as an ONNX model, and its run in ONNX Runtime."""

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from model import numpy_layout

# Where ONNX has each gate: the slot of block 0, 1, ... (LSTM i o f c, GRU z r h).
BLOCKS = {"lstm": (0, 3, 1, 2), "gru": (1, 0, 2), "rnn_tanh": (0,), "rnn_relu": (0,)}
OPERATORS = {"lstm": "LSTM", "gru": "GRU", "rnn_tanh": "RNN", "rnn_relu": "RNN"}
OPSET, IR_VERSION = 14, 8


def from_canonical(spec, weights, biases, layer):
    """W [D, G * U, in], R [D, G * U, U] and B [D, 2 * G * U] of one layer, from canonical lists."""
    blocks, gates = BLOCKS[spec.mode], spec.num_gates
    tensors = {"W": [], "R": [], "B": []}
    for pseudo in range(layer * spec.num_dirs, (layer + 1) * spec.num_dirs):
        own = slice(pseudo * 2 * gates, (pseudo + 1) * 2 * gates)
        matrices, vectors = ([np.asarray(t) for t in part[own]] for part in (weights, biases))
        tensors["W"].append(np.vstack([matrices[k] for k in blocks]))
        tensors["R"].append(np.vstack([matrices[gates + k] for k in blocks]))
        order = list(blocks) + [gates + k for k in blocks]
        tensors["B"].append(np.concatenate([vectors[k] for k in order]))
    return {name: np.stack(parts) for name, parts in tensors.items()}


def _attributes(spec):
    attributes = {"hidden_size": spec.num_units}
    attributes["direction"] = "forward" if spec.num_dirs == 1 else "bidirectional"
    if spec.mode == "gru":
        attributes["linear_before_reset"] = 1
    if spec.mode == "rnn_relu":
        attributes["activations"] = ["Relu"] * spec.num_dirs
    return attributes


def to_canonical(spec, layers):
    """(weights, biases) from the W, R and B of every layer: the inverse."""
    weights, biases, blocks = [], [], BLOCKS[spec.mode]
    for tensors in layers:
        for direction in range(spec.num_dirs):
            # Block j holds slot blocks[j]: slot k is found at the place of k.
            place = [blocks.index(k) for k in range(spec.num_gates)]
            for name in ("W", "R"):
                parts = np.split(tensors[name][direction], spec.num_gates)
                weights += [parts[j] for j in place]
            for half in np.split(tensors["B"][direction], 2):
                parts = np.split(half, spec.num_gates)
                biases += [parts[j] for j in place]
    return weights, biases


def layer_model(spec, tensors):
    """A model with inputs X, sequence_lens, initial_h (, initial_c) and outputs Y, Y_h (, Y_c)."""
    lstm = spec.mode == "lstm"
    states = ["initial_h"] + (["initial_c"] if lstm else [])
    outputs = ["Y", "Y_h"] + (["Y_c"] if lstm else [])
    node = helper.make_node(
        OPERATORS[spec.mode], ["X", "W", "R", "B", "sequence_lens"] + states, outputs,
        **_attributes(spec),
    )  # fmt: skip
    floats = lambda name, rank: helper.make_tensor_value_info(
        name, TensorProto.FLOAT, [None] * rank
    )
    inputs = [
        floats("X", 3),
        helper.make_tensor_value_info("sequence_lens", TensorProto.INT32, [None]),
    ]
    graph = helper.make_graph(
        [node],
        "layer",
        inputs + [floats(name, 3) for name in states],
        [floats(name, 4 if name == "Y" else 3) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in tensors.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
    model.ir_version = IR_VERSION
    onnx.checker.check_model(model)
    return model


def run(problem, canonical=None):
    """The whole stack, layer after layer: dict of y, h (, c). The weights are those of the problem
    or canonical lists."""
    spec, y = problem.spec, problem.x
    weights, biases = canonical or numpy_layout.params_to_canonical(spec, problem.params)
    time, batch = y.shape[:2]
    lengths = np.full(batch, time, np.int32) if problem.lengths is None else problem.lengths
    last = {"h": [], "c": []}
    for layer in range(spec.num_layers):
        rows = slice(layer * spec.num_dirs, (layer + 1) * spec.num_dirs)
        feeds = {"X": y, "sequence_lens": lengths, "initial_h": problem.h0[rows]}
        if spec.mode == "lstm":
            feeds["initial_c"] = problem.c0[rows]
        model = layer_model(spec, from_canonical(spec, weights, biases, layer)).SerializeToString()
        session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
        found = session.run(None, feeds)
        # [T, D, B, U] to [T, B, D * U]
        y = found[0].transpose(0, 2, 1, 3).reshape(time, batch, -1)
        for name, value in zip("hc", found[1:]):
            last[name].append(value)
    result = {"y": y, "h": np.concatenate(last["h"])}
    if spec.mode == "lstm":
        result["c"] = np.concatenate(last["c"])
    return result
