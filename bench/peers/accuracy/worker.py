"""What others are measured against: our engine in float64, which the tests compare with NumPy and
with the plain loops of the reference engine; and what float32 storage allows, in NumPy."""

import os
from typing import Any

import numpy as np
import openrnn
from numpy.typing import NDArray
from openrnn import cudnn_rnn

from peers.accuracy import storage
from peers.workers import layout, server

CLASSES = {"lstm": "CudnnLSTM", "gru": "CudnnGRU", "rnn_tanh": "CudnnRNNTanh"}
Results = dict[str, NDArray[Any]]
# Nothing is timed here: all processors.
openrnn.set_num_threads(len(os.sched_getaffinity(0)))


class Float64:
    """The problem's float32 numbers, computed in float64."""

    def __init__(self, task: server.Task) -> None:
        directions = task.number("directions", 1)
        self.model = getattr(cudnn_rnn.ops, CLASSES[task.text("cell")])(
            task.number("layers"), task.number("units"), task.number("input"), dtype="float64",
            direction="bidirectional" if directions == 2 else "unidirectional",
        )  # fmt: skip
        self.params, self.x, self.r = (
            openrnn.Tensor(task.array(name).astype(np.float64)) for name in ("params", "x", "r")
        )
        shape = (task.number("layers") * directions, task.number("batch"), task.number("units"))
        zeros = [np.zeros(shape)] * (2 if task.text("cell") == "lstm" else 1)
        states = task.states() or zeros
        self.states = [openrnn.Tensor(state.astype(np.float64)) for state in states]
        self.kernel = "float64"

    def call(self) -> None:
        """Forward and backward."""
        with openrnn.GradientTape() as tape:
            tape.watch(self.params)
            tape.watch(self.x)
            self.outputs = self.model(self.x, *self.states, self.params, is_training=True)
        sources = [self.x, self.params]
        self.gradients = tape.gradient([self.outputs[0]], sources, output_gradients=[self.r])

    def results(self) -> Results:
        """Of the last call."""
        names = [*("y", "hn", "cn")[: len(self.outputs)], "dx", "dparams"]
        values = [*self.outputs, *self.gradients]
        return {name: np.array(value) for name, value in zip(names, values, strict=True)}


class Storage:
    """Sums in float64, all else in float32."""

    def __init__(self, task: server.Task) -> None:
        self.task, self.kernel = task, "NumPy: sums in float64, rounded once"

    def call(self) -> None:
        """Forward and backward."""
        x, r = self.task.array("x"), self.task.array("r")
        parts = layout.parts_of(self.task)
        cell, states = self.task.text("cell"), self.task.states()
        self.found, self.gradients = storage.run(cell, parts, x, r, states=states)

    def results(self) -> Results:
        """Of the last call."""
        return {**self.found, "dparams": layout.buffer_of(self.gradients)}


def make(task: server.Task) -> server.Job:
    """The job of a task."""
    return Storage(task) if task.text("what") == "storage" else Float64(task)


def about() -> str:
    """Versions of what computes."""
    return f"OpenRNN {openrnn.__version__} in float64, NumPy {np.__version__}"


if __name__ == "__main__":
    server.main(make, about)
