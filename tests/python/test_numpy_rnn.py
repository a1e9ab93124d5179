"""The NumPy model against itself: its gradients are those of its forward pass, its bounds hold."""

from itertools import product

import numpy as np
import pytest

from model import numpy_rnn
from model.error_bound import bound
from model.numpy_layout import Spec
from model.rnn_data import make_problem

MODES = ["lstm", "gru", "rnn_tanh", "rnn_relu"]
MODES_DIRECTIONS = list(product(MODES, ["unidirectional", "bidirectional"]))
SPECS = [
    Spec(mode, layers, 2, 2 if inputs == "skip_input" else 3, inputs, direction)
    for mode, layers, inputs, direction in product(
        MODES, [1, 2], ["linear_input", "skip_input"], ["unidirectional", "bidirectional"]
    )
] + [
    Spec("lstm", 2, 3, 2, num_proj=2, direction="bidirectional"),
    Spec("lstm", 2, 3, 2, cell_clip=(-0.25, 0.375)),
]


def dropout_masks(spec, time, batch, seed=5):
    """Masks of rate 0.5 between the layers."""
    rng = np.random.default_rng(seed)
    shape = (time, batch, spec.num_dirs * spec.state_width)
    return [2.0 * (rng.uniform(size=shape) < 0.5) for _ in range(spec.num_layers - 1)]


def five_point(function, array, delta=1e-3):
    """Gradient of a scalar function by central differences of the fourth order."""
    gradient = np.zeros(array.shape)
    for index in np.ndindex(array.shape):
        values = []
        for step in (-2, -1, 1, 2):
            moved = array.copy()
            moved[index] += step * delta
            values.append(function(moved))
        gradient[index] = (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * delta)
    return gradient


def run(problem, masks, **changed):
    """(loss, y, h, c, tape) with some of params, x, h0, c0 exchanged."""
    given = {"params": problem.params, "x": problem.x, "h0": problem.h0, "c0": problem.c0}
    given.update(changed)
    y, h, c, tape = numpy_rnn.forward(problem.spec, **given, lengths=problem.lengths, masks=masks)
    loss = np.sum(y * problem.dy) + np.sum(h * problem.dh)
    return loss + (0.0 if c is None else np.sum(c * problem.dc)), y, h, c, tape


def clear_of_the_kink(tape):
    """Differences across the kink of relu would be wrong, and units that are all off have none."""
    valid = tape.valid[:, :, 0]
    a = np.concatenate([s[2][v] for steps in tape.steps for s, v in zip(steps, valid)])
    return np.abs(a).min() > 3e-3 and 0.4 < np.mean(a > 0) < 0.9


def kink_free_problem(spec, masks):
    """For relu the first seed whose pre-activations stay clear of 0."""
    for seed in range(200):
        problem = make_problem(spec, 3, 2, lengths=np.array([2, 3]), seed=seed)
        if spec.mode != "rnn_relu" or clear_of_the_kink(run(problem, masks)[-1]):
            return problem
    raise AssertionError("no seed stays clear of the kink")


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_gradients_are_finite_differences(spec):
    masks = dropout_masks(spec, 3, 2)
    problem = kink_free_problem(spec, masks)
    tape = run(problem, masks)[-1]
    found = dict(zip(("x", "h0", "c0", "params"), numpy_rnn.backward(tape, *problem.upstream)))
    for name, gradient in found.items():
        if gradient is None:
            continue
        start = getattr(problem, name)
        wanted = five_point(lambda value: run(problem, masks, **{name: value})[0], start)
        assert np.abs(gradient - wanted).max() <= 1e-8 * np.abs(wanted).max(), name
        assert np.abs(wanted).max() > 1e-3


def test_the_clip_is_met():
    spec = Spec("lstm", 2, 3, 2, cell_clip=(-0.25, 0.375))
    problem = make_problem(spec, 4, 3)
    tape = run(problem, None)[-1]
    cells = np.array([[step[7] for step in steps] for steps in tape.steps])
    assert cells.min() == -0.25 and cells.max() == 0.375
    assert 0.2 < np.mean((cells > -0.25) & (cells < 0.375)) < 0.8


@pytest.mark.parametrize("mode,direction", MODES_DIRECTIONS)
def test_a_row_of_length_zero_passes_through(mode, direction):
    spec = Spec(mode, 2, 3, 2, direction=direction)
    problem = make_problem(spec, 4, 3, lengths=np.array([2, 0, 4]))
    _, y, h, c, tape = run(problem, None)
    dx, dh0, dc0, dparams = numpy_rnn.backward(tape, *problem.upstream)
    assert not y[:, 1].any() and not dx[:, 1].any()
    assert np.array_equal(h[:, 1], problem.h0[:, 1])
    assert np.array_equal(dh0[:, 1], problem.dh[:, 1])
    if mode == "lstm":
        assert np.array_equal(c[:, 1], problem.c0[:, 1])
        assert np.array_equal(dc0[:, 1], problem.dc[:, 1])
    assert np.isfinite(dparams).all() and dparams.any()


@pytest.mark.parametrize("mode,direction", MODES_DIRECTIONS)
def test_each_row_is_as_if_alone_and_cut_to_its_length(mode, direction):
    spec = Spec(mode, 2, 3, 2, direction=direction)
    problem = make_problem(spec, 5, 3, lengths=np.array([2, 5, 3]))
    padded = problem.x.copy()
    for b, length in enumerate(problem.lengths):
        padded[length:, b] = np.nan
    y, h, _, _ = numpy_rnn.forward(
        spec, problem.params, padded, problem.h0, problem.c0, problem.lengths
    )
    for b, length in enumerate(problem.lengths):
        row = slice(b, b + 1)
        alone = numpy_rnn.forward(
            spec, problem.params, problem.x[:length, row], problem.h0[:, row], problem.c0[:, row]
        )
        np.testing.assert_allclose(y[:length, row], alone[0], rtol=1e-13, atol=1e-15)
        np.testing.assert_allclose(h[:, row], alone[1], rtol=1e-13, atol=1e-15)
        assert not y[length:, row].any()


def test_no_steps_and_no_rows():
    spec = Spec("lstm", 2, 3, 2, direction="bidirectional")
    problem = make_problem(spec, 0, 2)
    _, y, h, _, tape = run(problem, None)
    dx, dh0, _, dparams = numpy_rnn.backward(tape, *problem.upstream)
    assert y.shape == (0, 2, 6) and dx.shape == (0, 2, 2)
    assert np.array_equal(h, problem.h0) and np.array_equal(dh0, problem.dh)
    assert not dparams.any() and dparams.shape == problem.params.shape
    assert numpy_rnn.forward(spec, problem.params, np.zeros((4, 0, 2)))[0].shape == (4, 0, 6)


def as_float32(problem, masks):
    """The same pass in float32 arithmetic: it stands for an engine."""
    cut = lambda a: None if a is None else a.astype(np.float32)
    spec = problem.spec
    masks = [cut(mask) for mask in masks]
    y, h, c, tape = numpy_rnn.forward(
        spec,
        cut(problem.params),
        cut(problem.x),
        cut(problem.h0),
        cut(problem.c0),
        None,
        masks,
        cut,
    )
    upstream = [cut(each) for each in problem.upstream]
    return (y, h, c) + numpy_rnn.backward(tape, *upstream)


@pytest.mark.parametrize("spec", [s for s in SPECS if s.num_layers == 2], ids=str)
def test_bounds_hold_for_float32_and_are_not_empty(spec):
    masks = dropout_masks(spec, 4, 3)
    problem = make_problem(spec, 4, 3, np.float32)
    exact = bound(
        spec,
        np.float32,
        problem.params,
        problem.x,
        problem.h0,
        problem.c0,
        None,
        masks,
        problem.upstream,
    )
    found = as_float32(problem, masks)
    for name, value in zip(("y", "h", "c", "dx", "dh0", "dc0", "dparams"), found):
        if value is None:
            continue
        error = np.abs(value - exact[name].value)
        assert (error <= exact[name].error).all(), name
        # A bound of a thousand times the real error would not see a wrong last layer.
        assert exact[name].error.max() <= 1000 * error.max() + 1e-7, name
        assert exact[name].error.max() < 1e-4, name
