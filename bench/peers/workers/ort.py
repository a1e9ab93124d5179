"""ONNX Runtime: the LSTM, GRU and RNN operators, inference alone, called from Python."""

from peers.workers import server

THREADS = server.pin()

import tempfile  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402
import onnxruntime as ort  # noqa: E402
from onnx import ModelProto, TensorProto, helper, numpy_helper, save  # noqa: E402

from peers.workers import layout  # noqa: E402

# The place of OpenRNN's gate at each place of ONNX's: lstm i o f c, gru z r h.
ORDERS = {"lstm": (0, 3, 1, 2), "gru": (1, 0, 2), "rnn_tanh": (0,)}
OPERATORS = {"lstm": "LSTM", "gru": "GRU", "rnn_tanh": "RNN"}


def initializers(name: str, parts: list[layout.Part], order: tuple[int, ...]) -> list[TensorProto]:
    """W, R and B of one layer, its directions stacked."""
    ordered = [part.reordered(order) for part in parts]
    arrays = {
        "W": np.stack([part.w for part in ordered]),
        "R": np.stack([part.r for part in ordered]),
        "B": np.stack([np.concatenate([part.bw, part.br]) for part in ordered]),
    }
    return [numpy_helper.from_array(array, f"{name}_{key}") for key, array in arrays.items()]


def model_of(task: server.Task) -> ModelProto:
    """The network as an ONNX model: x -> y, h0.., c0.. (states of each layer)."""
    cell, units, directions = task.text("cell"), task.number("units"), task.number("directions", 1)
    parts, nodes, constants, states, source = layout.parts_of(task), [], [], [], "x"
    lengths = "lengths" if task.lengths_kind == "given" else ""
    more: dict[str, Any] = {"linear_before_reset": 1} if cell == "gru" else {}
    for layer in range(task.number("layers")):
        name = f"l{layer}"
        mine = [part for part in parts if part.layer == layer]
        constants += initializers(name, mine, ORDERS[cell])
        outputs = [f"{name}_y", f"h{layer}"] + ([f"c{layer}"] if cell == "lstm" else [])
        inputs = [source, f"{name}_W", f"{name}_R", f"{name}_B", lengths]
        nodes.append(
            helper.make_node(
                OPERATORS[cell], inputs, outputs, hidden_size=units,
                direction="bidirectional" if directions == 2 else "forward", **more,
            )  # fmt: skip
        )
        # [T, D, B, U] -> [T, B, D*U].
        source = "y" if layer == task.number("layers") - 1 else f"{name}_out"
        if directions == 1:
            nodes.append(helper.make_node("Squeeze", [f"{name}_y", "axis"], [source]))
        else:
            nodes.append(
                helper.make_node("Transpose", [f"{name}_y"], [f"{name}_t"], perm=[0, 2, 1, 3])
            )
            nodes.append(helper.make_node("Reshape", [f"{name}_t", "flat"], [source]))
        states += outputs[1:]
    name, shape = ("axis", [1]) if directions == 1 else ("flat", [0, 0, directions * units])
    constants.append(numpy_helper.from_array(np.array(shape, np.int64), name))
    value = helper.make_tensor_value_info
    x = task.array("x")
    inputs_of_graph = [value("x", TensorProto.FLOAT, x.shape)]
    if lengths:
        inputs_of_graph.append(value("lengths", TensorProto.INT32, [x.shape[1]]))
    graph = helper.make_graph(
        nodes, "network", inputs_of_graph,
        [value(name, TensorProto.FLOAT, None) for name in ["y", *states]], constants,
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def quantized(model: ModelProto, cell: str) -> bytes:
    """The model with int8 weights and activations that are quantised as they come."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    if cell != "lstm":
        raise server.Refused("ONNX Runtime quantises no recurrent operator but LSTM")
    with tempfile.TemporaryDirectory() as folder:
        plain, small = Path(folder) / "plain.onnx", Path(folder) / "small.onnx"
        save(model, plain)
        quantize_dynamic(plain, small, weight_type=QuantType.QInt8, per_channel=True)
        return small.read_bytes()


class Job:
    """One session with its arrays bound."""

    def __init__(self, task: server.Task) -> None:
        if task.training:
            raise server.Refused("inference alone")
        if task.lengths_kind == "packed" or task.text("math", "float32") != "float32":
            raise server.Refused("no such option of its recurrent operators")
        weights = task.text("weights", "float32")
        if weights not in ("float32", "int8"):
            raise server.Refused(f"no {weights} weights in its recurrent operators")
        options = ort.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = THREADS, 1
        model = model_of(task)
        data = quantized(model, task.text("cell")) if weights == "int8" else None
        if data is None:
            data = model.SerializeToString()
        self.session = ort.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        del data, model
        self.binding = self.session.io_binding()
        self.inputs = {"x": ort.OrtValue.ortvalue_from_numpy(task.array("x"))}
        if task.lengths_kind == "given":
            lengths = task.array("lengths").astype(np.int32)
            self.inputs["lengths"] = ort.OrtValue.ortvalue_from_numpy(lengths)
        for name, value in self.inputs.items():
            self.binding.bind_ortvalue_input(name, value)
        self.names = [output.name for output in self.session.get_outputs()]
        for name in self.names:
            self.binding.bind_output(name)
        # From here on the arrays of the first call are written again.
        self.session.run_with_iobinding(self.binding)
        self.outputs = dict(zip(self.names, self.binding.get_outputs(), strict=True))
        for name, value in self.outputs.items():
            self.binding.bind_ortvalue_output(name, value)
        operator = OPERATORS[task.text("cell")]
        self.kernel = f"{'DynamicQuantizeLSTM' if weights == 'int8' else operator}, CPU provider"

    def call(self) -> None:
        """One run."""
        self.session.run_with_iobinding(self.binding)

    def results(self) -> dict[str, server.Array]:
        """Of the last call."""
        found: dict[str, server.Array] = {"y": self.outputs["y"].numpy()}
        for state in "hc":
            arrays = [self.outputs[n].numpy() for n in self.names if n[0] == state]
            if arrays:
                found[f"{state}n"] = np.concatenate(arrays)
        return found


def about() -> str:
    """The version."""
    return f"ONNX Runtime {ort.__version__}, CPUExecutionProvider"


if __name__ == "__main__":
    server.main(Job, about)
