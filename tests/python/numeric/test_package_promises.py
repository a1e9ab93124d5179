"""What the cpu engine promises bit for bit: padding, rows of length zero, other rows, cuts, layouts.
The reference engine, which keeps double sums, is held to its bounds only.
"""

from dataclasses import replace
from itertools import product

import numpy as np
import openrnn
import pytest

from model import package_run
from model.numpy_layout import Spec
from model.rnn_data import make_problem

CALLS = package_run.CALLS
MODES = ["lstm", "gru", "rnn_tanh", "rnn_relu"]
DIRECTIONS = ["unidirectional", "bidirectional"]
NETWORKS = [
    Spec(mode, 2, 7, 3, direction=direction) for mode, direction in product(MODES, DIRECTIONS)
] + [Spec("lstm", 2, 7, 3, direction="bidirectional", num_proj=4)]
LENGTHS = np.array([3, 0, 5, 1])
networks = pytest.mark.parametrize("spec", NETWORKS, ids=str)
calls = pytest.mark.parametrize("call", CALLS)


def problem_of(spec, dtype=np.float32):
    return make_problem(spec, 5, 4, dtype, LENGTHS)


def padding():
    """[T, B], true past the end of a row."""
    return np.arange(5)[:, None] >= LENGTHS[None, :]


def assert_same(found, other):
    assert found.keys() == other.keys()
    for name, value in found.items():
        assert np.array_equal(value, other[name]), name


@networks
@calls
@pytest.mark.parametrize("filler", [np.nan, np.inf, -1e30])
def test_padding_is_never_read(spec, call, filler):
    problem = problem_of(spec)
    poisoned = replace(problem, x=problem.x.copy(), dy=problem.dy.copy())
    poisoned.x[padding()] = poisoned.dy[padding()] = filler
    assert_same(package_run.run(call, problem), package_run.run(call, poisoned))


@networks
@calls
def test_padding_is_zero(spec, call):
    found = package_run.run(call, problem_of(spec))
    assert not found["y"][padding()].any() and not found["dx"][padding()].any()
    assert found["y"][~padding()].all() or spec.mode == "rnn_relu"


@networks
@calls
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_row_of_length_zero_passes_through(spec, call, dtype):
    problem = problem_of(spec, dtype)
    problem.x[:, 1] = problem.dy[:, 1] = np.nan
    found = package_run.run(call, problem)
    assert not found["y"][:, 1].any() and not found["dx"][:, 1].any()
    for name, same in (("h", "h0"), ("dh0", "dh"), ("c", "c0"), ("dc0", "dc")):
        if name in found:
            assert np.array_equal(found[name][:, 1], getattr(problem, same)[:, 1]), name


@networks
@calls
def test_a_row_of_length_zero_adds_nothing_to_weights(spec, call):
    problem = problem_of(spec)
    others = [0, 2, 3]
    without = replace(problem, lengths=LENGTHS[others], **{
        name: getattr(problem, name)[:, others] for name in ("x", "h0", "c0", "dy", "dh", "dc")
    })  # fmt: skip
    found, rest = package_run.run(call, problem), package_run.run(call, without)
    assert np.array_equal(found["dparams"], rest["dparams"])
    for name in ("y", "h", "dx", "dh0"):
        assert np.array_equal(found[name][:, others], rest[name]), name


@networks
@calls
def test_a_row_does_not_see_the_others(spec, call):
    problem = problem_of(spec)
    found = package_run.run(call, problem)
    for b in range(4):
        row = slice(b, b + 1)
        alone = replace(problem, lengths=LENGTHS[row], **{
            name: getattr(problem, name)[:, row] for name in ("x", "h0", "c0", "dy", "dh", "dc")
        })  # fmt: skip
        for name, value in package_run.run(call, alone).items():
            if name != "dparams":
                assert np.array_equal(value, found[name][:, row]), name


@networks
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_layers_and_models_are_one_computation(spec, dtype):
    """A layer, an op-level model and both layouts of the data give the same bits."""
    problem = problem_of(spec, dtype)
    found = package_run.run("layer", problem)
    assert_same(found, package_run.run("op", problem))
    assert_same(found, package_run.run("layer", problem, time_major=False))
    assert_same(found, package_run.run("op", problem, time_major=False))


@pytest.mark.parametrize("spec", [s for s in NETWORKS if s.num_dirs == 1], ids=str)
@calls
@pytest.mark.parametrize("cuts", [(2, 3), (1, 1, 1, 1, 1), (5, 0)])
def test_a_sequence_may_be_cut(spec, call, cuts):
    """Part after part with the states handed on, whole rows and ragged ones."""
    for lengths in (np.full(4, 5), LENGTHS):
        problem = replace(problem_of(spec), lengths=lengths)
        whole = package_run.run(call, problem, gradients=False)
        begin, outputs, now = 0, [], problem
        for count in cuts:
            now = replace(
                now, x=problem.x[begin : begin + count], lengths=np.clip(lengths - begin, 0, count)
            )
            found = package_run.run(call, now, gradients=False)
            outputs.append(found["y"])
            now = replace(now, h0=found["h"], c0=found.get("c", now.c0))
            begin += count
        assert np.array_equal(np.concatenate(outputs), whole["y"])
        assert np.array_equal(found["h"], whole["h"])
        assert "c" not in whole or np.array_equal(found["c"], whole["c"])


@networks
@calls
def test_full_lengths_are_no_lengths(spec, call):
    problem = replace(problem_of(spec), lengths=None)
    full = replace(problem, lengths=np.full(4, 5, np.int32))
    assert_same(package_run.run(call, problem), package_run.run(call, full))


@networks
@calls
def test_threads_change_nothing(spec, call):
    problem, threads = problem_of(spec), openrnn.get_num_threads()
    try:
        openrnn.set_num_threads(1)
        single = package_run.run(call, problem)
        openrnn.set_num_threads(3)
        assert_same(single, package_run.run(call, problem))
    finally:
        openrnn.set_num_threads(threads)


@networks
def test_states_of_nothing_are_zeros(spec):
    problem = problem_of(spec)
    layer = package_run.make_layer(spec, np.float32, problem.params)
    zeros = tuple(np.zeros(shape, np.float32) for shape in layer.state_shape(4))
    output, states = layer(problem.x, sequence_lengths=LENGTHS)
    again, same = layer(problem.x, zeros, sequence_lengths=LENGTHS)
    assert np.array_equal(output, again)
    for one, other in zip(states, same, strict=True):
        assert np.array_equal(one, other)


@networks
def test_a_longer_buffer_is_taken(spec):
    """What lies behind the parameters is not read, and its gradient is zero."""
    problem = problem_of(spec)
    tail = np.full(5, np.nan, np.float32)
    longer = package_run.run("op", problem, params=np.concatenate([problem.params, tail]))
    found = package_run.run("op", problem)
    gradient = longer.pop("dparams")
    assert np.array_equal(gradient[:-5], found.pop("dparams")) and not gradient[-5:].any()
    assert_same(found, longer)


@networks
def test_gradients_asked_twice_and_one_by_one(spec):
    """The same bits again, and alone what they are together; a second call in between is no matter."""
    problem = problem_of(spec)
    layer = package_run.make_layer(spec, np.float32, problem.params)
    x = openrnn.Tensor(problem.x)
    with openrnn.GradientTape() as tape:
        tape.watch(x)
        output, states = layer(x, sequence_lengths=LENGTHS)
    both = tape.gradient(output, [x, layer.kernel], output_gradients=openrnn.Tensor(problem.dy))
    layer(problem.x[:2])
    again = tape.gradient(output, [x, layer.kernel], output_gradients=openrnn.Tensor(problem.dy))
    for one, other in zip(both, again, strict=True):
        assert np.array_equal(one, other)
    alone = tape.gradient(output, layer.kernel, output_gradients=openrnn.Tensor(problem.dy))
    assert np.array_equal(alone, both[1])


@networks
def test_what_the_caller_does_to_its_arrays_afterwards_is_no_matter(spec):
    problem = problem_of(spec)
    wanted = package_run.run("layer", problem)
    layer = package_run.make_layer(spec, np.float32, problem.params)
    x, states = problem.x.copy(), [s.copy() for s in problem.states if s is not None]
    with openrnn.GradientTape() as tape:
        output, last = layer(x, tuple(states), sequence_lengths=LENGTHS)
    for array in [x, *states]:
        array[:] = np.nan
    upstream = [each for each in problem.upstream if each is not None]
    found = tape.gradient(
        [output, *last], layer.kernel, output_gradients=[openrnn.Tensor(u) for u in upstream]
    )
    assert np.array_equal(found, wanted["dparams"])


@networks
def test_assign_is_seen_by_the_next_call(spec):
    problem, other = problem_of(spec), make_problem(spec, 5, 4, np.float32, LENGTHS, seed=1)
    layer = package_run.make_layer(spec, np.float32, problem.params)
    states = tuple(s for s in problem.states if s is not None)
    before, _ = layer(problem.x, states, sequence_lengths=LENGTHS)
    layer.kernel.assign(other.params)
    after, _ = layer(problem.x, states, sequence_lengths=LENGTHS)
    changed = package_run.run("op", replace(problem, params=other.params))
    assert np.array_equal(after, changed["y"])
    assert not np.array_equal(after, before)
