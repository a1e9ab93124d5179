"""The NumPy model and the engines against ONNX Runtime in float32."""

from itertools import product

import numpy as np
import pytest

from model import onnx_models
import rnn_capi
from engine_check import assert_within
from model.error_bound import Bounded, bound
from model.numpy_layout import Spec
from model.rnn_data import make_problem

CASES = list(
    product(
        ["lstm", "gru", "rnn_tanh", "rnn_relu"],
        ["unidirectional", "bidirectional"],
        [None, "mixed"],
        # layers, units, input size, time, batch
        [(1, 7, 5, 6, 4), (2, 17, 3, 5, 3), (1, 33, 17, 3, 7), (2, 1, 1, 1, 1)],
    )
)


def make_case(mode, direction, lengths, sizes):
    layers, units, width, time, batch = sizes
    spec = Spec(mode, layers, units, width, direction=direction)
    problem = make_problem(spec, time, batch, np.float32, lengths)
    if problem.lengths is not None:
        # For a row of length zero ONNX Runtime gives zeros in place of the initial state.
        problem.lengths = np.maximum(problem.lengths, 1)
    h0, c0 = problem.states
    wanted = bound(spec, np.float32, problem.params, problem.x, h0, c0, problem.lengths, None)
    return problem, wanted


@pytest.mark.parametrize("mode,direction,lengths,sizes", CASES)
def test_numpy_model(mode, direction, lengths, sizes):
    problem, wanted = make_case(mode, direction, lengths, sizes)
    for name, value in onnx_models.run(problem).items():
        assert_within(value, wanted[name], name)


@pytest.mark.parametrize("engine", ["reference", "cpu"])
@pytest.mark.parametrize("mode,direction,lengths,sizes", CASES)
def test_engine(engine, mode, direction, lengths, sizes):
    """Two float32 implementations may differ by the sum of both bounds."""
    problem, wanted = make_case(mode, direction, lengths, sizes)
    theirs, ours = onnx_models.run(problem), rnn_capi.run(engine, problem)
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        both = 2.0 * wanted[name].error
        assert_within(value, Bounded(theirs[name], 0.0, both), name)
