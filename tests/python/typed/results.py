"""What calls return, as type checkers see it: none of it is Any. mypy and pyright read this file."""

from typing import Any

import numpy as np
import openrnn
from numpy.typing import NDArray
from openrnn import GradientTape, Model, Tensor, Variable, cudnn_rnn, layers, nn, train
from openrnn.cudnn_rnn import ops
from openrnn.cudnn_rnn._layers import EveryLayer
from openrnn.nn.rnn_cell import LSTMStateTuple
from typing_extensions import assert_type

X: NDArray[np.float32] = np.ones((4, 2, 3), np.float32)
States = tuple[Tensor, ...]


def recurrent_layers(some: bool) -> None:
    for layer in (cudnn_rnn.CudnnLSTM(1, 5), cudnn_rnn.CudnnGRU(1, 5, direction="bidirectional")):
        assert_type(layer(X), tuple[Tensor, States])
        assert_type(layer(X, training=False, return_all=False), tuple[Tensor, States])
        assert_type(layer(X, return_all=True), tuple[Tensor, States, EveryLayer])
        assert_type(layer.call(X, None, True, save="inputs"), tuple[Tensor, States])
        assert_type(
            layer(X, return_all=some), tuple[Tensor, States] | tuple[Tensor, States, EveryLayer]
        )
    output, (h, c) = layers.LSTM(5, input_mode="skip_input", math="bf16x3")(X)
    assert_type(output, Tensor)
    assert_type(h, Tensor)
    assert_type(c, Tensor)
    assert_type(layers.GRU(5, weights_dtype="int8")(X)[0], Tensor)
    assert_type(layers.RNN(5, activation="relu")(X)[1], States)


def simple_layers() -> None:
    assert_type(layers.Dense(2)(X), Tensor)
    assert_type(layers.Dropout(0.5)(X, training=True), Tensor)
    assert_type(layers.Embedding(3, 2)([1, 2]), Tensor)
    assert_type(layers.Dense(2).trainable_weights, list[Variable])


def op_level() -> None:
    h = np.zeros((1, 2, 4), np.float32)
    assert_type(ops.CudnnLSTM(1, 4, 3)(X, h, h, h.ravel()), tuple[Tensor, Tensor, Tensor])
    assert_type(ops.CudnnGRU(1, 4, 3)(X, h, h.ravel()), tuple[Tensor, Tensor])


def cells() -> None:
    x, zeros = X[0], np.zeros((2, 4), np.float32)
    lstm = cudnn_rnn.CudnnCompatibleLSTMCell(4)
    output, state = lstm(x, (zeros, zeros))
    assert_type(output, Tensor)
    assert_type(state, LSTMStateTuple[Tensor])
    assert_type(state.c, Tensor)
    for either in (nn.rnn_cell.BasicLSTMCell(4), nn.rnn_cell.LSTMCell(4)):
        assert_type(either(x, (zeros, zeros)), tuple[Tensor, LSTMStateTuple[Tensor]])
        assert_type(either(x, state), tuple[Tensor, LSTMStateTuple[Tensor]])
        assert_type(either(x, output), tuple[Tensor, Tensor])
        assert_type(either(x, zeros), tuple[Tensor, Tensor])
    for cell in (cudnn_rnn.CudnnCompatibleGRUCell(4), nn.rnn_cell.GRUCell(4)):
        assert_type(cell(x, zeros), tuple[Tensor, Tensor])
    assert_type(nn.rnn_cell.BasicRNNCell(4)(x, zeros), tuple[Tensor, Tensor])
    assert_type(nn.dynamic_rnn(lstm, X, dtype="float32")[0], Tensor)


def tapes(w: Variable, x: Tensor) -> None:
    with GradientTape() as tape:
        tape.watch(x)
        loss = openrnn.reduce_sum(x * w)
    assert_type(loss, Tensor)
    assert_type(tape.gradient(loss, x), Tensor | None)
    assert_type(tape.gradient(loss, w), Tensor | None)
    assert_type(tape.gradient(loss, [w, w]), list[Tensor | None])
    assert_type(tape.gradient(loss, (x, w)), tuple[Tensor | None, ...])
    assert_type(tape.gradient(loss, layers.Dense(1).weights), list[Tensor | None])
    assert_type(tape.per_sample_gradients(loss, w), Tensor | None)
    assert_type(tape.per_sample_norms(loss, w), Tensor)


def models() -> None:
    x = openrnn.Input(batch_shape=(None, None, 3))
    output, states = cudnn_rnn.CudnnGRU(1, 4)(x)
    one = Model(x, layers.Dense(1)(output))
    assert_type(one, Model[Tensor])
    assert_type(one(X), Tensor)
    assert_type(one.call(X, training=False), Tensor)
    assert_type(one.predict(X, batch_size=2), NDArray[Any])
    several = Model(x, (output, states))
    assert_type(several(X), tuple[Tensor, States])
    assert_type(Model(x, [output])(X), list[Tensor])


def training(model: Model[Tensor], y: NDArray[np.float32]) -> None:
    history = model.fit((X, y), "mean_squared_error", train.AdamW(0.01), 3, early_stopping=2)
    assert_type(history, train.History)
    assert_type(history["loss"], list[float])
    assert_type(history.stopped == "patience", bool)
    assert_type(model.evaluate((X, y), openrnn.losses.mean_squared_error), float)
    assert_type(model.summary(), str)
    assert_type(train.WarmUp(train.CosineDecay(0.1, 100), 10)(3), float)
