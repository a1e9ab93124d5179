"""Outputs, states and gradients against lax.scan in plain jnp."""

import jax
import jax.numpy as jnp
import numpy as np
import openrnn
import openrnn.jax as orx
import pytest
import scans

SIZES = [  # batch, time, input, units, layers, bidirectional
    (5, 9, 3, 7, 2, True),
    (1, 1, 1, 1, 1, False),
    (3, 1, 17, 3, 2, False),
    (1, 7, 2, 17, 1, True),
]
CELLS = ("lstm", "gru", "rnn")


def both(cell, params, inputs, **options):
    """((loss, outputs), gradients) of ours and of the scan's, each compiled as a whole."""

    def ours(x, h0, c0, p):
        out = scans.call(cell, x, h0, c0, p, **options)
        return scans.weighted(out), out

    def theirs(x, h0, c0, p):
        out = scans.network(cell, p, x, h0, c0, **renamed(options))
        return scans.weighted(out), out

    return [
        jax.jit(jax.value_and_grad(one, argnums=(0, 1, 2, 3), has_aux=True))(*inputs, params)
        for one in (ours, theirs)
    ]


def renamed(options):
    options = dict(options)
    if "sequence_lengths" in options:
        options["lengths"] = options.pop("sequence_lengths")
    if "activation" in options:
        options["activation"] = {"relu": jax.nn.relu, "softsign": jax.nn.soft_sign}[
            options["activation"]
        ]
    return options


def close(found, wanted, bound):
    """Elements differ by at most `bound` times the largest of their array, or 1."""
    found, wanted = jax.tree_util.tree_leaves(found), jax.tree_util.tree_leaves(wanted)
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
        if a.size:
            assert np.abs(a - b).max() <= bound * max(1.0, np.abs(b).max())


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_float64(cell, sizes, key):
    batch, time, width, units, layers, both_ways = sizes
    params = orx.init(
        key, cell, input_size=width, hidden_size=units, num_layers=layers,
        bidirectional=both_ways, dtype="float64",
    )  # fmt: skip
    inputs = scans.data(params, cell, batch, time, width)
    ours, theirs = both(cell, params, inputs, bidirectional=both_ways)
    close(ours, theirs, 1e-12)


@pytest.mark.parametrize("cell", CELLS)
def test_float32(cell, key):
    """Each side rounds at eps/2 some T * (I + U) times a path; 64 eps is above what that gives."""
    params = orx.init(key, cell, input_size=5, hidden_size=9, num_layers=2)
    inputs = scans.data(params, cell, 4, 11, 5, "float32")
    ours, theirs = both(cell, params, inputs)
    close(ours, theirs, 64 * np.finfo(np.float32).eps)


@pytest.mark.parametrize(("dtype", "eps"), [("bfloat16", 2.0**-8), ("float16", 2.0**-11)])
@pytest.mark.parametrize("cell", CELLS)
def test_16_bits(cell, dtype, eps, key):
    """The engine computes in float32 and rounds what it stores: of a scan in float64 over the same
    rounded numbers it is some roundings away."""
    params = orx.init(key, cell, input_size=3, hidden_size=6, dtype=dtype)
    inputs = scans.data(params, cell, 3, 5, 3, dtype)
    wide = jax.tree_util.tree_map(lambda a: a.astype("float64"), (params, inputs))
    found = scans.call(cell, *inputs, params)
    wanted = scans.network(cell, wide[0], *wide[1])
    for a, b in zip(found, wanted, strict=True):
        assert str(a.dtype) == dtype
        assert np.abs(np.asarray(a, np.float64) - np.asarray(b)).max() <= 4 * eps
    grads = jax.grad(lambda p: scans.weighted(
        [out.astype("float32") for out in scans.call(cell, *inputs, p)]))(params)
    wide_grads = jax.grad(lambda p: scans.weighted(scans.network(cell, p, *wide[1])))(wide[0])
    for a, b in zip(*map(jax.tree_util.tree_leaves, (grads, wide_grads)), strict=True):
        assert str(a.dtype) == dtype
        error = np.abs(np.asarray(a, np.float64) - np.asarray(b)).max()
        assert error <= 16 * eps * max(1.0, float(np.abs(b).max()))


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("lengths", [[4, 0, 7, 1], [0, 0, 0, 0], [7, 7, 7, 7]], ids=str)
def test_lengths(cell, lengths, key):
    params = orx.init(
        key, cell, input_size=3, hidden_size=4, bidirectional=True, num_layers=2, dtype="float64"
    )
    x, h0, c0 = scans.data(params, cell, 4, 7, 3)
    ours, theirs = both(
        cell, params, (x, h0, c0), bidirectional=True, sequence_lengths=jnp.asarray(lengths)
    )
    close(ours, theirs, 1e-12)
    padded = np.arange(7)[None] >= np.asarray(lengths)[:, None]
    spoiled = jnp.where(padded[..., None], jnp.nan, x)
    found = scans.call(
        cell, spoiled, h0, c0, params, bidirectional=True, sequence_lengths=np.asarray(lengths)
    )
    close(found, ours[0][1], 0.0)


def test_no_steps_and_no_rows(key):
    params = orx.init(key, input_size=3, hidden_size=4, dtype="float64")
    for batch, time in ((2, 0), (0, 5)):
        x, h0, c0 = scans.data(params, "lstm", batch, time, 3)
        y, hn, cn = orx.lstm(x, h0, c0, params)
        assert y.shape == (batch, time, 4)
        close((hn, cn), (h0, c0), 0.0)
        grads = jax.grad(lambda *a: scans.weighted(orx.lstm(*a)), argnums=(1, 3))(x, h0, c0, params)
        assert all(bool(jnp.all(leaf == 0)) for leaf in jax.tree_util.tree_leaves(grads[1]))


@pytest.mark.parametrize("cell", CELLS)
def test_time_major_has_the_same_bits(cell, key):
    params = orx.init(key, cell, input_size=3, hidden_size=5, num_layers=2, bidirectional=True)
    x, h0, c0 = scans.data(params, cell, 4, 6, 3, "float32")
    found = scans.call(cell, x, h0, c0, params, bidirectional=True)
    swapped = scans.call(
        cell, jnp.swapaxes(x, 0, 1), h0, c0, params, bidirectional=True, time_major=True
    )
    close((jnp.swapaxes(swapped[0], 0, 1), *swapped[1:]), found, 0.0)


def test_options_that_a_scan_can_say(key):
    gru = orx.init(key, "gru", input_size=3, hidden_size=4, dtype="float64")
    x, h0, c0 = scans.data(gru, "gru", 3, 5, 3)
    close(*both("gru", gru, (x, h0, c0), reset_after=False), 1e-12)
    plain = orx.init(key, "rnn", input_size=3, hidden_size=4, dtype="float64")
    close(*both("rnn", plain, (x, h0, c0), activation="relu"), 1e-12)
    close(*both("rnn", plain, (x, h0, c0), activation="softsign"), 1e-12)
    narrow = orx.init(key, input_size=3, hidden_size=5, proj_size=2, num_layers=2, dtype="float64")
    inputs = (x, scans.values(4, (2, 3, 2)), scans.values(5, (2, 3, 5)))
    close(*both("lstm", narrow, inputs), 1e-12)


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("kept", [(), ("b_ih",)], ids=["none", "one"])
def test_fewer_biases(cell, kept, key):
    params = orx.init(
        key, cell, input_size=3, hidden_size=4, num_layers=2, dtype="float64",
        use_bias=bool(kept), single_bias=bool(kept),
    )  # fmt: skip
    assert set(params[0]) == {"w_ih", "w_hh", *kept}
    close(*both(cell, params, scans.data(params, cell, 2, 4, 3)), 1e-12)


def test_none_is_zeros(key):
    params = orx.init(key, input_size=3, hidden_size=4)
    x, h0, c0 = scans.data(params, "lstm", 2, 3, 3, "float32")
    close(orx.lstm(x, None, None, params), orx.lstm(x, h0 * 0, c0 * 0, params), 0.0)


def test_options_of_the_engine_agree_with_its_layers(key):
    """Peepholes and layer normalization, against openrnn.layers over the same opaque buffer."""
    options = {"use_peepholes": True, "layer_norm": "products", "cell_clip": (-0.3, 0.4)}
    params = orx.init(key, input_size=3, hidden_size=4, **options)
    assert {"peephole", "gain_ih", "gain_hh"} <= set(params[0])
    params = jax.tree_util.tree_map(lambda a: a + 0.01 * jnp.arange(a.size).reshape(a.shape), params)
    x, h0, c0 = scans.data(params, "lstm", 2, 5, 3, "float32")
    x = jnp.swapaxes(x, 0, 1)
    y, hn, cn = orx.lstm(x, h0, c0, params, time_major=True, **options)
    layer = openrnn.cudnn_rnn.CudnnLSTM(1, 4, **options)
    layer.build(x.shape)
    layer.trainable_variables[0].assign(np.asarray(orx.flatten(params, **options)))
    wanted, states = layer(np.asarray(x), (np.asarray(h0), np.asarray(c0)))
    for found, expected in zip((y, hn, cn), (wanted, *states), strict=True):
        assert np.array_equal(np.asarray(found), expected.numpy())


def test_flatten_is_undone_by_unflatten(key):
    for cell in CELLS:
        params = orx.init(key, cell, input_size=3, hidden_size=4, num_layers=2, bidirectional=True)
        flat = orx.flatten(params, cell, bidirectional=True)
        again = orx.unflatten(
            flat, cell, input_size=3, hidden_size=4, num_layers=2, bidirectional=True
        )
        close(again, params, 0.0)


def test_init_draws_what_it_says():
    key = jax.random.key(3)
    params = orx.init(key, input_size=30, hidden_size=25)
    for leaf in jax.tree_util.tree_leaves(params):
        assert float(jnp.abs(leaf).max()) <= 0.2 and float(jnp.std(leaf)) > 0.08
    glorot = orx.init(key, "gru", input_size=30, hidden_size=25, method="glorot", dtype="float64")[0]
    for gate in jnp.split(glorot["w_hh"], 3):
        assert float(jnp.abs(gate @ gate.T - jnp.eye(25)).max()) < 1e-12
    limit = (6 / 55) ** 0.5
    assert 0.95 * limit < float(jnp.abs(glorot["w_ih"]).max()) <= limit
    assert not glorot["b_ih"].any() and not glorot["b_hh"].any()
    same = orx.init(key, "gru", input_size=30, hidden_size=25, method="glorot", dtype="float64")[0]
    assert all(bool(jnp.array_equal(same[name], glorot[name])) for name in same)
