"""The same language model in Keras layers; a training step is one tf.function."""

import keras
import numpy as np
import tensorflow as tf

from peers.workers.layout import parts_of
from peers.workers.server import Array, Task

LEARNING_RATE, CLIP = 0.002, 1.0


class Model:
    """The state goes on from call to call, its history does not. Arrays are batch-major."""

    def __init__(self, task: Task) -> None:
        from peers.workers.keras_weights import weights_of

        embedding, dense = np.asarray(task.array("embedding")), np.asarray(task.array("dense"))
        batch, time, units = (task.number(key) for key in ("batch", "time", "units"))
        self.embedding = keras.layers.Embedding(*embedding.shape)
        self.rnn = keras.layers.LSTM(units, return_sequences=True, return_state=True)
        self.dense = keras.layers.Dense(dense.shape[1])
        self.embedding.build((batch, time))
        self.rnn.build((batch, time, embedding.shape[1]))
        self.dense.build((batch, time, units))
        self.embedding.set_weights([embedding])
        self.rnn.set_weights(weights_of("lstm", parts_of(task)[0]))
        self.dense.set_weights([dense, np.asarray(task.array("bias"))])
        layers = (self.embedding, self.rnn, self.dense)
        self.variables = [v for layer in layers for v in layer.trainable_variables]
        self.optimizer = keras.optimizers.Adam(LEARNING_RATE, epsilon=1e-8)
        self.optimizer.build(self.variables)
        ids = np.asarray(task.array("ids")).swapaxes(1, 2)
        self.windows = [(tf.constant(w[:, :-1]), tf.constant(w[:, 1:])) for w in ids]
        self.state = [tf.zeros((batch, units)), tf.zeros((batch, units))]
        jit = task.text("jit", "0") == "1"
        self.step = tf.function(self._step, jit_compile=jit)
        self.losses: list[float] = []
        self.kernel = "a step under XLA" if jit else "a step in tf.function"

    def _step(
        self, ids: tf.Tensor, targets: tf.Tensor, h: tf.Tensor, c: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        with tf.GradientTape() as tape:
            y, h, c = self.rnn(self.embedding(ids), initial_state=[h, c])
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(targets, self.dense(y))
            loss = tf.reduce_mean(losses)
        gradients = tape.gradient(loss, [variable.value for variable in self.variables])
        gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]
        gradients, _ = tf.clip_by_global_norm(gradients, CLIP)
        self.optimizer.apply(gradients, self.variables)
        return loss, h, c

    def call(self) -> None:
        """One step."""
        ids, targets = self.windows[len(self.losses) % len(self.windows)]
        loss, *self.state = self.step(ids, targets, *self.state)
        self.losses.append(float(loss))

    def results(self) -> dict[str, Array]:
        """The losses of the first four steps."""
        while len(self.losses) < 4:
            self.call()
        return {"losses": np.array(self.losses[:4], np.float32)}
