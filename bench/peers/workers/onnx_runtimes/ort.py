"""ONNX Runtime: the LSTM, GRU and RNN operators, inference alone, called from Python."""

from peers.workers import server

THREADS = server.pin()

import tempfile  # noqa: E402
from pathlib import Path  # noqa: E402

import numpy as np  # noqa: E402
import onnxruntime as ort  # noqa: E402
from onnx import ModelProto, save  # noqa: E402

from peers.workers.onnx_runtimes import onnx_model  # noqa: E402


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
        onnx_model.refuse(task, weights=("float32", "int8"))
        weights = task.text("weights", "float32")
        options = ort.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = THREADS, 1
        model = onnx_model.model_of(task)
        data = quantized(model, task.text("cell")) if weights == "int8" else None
        if data is None:
            data = model.SerializeToString()
        self.session = ort.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        del data, model
        self.binding = self.session.io_binding()
        self.inputs = {
            name: ort.OrtValue.ortvalue_from_numpy(array)
            for name, array in onnx_model.inputs_of(task).items()
        }
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
        operator = onnx_model.OPERATORS[task.text("cell")]
        self.kernel = f"{'DynamicQuantizeLSTM' if weights == 'int8' else operator}, CPU provider"

    def call(self) -> None:
        """One run."""
        self.session.run_with_iobinding(self.binding)

    def results(self) -> dict[str, server.Array]:
        """Of the last call."""
        return onnx_model.results_of({n: self.outputs[n].numpy() for n in self.names})


def about() -> str:
    """The version."""
    return f"ONNX Runtime {ort.__version__}, CPUExecutionProvider"


if __name__ == "__main__":
    server.main(Job, about)
