"""Derivatives at the very kink of a function and at the ends of a clip, as docs/cells_reference.md
names them: one unit whose pre-activation is x."""

import numpy as np
import openrnn
import pytest

import rnn_capi
from model.cells import cell_problems
from model.cells.cell_spec import CellSpec
from model.rnn_data import Problem

# (activation, {pre-activation: derivative}); numbers that every dtype has.
AT_KINKS = [
    ("relu", {0.0: 0.0, 0.5: 1.0, -0.5: 0.0}),
    ("leaky_relu(0.25)", {0.0: 0.25, 0.5: 1.0, -0.5: 0.25}),
    ("elu(0.5)", {0.0: 0.5, 0.5: 1.0}),
    ("thresholded_relu(0.75)", {0.75: 0.0, 0.875: 1.0, 0.5: 0.0, -1.0: 0.0}),
    ("hard_sigmoid(0.25, 0.5)", {-2.0: 0.0, 2.0: 0.0, 1.0: 0.25, 3.0: 0.0, -3.0: 0.0}),
    ("softsign", {0.0: 1.0, 1.0: 0.25, -1.0: 0.25}),
    ("softplus", {0.0: 0.5, 100.0: 1.0, -100.0: 0.0}),
    ("linear", {0.0: 1.0, 5.0: 1.0}),
]
CLIP = (-0.5, 0.75)
AT_ENDS = {-0.5: 1.0, 0.75: 1.0, 0.25: 1.0, -0.625: 0.0, 0.875: 0.0}


def slopes(engine, spec, dtype, params, numbers, source="x"):
    """d y / d source at each number, one row of the batch each."""
    rows = len(numbers)
    column = lambda values: np.array(values, dtype).reshape(1, rows, 1)
    zero, one = column([0.0] * rows), column([1.0] * rows)
    given = {"x": zero, "h0": zero, "c0": zero} | {source: column(numbers)}
    problem = Problem(
        spec, np.array(params, dtype), **given, lengths=None, dy=one, dh=zero, dc=zero
    )
    found = rnn_capi.run(engine, problem, saving=True, backward_calls=1)
    model = cell_problems.wanted(problem)
    cell_problems.assert_close(found, model, dtype)
    return found["d" + source].ravel()


@pytest.mark.parametrize("engine", ["reference", "cpu"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("activation,wanted", AT_KINKS)
def test_kink_of_an_activation(engine, dtype, activation, wanted):
    spec = CellSpec("rnn_tanh", 1, 1, 1, activation=activation, use_bias=False)
    found = slopes(engine, spec, dtype, [1.0, 0.0], list(wanted))
    np.testing.assert_allclose(found, list(wanted.values()), atol=1e-6)


@pytest.mark.parametrize("engine", ["reference", "cpu"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_ends_of_a_clip(engine, dtype):
    """gate_clip, proj_clip and cell_clip: the gradient passes at both ends."""
    plain = {"activation": "linear", "use_bias": False}
    spec = CellSpec("rnn_tanh", 1, 1, 1, gate_clip=CLIP, **plain)
    found = slopes(engine, spec, dtype, [1.0, 0.0], list(AT_ENDS))
    np.testing.assert_array_equal(found, list(AT_ENDS.values()))
    # c = 1 c' + 1 0 and h = 1 c: f and o are constant, as the weights are zero.
    spec = CellSpec(
        "lstm", 1, 1, 1, cell_clip=CLIP, output_activation="linear",
        recurrent_activation="affine(1, 1)", **plain,
    )  # fmt: skip
    found = slopes(engine, spec, dtype, [0.0] * 8, list(AT_ENDS), "c0")
    np.testing.assert_array_equal(found, list(AT_ENDS.values()))


@pytest.mark.parametrize("engine", ["reference", "cpu"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_ends_of_a_projection_s_clip(engine, dtype):
    """Two units, of which the projection takes the first."""
    spec = CellSpec(
        "rnn_tanh", 1, 2, 1, num_proj=1, proj_clip=CLIP, activation="linear", use_bias=False
    )
    # W [2, 1], R [2, 1], Wp [1, 2]
    found = slopes(engine, spec, dtype, [1.0, 2.0, 0.0, 0.0, 1.0, 0.0], list(AT_ENDS))
    np.testing.assert_array_equal(found, list(AT_ENDS.values()))


def unit(activation, dtype="float64", **options):
    """A layer of one unit whose pre-activation is x."""
    layer = openrnn.layers.RNN(1, activation=activation, use_bias=False, dtype=dtype, **options)
    layer.build((None, None, 1))
    layer.kernel.assign([1.0, 0.0])
    return lambda x: layer(x)[0]


# The second derivative's own slopes are those of the first.
@pytest.mark.parametrize("activation,wanted", AT_KINKS)
def test_a_tangent_at_the_kink_of_an_activation(activation, wanted):
    x = np.array(list(wanted)).reshape(1, -1, 1)
    _, found = openrnn.jvp(unit(activation), [x], [np.full(x.shape, 2.0)])
    np.testing.assert_allclose(found.numpy().ravel() / 2, list(wanted.values()), atol=1e-12)


def test_a_tangent_at_the_ends_of_a_clip():
    x = np.array(list(AT_ENDS)).reshape(1, -1, 1)
    _, found = openrnn.jvp(unit("linear", gate_clip=CLIP), [x], [np.full(x.shape, 2.0)])
    np.testing.assert_array_equal(found.numpy().ravel() / 2, list(AT_ENDS.values()))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("activation", [activation for activation, _ in AT_KINKS])
def test_an_activation_of_nan_is_nan(activation, dtype):
    x = np.array([np.nan, 1.0, -np.nan], dtype).reshape(1, 3, 1)
    # With the clip each is a function of the options, without it some have kernels of their own.
    for options in ({}, {"gate_clip": (-9.0, 9.0)}):
        found = unit(activation, dtype, **options)(x).numpy().ravel()
        np.testing.assert_array_equal(np.isnan(found), [True, False, True])
