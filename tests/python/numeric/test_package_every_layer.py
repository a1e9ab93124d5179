"""Outputs of every layer and cells of every step, as `return_all` gives them."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from engine_check import assert_within, poisoned
from model import numpy_layout, numpy_rnn, package_run
from model.error_bound import Bounded, arithmetic, bound
from model.numpy_layout import Spec
from model.rnn_data import make_problem

MODES = ["lstm", "gru", "rnn_tanh", "rnn_relu"]
DIRECTIONS = ["unidirectional", "bidirectional"]
TIME = 4
CASES = list(product(MODES, DIRECTIONS, [None, "mixed"], [0])) + [
    ("lstm", direction, "mixed", 4) for direction in DIRECTIONS
]


def below(problem, layers):
    """The lowest layers of the network as a network of its own."""
    spec = replace(problem.spec, num_layers=layers)
    weights, biases = numpy_layout.params_to_canonical(problem.spec, problem.params)
    kept = [part[: len(part) * layers // problem.spec.num_layers] for part in (weights, biases)]
    return spec, numpy_layout.canonical_to_params(spec, *kept)


def outputs_of(layer, problem, time_major=True):
    """(output, every) with whatever layout, transposed to time-major arrays."""
    turn = lambda a: a if time_major else np.ascontiguousarray(np.array(a).swapaxes(0, 1))
    states = tuple(turn(s) for s in problem.states if s is not None)
    how = {} if problem.lengths is None else {"sequence_lengths": problem.lengths}
    output, _, every = layer(
        turn(problem.x), states, training=False, time_major=time_major, return_all=True, **how
    )
    all_turned = lambda tensors: [np.array(turn(np.array(tensor))) for tensor in tensors]
    return turn(np.array(output)), all_turned(every.outputs), all_turned(every.cells)


def make_case(mode, direction, lengths, proj, dtype):
    spec = Spec(mode, 3, 7, 5, direction=direction, num_proj=proj)
    problem = poisoned(make_problem(spec, TIME, 3, dtype, lengths))
    return spec, problem, package_run.make_layer(spec, dtype, problem.params)


@pytest.mark.parametrize("mode,direction,lengths,proj", CASES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("time_major", [True, False])
def test_outputs(mode, direction, lengths, proj, dtype, time_major):
    """A layer's output is that of a network which ends there."""
    spec, problem, layer = make_case(mode, direction, lengths, proj, dtype)
    output, found, _ = outputs_of(layer, problem, time_major)
    assert len(found) == spec.num_layers and np.array_equal(found[-1], output)
    for number, value in enumerate(found, 1):
        part, params = below(problem, number)
        rows = slice(0, part.num_pseudo)
        h0, c0 = problem.h0[rows], problem.c0[rows] if mode == "lstm" else None
        wanted = bound(part, dtype, params, problem.x, h0, c0, problem.lengths, None)
        assert value.dtype == dtype
        assert_within(value, wanted["y"], f"layer {number}")


def bounded_cells(problem):
    """[pseudo-layer][t] -> Bounded [B, U], from the tape of the NumPy model."""
    eps = arithmetic(problem.x.dtype)[0] + np.finfo(np.float64).eps
    exact = [Bounded(a, eps) for a in (problem.params, problem.x, problem.h0, problem.c0)]
    tape = numpy_rnn.forward(problem.spec, *exact, lengths=problem.lengths)[3]
    return [[saved[7] for saved in steps] for steps in tape.steps]


@pytest.mark.parametrize(
    "direction,lengths,proj", list(product(DIRECTIONS, [None, "mixed"], [0, 4]))
)
@pytest.mark.parametrize("time_major", [True, False])
def test_cells(direction, lengths, proj, time_major):
    spec, problem, layer = make_case("lstm", direction, lengths, proj, np.float32)
    _, _, cells = outputs_of(layer, problem, time_major)
    units, given = spec.num_units, np.full(3, TIME) if lengths is None else problem.lengths
    assert [c.shape for c in cells] == [(TIME, 3, spec.num_dirs * units)] * spec.num_layers
    every = bounded_cells(problem)
    for number, t, side in product(range(spec.num_layers), range(TIME), range(spec.num_dirs)):
        value = cells[number][t, :, side * units : (side + 1) * units]
        wanted, valid = every[number * spec.num_dirs + side][t], t < given
        assert not value[~valid].any()
        assert_within(value[valid], wanted[valid], f"layer {number}, step {t}, side {side}")


@pytest.mark.parametrize("mode", MODES)
def test_asking_changes_nothing(mode):
    spec, problem, layer = make_case(mode, "bidirectional", "mixed", 0, np.float32)
    states = tuple(s for s in problem.states if s is not None)
    output, last = layer(problem.x, states, training=False, sequence_lengths=problem.lengths)
    again, same, every = layer(
        problem.x, states, training=False, sequence_lengths=problem.lengths, return_all=True
    )
    assert np.array_equal(output, again)
    for one, other in zip(last, same, strict=True):
        assert np.array_equal(one, other)
    assert (len(every.cells) > 0) == (mode == "lstm")
