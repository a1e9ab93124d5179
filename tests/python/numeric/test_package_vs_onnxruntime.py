"""Layers and op-level models against ONNX Runtime in float32, the weights through canonical lists.

A stack is one ONNX operator a layer. For a row of length zero ONNX Runtime gives zeros in place of
the initial state, so every row has a step.
"""

from itertools import product

import numpy as np
import pytest

from engine_check import assert_within
from model import onnx_models, package_run
from model.error_bound import Bounded, bound
from model.numpy_layout import Spec
from model.rnn_data import make_problem

MODES = ["lstm", "gru", "rnn_tanh", "rnn_relu"]
DIRECTIONS = ["unidirectional", "bidirectional"]
# layers, units, input size, time, batch
SIZES = [(1, 7, 5, 6, 4), (2, 17, 3, 5, 3), (3, 3, 15, 4, 2), (1, 33, 17, 3, 7), (2, 1, 1, 1, 1)]
CASES = list(product(MODES, DIRECTIONS, [None, "mixed"], SIZES))


def make_case(mode, direction, lengths, sizes):
    layers, units, width, time, batch = sizes
    spec = Spec(mode, layers, units, width, direction=direction)
    problem = make_problem(spec, time, batch, np.float32, lengths, seed=8)
    if problem.lengths is not None:
        problem.lengths = np.maximum(problem.lengths, 1)
    h0, c0 = problem.states
    return problem, bound(
        spec, np.float32, problem.params, problem.x, h0, c0, problem.lengths, None
    )


def assert_equal(ours, theirs, wanted):
    """Two float32 implementations may differ by the sum of both bounds."""
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        assert_within(value, Bounded(theirs[name], 0.0, 2.0 * wanted[name].error), name)


@pytest.mark.parametrize("mode,direction,lengths,sizes", CASES)
def test_onnx_computes_from_our_lists(mode, direction, lengths, sizes):
    problem, wanted = make_case(mode, direction, lengths, sizes)
    model = package_run.make_op(problem.spec, np.float32)
    theirs = onnx_models.run(problem, model.params_to_canonical(problem.params))
    for call in package_run.CALLS:
        ours = package_run.run(call, problem, training=False, gradients=False)
        assert_equal(ours, theirs, wanted)


@pytest.mark.parametrize("mode,direction", list(product(MODES, DIRECTIONS)))
def test_weights_come_from_onnx(mode, direction):
    """W, R and B of every layer become the buffer bit for bit."""
    problem, _ = make_case(mode, direction, None, SIZES[1])
    spec = problem.spec
    model = package_run.make_op(spec, np.float32)
    weights, biases = model.params_to_canonical(problem.params)
    layers = [onnx_models.from_canonical(spec, weights, biases, k) for k in range(spec.num_layers)]
    again = model.canonical_to_params(*onnx_models.to_canonical(spec, layers))
    assert np.array_equal(again, problem.params)


@pytest.mark.parametrize("mode,direction", list(product(MODES, DIRECTIONS)))
def test_batch_major(mode, direction):
    problem, wanted = make_case(mode, direction, "mixed", SIZES[1])
    ours = package_run.run("layer", problem, training=False, gradients=False, time_major=False)
    assert_equal(ours, onnx_models.run(problem), wanted)
