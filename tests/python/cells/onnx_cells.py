"""One layer with the options of a cell as an ONNX operator, and its run in ONNX Runtime."""

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

from model.cells import cell_spec
from model.cells.cell_activations import FUNCTIONS
from model.onnx_models import BLOCKS, IR_VERSION, OPERATORS, OPSET

NAMES = {
    "sigmoid": "Sigmoid", "tanh": "Tanh", "relu": "Relu", "affine": "Affine", "elu": "Elu",
    "leaky_relu": "LeakyRelu", "thresholded_relu": "ThresholdedRelu", "scaled_tanh": "ScaledTanh",
    "hard_sigmoid": "HardSigmoid", "softsign": "Softsign", "softplus": "Softplus",
}  # fmt: skip
PLAIN = {"rnn_relu": "relu"}


def _parts(text):
    name, _, numbers = text.rstrip(")").partition("(")
    given = tuple(float(each) for each in numbers.split(",")) if numbers else ()
    return name, given + FUNCTIONS[name][1][len(given) :]


def activations(spec):
    """ONNX's f, g and h of every direction: their names, alphas and betas. Those without a number
    take none from the lists."""
    plain = PLAIN.get(spec.mode, "tanh")
    texts = [spec.activation or plain]
    if spec.mode in ("lstm", "gru"):
        texts.insert(0, spec.recurrent_activation or "sigmoid")
    if spec.mode == "lstm":
        texts.append(spec.output_activation or "tanh")
    parts = [_parts(text) for text in texts] * spec.num_dirs
    found = {
        "activations": [NAMES[name] for name, _ in parts],
        "activation_alpha": [numbers[0] for _, numbers in parts if numbers],
        "activation_beta": [numbers[1] for _, numbers in parts if len(numbers) > 1],
    }
    return {name: values for name, values in found.items() if values}


def tensors(spec, buffer):
    """W, R, B and P of one layer."""
    blocks, gates, found = BLOCKS[spec.mode], spec.num_gates, {}
    rows = {"W": [], "R": [], "B": [], "P": []}
    for matrices, biases, peepholes, *_ in cell_spec.split(spec, np.asarray(buffer, np.float32)):
        rows["W"].append(np.vstack([matrices[k] for k in blocks]))
        rows["R"].append(np.vstack([matrices[gates + k] for k in blocks]))
        if biases:
            zeros = [np.zeros(spec.num_units, np.float32)] * (2 * gates - len(biases))
            both, order = biases + zeros, [*blocks, *(gates + k for k in blocks)]
            rows["B"].append(np.concatenate([both[k] for k in order]))
        if peepholes:  # ours are i, f, o, ONNX's i, o, f
            rows["P"].append(np.concatenate([peepholes[k] for k in (0, 2, 1)]))
    for name, parts in rows.items():
        if parts:
            found[name] = np.stack(parts)
    return found


def run_node(operator, inputs, outputs, **attributes):
    """The outputs of one operator; an input that is not given is left out."""
    names = ["X", "W", "R", "B", "sequence_lens", "initial_h"]
    names += ["initial_c", "P"] if operator == "LSTM" else []
    node = helper.make_node(
        operator, [n if n in inputs else "" for n in names], outputs, **attributes
    )
    kind = lambda a: TensorProto.INT32 if a.dtype == np.int32 else TensorProto.FLOAT
    graph = helper.make_graph(
        [node], "layer",
        [helper.make_tensor_value_info(n, kind(a), a.shape) for n, a in inputs.items()],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in outputs],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
    model.ir_version = IR_VERSION
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return dict(zip(outputs, session.run(None, inputs)))


def run(problem):
    """dict of y, h (, c) of one layer."""
    spec = problem.spec
    attributes = {"hidden_size": spec.num_units, **activations(spec)}
    attributes["direction"] = "forward" if spec.num_dirs == 1 else "bidirectional"
    if spec.mode == "gru":
        attributes["linear_before_reset"] = int(spec.reset_after)
    if spec.gate_clip:
        attributes["clip"] = spec.gate_clip[1]
    if spec.coupled_gates:
        attributes["input_forget"] = 1
    single = lambda a: np.nan_to_num(np.asarray(a, np.float32))
    inputs = {"X": single(problem.x), "initial_h": single(problem.h0)}
    inputs |= tensors(spec, problem.params)
    if spec.mode == "lstm":
        inputs["initial_c"] = single(problem.c0)
    if problem.lengths is not None:
        inputs["sequence_lens"] = problem.lengths
    outputs = ["Y", "Y_h", "Y_c"][: 2 + (spec.mode == "lstm")]
    found = run_node(OPERATORS[spec.mode], inputs, outputs, **attributes)
    y = found["Y"].transpose(0, 2, 1, 3)
    values = {"y": y.reshape(*y.shape[:2], -1), "h": found["Y_h"]}
    return values | ({"c": found["Y_c"]} if "Y_c" in found else {})
