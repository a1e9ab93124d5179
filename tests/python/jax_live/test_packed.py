"""pack: the same bits, one packing, and never another one's weights."""

import gc
import threading

import jax
import jax.numpy as jnp
import numpy as np
import openrnn.jax as orx
import pytest
import scans
from openrnn import _core
from test_values import close


def made(key, **options):
    params = orx.init(key, input_size=3, hidden_size=8, num_layers=2, **options)
    return params, scans.data(params, "lstm", 2, 5, 3, "float32")


def test_the_same_bits(key):
    params, (x, h0, c0) = made(key)
    wanted = orx.lstm(x, h0, c0, params)
    packed = orx.pack(params)
    close(orx.lstm(x, h0, c0, packed), wanted, 0.0)
    run = jax.jit(orx.lstm)
    for _ in range(3):
        close(run(x, h0, c0, packed), wanted, 0.0)
    close(jax.jit(lambda x: orx.lstm(x, h0, c0, packed))(x), wanted, 0.0)
    close(jax.vmap(lambda one: orx.lstm(one[None], None, None, packed)[0][0])(x),
          orx.lstm(x, None, None, params)[0], 0.0)  # fmt: skip


def test_another_buffer_beside_the_token_is_packed_anew(key):
    params, (x, h0, c0) = made(key)
    packed = orx.pack(params)
    double = jax.tree_util.tree_map(lambda a: a * 2 if a.dtype == jnp.float32 else a, packed)
    twice = jax.tree_util.tree_map(lambda a: a * 2, params)
    close(orx.lstm(x, h0, c0, double), orx.lstm(x, h0, c0, twice), 0.0)
    zeros = jax.tree_util.tree_map(jnp.zeros_like, packed)
    close(orx.lstm(x, h0, c0, zeros)[0], orx.lstm(x, h0, c0, jax.tree_util.tree_map(
        jnp.zeros_like, params))[0], 0.0)


@pytest.mark.filterwarnings("ignore:Some donated buffers")
def test_a_donated_buffer_is_not_taken_for_the_old_one(key):
    params, (x, h0, c0) = made(key)
    packed = orx.pack(params)
    doubled = jax.jit(
        lambda p: jax.tree_util.tree_map(lambda a: a * 2 if a.dtype == jnp.float32 else a, p),
        donate_argnums=0,
    )(packed)
    wanted = orx.lstm(x, h0, c0, jax.tree_util.tree_map(lambda a: a * 2, params))
    close(orx.lstm(x, h0, c0, doubled), wanted, 0.0)


def test_parameters_of_numpy_are_of_the_dtype_that_jax_gives_them(key):
    params = [
        {name: np.asarray(value, np.float64) for name, value in each.items()}
        for each in orx.init(key, input_size=3, hidden_size=5)
    ]
    jax.config.update("jax_enable_x64", False)
    try:
        packed = orx.pack(params)
        assert "float32" in repr(packed) and orx.flatten(params).dtype == np.float32
        x = jnp.ones((2, 4, 3))
        same = np.array_equal(orx.lstm(x, None, None, packed)[0], orx.lstm(x, None, None, params)[0])
        assert same
    finally:
        jax.config.update("jax_enable_x64", True)


def test_handles_end_with_their_last_reference(key):
    params, (x, h0, c0) = made(key)
    gc.collect()
    before = _core.jax_held()
    packed = orx.pack(params)
    assert _core.jax_held() == before + 1
    wanted = orx.lstm(x, h0, c0, packed)
    leaves, tree = jax.tree_util.tree_flatten(packed)
    del packed
    gc.collect()
    assert _core.jax_held() == before
    close(orx.lstm(x, h0, c0, jax.tree_util.tree_unflatten(tree, leaves)), wanted, 0.0)


def test_gradients_through_a_handle(key):
    params, (x, h0, c0) = made(key)
    packed = orx.pack(params)

    def loss(x, p):
        return scans.weighted(orx.lstm(x, h0, c0, p))

    found, through = jax.grad(loss, argnums=(0, 1), allow_int=True)(x, packed)
    wanted, each = jax.grad(loss, argnums=(0, 1))(x, params)
    close(found, wanted, 0.0)
    close(through._params, orx.flatten(each), 0.0)


def test_weights_of_8_bits(key):
    params, (x, h0, c0) = made(key)
    y, _, _ = orx.lstm(x, h0, c0, orx.pack(params, weights_dtype="int8"))
    exact, _, _ = orx.lstm(x, h0, c0, params)
    assert 0 < float(jnp.abs(y - exact).max()) < 0.05


def test_many_threads_with_many_handles(key):
    params, (x, h0, c0) = made(key)
    run = jax.jit(orx.lstm)
    scaled = [jax.tree_util.tree_map(lambda a: a * k, params) for k in (1.0, 0.5, -1.0, 2.0)]  # noqa: B023
    wanted = [np.asarray(run(x, h0, c0, one)[0]) for one in scaled]
    wrong = []

    def work(one, expected):
        for _ in range(10):
            packed = orx.pack(one)
            out = [run(x, h0, c0, packed)[0] for _ in range(3)]
            del packed  # calls may still be under way
            wrong.extend(1 for y in out if not np.array_equal(y, expected))

    threads = [threading.Thread(target=work, args=pair) for pair in zip(scaled, wanted, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
