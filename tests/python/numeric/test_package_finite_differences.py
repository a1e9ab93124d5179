"""Gradients of the package against differences of its own float64 results.

A central difference of the fourth order, (f(-2d) - 8 f(-d) + 8 f(d) - f(2d)) / 12 d, errs by what f
errs, 18 / 12 d of it, and by d^4 / 30 times the fifth derivative along the line. The first is the
derived bound of the loss; the second is measured: with 2 d the same term is 16 times as large, so
that the difference of the two estimates is 15 times the error of the finer one.
"""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from model import package_run
from model.error_bound import bound
from model.numpy_layout import Spec
from model.rnn_data import make_problem

MODES = ["lstm", "gru", "rnn_tanh"]
DIRECTIONS = ["unidirectional", "bidirectional"]
SPECS = [
    Spec(mode, 2, 3, 3 if inputs == "skip_input" else 2, inputs, direction)
    for mode, direction, inputs in product(MODES, DIRECTIONS, ["linear_input", "skip_input"])
] + [Spec("lstm", 2, 3, 2, direction=direction, num_proj=2) for direction in DIRECTIONS]
NAMES = ["x", "h0", "c0", "params"]
LENGTHS = np.array([3, 0, 2])


def loss(call, problem):
    """The sum of every result times its upstream gradient, without rounding between the terms."""
    found = package_run.run(call, problem, training=False, gradients=False)
    pairs = zip(found.values(), problem.upstream)
    return np.sum([np.sum(value.astype(np.longdouble) * upstream) for value, upstream in pairs])


def loss_error(problem):
    """Bound on the error of the loss of a problem nearby."""
    h0, c0 = problem.states
    found = bound(
        problem.spec, np.float64, problem.params, problem.x, h0, c0, problem.lengths, None
    )
    pairs = zip(found.values(), problem.upstream)
    return sum(np.sum(value.error * np.abs(upstream)) for value, upstream in pairs)


def difference(function, delta):
    values = [function(step * delta) for step in (-2, -1, 1, 2)]
    return (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * delta)


@pytest.mark.parametrize("call", package_run.CALLS)
@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_along_random_lines(spec, call):
    """Each argument alone along three lines, and all of them together."""
    problem = make_problem(spec, 3, 3, np.float64, LENGTHS, seed=4)
    gradients = package_run.run(call, problem)
    names = [name for name in NAMES if "d" + name in gradients]
    rng, delta = np.random.default_rng(9), 2.0**-8
    for moved in [[name] for name in names for _ in range(3)] + [names]:
        lines = {name: rng.uniform(-1, 1, getattr(problem, name).shape) for name in moved}
        along = lambda step: loss(
            call,
            replace(problem, **{n: getattr(problem, n) + step * line for n, line in lines.items()}),
        )
        fine, coarse = difference(along, delta), difference(along, 2 * delta)
        error = np.abs(fine - coarse) + 2 * 18 / (12 * delta) * loss_error(problem)
        wanted = sum(np.sum(gradients["d" + name] * line) for name, line in lines.items())
        assert np.abs(fine - wanted) <= error, moved
        assert error < 1e-5 * np.abs(wanted) + 1e-7, moved
