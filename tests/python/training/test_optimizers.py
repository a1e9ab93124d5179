"""Adam and AdamW of PyTorch against their formulas in float64, and AdamOptimizer against Keras's."""

import numpy as np
import openrnn
import pytest
from openrnn import train

SIZE, STEPS = 23, 9


def gradients(dtype):
    random = np.random.default_rng(8)
    found = random.normal(size=(STEPS, SIZE)) * np.logspace(-9, 1, SIZE)
    found[:, 5] = 0.0
    return found.astype(dtype)


def plain(w, grads, rate, beta1, beta2, epsilon, decay):
    """Algorithm 2 of Loshchilov and Hutter, with the hats written out; decay 0 is Adam."""
    m = v = np.zeros_like(w)
    for t, g in enumerate(grads, 1):
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g * g
        m_hat, v_hat = m / (1 - beta1**t), v / (1 - beta2**t)
        w = w - rate * decay * w
        w = w - rate * m_hat / (np.sqrt(v_hat) + epsilon)
    return w, m, v


CASES = [
    (train.Adam, {}, 0.0),
    (train.Adam, {"learning_rate": 0.1, "beta1": 0.7, "beta2": 0.9, "epsilon": 1e-2}, 0.0),
    (train.AdamW, {"learning_rate": 0.05}, 0.01),
    (train.AdamW, {"learning_rate": 0.1, "weight_decay": 0.3, "epsilon": 1e-3, "beta1": 0.0}, 0.3),
    (train.AdamW, {"learning_rate": 0.1, "weight_decay": 0.0}, 0.0),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("kind", "options", "decay"), CASES)
def test_against_the_formulas(dtype, kind, options, decay):
    start = np.random.default_rng(9).normal(size=SIZE).astype(dtype)
    grads = gradients(dtype)
    with openrnn.Graph().as_default():
        w, optimizer = openrnn.Variable(start, name="w"), kind(**options)
        for g in grads:
            optimizer.apply_gradients([(g, w)])
        defaults = {"learning_rate": 1e-3, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8}
        o = {**defaults, **options}
        expected = plain(start.astype("float64"), grads.astype("float64"), o["learning_rate"],
                         o["beta1"], o["beta2"], o["epsilon"], decay)  # fmt: skip
        tolerance = 1e-13 if dtype == "float64" else 4e-6
        found = w.numpy(), optimizer.get_slot(w, "m").numpy(), optimizer.get_slot(w, "v").numpy()
        for one, wanted in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, wanted, rtol=tolerance, atol=tolerance * (1.0 if one is found[0] else 1e-9))
        names = [one.name for one in optimizer.variables()]
        slot = "AdamW" if decay else "Adam"
        assert names == ["adam_step", f"w/{slot}", f"w/{slot}_1"]
        assert int(optimizer.variables()[0]) == STEPS


def test_where_epsilon_stands():
    """With a large epsilon the two Adams differ: 3 / (3 + 3) and 3 / (3 + 3 / sqrt(1 - beta2))."""
    with openrnn.Graph().as_default():
        a, b = openrnn.Variable([1.0], dtype="float64"), openrnn.Variable([1.0], dtype="float64")
        train.Adam(0.5, epsilon=3.0).apply_gradients([([3.0], a)])
        train.AdamOptimizer(0.5, epsilon=3.0).apply_gradients([([3.0], b)])
        assert abs(a.numpy()[0] - 0.75) < 1e-12
        beta2 = float(np.float32(0.999))
        assert abs(b.numpy()[0] - (1 - 0.5 * 3 / (3 + 3 / np.sqrt(1 - beta2)))) < 1e-6


def test_the_adam_of_keras_is_that_of_tensorflow():
    tf = pytest.importorskip("tensorflow")
    start, grads = np.random.default_rng(9).normal(size=SIZE).astype("float32"), gradients("float32")
    with openrnn.Graph().as_default():
        w, optimizer = openrnn.Variable(start), train.AdamOptimizer(0.01, epsilon=1e-3)
        other, keras = tf.Variable(start), tf.keras.optimizers.Adam(0.01, epsilon=1e-3)
        for g in grads:
            optimizer.apply_gradients([(g, w)])
            keras.apply_gradients([(tf.constant(g), other)])
        np.testing.assert_allclose(w.numpy(), other.numpy(), rtol=2e-6, atol=1e-7)


def test_the_decay_of_keras_is_that_of_adam_w():
    """Without an epsilon that matters."""
    tf = pytest.importorskip("tensorflow")
    start = np.random.default_rng(9).normal(size=SIZE).astype("float32")
    grads = np.random.default_rng(10).normal(size=(STEPS, SIZE)).astype("float32")
    with openrnn.Graph().as_default():
        w, optimizer = openrnn.Variable(start), train.AdamW(0.02, epsilon=1e-12, weight_decay=0.2)
        other = tf.Variable(start)
        keras = tf.keras.optimizers.AdamW(0.02, weight_decay=0.2, epsilon=1e-12)
        for g in grads:
            optimizer.apply_gradients([(g, w)])
            keras.apply_gradients([(tf.constant(g), other)])
        np.testing.assert_allclose(w.numpy(), other.numpy(), rtol=3e-6, atol=3e-6)


@pytest.mark.parametrize("kind", [train.Adam, train.AdamW])
def test_continues_from_a_checkpoint_and_a_copy(kind, tmp_path):
    import copy

    start, grads = np.arange(SIZE, dtype="float32"), gradients("float32")

    def steps(w, optimizer, some):
        for g in some:
            optimizer.apply_gradients([(g, w)])

    with openrnn.Graph().as_default():
        w, optimizer = openrnn.Variable(start, name="w"), kind(0.1)
        steps(w, optimizer, grads[:4])
        saver = train.Saver()
        prefix = saver.save(tmp_path / "model")
        w2, optimizer2 = copy.deepcopy((w, optimizer))
        steps(w, optimizer, grads[4:])
        steps(w2, optimizer2, grads[4:])
    with openrnn.Graph().as_default():
        again, other = openrnn.Variable(start, name="w"), kind(0.9)
        other.prepare([again])
        train.Saver().restore(prefix)
        other.learning_rate = 0.1
        steps(again, other, grads[4:])
    assert w.numpy().tobytes() == again.numpy().tobytes() == w2.numpy().tobytes()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_masters_of_small_types(dtype):
    with openrnn.Graph().as_default():
        w, optimizer = openrnn.Variable(np.ones(3), dtype=dtype), train.AdamW(0.01)
        optimizer.minimize(lambda: openrnn.reduce_mean(openrnn.square(w)), var_list=[w])
        np.testing.assert_allclose(np.asarray(w.numpy(), "float64"), 0.99 - 1e-4, atol=4e-3)
        assert any(one.name.endswith("/master") for one in openrnn.global_variables())


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_gradient_of_halves_is_taken_in_float32(dtype):
    """What 16 bits do not hold counts: 1 + 2**-12 is 1 there."""
    with openrnn.Graph().as_default():
        start = openrnn.cast(openrnn.constant([4096.0, -4096.0]), dtype)
        v = openrnn.Variable(start, name="v")
        for given in ([1 + 2.0**-12] * 2, np.full(2, 1 + 2.0**-12, "float32"), openrnn.constant([1 + 2.0**-12] * 2)):
            v.assign(start)
            train.GradientDescentOptimizer(4096.0).apply_gradients([(given, v)])
            assert openrnn.cast(v, "float32").numpy()[0] == -1.0


def test_what_has_no_gradient_gets_no_slots():
    with openrnn.Graph().as_default():
        a, b = openrnn.Variable([1.0], name="a"), openrnn.Variable([1.0], name="b")
        for way in ("apply", "minimize"):
            optimizer = train.AdamOptimizer(0.1)
            if way == "apply":
                optimizer.apply_gradients([([1.0], a), (None, b)])
            else:
                optimizer.minimize(lambda: openrnn.reduce_sum(a * 2.0), var_list=[a, b])
            assert optimizer.get_slot(b, "m") is None and optimizer.get_slot(a, "m") is not None
            assert optimizer.get_slot(a, "nothing") is None
            assert not any(one.name.startswith("b/") for one in optimizer.variables())
        found = train.AdamOptimizer(0.1).compute_gradients(lambda: openrnn.reduce_sum(a * 2.0), [b, a])
        assert found[0][0] is None and found[1][0].numpy().tolist() == [2.0]
