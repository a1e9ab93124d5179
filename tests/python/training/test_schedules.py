"""Learning rates against their formulas and TensorFlow's."""

import math

import numpy as np
import pytest
from openrnn import train


@pytest.mark.parametrize("staircase", [False, True])
@pytest.mark.parametrize("decay_rate", [0.5, 0.96, 1.0, 1e-3])
def test_exponential_decay(staircase, decay_rate):
    rate = train.ExponentialDecay(0.3, 7, decay_rate, staircase)
    for step in [*range(30), 1000, 10**6]:
        exponent = step // 7 if staircase else step / 7
        assert rate(step) == pytest.approx(0.3 * decay_rate**exponent, rel=1e-12, abs=1e-300)


@pytest.mark.parametrize("alpha", [0.0, 0.1, 1.0])
def test_cosine_decay(alpha):
    rate = train.CosineDecay(0.3, 20, alpha)
    for step in [*range(25), 10**9]:
        cosine = 0.5 * (1 + math.cos(math.pi * min(step, 20) / 20))
        assert rate(step) == pytest.approx(0.3 * ((1 - alpha) * cosine + alpha), rel=1e-12, abs=1e-17)


def test_piecewise_constant_and_warm_up():
    rate = train.PiecewiseConstant([2, 5], [1.0, 0.5, 0.25])
    assert [rate(step) for step in range(8)] == [1, 1, 1, 0.5, 0.5, 0.5, 0.25, 0.25]
    warm = train.WarmUp(rate, 4)
    assert [warm(step) for step in range(12)] == [0.25, 0.5, 0.75, 1, 1, 1, 1, 0.5, 0.5, 0.5, 0.25, 0.25]
    falling = train.WarmUp(train.PiecewiseConstant([0], [0.5, 0.25]), 4)
    assert [falling(step) for step in range(6)] == [0.125, 0.25, 0.375, 0.5, 0.5, 0.25]
    assert train.WarmUp(0.5, 2)(0) == 0.25 and train.ConstantSchedule(0.5)(10**9) == 0.5


@pytest.mark.parametrize(
    "rate",
    [train.ExponentialDecay(0.3, 7, 0.9), train.CosineDecay(0.3, 7), train.WarmUp(0.3, 7),
     train.PiecewiseConstant([7], [0.3, 0.1])],
)  # fmt: skip
def test_steps_that_are_none(rate):
    with pytest.raises(ValueError, match=r"step is -1, expected 0 or more"):
        rate(-1)
    with pytest.raises(TypeError, match=r"step is 'float', expected an integer"):
        rate(1.5)


def test_against_tensorflow():
    tf = pytest.importorskip("tensorflow")
    v1 = tf.compat.v1.train
    for step in (0, 1, 6, 7, 8, 19, 20, 33):
        pairs = [
            (train.ExponentialDecay(0.3, 7, 0.9), lambda: v1.exponential_decay(0.3, step, 7, 0.9)),
            (train.CosineDecay(0.3, 20, 0.2), lambda: v1.cosine_decay(0.3, step, 20, 0.2)),
            (
                train.PiecewiseConstant([7, 19], [1.0, 0.5, 0.1]),
                lambda: v1.piecewise_constant(step, [7, 19], [1.0, 0.5, 0.1]),
            ),
        ]
        for ours, theirs in pairs:
            value = theirs()
            value = value() if callable(value) else value
            np.testing.assert_allclose(ours(step), np.float32(value), rtol=3e-6)
