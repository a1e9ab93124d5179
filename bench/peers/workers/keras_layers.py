"""Keras 3: its recurrent layers under one of its backends, as keras_layers.py BACKEND; plain, under
TensorFlow compiled by XLA, too, or converted by openrnn.keras."""

import importlib
import os
import sys

from peers.workers import server

THREADS = server.pin()
BACKEND = sys.argv[1]
os.environ["KERAS_BACKEND"] = BACKEND
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

# How the backend is called: its threads, and Calls. What it sets is read when Keras is imported.
backend = importlib.import_module(f"peers.workers.keras_calls.{BACKEND}")

import keras  # noqa: E402
import numpy as np  # noqa: E402

from peers.workers import keras_weights, layout  # noqa: E402

backend.use_threads(THREADS)
LAYERS = {"lstm": "LSTM", "gru": "GRU", "rnn_tanh": "SimpleRNN"}


def convert(layers: list[keras.Layer]) -> None:
    """Makes them those of openrnn.keras, which only these sides need."""
    import openrnn.keras

    for layer in layers:
        openrnn.keras.convert(layer)


class Job:
    """A stack of layers; arrays are batch-major, as Keras wants them."""

    def __init__(self, task: server.Task) -> None:
        if {task.text("math", "float32"), task.text("weights", "float32")} != {"float32"}:
            raise server.Refused("float32 alone")
        if task.lengths_kind == "packed":
            raise server.Refused("lengths are given as a mask")
        self.task, self.cell = task, task.text("cell")
        self.directions = task.number("directions", 1)
        self.parts = layout.parts_of(task)
        firsts = range(0, len(self.parts), self.directions)
        self.layers = [self._make(self.parts[k : k + self.directions]) for k in firsts]
        if task.number("drop_in") == 1:
            convert(self.layers)
        x = np.asarray(task.array("x"))
        mask = None
        if task.lengths_kind == "given":
            mask = keras.ops.convert_to_tensor(np.arange(len(x)) < task.array("lengths")[:, None])
        self.states = [keras.ops.convert_to_tensor(state) for state in task.states()]
        r = np.asarray(task.array("r")).swapaxes(0, 1) if task.training else None
        self.calls = backend.Calls(
            lambda x: self._forward(x, mask),
            [v for layer in self.layers for v in layer.trainable_variables],
            (np.ascontiguousarray(x.swapaxes(0, 1)), None if r is None else r.copy()),
            jit=task.text("jit", "0") == "1",
        )
        self.kernel = self.calls.kernel
        if task.number("drop_in") == 1:
            self.kernel = f"openrnn.keras: {self.kernel}"

    def _make(self, parts: list[layout.Part]) -> keras.Layer:
        layer = getattr(keras.layers, LAYERS[self.cell])(
            self.task.number("units"), return_sequences=True, return_state=True
        )
        if self.directions == 2:
            layer = keras.layers.Bidirectional(layer)
        layer.build((self.task.number("batch"), self.task.number("time"), parts[0].w.shape[1]))
        layer.set_weights([w for part in parts for w in keras_weights.weights_of(self.cell, part)])
        return layer

    def _forward(self, x: object, mask: object) -> tuple[object, list[object]]:
        states = []
        for place, layer in enumerate(self.layers):
            mine = range(place * self.directions, (place + 1) * self.directions)
            start = [state[k] for k in mine for state in self.states]
            x, *state = layer(
                x, mask=mask, initial_state=start or None, training=self.task.training
            )
            states += state
        return x, states

    def call(self) -> None:
        """Forward, or forward and backward, to the end."""
        self.calls.call()

    def results(self) -> dict[str, server.Array]:
        """Of the last call, time-major."""
        y, states = self.calls.outputs()
        found = {"y": y.swapaxes(0, 1)}
        kinds = 2 if self.cell == "lstm" else 1
        for place, name in enumerate(("hn", "cn")[:kinds]):
            found[name] = np.stack(states[place::kinds])
        if self.task.training:
            dx, *gradients = self.calls.gradients()
            parts = [
                keras_weights.part_of(self.cell, part, gradients[3 * k : 3 + 3 * k])
                for k, part in enumerate(self.parts)
            ]
            found |= {"dx": dx.swapaxes(0, 1), "dparams": layout.buffer_of(parts)}
        return found


def make(task: server.Task) -> server.Job:
    """The job of a task."""
    if task.text("pass") == "model":
        if BACKEND != "tensorflow":
            raise server.Refused("the language model is measured on TensorFlow")
        from peers.workers.models.keras import Model

        return Model(task)
    return Job(task)


def about() -> str:
    """Versions."""
    names = ("XLA_FLAGS", "TF_ENABLE_ONEDNN_OPTS")
    given = "".join(f", {name}={os.environ[name]}" for name in names if os.environ.get(name))
    return f"Keras {keras.__version__} on {backend.version()}{given}"


if __name__ == "__main__":
    server.main(make, about)
