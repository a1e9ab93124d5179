"""Nested tapes of TensorFlow on LSTM and GRU, written as loops, in float64."""

import pytest

tf = pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

import second_cells


class Ops:
    split = staticmethod(lambda row, n: tf.split(row, n, axis=1))
    reshape, stack, transpose = tf.reshape, tf.stack, tf.transpose
    sigmoid, tanh = tf.sigmoid, tf.tanh


@pytest.mark.parametrize("mode", ["lstm", "gru"])
def test_second_derivatives(mode):
    x, params, weights, slopes = (tf.constant(a) for a in second_cells.data(mode))
    with tf.GradientTape() as outer:
        outer.watch([x, params])
        with tf.GradientTape() as inner:
            inner.watch([x, params])
            y = second_cells.run(mode, x, params, Ops)
            loss = tf.reduce_sum(y * y * weights)
        first = inner.gradient(loss, [x, params])
        penalty = tf.reduce_sum(first[0] ** 2) + tf.reduce_sum(first[1] * slopes)
    second = outer.gradient(penalty, [x, params])
    second_cells.assert_same(mode, [found.numpy() for found in (y, *first, *second)])
