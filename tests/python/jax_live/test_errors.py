"""Texts of errors, and what is not the engine's."""

import jax
import jax.numpy as jnp
import numpy as np
import openrnn.jax as orx
import pytest
import scans
from openrnn.errors import ArgumentError, UnsupportedError

X = np.zeros((2, 5, 3), np.float32)


@pytest.fixture
def params(key):
    return orx.init(key, input_size=3, hidden_size=4)


def changed(params, **values):
    return [{**params[0], **values}, *params[1:]]


def without(params, name):
    return [{k: v for k, v in params[0].items() if k != name}]


CASES = [
    (lambda p: orx.lstm(X[0], None, None, p),
     "[openrnn.jax.lstm] x is float32 [5, 3], expected float32 [B, T, I] with I = 3"),
    (lambda p: orx.lstm(X.astype(np.float64), None, None, p, time_major=True),
     "x is float64 [2, 5, 3], expected float32 [T, B, I] with I = 3"),
    (lambda p: orx.lstm(X, np.zeros((1, 3, 4), np.float32), None, p),
     "h0 is float32 [1, 3, 4], expected float32 [1, 2, 4]"),
    (lambda p: orx.lstm(X, None, np.zeros((1, 2, 4)), p),
     "c0 is float64 [1, 2, 4], expected float32 [1, 2, 4]"),
    (lambda p: orx.lstm(X, None, None, p, sequence_lengths=[1, 2, 3]),
     "sequence_lengths is int64 [3], expected integers [2]"),
    (lambda p: orx.lstm(X, None, None, p, sequence_lengths=[1.0, 2.0]),
     "sequence_lengths is float64 [2], expected integers [2]"),
    (lambda p: orx.lstm(X, None, None, p[0]),
     "params is dict, expected a list of one dict a layer"),
    (lambda p: orx.flatten([*p, 3]), "params[1] is int, expected a dict"),
    (lambda p: orx.lstm(X, None, None, p, bidirectional=True),
     "params is 1 dicts, expected a list of one dict for each layer and direction"),
    (lambda p: orx.lstm(X, None, None, without(p, "w_hh")),
     "params[0]['w_hh'] is missing, expected a matrix"),
    (lambda p: orx.lstm(X, None, None, changed(p, w_hh=np.zeros((6, 4), np.float32))),
     "params[0]['w_hh'] has 6 rows, expected a multiple of 4"),
    (lambda p: orx.lstm(X, None, None, changed(p, b_hh=np.zeros(12, np.float32))),
     "params[0]['b_hh'] is float32 [12], expected float32 [16]"),
    (lambda p: orx.lstm(X, None, None, changed(p, peephole=np.zeros(12, np.float32))),
     "params[0] has 'peephole', which this network has not"),
    (lambda p: orx.lstm(X, None, None, without(p, "b_ih")),
     "params[0] has no 'b_ih', expected [16]"),
    (lambda p: orx.gru(X, None, orx.init(jax.random.key(0), "gru", input_size=3, hidden_size=4),
                       c0=np.zeros((1, 2, 4), np.float32)),
     "[openrnn.jax.gru] c0 is given, expected None: only a projected gru has one"),
    (lambda p: orx.gru(X, None, orx.pack(p)),
     "[openrnn.jax.gru] params are packed for lstm, expected gru"),
    (lambda p: orx.lstm(X, None, None, orx.pack(p), cell_clip=3.0),
     "cell_clip is given beside packed params, expected it in openrnn.jax.pack"),
    (lambda p: jax.jit(orx.pack)(p),
     "[openrnn.jax.pack] params are traced, expected arrays"),
    (lambda p: orx.init(jax.random.key(0), "tree", input_size=3, hidden_size=4),
     "[openrnn.jax.init] cell is 'tree', expected 'lstm', 'gru' or 'rnn'"),
    (lambda p: orx.init(jax.random.key(0), input_size=3, hidden_size=4, method="he"),
     "[openrnn.jax.init] method is 'he', expected 'uniform' or 'glorot'"),
    (lambda p: orx.unflatten(jnp.zeros(7), input_size=3, hidden_size=4),
     "[openrnn.jax.unflatten] buffer is float64 [7], expected [144]"),
    (lambda p: orx.from_flax({"ii": 1}), "and no 'if', expected those of one cell of flax.linen"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "text"), CASES, ids=[text for _, text in CASES])
def test_a_bad_argument(call, text, params):
    with pytest.raises(ArgumentError) as raised:
        call(params)
    assert text in str(raised.value)


def test_a_packed_tree_that_somebody_changed(params):
    packed = jax.tree_util.tree_map(lambda a: a.astype(jnp.float16), orx.pack(params))
    with pytest.raises(ArgumentError, match="the buffer of packed params is float16"):
        orx.lstm(X, None, None, packed)


def test_options_of_operations(params):
    with pytest.raises(UnsupportedError, match="input_dropout is an option of openrnn.layers"):
        orx.lstm(X, None, None, params, input_dropout=0.5)
    with pytest.raises(TypeError, match="depth"):
        orx.lstm(X, None, None, params, depth=2)


@pytest.mark.parametrize("length", [-1, 6])
def test_a_length_outside_is_the_runtimes_error(length, params):
    with pytest.raises(Exception, match=rf"sequence_lengths\[1\] is {length}, expected 0 to 5"):
        jax.block_until_ready(
            orx.lstm(X, None, None, params, sequence_lengths=np.array([2, length]))
        )


def test_a_gpu_is_refused_by_name(params):
    traced = jax.jit(lambda x: orx.lstm(x, None, None, params)).trace(X)
    with pytest.raises(UnsupportedError, match="compiled for cuda, expected cpu: on a GPU use jax"):
        traced.lower(lowering_platforms=("cuda",))
    assert "openrnn_forward" in traced.lower(lowering_platforms=("cpu",)).as_text()


def test_flax_cells(key):
    nn = pytest.importorskip("flax.linen")
    for cell, kind in (("lstm", nn.OptimizedLSTMCell), ("lstm", nn.LSTMCell), ("gru", nn.GRUCell),
                       ("rnn", nn.SimpleCell)):  # fmt: skip
        x = scans.values(1, (2, 5, 3), "float32")
        model = nn.RNN(kind(7))
        variables = model.init(key, x)
        variables = jax.tree_util.tree_map(
            lambda a: a + 0.05 * jnp.cos(jnp.arange(a.size, dtype=a.dtype)).reshape(a.shape), variables
        )
        wanted = model.apply(variables, x)
        theirs = variables["params"]["cell"]
        ours = orx.from_flax(theirs, cell)
        y = scans.call(cell, x, None, None, [ours])[0]
        assert float(jnp.abs(y - wanted).max()) < 2e-6
        back = orx.to_flax(ours, cell)
        assert jax.tree_util.tree_structure(back) == jax.tree_util.tree_structure(theirs)
        assert all(
            bool(jnp.array_equal(a, b))
            for a, b in zip(*map(jax.tree_util.tree_leaves, (back, theirs)), strict=True)
        )
        two = orx.init(key, cell, input_size=3, hidden_size=7)[0]
        y = scans.call(cell, x, None, None, [two])[0]
        wanted = model.apply({"params": {"cell": orx.to_flax(two, cell)}}, x)
        assert float(jnp.abs(y - wanted).max()) < 2e-6
