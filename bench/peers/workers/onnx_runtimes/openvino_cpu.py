"""OpenVINO: the networks as ONNX models, which become its own sequence operators; forward."""

from peers.workers import server

THREADS = server.pin()

import numpy as np  # noqa: E402
import openvino  # noqa: E402

from peers.workers.onnx_runtimes import onnx_model  # noqa: E402

RECURRENT = ("RNNSeq", "RNNCell", "TensorIterator")
PRECISIONS = {"float32": "f32", "bf16": "bf16"}


class Job:
    """One request whose input is shared memory."""

    def __init__(self, task: server.Task) -> None:
        onnx_model.refuse(task, maths=tuple(PRECISIONS))
        precision = PRECISIONS[task.text("math", "float32")]
        core = openvino.Core()
        core.set_property(
            "CPU",
            {"INFERENCE_NUM_THREADS": THREADS, "PERFORMANCE_HINT": "LATENCY",
             "INFERENCE_PRECISION_HINT": precision},
        )  # fmt: skip
        model = core.read_model(onnx_model.model_of(task).SerializeToString())
        arrays = onnx_model.inputs_of(task)
        model.reshape({name: list(array.shape) for name, array in arrays.items()})
        compiled = core.compile_model(model, "CPU")
        if compiled.get_property("INFERENCE_PRECISION_HINT").to_string() != precision:
            raise server.Refused(f"no {precision} on this processor")
        self.request = compiled.create_infer_request()
        self.inputs = {
            name: openvino.Tensor(array, shared_memory=True) for name, array in arrays.items()
        }
        for name, value in self.inputs.items():
            self.request.set_tensor(name, value)
        self.names = [output.get_any_name() for output in compiled.outputs]
        self.kernel = kernels_of(compiled)

    def call(self) -> None:
        """One run."""
        self.request.infer()

    def results(self) -> dict[str, server.Array]:
        """Of the last call."""
        return onnx_model.results_of({n: self.request.get_tensor(n).data for n in self.names})


def kernels_of(compiled: openvino.CompiledModel) -> str:
    """What computes the recurrent layers."""
    found = set()
    for node in compiled.get_runtime_model().get_ops():
        info = node.get_rt_info()
        if "layerType" in info and info["layerType"].value in RECURRENT:
            found.add(f"{info['layerType'].value} {info['primitiveType'].value}")
    return ", ".join(sorted(found)) or "no recurrent operator"


def about() -> str:
    """The version."""
    return f"OpenVINO {openvino.__version__.split('-')[0]}"


if __name__ == "__main__":
    server.main(Job, about)
