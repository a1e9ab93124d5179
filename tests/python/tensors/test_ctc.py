"""The CTC loss against TensorFlow's, against all alignments one by one, and by differences."""

import itertools

import numpy as np
import openrnn
import pytest

rng = np.random.default_rng(3)


def collapsed(path, blank):
    return [c for c, before in zip(path, (None, *path), strict=False) if c != before and c != blank]


def one_by_one(logits, labels, blank):
    """Of one row [T, C], every path."""
    p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    paths = itertools.product(range(logits.shape[1]), repeat=logits.shape[0])
    total = sum(
        np.prod([p[t, c] for t, c in enumerate(path)])
        for path in paths
        if collapsed(path, blank) == list(labels)
    )
    return -np.log(total) if total else np.inf


@pytest.mark.parametrize("blank", [0, 2, -1])
@pytest.mark.parametrize("labels", [[], [1], [1, 1], [1, 0, 1]])
def test_of_every_alignment(labels, blank):
    classes, place = 4, blank % 4
    labels = [(place + 1 + label) % classes for label in labels]
    logits = rng.normal(size=(5, 1, classes))
    given = np.array([labels], "int32").reshape(1, -1)
    found = openrnn.nn.ctc_loss(given, logits, blank_index=blank)
    np.testing.assert_allclose(found, [one_by_one(logits[:, 0], labels, place)], rtol=1e-12)


def test_lengths_layouts_and_impossible_rows():
    logits = 3 * rng.normal(size=(7, 4, 5))
    labels = np.array([[1, 2, 2], [3, 0, 9], [4, 4, 4], [1, 2, 3]], "int32")
    label_length, logit_length = [3, 1, 3, 2], [7, 5, 4, 2]
    found = openrnn.nn.ctc_loss(labels, logits, label_length, logit_length).numpy()
    for b in range(4):
        row = logits[: logit_length[b], b : b + 1]
        alone = openrnn.nn.ctc_loss(labels[b : b + 1, : label_length[b]], row)
        np.testing.assert_array_equal(found[b : b + 1], alone)
    assert np.isinf(found[2])
    other = np.ascontiguousarray(logits.swapaxes(0, 1))
    np.testing.assert_array_equal(
        found, openrnn.nn.ctc_loss(labels, other, label_length, logit_length, False)
    )
    narrow = openrnn.nn.ctc_loss(labels, logits.astype("f4"), label_length, logit_length)
    assert narrow.dtype == np.float32
    np.testing.assert_allclose(narrow, found, rtol=1e-6)
    mean = openrnn.losses.ctc_loss(labels[[0, 3]], logits[:, [0, 3]], [3, 2], [7, 2])
    assert mean.shape == ()
    np.testing.assert_allclose(mean, found[[0, 3]].mean(), rtol=1e-14)
    np.testing.assert_allclose(
        openrnn.losses.ctc_loss(labels[:1] - 1, logits[:, :1], None, None, True, -1),
        openrnn.nn.ctc_loss(labels[:1] - 1, logits[:, :1], blank_index=4)[0],
    )


@pytest.mark.parametrize("count", [1, 3])
def test_lengths_of_other_rows_are_refused(count):
    logits, labels = rng.normal(size=(5, 2, 4)), np.array([[1, 2], [3, 1]], "int32")
    with pytest.raises(ValueError, match=f"{count} logit_lengths, expected 2, one a row"):
        openrnn.nn.ctc_loss(labels, logits, None, [5] * count)
    with pytest.raises(ValueError, match=f"{count} label_lengths, expected 2, one a row"):
        openrnn.nn.ctc_loss(labels, logits, [1] * count)


def test_gradient():
    logits = openrnn.Tensor(2 * rng.normal(size=(6, 3, 4)))
    labels, lengths = np.array([[1, 1, 3], [2, -1, -1], [1, 2, 3]], "int32"), [6, 4, 2]
    with openrnn.GradientTape() as tape:
        tape.watch(logits)
        losses = openrnn.nn.ctc_loss(labels, logits, None, lengths)
        loss = openrnn.reduce_sum(losses[:2] * np.array([0.5, 2.0]))
    found = tape.gradient(loss, logits).numpy()
    assert not found[4:, 1].any() and not found[:, 2].any()
    for at in itertools.product(range(6), range(2), range(4)):
        moved = []
        for delta in (1e-5, -1e-5):
            shifted = logits.numpy().copy()
            shifted[at] += delta
            rows = openrnn.nn.ctc_loss(labels, shifted, None, lengths).numpy()
            moved.append(0.5 * rows[0] + 2 * rows[1])
        assert abs(found[at] - (moved[0] - moved[1]) / 2e-5) < 1e-7


def test_in_a_model():
    x = openrnn.Input(batch_shape=(None, 2, 4))
    losses = openrnn.nn.ctc_loss(np.array([[1, 2], [3, -1]], "int32"), x)
    assert losses.shape == (2,)
    value = rng.normal(size=(6, 2, 4)).astype("f4")
    np.testing.assert_array_equal(
        openrnn.Model(x, losses)(value), openrnn.nn.ctc_loss([[1, 2], [3, -1]], value)
    )


def test_against_tensorflow():
    tf = pytest.importorskip("tensorflow")
    logits = rng.normal(size=(17, 3, 7)).astype("f4")
    labels = rng.integers(1, 7, (3, 5)).astype("int32")
    label_length, logit_length = np.array([5, 3, 0]), np.array([17, 13, 7])
    given = tf.constant(logits)
    with tf.GradientTape() as tape:
        tape.watch(given)
        wanted = tf.nn.ctc_loss(labels, given, label_length, logit_length, blank_index=0)
    ours = openrnn.Tensor(logits)
    with openrnn.GradientTape() as own:
        own.watch(ours)
        found = openrnn.nn.ctc_loss(labels, ours, label_length, logit_length)
        total = openrnn.reduce_sum(found)
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
    np.testing.assert_allclose(own.gradient(total, ours), tape.gradient(wanted, given), atol=2e-5)
