"""Gradients of samples of a whole model, against one call a row."""

import numpy as np
import openrnn
import pytest
from openrnn import layers, nn

B, T, WORDS = 5, 4, 7
RANDOM = np.random.default_rng(0)
TOKENS = RANDOM.integers(0, WORDS, (B, T), dtype="int32")
LENGTHS = np.array([4, 0, 2, 3, 1], "int32")
LABELS = np.where(np.arange(T) < LENGTHS[:, None], (TOKENS + 1) % WORDS, -1).astype("int32")
NETWORKS = {
    "lstm": lambda: layers.LSTM(6, num_layers=2, direction="bidirectional", dtype="float64"),
    "peepholes": lambda: layers.LSTM(6, use_peepholes=True, num_proj=3, dtype="float64"),
    "layer_norm": lambda: layers.GRU(6, layer_norm="products", dtype="float64"),
    "gru": lambda: layers.GRU(6, reset_after=False, dtype="float64"),
    "rnn": lambda: layers.RNN(6, num_layers=2, dtype="float64"),
}


def make_model(name):
    openrnn.reset_default_graph()
    openrnn.set_random_seed(1)
    table = openrnn.get_variable("table", (WORDS, 3), "float64")
    rnn, dense = NETWORKS[name](), layers.Dense(WORDS, dtype="float64")

    def losses(rows):
        embedded = nn.embedding_lookup(table, TOKENS[rows])
        output, _ = rnn(embedded, time_major=False, sequence_lengths=LENGTHS[rows])
        return nn.sparse_softmax_cross_entropy_with_logits(LABELS[rows], dense(output))

    losses(slice(None))
    return losses, openrnn.trainable_variables()


@pytest.mark.parametrize("name", NETWORKS)
def test_against_calls_of_one_row(name):
    losses, variables = make_model(name)
    with openrnn.GradientTape() as tape:
        target = losses(slice(None))
    norms = tape.per_sample_norms(target, variables)
    samples = tape.per_sample_gradients(target, variables)
    assert norms.shape == (B,) and norms.numpy().dtype == np.float64
    total = np.zeros(B)
    for row in range(B):
        with openrnn.GradientTape() as own:
            alone = losses(slice(row, row + 1))
        for sample, expected in zip(samples, own.gradient(alone, variables), strict=True):
            np.testing.assert_allclose(sample.numpy()[row], expected.numpy(), rtol=1e-12, atol=1e-14)
            total[row] += np.sum(expected.numpy() ** 2)
    np.testing.assert_allclose(norms.numpy(), np.sqrt(total), rtol=1e-12)
    assert norms.numpy()[1] == 0.0, "a row without steps"


def test_clipping_by_weighted_losses():
    losses, variables = make_model("lstm")
    with openrnn.GradientTape() as tape:
        target = losses(slice(None))
    norms = tape.per_sample_norms(target, variables).numpy()
    clip = float(np.median(norms))
    weights = np.minimum(1.0, clip / np.maximum(norms, 1e-12))
    assert (weights < 1).any() and (weights == 1).any()
    spread = np.broadcast_to(weights[:, None], target.shape)
    clipped = tape.gradient(target, variables, output_gradients=spread)
    for found, sample in zip(clipped, tape.per_sample_gradients(target, variables), strict=True):
        expected = np.tensordot(weights, sample.numpy(), 1)
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-11, atol=1e-13)


def test_structures_and_what_has_no_gradient():
    x = openrnn.constant(RANDOM.normal(size=(3, 2)))
    other = openrnn.constant([1.0, 2.0])
    with openrnn.GradientTape() as tape:
        tape.watch([x, other])
        y = openrnn.square(x)
    found = tape.per_sample_gradients(y, [x, (other, openrnn.constant(1.0))])
    assert found[1] == (None, None)
    np.testing.assert_array_equal(found[0].numpy(), np.eye(3)[:, :, None] * 2.0 * x.numpy())
    np.testing.assert_allclose(
        tape.per_sample_norms(y, x).numpy(), 2.0 * np.linalg.norm(x.numpy(), axis=1))
    np.testing.assert_allclose(
        tape.per_sample_norms(y, x, axis=-1).numpy(), 2.0 * np.linalg.norm(x.numpy(), axis=0))


def test_what_is_refused():
    w = openrnn.constant(RANDOM.normal(size=(3, 2)))
    with openrnn.GradientTape() as tape:
        tape.watch(w)
        mean = openrnn.reduce_mean(openrnn.square(w))
        one = openrnn.reshape(mean, (1,))
        across = openrnn.reshape(nn.softmax(w), (2, 3))
    with pytest.raises(openrnn.ArgumentError, match="target has shape \\[\\] and axis is 0"):
        tape.per_sample_norms(mean, w)
    with pytest.raises(openrnn.UnsupportedError, match="'reduce_mean' does not say which row"):
        tape.per_sample_norms(one, w)
    with pytest.raises(openrnn.UnsupportedError, match="rows of the batch meet in 'softmax'"):
        tape.per_sample_gradients(across, [w])
    with pytest.raises(openrnn.StateError):
        tape.per_sample_norms(openrnn.constant([1.0]), [w])
