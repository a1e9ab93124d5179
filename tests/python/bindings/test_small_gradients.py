"""Gradients too small for float16: every way to a step scales the loss, and undoes it."""

import numpy as np
import openrnn
import pytest
from openrnn import layers, train

SMALL = 2.0**-26  # below the least number of float16, 2^-24
X = np.array([[1.0], [2.0], [4.0], [0.5]], "float16")


def shrunk(value):
    """Its sum times SMALL, in factors that float16 has."""
    return openrnn.reduce_sum(value * 2.0**-12) * 2.0**-14


def variable():
    return openrnn.Variable(np.array([1.0, 2.0], "float16"))


def test_gradients_that_are_computed():
    w, other = variable(), openrnn.Variable([1.0])
    optimizer = train.GradientDescentOptimizer(1.0)
    assert optimizer.loss_scale == 1.0
    found = optimizer.compute_gradients(lambda: shrunk(w), [other, w])
    assert found[0] == (None, other) and found[1][1] is w
    np.testing.assert_array_equal(found[1][0], [SMALL, SMALL])
    assert found[1][0].dtype == "float32" and optimizer.loss_scale > 1.0


def test_of_a_loss_that_depends_on_nothing():
    w = variable()
    optimizer = train.GradientDescentOptimizer(1.0)
    for loss in (lambda: openrnn.constant(3.0), lambda: openrnn.constant(2.0) * 3.0):
        assert optimizer.compute_gradients(loss, [w]) == [(None, w)]
    with pytest.raises(openrnn.ArgumentError) as raised:
        optimizer.minimize(lambda: openrnn.constant(3.0), var_list=[w])
    assert str(raised.value) == f"[minimize] no gradients for any variable of ['{w.name}']"


def test_a_step():
    w = variable()
    optimizer = train.GradientDescentOptimizer(1.0 / SMALL / 4)
    optimizer.minimize(lambda: shrunk(w), var_list=[w])
    np.testing.assert_array_equal(w, [0.75, 1.75])
    optimizer.apply_gradients([([SMALL, 4 * SMALL], w)])
    np.testing.assert_array_equal(w, [0.5, 0.75])


@pytest.mark.parametrize("parts", [1, 2, 4])
def test_fit_in_parts(parts):
    dense = layers.Dense(1, use_bias=False, kernel_initializer="ones", dtype="float16")
    optimizer = train.GradientDescentOptimizer(1.0 / SMALL / 16)
    history = train.fit(
        dense,
        (X, X),
        lambda y, found: shrunk(found) * 0.25,
        optimizer,
        batch_size=4,
        micro_batches=parts,
        progress=False,
        shuffle=False,
    )
    wanted = X.sum() / 64 / parts
    np.testing.assert_array_equal(dense.kernel, [[np.float16(1.0 - wanted)]])
    assert history.steps == 1 and optimizer.loss_scale > 1.0
