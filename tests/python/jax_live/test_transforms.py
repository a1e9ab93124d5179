"""vmap, jit, scan, checkpoint, gradients of gradients: each against the same without."""

import jax
import jax.numpy as jnp
import numpy as np
import openrnn
import openrnn.jax as orx
import pytest
import scans
from jax.test_util import check_grads
from test_values import close

CELLS = ("lstm", "gru", "rnn")


def small(key, cell="lstm", **options):
    params = orx.init(key, cell, input_size=2, hidden_size=3, dtype="float64", **options)
    return params, scans.data(params, cell, 2, 3, 2)


@pytest.mark.parametrize("cell", CELLS)
def test_check_grads_of_two_orders(cell, key):
    params, inputs = small(key, cell)
    check_grads(
        jax.jit(lambda x, h, c, p: scans.call(cell, x, h, c, p)[:2]), (*inputs, params), order=2,
        modes=["rev"], atol=1e-6, rtol=1e-6,
    )  # fmt: skip


def test_hessian_products_are_those_of_a_scan(key):
    params, (x, h0, c0) = small(key, bidirectional=True)
    lengths = jnp.asarray([3, 1])

    def products(network):
        def loss(given):
            return scans.weighted(network(*given))

        def directed(given):
            inner = jax.tree_util.tree_map(lambda g: (g * jnp.sin(1.0 + g)).sum(), jax.grad(loss)(given))
            return sum(jax.tree_util.tree_leaves(inner))

        return jax.jit(jax.grad(directed))((x, h0, c0, params))

    ours = products(
        lambda x, h, c, p: orx.lstm(x, h, c, p, bidirectional=True, sequence_lengths=lengths)
    )
    theirs = products(
        lambda x, h, c, p: scans.network("lstm", p, x, h, c, lengths, bidirectional=True)
    )
    close(ours, theirs, 1e-11)


def test_a_third_derivative_and_forward_mode_are_refused(key):
    params, (x, h0, c0) = small(key)
    twice = jax.grad(lambda x: jax.grad(lambda x: orx.lstm(x, h0, c0, params)[0].sum())(x).sum())
    with pytest.raises((ValueError, NotImplementedError, TypeError)):
        jax.grad(lambda x: twice(x).sum())(x)
    with pytest.raises(TypeError, match="forward-mode"):
        jax.jvp(lambda x: orx.lstm(x, h0, c0, params)[0], (x,), (x,))


@pytest.mark.parametrize("mapped", [(0, 0, 0), (0, None, None), (None, 1, None), (2, None, 0)], ids=str)
@pytest.mark.parametrize("time_major", [False, True])
def test_vmap_over_inputs(mapped, time_major, key):
    params, _ = small(key, num_layers=2)
    shapes = ((3, 2, 2) if time_major else (2, 3, 2), (2, 2, 3), (2, 2, 3))
    given = [
        scans.values(k, shape if axis is None else (*shape[:axis], 4, *shape[axis:]))
        for k, (shape, axis) in enumerate(zip(shapes, mapped, strict=True))
    ]

    def loss(x, h, c, p):
        return scans.weighted(orx.lstm(x, h, c, p, time_major=time_major))

    gradient = jax.value_and_grad(loss, argnums=(0, 1, 2, 3))
    found = jax.jit(jax.vmap(gradient, in_axes=(*mapped, None)))(*given, params)
    for sample in range(4):
        one = [
            value if axis is None else jnp.take(value, sample, axis)
            for value, axis in zip(given, mapped, strict=True)
        ]
        wanted = jax.jit(gradient)(*one, params)
        close(jax.tree_util.tree_map(lambda leaf: leaf[sample], found), wanted, 1e-12)  # noqa: B023


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_gradients_of_vmap_and_a_batch_are_the_same(cell, key):
    params, _ = small(key, cell)
    x = scans.values(1, (5, 4, 2))

    def by_samples(p):
        run = jax.vmap(lambda one: scans.call(cell, one[None], None, None, p)[0][0])
        return scans.weighted([run(x)])

    def at_once(p):
        return scans.weighted([scans.call(cell, x, None, None, p)[0]])

    close(jax.jit(jax.grad(by_samples))(params), jax.jit(jax.grad(at_once))(params), 1e-12)


def test_nested_vmap_and_lengths(key):
    params, _ = small(key)
    x = scans.values(1, (2, 3, 2, 4, 2))
    lengths = jnp.asarray([[[4, 0], [1, 2], [3, 3]], [[2, 2], [0, 0], [4, 1]]])

    def loss(x, n):
        return scans.weighted(orx.lstm(x, None, None, params, sequence_lengths=n))

    found = jax.jit(jax.vmap(jax.vmap(jax.grad(loss))))(x, lengths)
    each = jax.jit(jax.grad(loss))
    for i in range(2):
        for j in range(3):
            close(found[i, j], each(x[i, j], lengths[i, j]), 1e-12)


def test_vmap_over_weights_and_over_cotangents(key):
    params, (x, h0, c0) = small(key)
    many = jax.tree_util.tree_map(lambda leaf: jnp.stack([leaf, 2 * leaf, leaf - 0.1]), params)
    gradient = jax.grad(lambda p: scans.weighted(orx.lstm(x, h0, c0, p)))
    found = jax.jit(jax.vmap(gradient))(many)
    for k in range(3):
        one = jax.tree_util.tree_map(lambda leaf: leaf[k], many)  # noqa: B023
        close(jax.tree_util.tree_map(lambda leaf: leaf[k], found), gradient(one), 1e-12)  # noqa: B023
    jacobian = jax.jit(jax.jacrev(lambda x: orx.lstm(x, h0, c0, params)[1]))(x)
    wanted = jax.jit(jax.jacrev(lambda x: scans.network("lstm", params, x, h0, c0)[1]))(x)
    close(jacobian, wanted, 1e-12)


def test_scan_and_checkpoint_around_it(key):
    params, (x, h0, c0) = small(key)

    def step(state, _):
        y, h, c = orx.lstm(x, *state, params)
        return (h, c), y

    def through(step):
        def loss(state):
            return scans.weighted(jax.tree_util.tree_leaves(jax.lax.scan(step, state, None, length=3)))

        return jax.jit(jax.grad(loss))((h0, c0))

    def by_hand(state):
        ys = []
        for _ in range(3):
            state, y = step(state, None)
            ys.append(y)
        return scans.weighted([*state, jnp.stack(ys)])

    wanted = jax.jit(jax.grad(by_hand))((h0, c0))
    close(through(step), wanted, 1e-12)
    close(through(jax.checkpoint(step)), wanted, 1e-12)
    mapped = jax.jit(jax.vmap(lambda k: through(step)[0] * k))(jnp.arange(2.0))
    close(mapped[1], wanted[0], 1e-12)


def test_vjp_is_called_twice_with_the_same_bits(key):
    params, (x, h0, c0) = small(key)
    y, back = jax.vjp(lambda x, p: orx.lstm(x, h0, c0, p)[0], x, params)
    first, other, again = back(y), back(2 * y), back(y)
    close(again, first, 0.0)
    close(other, jax.tree_util.tree_map(lambda leaf: 2 * leaf, first), 1e-12)


def test_without_jit(key):
    params, (x, h0, c0) = small(key)
    wanted = orx.lstm(x, h0, c0, params)
    with jax.disable_jit():
        close(orx.lstm(x, h0, c0, params), wanted, 0.0)


def test_threads_change_no_bit(key):
    params = orx.init(key, input_size=5, hidden_size=33, num_layers=2)
    inputs = scans.data(params, "lstm", 9, 12, 5, "float32")
    run = jax.jit(jax.value_and_grad(lambda *a: scans.weighted(orx.lstm(*a)), argnums=3))
    threads, found = openrnn.get_num_threads(), []
    try:
        for count in (1, 2, 5):
            openrnn.set_num_threads(count)
            found.append(run(*inputs, params))
    finally:
        openrnn.set_num_threads(threads)
    close(found[1], found[0], 0.0)
    close(found[2], found[0], 0.0)


@pytest.mark.parametrize("options", [{"dropout": 0.4}, {"recurrent_dropout": 0.3}], ids=str)
def test_dropout_is_that_of_its_key(options, key):
    params = orx.init(key, input_size=3, hidden_size=8, num_layers=2, dtype="float64")
    x, h0, c0 = scans.data(params, "lstm", 3, 6, 3)

    def loss(k, p):
        return scans.weighted(orx.lstm(x, h0, c0, p, key=k, **options))

    run = jax.jit(jax.value_and_grad(loss, argnums=1))
    first, other = run(jax.random.key(1), params), run(jax.random.key(2), params)
    close(run(jax.random.key(1), params), first, 0.0)
    assert float(jnp.abs(first[0] - other[0])) > 1e-6
    plain = orx.lstm(x, h0, c0, params)
    close(orx.lstm(x, h0, c0, params, **options), plain, 0.0)
    # Backward sees the masks of forward.
    bump = 1e-6 * jnp.sin(jnp.arange(params[1]["w_ih"].size)).reshape(params[1]["w_ih"].shape)
    ends = [
        loss(jax.random.key(1), [params[0], {**params[1], "w_ih": params[1]["w_ih"] + s * bump}])
        for s in (1, -1)
    ]
    slope = float((first[1][1]["w_ih"] * bump).sum())
    assert abs(float(ends[0] - ends[1]) / 2 - slope) < 1e-5 * abs(slope) + 1e-13
    keys = jax.random.split(jax.random.key(5), 3)
    mapped = jax.jit(jax.vmap(lambda k: jax.grad(loss, argnums=1)(k, params)))(keys)
    close(
        jax.tree_util.tree_map(lambda leaf: leaf[1], mapped),
        jax.grad(loss, argnums=1)(keys[1], params), 1e-12,
    )  # fmt: skip


def test_old_keys_will_do(key):
    params = orx.init(jax.random.PRNGKey(0), input_size=3, hidden_size=4, num_layers=2)
    x = scans.values(1, (2, 3, 3), "float32")
    y, _, _ = orx.lstm(x, None, None, params, dropout=0.5, key=jax.random.PRNGKey(1))
    z, _, _ = orx.lstm(x, None, None, params, dropout=0.5, key=jax.random.key(1))
    assert np.array_equal(y, z)
