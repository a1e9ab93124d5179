"""Gradients of gradients through what a model is made of: symbolic models, Embedding, Dense, dropout,
loops over cells, lengths, states."""

import numpy as np
import openrnn
import pytest
from openrnn import cudnn_rnn, layers, nn


def difference(variables, loss, directions, delta=1e-5):
    """The change of the gradients of loss() along a direction of the variables."""

    def gradients(by):
        starts = [v.numpy().copy() for v in variables]
        for v, start, direction in zip(variables, starts, directions, strict=True):
            v.assign(start + by * direction)
        with openrnn.GradientTape() as tape:
            value = loss()
        found = tape.gradient(value, variables)
        for v, start in zip(variables, starts, strict=True):
            v.assign(start)
        return [g.numpy() for g in found]

    return [(a - b) / (2 * delta) for a, b in zip(gradients(delta), gradients(-delta), strict=True)]


def check(variables, loss, rtol=1e-5):
    random = np.random.default_rng(7)
    directions = [random.uniform(-1, 1, v.shape) for v in variables]
    with openrnn.GradientTape() as outer:
        with openrnn.GradientTape() as inner:
            value = loss()
        slopes = inner.gradient(value, variables)
    found = outer.gradient(slopes, variables, directions)
    for mine, theirs in zip(found, difference(variables, loss, directions), strict=True):
        np.testing.assert_allclose(mine.numpy(), theirs, rtol=rtol, atol=1e-8)


def test_a_language_model():
    """Embedding, two recurrent layers with dropout, Dense, cross entropy; called through a Model."""
    openrnn.reset_default_graph()
    openrnn.set_random_seed(3)
    symbols = openrnn.Input(batch_shape=(4, 2), dtype="int32")
    h = layers.Embedding(5, 3, dtype="float64")(symbols)
    h, _ = layers.LSTM(3, num_layers=2, dtype="float64")(h)
    logits = layers.Dense(5, dtype="float64", activation="tanh")(h)
    model = openrnn.Model(symbols, logits)
    given = np.array([[0, 1], [2, 3], [4, 0], [1, 1]], "int32")
    labels = np.array([[1, 2], [3, 4], [0, -1], [1, 0]], "int32")

    def loss():
        return openrnn.losses.sparse_softmax_cross_entropy(labels, model(given))

    check(model.trainable_weights, loss)


@pytest.mark.parametrize("bidirectional", [False, True])
def test_lengths_states_and_regularizers(bidirectional):
    openrnn.reset_default_graph()
    direction = "bidirectional" if bidirectional else "unidirectional"
    layer = layers.GRU(3, num_layers=2, direction=direction, dtype="float64", reset_after=False)
    x = np.random.default_rng(1).uniform(-1, 1, (4, 3, 2))
    states = np.random.default_rng(2).uniform(-1, 1, (4 if bidirectional else 2, 3, 3))
    layer.build(x.shape)

    def loss():
        y, (h,) = layer(x, initial_state=(states,), sequence_lengths=[4, 0, 2], training=True)
        penalty = openrnn.regularizers.l2(0.1)(layer.kernel)
        return openrnn.reduce_mean(y * y) + openrnn.reduce_sum(h * h) + penalty

    check([layer.kernel], loss)


def test_a_loop_over_cells():
    openrnn.reset_default_graph()
    x = np.random.default_rng(1).uniform(-1, 1, (2, 4, 3))
    cell = nn.rnn_cell.MultiRNNCell([nn.rnn_cell.GRUCell(2, dtype="float64") for _ in range(2)])

    def loss():
        with openrnn.variable_scope("loop", reuse=bool(openrnn.trainable_variables())):
            y, _ = nn.dynamic_rnn(cell, x, sequence_length=[4, 2], dtype="float64")
        return openrnn.reduce_sum(y * y)

    loss()
    check(openrnn.trainable_variables(), loss)


def test_training_with_a_penalty_of_gradients():
    openrnn.reset_default_graph()
    openrnn.set_random_seed(1)
    layer = cudnn_rnn.CudnnGRU(1, 4)
    x = openrnn.constant(np.random.default_rng(0).normal(size=(5, 2, 3)).astype("float32"))
    optimizer = openrnn.train.AdamOptimizer(0.02)

    def penalty():
        with openrnn.GradientTape() as tape:
            tape.watch(x)
            score = openrnn.reduce_sum(layer(x)[0])
        return openrnn.square(openrnn.reduce_sum(openrnn.square(tape.gradient(score, x))) - 1.0)

    losses = [float(optimizer.minimize(penalty)) for _ in range(30)]
    assert losses[-1] < 0.1 * losses[0]
