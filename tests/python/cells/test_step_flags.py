"""Masks with holes and resets of a call, against Keras and against separate calls."""

import numpy as np
import openrnn
import pytest
from openrnn import cudnn_rnn

T, B, I, U = 9, 4, 3, 5
RNG = np.random.default_rng(5)
X = RNG.normal(size=(T, B, I))
MASK = RNG.random((T, B)) < 0.6
MASK[:3, 1] = False  # left padding
MASK[:, 2] = False  # nothing to do


def keras_like(layer: cudnn_rnn.CudnnLSTM) -> list[np.ndarray]:
    """Kernel, recurrent kernel and bias of an LSTM of one layer with one bias a gate."""
    weights, biases = np.split(np.asarray(layer.kernel), [4 * U * (I + U)])
    kernel = weights[: 4 * U * I].reshape(4 * U, I).T
    recurrent = weights[4 * U * I :].reshape(4 * U, U).T
    return [kernel, recurrent, biases]


@pytest.mark.parametrize("zero", [True, False])
def test_a_mask_is_keras_s(zero: bool) -> None:
    keras = pytest.importorskip("keras")
    ours = cudnn_rnn.CudnnLSTM(1, U, dtype="float64", single_bias=True, seed=3)
    y, (h, c) = ours(X, mask=MASK, zero_output_for_mask=zero)
    theirs = keras.layers.LSTM(
        U, return_sequences=True, return_state=True, zero_output_for_mask=zero, dtype="float64"
    )
    theirs.build((B, T, I))
    theirs.set_weights(keras_like(ours))
    wanted = theirs(X.transpose(1, 0, 2), mask=MASK.T)
    np.testing.assert_allclose(np.asarray(y).transpose(1, 0, 2), np.asarray(wanted[0]), atol=1e-12)
    np.testing.assert_allclose(np.asarray(h)[0], np.asarray(wanted[1]), atol=1e-12)
    np.testing.assert_allclose(np.asarray(c)[0], np.asarray(wanted[2]), atol=1e-12)


def test_a_reset_begins_anew() -> None:
    layer = cudnn_rnn.CudnnGRU(2, U, direction="bidirectional", dtype="float64", seed=3)
    h0 = RNG.normal(size=(4, B, U))
    reset = np.zeros((T, B), bool)
    reset[4] = True
    y, (h,) = layer(X, (h0,), training=False, reset=reset)
    first, _ = layer(X[:4], (h0,), training=False)
    second, (last,) = layer(X[4:], training=False)
    np.testing.assert_array_equal(np.asarray(y), np.concatenate([first, second]))
    np.testing.assert_array_equal(np.asarray(h), np.asarray(last))
    y, _ = layer(X, (h0,), training=False, reset=reset, reset_to_initial=True)
    second, _ = layer(X[4:], (h0,), training=False)
    np.testing.assert_array_equal(np.asarray(y)[4:], np.asarray(second))


def test_batch_major_and_integers() -> None:
    layer = cudnn_rnn.CudnnLSTM(1, U, seed=3)
    x = X.astype(np.float32)
    reset = RNG.random((T, B)) < 0.2
    y, (h, _) = layer(x, mask=MASK, reset=reset)
    transposed, (other, _) = layer(
        x.transpose(1, 0, 2).copy(), mask=MASK.T.astype(int), reset=reset.T, time_major=False
    )
    np.testing.assert_array_equal(np.asarray(transposed).transpose(1, 0, 2), np.asarray(y))
    np.testing.assert_array_equal(np.asarray(other).transpose(1, 0, 2), np.asarray(h))


def test_every_integer_but_0_counts() -> None:
    layer = cudnn_rnn.CudnnLSTM(1, U, seed=3)
    x = X.astype(np.float32)
    wanted = np.asarray(layer(x, mask=MASK)[0])
    for mask in (MASK.astype(np.uint8) * 255, MASK * -2, MASK.astype(np.uint64)):
        np.testing.assert_array_equal(np.asarray(layer(x, mask=mask)[0]), wanted)


def test_a_gradient_skips_masked_steps() -> None:
    layer = cudnn_rnn.CudnnLSTM(1, U, dtype="float64", seed=3)
    x = openrnn.constant(X)
    with openrnn.GradientTape() as tape:
        tape.watch(x)
        y, _ = layer(x, mask=MASK)
        loss = openrnn.reduce_sum(y * y)
    dx = np.asarray(tape.gradient(loss, x))
    assert (dx[~MASK] == 0).all() and (np.abs(dx[MASK]).sum(axis=-1) > 0).all()


def test_what_does_not_fit_is_refused() -> None:
    layer = cudnn_rnn.CudnnLSTM(1, U, name="m")
    x = X.astype(np.float32)
    with pytest.raises(ValueError, match=r"\[m\] mask has shape \[4, 9\], expected \[9, 4\]"):
        layer(x, mask=MASK.T)
    with pytest.raises(TypeError, match=r"\[m\] reset is of float64, expected booleans"):
        layer(x, reset=MASK.astype(float))
    with pytest.raises(NotImplementedError, match="mask and reset of a symbolic call"):
        layer(openrnn.Input((B, I), dtype="float32"), mask=MASK)
