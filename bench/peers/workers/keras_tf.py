"""Keras 3 on TensorFlow: its recurrent layers inside tf.function, plain, under XLA, or converted by
openrnn.keras."""

import os

from peers.workers import server

THREADS = server.pin()
os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

from peers.workers import layout  # noqa: E402

tf.config.threading.set_intra_op_parallelism_threads(THREADS)
tf.config.threading.set_inter_op_parallelism_threads(1)
LAYERS = {"lstm": "LSTM", "gru": "GRU", "rnn_tanh": "SimpleRNN"}
# The place of OpenRNN's gate at each place of Keras's (lstm i f c o, gru z r h), and back.
ORDERS = {"lstm": (0, 1, 2, 3), "gru": (1, 0, 2), "rnn_tanh": (0,)}


def weights_of(cell: str, part: layout.Part) -> list[server.Array]:
    """Kernel, recurrent kernel and bias (gru has both biases, the others their sum)."""
    ordered = part.reordered(ORDERS[cell])
    bias = np.stack([ordered.bw, ordered.br]) if cell == "gru" else ordered.bw + ordered.br
    return [np.ascontiguousarray(ordered.w.T), np.ascontiguousarray(ordered.r.T), bias]


def part_of(cell: str, like: layout.Part, arrays: list[server.Array]) -> layout.Part:
    """The inverse for gradients: that of a sum is that of both."""
    kernel, recurrent, bias = arrays
    bw, br = (bias[0], bias[1]) if cell == "gru" else (bias, bias)
    part = layout.Part(like.layer, like.direction, kernel.T, recurrent.T, bw, br)
    return part.reordered(ORDERS[cell])  # an exchange of two is its own inverse


def convert(layers: list[keras.Layer]) -> None:
    """Makes them those of openrnn.keras, which only these sides need."""
    import openrnn.keras

    for layer in layers:
        openrnn.keras.convert(layer)


class Job:
    """A stack of layers as one function; arrays are batch-major, as Keras wants them."""

    def __init__(self, task: server.Task) -> None:
        if {task.text("math", "float32"), task.text("weights", "float32")} != {"float32"}:
            raise server.Refused("float32 alone")
        if task.lengths_kind == "packed":
            raise server.Refused("lengths are given as a mask")
        self.task, self.cell = task, task.text("cell")
        self.directions = task.number("directions", 1)
        self.parts = layout.parts_of(task)
        self.layers = [self._make(part) for part in self.parts]
        drop_in = task.number("drop_in") == 1
        if drop_in:
            convert(self.layers)
        x = np.asarray(task.array("x"))
        self.x = tf.constant(np.ascontiguousarray(x.swapaxes(0, 1)))
        self.mask = None
        if task.lengths_kind == "given":
            self.mask = tf.sequence_mask(task.array("lengths"), x.shape[0])
        jit = task.text("jit", "0") == "1"
        if task.training:
            self.r = tf.constant(np.ascontiguousarray(task.array("r").swapaxes(0, 1)))
        self.function = tf.function(
            self._training if task.training else self._forward, jit_compile=jit
        )
        self.kernel = "XLA (jit_compile)" if jit else "TensorFlow ops in tf.function"
        if drop_in:
            self.kernel = "openrnn.keras in tf.function"

    def _make(self, part: layout.Part) -> keras.Layer:
        layer = getattr(keras.layers, LAYERS[self.cell])(
            self.task.number("units"), return_sequences=True, return_state=True,
            go_backwards=part.direction == 1,
        )  # fmt: skip
        layer.build((self.task.number("batch"), self.task.number("time"), part.w.shape[1]))
        layer.set_weights(weights_of(self.cell, part))
        return layer

    def _forward(self, x: tf.Tensor) -> tuple[tf.Tensor, list[tf.Tensor]]:
        states = []
        for first in range(0, len(self.layers), self.directions):
            outputs = []
            for direction, layer in enumerate(self.layers[first : first + self.directions]):
                y, *state = layer(x, mask=self.mask, training=self.task.training)
                outputs.append(tf.reverse(y, [1]) if direction else y)
                states += state
            x = outputs[0] if self.directions == 1 else tf.concat(outputs, -1)
        return x, states

    def _training(self, x: tf.Tensor) -> tuple[tf.Tensor, list[tf.Tensor], list[tf.Tensor]]:
        sources = [x] + [v.value for layer in self.layers for v in layer.trainable_variables]
        with tf.GradientTape() as tape:
            tape.watch(x)
            y, states = self._forward(x)
        return y, states, tape.gradient(y, sources, output_gradients=self.r)

    def call(self) -> None:
        """The function; TensorFlow runs it to the end before it returns."""
        self.values = None  # frees the last ones first
        self.values = self.function(self.x)

    def results(self) -> dict[str, server.Array]:
        """Of the last call, time-major."""
        y, states = self.values[0], [state.numpy() for state in self.values[1]]
        found = {"y": y.numpy().swapaxes(0, 1)}
        kinds = 2 if self.cell == "lstm" else 1
        for place, name in enumerate(("hn", "cn")[:kinds]):
            found[name] = np.stack(states[place::kinds])
        if self.task.training:
            gradients = [np.asarray(tf.convert_to_tensor(g)) for g in self.values[2]]
            parts = [
                part_of(self.cell, part, gradients[1 + 3 * k : 4 + 3 * k])
                for k, part in enumerate(self.parts)
            ]
            found |= {"dx": gradients[0].swapaxes(0, 1), "dparams": layout.buffer_of(parts)}
        return found


def make(task: server.Task) -> server.Job:
    """The job of a task."""
    if task.text("pass") == "model":
        from peers.workers.models.keras import Model

        return Model(task)
    return Job(task)


def about() -> str:
    """Versions."""
    flags = {name: os.environ.get(name, "") for name in ("XLA_FLAGS", "TF_ENABLE_ONEDNN_OPTS")}
    given = "".join(f", {name}={value}" for name, value in flags.items() if value)
    return f"Keras {keras.__version__} on TensorFlow {tf.__version__}{given}"


if __name__ == "__main__":
    server.main(make, about)
