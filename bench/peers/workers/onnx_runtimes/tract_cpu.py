"""tract: the networks as ONNX models, forward, on one thread, which is all that it has."""

from peers.workers import server

THREADS = server.pin()

import tempfile  # noqa: E402
from pathlib import Path  # noqa: E402

import tract  # noqa: E402

from peers.workers.onnx_runtimes import onnx_model  # noqa: E402


class Job:
    """A model that is ready to run."""

    def __init__(self, task: server.Task) -> None:
        onnx_model.refuse(task)
        if task.lengths_kind == "given":
            raise server.Refused("no lengths in its recurrent operators")
        if THREADS > 1:
            raise server.Refused("one thread alone")
        with tempfile.TemporaryDirectory() as folder:
            path, network = Path(folder) / "model.onnx", onnx_model.model_of(task)
            path.write_bytes(network.SerializeToString())
            model = tract.onnx().load(path).into_model()
        self.names = [output.name for output in network.graph.output]  # its own are the nodes'
        self.model = model.into_runnable()
        arrays = onnx_model.inputs_of(task).values()
        self.inputs = [tract.Tensor.from_numpy(array) for array in arrays]
        self.kernel = "its own"

    def call(self) -> None:
        """One run."""
        self.outputs = self.model.run(self.inputs)

    def results(self) -> dict[str, server.Array]:
        """Of the last call."""
        arrays = [output.to_numpy() for output in self.outputs]
        return onnx_model.results_of(dict(zip(self.names, arrays, strict=True)))


def about() -> str:
    """The version."""
    return f"tract {tract.version()}"


if __name__ == "__main__":
    server.main(Job, about)
