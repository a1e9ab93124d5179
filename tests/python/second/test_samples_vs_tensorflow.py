"""Jacobians of rows' losses by TensorFlow, of LSTM and GRU written as loops, in float64."""

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

import openrnn
import second_cells
from test_second_vs_tensorflow import Ops


@pytest.mark.parametrize("mode", ["lstm", "gru"])
def test_gradients_of_samples(mode):
    x, params, weights, _ = second_cells.data(mode)
    at = tf.constant(params)
    with tf.GradientTape() as theirs:
        theirs.watch(at)
        y = second_cells.run(mode, tf.constant(x), at, Ops)
        losses = tf.reduce_sum(y * y * weights, axis=[0, 2])
    expected = theirs.jacobian(losses, at).numpy()

    openrnn.reset_default_graph()
    layer = second_cells.LAYERS[mode](1, second_cells.U, dtype="float64")
    layer.build(x.shape)
    layer.kernel.assign(params)
    with openrnn.GradientTape() as tape:
        target = openrnn.square(layer(x)[0]) * weights
    found = tape.per_sample_gradients(target, layer.kernel, axis=1)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-10, atol=1e-12)
    norms = tape.per_sample_norms(target, layer.kernel, axis=1)
    np.testing.assert_allclose(norms.numpy(), np.linalg.norm(expected, axis=1), rtol=1e-10)
