"""A GRU with a projection: its equations written out, its two states through layers, models,
sessions and pools of streams, and what refuses it."""

import numpy as np
import openrnn
import pytest
from openrnn import cudnn_rnn, layers

import rnn_capi
from model.cells import cell_problems, cell_spec
from model.cells.cell_spec import CellSpec

X = np.linspace(-1, 1, 6 * 3 * 4, dtype=np.float64).reshape(6, 3, 4) ** 3


def make_layer(**more):
    layer = layers.GRU(7, 2, num_proj=3, proj_clip=0.5, seed=4, dtype="float64", **more)
    layer.build((None, None, 4))
    return layer


def test_the_equations_written_out():
    spec = CellSpec("gru", 1, 5, 3, num_proj=2)
    problem = cell_problems.make(spec, time=4)
    ((matrices, b, *_),) = cell_spec.split(spec, problem.params)
    W, R, Wp = matrices[:3], matrices[3:6], matrices[6]
    h, c = problem.h0[0], problem.c0[0]
    sigmoid = lambda a: 1 / (1 + np.exp(-a))
    for engine in ["reference", "cpu"]:
        found = rnn_capi.run(engine, problem)
        h, c = problem.h0[0], problem.c0[0]
        for t, x in enumerate(problem.x):
            r, z = (sigmoid(x @ W[k].T + b[k] + h @ R[k].T + b[3 + k]) for k in (0, 1))
            n = np.tanh(x @ W[2].T + b[2] + r * (h @ R[2].T + b[5]))
            c = (1 - z) * n + z * c
            h = c @ Wp.T
            np.testing.assert_allclose(found["y"][t], h, rtol=0, atol=1e-14)
        np.testing.assert_allclose(found["c"][0], c, rtol=0, atol=1e-14)


def test_a_layer_has_two_states_that_go_on():
    layer = make_layer()
    y, (h, c) = layer(X, training=False)
    assert (y.shape, h.shape, c.shape) == ((6, 3, 3), (2, 3, 3), (2, 3, 7))
    first, states = layer(X[:2], training=False)
    second, states = layer(X[2:], states, training=False)
    assert np.array_equal(np.concatenate([first, second]), y)
    assert np.array_equal(states[1], c) and np.array_equal(states[0], h)
    with pytest.raises(ValueError, match=r"expected 2: \(h, c\)"):
        layer(X, (h,), training=False)
    _, _, every = layer(X, training=False, return_all=True)
    assert np.array_equal(np.asarray(every.cells[1])[-1], np.asarray(c)[1])
    assert type(layer).from_config(layer.get_config()).get_config() == layer.get_config()


def test_models_sessions_and_streams_have_the_same_bits():
    layer = make_layer()
    y, (h, c) = layer(X, training=False)
    x_in = openrnn.Input(batch_shape=(None, None, 4), dtype="float64")
    out, states = layer(x_in, training=False)
    model = openrnn.Model(x_in, [out, *states])
    for ours, theirs in zip(model(X), [y, h, c], strict=True):
        assert np.array_equal(ours, theirs)
    packed = openrnn.PackedModel.from_layer(layer)
    found, state = openrnn.InferenceSession(packed).run(X)
    assert np.array_equal(found, y)
    assert np.array_equal(state[0], h) and np.array_equal(state[1], c)
    session = openrnn.InferenceSession(packed)
    _, between = session.run(X[:2])
    assert np.array_equal(session.run(X[2:], between)[0], np.asarray(y)[2:])


def test_masks_and_resets_take_both_states():
    layer = make_layer()
    reset = np.zeros((6, 3), bool)
    reset[2, 1] = True
    y, (_, c) = layer(X, training=False, reset=reset)
    own, (_, own_c) = layer(X[2:, 1:2], training=False)
    np.testing.assert_array_equal(np.asarray(y)[2:, 1:2], own)
    np.testing.assert_array_equal(np.asarray(c)[:, 1:2], own_c)


def test_what_has_no_place_for_it_refuses_it():
    with pytest.raises(ValueError, match="num_proj is set with reset_after false"):
        layers.GRU(5, num_proj=2, reset_after=False)
    with pytest.raises(ValueError, match="layer_norm is 'products' with num_proj of a gru"):
        layers.GRU(5, num_proj=2, layer_norm="products")
    with pytest.raises(ValueError, match="num_proj is 6, expected 0"):
        layers.GRU(5, num_proj=6)
    with pytest.raises(TypeError, match="unexpected keyword argument 'num_proj'"):
        cudnn_rnn.ops.CudnnGRU(1, 5, 3, num_proj=2)
    assert len(layers.GRU(5, num_proj=5).state_shape(2)) == 1
    found = openrnn.explain(num_units=8, input_size=3, rnn_mode="gru", num_proj=3)
    assert found.engine == "cpu" and found.kernels == "gru step with options: num_proj 3"
