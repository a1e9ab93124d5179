"""The demo's language model in OpenRNN: embedding, LSTM, dense layer, one training step a call."""

import numpy as np
import openrnn
from openrnn import cudnn_rnn

from peers.workers.server import Array, Task

LEARNING_RATE, CLIP = 0.002, 1.0


class Model:
    """The state goes on from call to call, its history does not."""

    def __init__(self, task: Task) -> None:
        arrays = {name: task.array(name) for name in ("embedding", "params", "dense", "bias")}
        symbols, width = arrays["embedding"].shape
        units = task.number("units")
        self.embedding = openrnn.layers.Embedding(symbols, width)
        self.rnn = cudnn_rnn.CudnnLSTM(task.number("layers"), units)
        self.dense = openrnn.layers.Dense(symbols)
        windows = np.asarray(task.array("ids"))
        self.windows = [(openrnn.Tensor(w[:-1]), openrnn.Tensor(w[1:])) for w in windows]
        self.state: tuple[openrnn.Tensor, ...] | None = None
        self.dense(self.rnn(self.embedding(self.windows[0][0]), training=False)[0])  # builds
        self.embedding.set_weights([arrays["embedding"]])
        self.rnn.set_weights([arrays["params"]])
        self.dense.set_weights([arrays["dense"], arrays["bias"]])
        layers = (self.embedding, self.rnn, self.dense)
        self.variables = [v for layer in layers for v in layer.trainable_variables]
        self.optimizer = openrnn.train.AdamOptimizer(LEARNING_RATE)
        self.losses: list[float] = []
        self.kernel = "layers, GradientTape, AdamOptimizer"

    def call(self) -> None:
        """One step."""
        ids, targets = self.windows[len(self.losses) % len(self.windows)]
        with openrnn.GradientTape() as tape:
            y, state = self.rnn(self.embedding(ids), self.state)
            loss = openrnn.losses.sparse_softmax_cross_entropy(targets, self.dense(y))
        gradients, _ = openrnn.clip_by_global_norm(tape.gradient(loss, self.variables), CLIP)
        self.optimizer.apply_gradients(zip(gradients, self.variables, strict=True))
        self.state = tuple(openrnn.stop_gradient(part) for part in state)
        self.losses.append(float(loss))

    def results(self) -> dict[str, Array]:
        """The losses of the first four steps."""
        while len(self.losses) < 4:
            self.call()
        return {"losses": np.array(self.losses[:4], np.float32)}
