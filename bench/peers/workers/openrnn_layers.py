"""OpenRNN from Python: the layers of openrnn.cudnn_rnn, as a user calls them."""

import importlib
import time

from peers.cells import CELLS
from peers.workers import server

THREADS = server.pin()

import numpy as np  # noqa: E402
import openrnn  # noqa: E402
from openrnn import cudnn_rnn  # noqa: E402

openrnn.set_num_threads(THREADS)
CLASSES = {"lstm": "CudnnLSTM", "gru": "CudnnGRU", "rnn_tanh": "CudnnRNNTanh"}


def options_of(task: server.Task) -> dict[str, object]:
    """The keyword arguments that choose another arithmetic or another cell."""
    chosen = {"math": task.text("math"), "weights_dtype": task.text("weights")}
    found: dict[str, object] = {k: v for k, v in chosen.items() if v not in ("", "float32")}
    if option := task.text("option").replace("_", " "):
        found |= CELLS[option].options
    return found


class Inference:
    """A layer, called without a tape."""

    def __init__(self, task: server.Task) -> None:
        direction = "bidirectional" if task.number("directions", 1) == 2 else "unidirectional"
        self.layer = getattr(cudnn_rnn, CLASSES[task.text("cell")])(
            task.number("layers"), task.number("units"), direction=direction, **options_of(task)
        )
        self.x = openrnn.Tensor(task.array("x"))
        self.layer.build(self.x.shape)
        self.layer.set_weights([np.asarray(task.array("params"))])
        self.more: dict[str, object] = {}
        if task.lengths_kind == "given":
            self.more["sequence_lengths"] = task.array("lengths").astype(np.int32)
        if states := task.states():
            self.more["initial_state"] = tuple(map(openrnn.Tensor, states))
        self.kernel = f"engine {engine_text()}"

    def call(self) -> None:
        """Forward."""
        self.y, self.state = self.layer(self.x, training=False, **self.more)

    def results(self) -> dict[str, server.Array]:
        """Of the last call."""
        found = {"y": np.array(self.y)}
        return found | {n: np.array(s) for n, s in zip(("hn", "cn"), self.state, strict=False)}


class Company:
    """Each call follows one of another library in this process, which is not timed, but whose
    threads may go on spinning for a while."""

    def __init__(self, task: server.Task) -> None:
        beside = importlib.import_module(f"peers.workers.{task.text('beside')}")
        self.other = beside.Job(task)
        self.ours = Inference(task)
        threads = task.number("own_threads", THREADS)
        openrnn.set_num_threads(threads)
        self.kernel = f"{self.ours.kernel}, at most {threads} threads"

    def times(self, count: int, warm: int) -> list[float]:
        """Nanoseconds of ours."""
        found: list[float] = []
        for _ in range(count + warm):
            self.other.call()
            begin = time.perf_counter_ns()
            self.ours.call()
            found.append(time.perf_counter_ns() - begin)
        return found[warm:]

    def call(self) -> None:
        """Ours alone."""
        self.ours.call()

    def results(self) -> dict[str, server.Array]:
        """Of our last call."""
        return self.ours.results()


class Training:
    """An op-level model under a tape. Parameters that change from step to step are packed in every
    step; here two equal buffers are taken in turn, so that none is packed already."""

    def __init__(self, task: server.Task) -> None:
        direction = "bidirectional" if task.number("directions", 1) == 2 else "unidirectional"
        self.model = getattr(cudnn_rnn.ops, CLASSES[task.text("cell")])(
            task.number("layers"), task.number("units"), task.number("input"),
            direction=direction, **options_of(task),
        )  # fmt: skip
        params = task.array("params")
        # With one of them, as where memory is measured, what is packed stays.
        self.params = [openrnn.Tensor(params) for _ in range(2 - task.number("single"))]
        self.x, self.r = openrnn.Tensor(task.array("x")), openrnn.Tensor(task.array("r"))
        rows = task.number("layers") * task.number("directions", 1)
        state_shape = (rows, task.number("batch"), task.number("units"))
        zeros = openrnn.Tensor(np.zeros(state_shape, np.float32))
        self.states = [zeros] * (2 if task.text("cell") == "lstm" else 1)
        self.more = {}
        if task.lengths_kind == "given":
            self.more["sequence_lengths"] = task.array("lengths").astype(np.int32)
        self.gradients: list[openrnn.Tensor | None] = []
        self.kernel = f"engine {engine_text()}"

    def call(self) -> None:
        """Forward and backward."""
        self.gradients = []  # as PyTorch's zero_grad: no second set of them
        self.params.reverse()
        params = self.params[0]
        with openrnn.GradientTape() as tape:
            tape.watch(params)
            tape.watch(self.x)
            outputs = self.model(self.x, *self.states, params, is_training=True, **self.more)
        self.outputs = outputs
        sources = [self.x, params]
        self.gradients = tape.gradient([outputs[0]], sources, output_gradients=[self.r])

    def results(self) -> dict[str, server.Array]:
        """Of the last call."""
        names = [*("y", "hn", "cn")[: len(self.outputs)], "dx", "dparams"]
        values = [*self.outputs, *self.gradients]
        return {name: np.array(value) for name, value in zip(names, values, strict=True)}


def engine_text() -> str:
    """The engine that computes: arrays of the host go to the first that is not a GPU's."""
    engines = (engine for engine in openrnn.list_engines() if engine.available)
    chosen = next(engine for engine in engines if engine.name != "cudnn")
    return f"{chosen.name}: {chosen.detail}"


def make(task: server.Task) -> server.Job:
    """The job of a task."""
    if task.text("pass") == "model":
        from peers.workers.models.openrnn import Model

        return Model(task)
    if task.text("beside"):
        return Company(task)
    if task.lengths_kind == "packed":
        raise server.Refused("lengths are given, not packed")
    return Training(task) if task.training else Inference(task)


def about() -> str:
    """The version."""
    return f"OpenRNN {openrnn.__version__}"


if __name__ == "__main__":
    server.main(make, about)
