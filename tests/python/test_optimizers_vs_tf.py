"""Optimizers, clipping, losses and schedules against TensorFlow's, within derived bounds."""

import numpy as np
import pytest

import rnn_capi
import train_capi
from engine_check import assert_within
from model import numpy_optimizers
from model.error_bound import Bounded
from model.numpy_optimizers import Optimizer

OPTIMIZERS = [
    Optimizer("GradientDescent"),
    Optimizer("Momentum", momentum=0.9),
    Optimizer("Momentum", momentum=0.75, nesterov=True),
    Optimizer("Adagrad", initial_accumulator=0.1),
    Optimizer("RMSProp", learning_rate=0.01, epsilon=1e-10),
    Optimizer("RMSProp", learning_rate=0.01, epsilon=1e-3, momentum=0.5),
    Optimizer("RMSProp", learning_rate=0.01, epsilon=1e-2, momentum=0.5, centered=True),
    Optimizer("Adam", learning_rate=0.001),
    Optimizer("Adam", learning_rate=0.02, beta1=0.8, beta2=0.95, epsilon=1e-3),
]
SIZE, STEPS = 37, 7


@pytest.fixture(scope="module")
def tf():
    import tensorflow

    return tensorflow.compat.v1


def data(dtype):
    """(start, gradients): some large, some small, one exactly 0 throughout."""
    rng = np.random.default_rng(8)
    gradients = rng.normal(size=(STEPS, SIZE)) * np.logspace(-3, 1, SIZE)
    gradients[:, 5] = 0.0
    return rng.normal(size=SIZE).astype(dtype), gradients.astype(dtype)


def tf_optimizer(tf, o):
    train = tf.train
    return {
        "GradientDescent": lambda: train.GradientDescentOptimizer(o.learning_rate),
        "Momentum": lambda: train.MomentumOptimizer(
            o.learning_rate, o.momentum, use_nesterov=o.nesterov
        ),
        "Adagrad": lambda: train.AdagradOptimizer(o.learning_rate, o.initial_accumulator),
        "RMSProp": lambda: train.RMSPropOptimizer(
            o.learning_rate, o.decay, o.momentum, o.epsilon, centered=o.centered
        ),
        "Adam": lambda: train.AdamOptimizer(o.learning_rate, o.beta1, o.beta2, o.epsilon),
    }[o.kind]()


def tf_run(tf, o, start, gradients):
    """{name: (dtype name, values)} of TensorFlow's variables after all steps."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.get_variable("X", initializer=start)
        gradient = tf.placeholder(start.dtype, [SIZE])
        step = tf.train.get_or_create_global_step()
        update = tf_optimizer(tf, o).apply_gradients([(gradient, x)], global_step=step)
        session.run(tf.global_variables_initializer())
        for each in gradients:
            session.run(update, {gradient: each})
        found = {v.op.name: session.run(v) for v in tf.global_variables()}
    return {
        name: (value.dtype.name, np.ravel(value).astype(float)) for name, value in found.items()
    }


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=str)
def test_optimizer(tf, optimizer, dtype):
    optimizer = optimizer.in_float32()
    start, gradients = data(dtype)
    eps = float(np.finfo(dtype).eps + np.finfo(np.float64).eps)
    wanted = numpy_optimizers.run(
        optimizer, start.astype(float), gradients.astype(float), lambda value: Bounded(value, eps)
    )
    theirs = tf_run(tf, optimizer, start, gradients)
    ours = train_capi.optimize(optimizer, start, gradients)
    assert {name: kind for name, (kind, _) in ours.items()} == {
        name: kind for name, (kind, _) in theirs.items()
    }
    assert ours["global_step"][1] == theirs["global_step"][1] == STEPS
    for name, bounded in wanted.items():
        assert_within(theirs[name][1], bounded, f"TensorFlow's {name}")
        assert_within(ours[name][1], bounded, name)
        # A bound as large as what the optimizer did would hide a wrong formula.
        assert np.median(bounded.error) <= 100 * eps * np.abs(bounded.value).max(), name


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=str)
def test_16_bits_follow_a_float32_master(optimizer, dtype):
    start, gradients = data(np.dtype(dtype))
    half = train_capi.optimize(optimizer, start, gradients)
    whole = train_capi.optimize(optimizer, start.astype(np.float32), gradients.astype(np.float32))
    assert half["X"][0] == dtype and half["X/master"][0] == "float32"
    assert np.array_equal(half["X/master"][1], whole["X"][1])
    assert np.array_equal(half["X"][1], whole["X"][1].astype(dtype).astype("f8"))
    for name in whole.keys() - {"X"}:
        assert half[name][0] == whole[name][0] and np.array_equal(half[name][1], whole[name][1])


def test_optimizers_refuse_bad_rates():
    for rate in (np.nan, np.inf, -1.0):
        with pytest.raises(rnn_capi.CallError, match="learning") as error:
            train_capi.optimize(Optimizer("GradientDescent", learning_rate=rate), *data(np.float32))
        assert error.value.kind == "ArgumentError"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("clip_norm", [0.5, 1.0, 1e6])
def test_clip_by_global_norm(tf, dtype, clip_norm):
    rng = np.random.default_rng(3)
    tensors = [rng.normal(size=size).astype(dtype) for size in (7, 1, 130)]
    ours, norm = train_capi.clip_by_global_norm(tensors, clip_norm)
    with tf.Graph().as_default(), tf.Session() as session:
        theirs, their_norm = session.run(tf.clip_by_global_norm(tensors, clip_norm))
    # The norm sums 138 squares, then a root, a quotient, a minimum and two products; twice, for
    # both sides.
    tolerance = 2 * np.finfo(dtype).eps * (0.5 * np.sqrt(138) + 4)
    np.testing.assert_allclose(norm, their_norm, rtol=tolerance)
    for mine, other in zip(ours, theirs):
        np.testing.assert_allclose(mine, other, rtol=tolerance)


def test_clip_refuses_what_is_not_finite():
    for bad in (np.nan, np.inf):
        with pytest.raises(rnn_capi.CallError, match="finite"):
            train_capi.clip_by_global_norm([np.array([1.0, bad], np.float32)], 1.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows,classes", [(1, 1), (1, 5), (7, 33), (3, 257)])
def test_softmax_cross_entropy(tf, dtype, rows, classes):
    rng = np.random.default_rng(rows)
    logits = (4 * rng.normal(size=(rows, classes))).astype(dtype)
    labels = rng.integers(0, classes, rows).astype(np.int32)
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant(logits)
        mean = tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=x)
        )
        wanted, gradient = session.run([mean, tf.gradients(mean, x)[0]])
    # x - max rounds once, relative to the range; exp passes that on and adds 2 ulp; the sum adds
    # sqrt(classes) / 2, the logarithm and the mean a few more. Twice, for both sides.
    spread = float(np.ptp(logits))
    tolerance = (
        2 * np.finfo(dtype).eps * (spread + 0.5 * np.sqrt(classes) + 0.5 * np.sqrt(rows) + 6)
    )
    loss, found = train_capi.loss("softmax_cross_entropy", logits, labels)
    np.testing.assert_allclose(loss, wanted, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(found, gradient, rtol=tolerance, atol=tolerance / rows)


def test_rows_without_a_label_count_for_nothing():
    rng = np.random.default_rng(4)
    logits = rng.normal(size=(5, 6))
    labels = np.array([2, -1, 5, -1, 0], np.int32)
    kept = labels >= 0
    loss, gradient = train_capi.loss("softmax_cross_entropy", logits, labels)
    alone, wanted = train_capi.loss("softmax_cross_entropy", logits[kept], labels[kept])
    np.testing.assert_allclose(loss, alone, rtol=1e-15)
    np.testing.assert_allclose(gradient[kept], wanted, rtol=1e-15)
    assert not gradient[~kept].any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_mean_squared_error(tf, dtype):
    rng = np.random.default_rng(5)
    x, target = (rng.normal(size=(7, 5)).astype(dtype) for _ in range(2))
    with tf.Graph().as_default(), tf.Session() as session:
        given = tf.constant(x)
        mean = tf.reduce_mean(tf.square(given - target))
        wanted, gradient = session.run([mean, tf.gradients(mean, given)[0]])
    loss, found = train_capi.loss("mean_squared_error", x, target)
    # A difference, a square, a sum of 35 and a quotient; no terms cancel. Twice, for both sides.
    tolerance = 2 * np.finfo(dtype).eps * (0.5 * np.sqrt(35) + 4)
    np.testing.assert_allclose(loss, wanted, rtol=tolerance)
    np.testing.assert_allclose(found, gradient, rtol=tolerance)


@pytest.mark.parametrize("step", [0, 1, 3, 10, 50, 100, 250])
def test_schedules(tf, step):
    """TensorFlow computes in float32: an angle or exponent, one function, two products."""
    with tf.Graph().as_default(), tf.Session() as session:
        theirs = session.run(
            [
                tf.train.exponential_decay(0.25, step, 20, 0.75),
                tf.train.cosine_decay(0.25, step, 100, alpha=0.125),
            ]
        )
    eps = np.finfo(np.float32).eps
    ours = train_capi.schedule("exponential", step, 0.25, decay_rate=0.75, decay_steps=20)
    np.testing.assert_allclose(ours, theirs[0], rtol=eps * (step / 20 + 4))
    ours = train_capi.schedule("cosine", step, 0.25, final_fraction=0.125, decay_steps=100)
    np.testing.assert_allclose(ours, theirs[1], atol=0.25 * eps * 8, rtol=0)
    assert train_capi.schedule("constant", step, 0.25) == 0.25


def test_warm_up_rises_in_a_line():
    found = [train_capi.schedule("constant", step, 0.5, warmup=4) for step in range(6)]
    assert found == [0.125, 0.25, 0.375, 0.5, 0.5, 0.5]
