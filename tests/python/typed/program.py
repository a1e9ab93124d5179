"""A user's program with annotations: `mypy --strict` has nothing to say about it."""

import numpy as np
import openrnn
from numpy.typing import NDArray
from openrnn import Tensor, Variable
from openrnn.cudnn_rnn import CudnnGRU, CudnnLSTM, ops
from openrnn.layers import GRU, LSTM, RNN


def loss_of(layer: CudnnLSTM, x: NDArray[np.float32]) -> Tensor:
    output, (h, _) = layer(x, training=True)
    return openrnn.reduce_sum(openrnn.square(output)) + openrnn.reduce_mean(h)


def train(layer: CudnnLSTM, x: NDArray[np.float32], steps: int) -> list[float]:
    optimizer = openrnn.train.AdamOptimizer(0.01)
    return [float(optimizer.minimize(lambda: loss_of(layer, x))) for _ in range(steps)]


def gradients(layer: CudnnGRU, x: NDArray[np.float32]) -> list[Tensor | None]:
    with openrnn.GradientTape() as tape:
        output, _ = layer(x)
        loss = openrnn.reduce_sum(output)
    found: list[Tensor | None] = tape.gradient(loss, layer.trainable_weights)
    return found


def op_level(x: NDArray[np.float32]) -> tuple[Tensor, int]:
    model = ops.CudnnLSTM(num_layers=1, num_units=4, input_size=x.shape[2])
    params: Variable = Variable(np.zeros(model.params_size(), np.float32), name="params")
    zeros = np.zeros((1, x.shape[1], 4), np.float32)
    output, _, _ = model(x, zeros, zeros, params)
    return output, model.params_size()


def faster(layer: CudnnLSTM) -> tuple[CudnnLSTM, str | None, str]:
    fast = layer.with_arithmetic(weights_dtype="int8")
    return fast, fast.weights_dtype, openrnn.math_kind("bf16", dtype=np.float16)


def recorded() -> openrnn.Model:
    x = openrnn.Input(batch_shape=(None, None, 3))
    output, _ = CudnnGRU(1, 4)(x)
    return openrnn.Model(x, output)


def save(prefix: str) -> str:
    saver = openrnn.train.Saver({v.name: v for v in openrnn.global_variables()})
    written: str = saver.save(prefix, global_step=3)
    saver.restore(written)
    return written


def plain() -> list[CudnnLSTM | GRU | RNN]:
    lstm = LSTM(4, 2, use_peepholes=True, cell_clip=3.0, proj_clip=(-1.0, 2.0), num_proj=2)
    return [lstm, GRU(4, reset_after=False), RNN(4, activation="leaky_relu(0.1)")]
