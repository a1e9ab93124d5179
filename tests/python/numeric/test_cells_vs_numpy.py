"""The compatible cells, run over time by dynamic_rnn, against the NumPy model: values, states and
gradients, the variables filled by name from an opaque buffer."""

from itertools import product

import numpy as np
import openrnn
import pytest
from openrnn import cudnn_rnn

from engine_check import assert_within, poisoned
from model import numpy_layout
from model.error_bound import Bounded, bound
from model.numpy_layout import Spec
from model.rnn_data import make_problem

MODES = ["lstm", "gru", "rnn_tanh", "rnn_relu"]
DIRECTIONS = ["unidirectional", "bidirectional"]
rnn_cell = openrnn.nn.rnn_cell


def make_cell(spec):
    return {
        "lstm": lambda: cudnn_rnn.CudnnCompatibleLSTMCell(spec.num_units),
        "gru": lambda: cudnn_rnn.CudnnCompatibleGRUCell(spec.num_units),
        "rnn_tanh": lambda: rnn_cell.BasicRNNCell(spec.num_units),
        "rnn_relu": lambda: rnn_cell.BasicRNNCell(spec.num_units, activation=openrnn.nn.relu),
    }[spec.mode]()


def cell_states(spec, states, direction):
    """One state a layer of one direction: (c, h) for lstm."""
    rows = range(direction, spec.num_pseudo, spec.num_dirs)
    if spec.mode == "lstm":
        return [rnn_cell.LSTMStateTuple(states[1][row], states[0][row]) for row in rows]
    return [states[0][row] for row in rows]


def flat_states(spec, fw, bw):
    """[h tensors], [c tensors] by pseudo-layer."""
    every = [state for layer in zip(fw, bw) for state in layer] if bw else list(fw)
    if spec.mode == "lstm":
        return [state.h for state in every], [state.c for state in every]
    return every, []


def run_cells(spec, cells, x, states, lengths, time_major):
    """(y, [h of each pseudo-layer], [c])"""
    how = {"sequence_length": lengths, "time_major": time_major}
    if spec.num_dirs == 1:
        stack = rnn_cell.MultiRNNCell(cells[0])
        y, last = openrnn.nn.dynamic_rnn(
            stack, x, initial_state=tuple(cell_states(spec, states, 0)), **how
        )
        return y, *flat_states(spec, last, None)
    y, fw, bw = openrnn.nn.stack_bidirectional_dynamic_rnn(
        cells[0], cells[1], x, cell_states(spec, states, 0), cell_states(spec, states, 1), **how
    )
    return y, *flat_states(spec, fw, bw)


def expected_cells(problem):
    """(named tensors, bounds): of the buffer with halved biases, its gradients in the cells' form."""
    spec = problem.spec
    named = dict(numpy_layout.to_tf(spec, problem.params))
    params, (h0, c0) = numpy_layout.from_tf(spec, named), problem.states
    wanted = bound(
        spec, np.float32, params, problem.x, h0, c0, problem.lengths, None, problem.upstream
    )
    gradient = wanted.pop("dparams")
    parts = zip(numpy_layout.to_tf(spec, gradient.value), numpy_layout.to_tf(spec, gradient.error))
    for (name, value), (_, error) in parts:
        # A summed bias has the gradient of each half, and the two are one number.
        once = 0.5 if name.endswith("/bias") and "projection" not in name else 1.0
        wanted[name] = Bounded(once * value, 0.0, once * error)
    return named, wanted


@pytest.mark.parametrize("mode,direction", list(product(MODES, DIRECTIONS)))
@pytest.mark.parametrize("time_major", [True, False])
@pytest.mark.parametrize("sizes", [(1, 7, 3, 5, 3), (2, 3, 5, 4, 4), (1, 1, 1, 1, 1)])
@pytest.mark.parametrize("lengths", [None, "mixed"])
def test_cells(mode, direction, time_major, sizes, lengths):
    layers, units, width, time, batch = sizes
    spec = Spec(mode, layers, units, width, direction=direction)
    problem = poisoned(make_problem(spec, time, batch, np.float32, lengths))
    named, wanted = expected_cells(problem)
    turn = lambda a: a if time_major else np.ascontiguousarray(a.swapaxes(0, 1))
    with openrnn.Graph().as_default():
        cells = [[make_cell(spec) for _ in range(layers)] for _ in range(spec.num_dirs)]
        x = openrnn.Tensor(turn(problem.x))
        states = [[openrnn.Tensor(row) for row in s] for s in problem.states if s is not None]
        call = lambda: run_cells(spec, cells, x, states, problem.lengths, time_major)
        call()
        variables = {v.name.partition(":")[0]: v for v in openrnn.global_variables()}
        assert variables.keys() == named.keys()
        for name, tensor in named.items():
            variables[name].assign(tensor)
        with openrnn.GradientTape() as tape:
            for each in [x, *sum(states, [])]:
                tape.watch(each)
            y, h, c = call()
    check_values(spec, wanted, turn(np.array(y)), h, c)
    results = [y, *h, *c]
    upstream = [turn(problem.dy), *problem.dh, *(problem.dc if c else [])]
    sources = [x, *sum(states, []), *variables.values()]
    found = tape.gradient(
        results, sources, output_gradients=[openrnn.Tensor(each) for each in upstream]
    )
    check_gradients(spec, wanted, turn(np.array(found[0])), found[1:], list(variables))


def check_values(spec, wanted, y, h, c):
    assert_within(y, wanted["y"], "y")
    assert_within(np.stack([np.array(each) for each in h]), wanted["h"], "h")
    if spec.mode == "lstm":
        assert_within(np.stack([np.array(each) for each in c]), wanted["c"], "c")


def check_gradients(spec, wanted, dx, rest, names):
    assert_within(dx, wanted["dx"], "dx")
    for state in ["dh0", "dc0"] if spec.mode == "lstm" else ["dh0"]:
        part, rest = rest[: spec.num_pseudo], rest[spec.num_pseudo :]
        assert_within(np.stack([np.array(each) for each in part]), wanted[state], state)
    for name, gradient in zip(names, rest, strict=True):
        assert_within(np.array(gradient), wanted[name], name)
