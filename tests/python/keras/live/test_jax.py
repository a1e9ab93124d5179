"""What only the jax backend has: programs of XLA that call the engine, and transformations."""

import gc
import subprocess
import sys

import keras
import numpy as np
import openrnn.keras as ours
import pytest
from framework import BACKEND

pytestmark = pytest.mark.skipif(BACKEND != "jax", reason="of the jax backend")
SIZES = (3, 5, 4)


def drawn(*shape, seed=1):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def made(layer):
    """(layer, values, function of values and x); the weights are arguments, as in Keras's trainer."""
    layer.build(SIZES)
    values = [v.value for v in layer.trainable_variables]
    others = [v.value for v in layer.non_trainable_variables]

    def function(values, x, **kwargs):
        return layer.stateless_call(values, others, x, **kwargs)[0]

    return layer, values, function


LAYERS = {"LSTM": lambda: ours.LSTM(6, return_sequences=True), "GRU": lambda: ours.GRU(6),
          "both": lambda: ours.Bidirectional(ours.GRU(6, return_sequences=True))}  # fmt: skip


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("name", LAYERS)
def test_programs_call_no_python(name, masked):
    import jax

    _, values, function = made(LAYERS[name]())
    kwargs = {"mask": np.array([[1, 1, 0, 1, 0]] * 3, bool)} if masked else {}

    def loss(values, x):
        return (function(values, x, **kwargs) ** 2).sum()

    program = jax.jit(jax.value_and_grad(loss)).lower(values, drawn(*SIZES)).as_text()
    assert "callback" not in program
    assert program.count("@openrnn_keras_forward") == program.count("@openrnn_keras_backward") == 1


def test_gradients_that_nobody_wants_are_not_computed():
    import jax

    _, values, function = made(ours.LSTM(6, return_sequences=True))

    def loss(values, x):
        return function(values, x).sum()

    x = drawn(*SIZES)
    of_weights = jax.jit(jax.grad(loss)).lower(values, x).as_text()
    of_all = jax.jit(jax.grad(loss, argnums=(0, 1))).lower(values, x).as_text()
    # Bits of x, h0, c0, kernel, recurrent_kernel, bias; of y, hn, cn.
    assert "wanted = 56 " in of_weights and "wanted = 57 " in of_all
    assert "given = 1 " in of_weights and "given = 1 " in of_all
    found, _ = jax.grad(loss, argnums=(0, 1))(values, x)
    for a, b in zip(jax.grad(loss)(values, x), found, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", LAYERS)
def test_vmap_runs_samples_one_after_another(name):
    import jax

    _, values, function = made(LAYERS[name]())
    many = drawn(2, *SIZES)

    def loss(x):
        return (function(values, x) ** 2).sum()

    for transformed, one in ((jax.vmap(loss), loss), (jax.vmap(jax.grad(loss)), jax.grad(loss))):
        found, right = transformed(many), [one(each) for each in many]
        np.testing.assert_array_equal(found, np.stack(right))


def test_checkpoint_and_a_vjp_called_twice():
    import jax

    _, values, function = made(ours.LSTM(6))

    def loss(x):
        return (function(values, x) ** 2).sum()

    x = drawn(*SIZES)
    right = jax.grad(loss)(x)
    np.testing.assert_array_equal(jax.grad(jax.checkpoint(loss))(x), right)
    _, backward = jax.vjp(loss, x)
    for _ in range(2):
        np.testing.assert_array_equal(backward(np.float32(1))[0], right)


def test_a_program_outlives_its_layer():
    import jax

    layer, values, function = made(ours.GRU(6))
    x = drawn(*SIZES)
    right = np.asarray(function(values, x))
    program = jax.jit(function).lower(values, x).compile()
    del layer, function
    gc.collect()
    np.testing.assert_array_equal(program(values, x), right)


def test_what_was_packed_is_used_again():
    from openrnn.keras import _cells

    layer, values, function = made(ours.GRU(6))
    import jax

    run = jax.jit(function)
    for _ in range(3):
        run(values, drawn(*SIZES))
    (cell,) = {place.cell for place in _cells._cells[layer.cell].values() if hasattr(place, "cell")}
    assert cell.packings == 1
    run([2 * each for each in values], drawn(*SIZES))
    assert cell.packings == 2


def test_a_gpu_is_refused_by_name():
    import jax
    import openrnn

    _, values, function = made(ours.LSTM(6))
    text = "[openrnn.keras] a call is compiled for cuda, expected cpu: on a GPU take the layers of "
    for each in (function, jax.grad(lambda values, x: function(values, x).sum())):
        traced = jax.jit(each).trace(values, drawn(*SIZES))
        with pytest.raises(openrnn.UnsupportedError) as raised:
            traced.lower(lowering_platforms=("cuda",))
        assert str(raised.value).startswith(text)
        assert "openrnn_keras_forward" in traced.lower(lowering_platforms=("cpu",)).as_text()


CALL = """
import keras, numpy as np, openrnn.keras as ours
layer = keras.layers.LSTM(3)
with ours.install():
    print(layer(np.ones((2, 5, 4), "float32")).shape, ours.why_not(layer))
"""


def run(before):
    return subprocess.run(
        [sys.executable, "-c", before + CALL], capture_output=True, text=True, check=False
    )


def test_an_old_jax_leaves_keras_its_own_loop():
    old = "import jax\njax.__version__, jax.__version_info__ = '0.4.37', (0, 4, 37)"
    done = run(old)
    assert done.stdout == (
        "(2, 3) [openrnn.jax] JAX 0.4.37 is installed, expected version 0.4.38 or later\n"
    ), done.stderr
    broken = run("import jax, sys\nsys.modules['jax.extend.core'] = None")
    assert broken.returncode == 1 and "import of jax.extend.core halted" in broken.stderr


def test_second_derivatives_name_themselves():
    import jax
    import openrnn

    _, values, function = made(ours.LSTM(6))

    def slope(x):
        return jax.grad(lambda a: (function(values, a) ** 2).sum())(x).sum()

    with pytest.raises(openrnn.UnsupportedError, match="a second derivative of a recurrent layer"):
        jax.grad(slope)(drawn(*SIZES))
    with pytest.raises(TypeError, match="forward-mode"):
        jax.jvp(lambda x: function(values, x), (drawn(*SIZES),), (drawn(*SIZES),))
