"""The package against PyTorch itself: random networks, batch-major data, training, files of vectors.

Two implementations may differ by the sum of both bounds, which are one and the same bound here.
"""

import subprocess
import sys
from dataclasses import replace
from itertools import product

import numpy as np
import openrnn
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import make_vectors
import torch_mapping
import torch_reference
import torch_vectors
from engine_check import assert_within
from model import numpy_layout, numpy_rnn, package_run
from model.error_bound import Bounded, arithmetic, bound
from model.numpy_layout import Spec
from model.rnn_data import make_problem

MODES = ["lstm", "gru", "rnn_tanh", "rnn_relu"]
DIRECTIONS = ["unidirectional", "bidirectional"]
DTYPES = [np.float32, np.float64]


def bound_of(problem):
    h0, c0 = problem.states
    return bound(
        problem.spec, problem.x.dtype, problem.params, problem.x, h0, c0, problem.lengths, None,
        problem.upstream,
    )  # fmt: skip


def assert_equal(found, theirs, wanted):
    assert found.keys() == theirs.keys() == wanted.keys()
    for name, value in found.items():
        assert_within(value, Bounded(theirs[name], 0.0, 2.0 * wanted[name].error), name)


def test_the_stored_vectors_are_what_the_script_makes():
    """Inputs bit for bit; results within both bounds, as another PyTorch may round elsewhere."""
    fresh = make_vectors.compute()
    with np.load(torch_vectors.PATH) as file:
        stored = dict(file)
    assert stored.keys() == fresh.keys()
    for case, dtype in product(torch_vectors.CASES, torch_vectors.DTYPES):
        for name in torch_vectors.INPUTS:
            if f"{case}/{name}" in stored:
                assert np.array_equal(stored[f"{case}/{name}"], fresh[f"{case}/{name}"]), name
        wanted = bound_of(torch_vectors.stored_problem(stored, case, dtype))
        assert_equal(
            torch_vectors.stored_results(stored, case, dtype),
            torch_vectors.stored_results(fresh, case, dtype),
            wanted,
        )


@st.composite
def random_problems(draw):
    mode, units = draw(st.sampled_from(MODES)), draw(st.integers(1, 40))
    proj = draw(st.integers(0, units - 1)) if mode == "lstm" else 0
    spec = Spec(
        mode, draw(st.integers(1, 3)), units, draw(st.integers(1, 40)),
        direction=draw(st.sampled_from(DIRECTIONS)), num_proj=proj,
    )  # fmt: skip
    time, batch = draw(st.integers(1, 6)), draw(st.integers(1, 9))
    ragged = st.lists(st.integers(1, time), min_size=batch, max_size=batch).map(np.array)
    return make_problem(
        spec, time, batch, draw(st.sampled_from(DTYPES)), draw(st.none() | ragged),
        draw(st.integers(0, 1000)),
    )  # fmt: skip


@pytest.mark.parametrize("call", package_run.CALLS)
@settings(max_examples=150)
@given(problem=random_problems(), time_major=st.booleans())
def test_random_networks(call, problem, time_major):
    found = package_run.run(call, problem, time_major=time_major)
    assert_equal(found, torch_reference.run(problem), bound_of(problem))


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("mode,proj", [*((mode, 0) for mode in MODES), ("lstm", 3)])
def test_batch_first(mode, proj, direction):
    """Batch-major data as PyTorch takes it. Its states stay [L * D, B, .], ours turn with the data."""
    spec = Spec(mode, 2, 7, 5, direction=direction, num_proj=proj)
    problem = make_problem(spec, 5, 3, np.float64, np.array([5, 2, 3]))
    wanted = bound_of(problem)
    module = torch_reference.make_module(spec, problem.params, batch_first=True)
    states = [each for each in problem.states if each is not None]
    turn = lambda a: np.ascontiguousarray(a.swapaxes(0, 1))
    y, last = torch_reference.call(
        module, torch.from_numpy(turn(problem.x)), tuple(torch.from_numpy(s) for s in states),
        problem.lengths,
    )  # fmt: skip
    layer = package_run.make_layer(spec, np.float64, problem.params)
    output, ours = layer(
        turn(problem.x), tuple(turn(s) for s in states), sequence_lengths=problem.lengths,
        time_major=False,
    )  # fmt: skip
    assert len(ours) == len(last)
    assert_within(
        turn(np.array(output)), Bounded(turn(y.detach().numpy()), 0.0, 2 * wanted["y"].error), "y"
    )
    for name, mine, theirs in zip("hc", ours, last):
        both = Bounded(theirs.detach().numpy(), 0.0, 2 * wanted[name].error)
        assert_within(turn(np.array(mine)), both, name)


@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("mode,proj", [*((mode, 0) for mode in MODES), ("lstm", 3)])
def test_the_opaque_buffer_is_torch_s_parameters_in_order(mode, proj, direction, layers):
    """All weights, then all biases, without a look at their names: the same outputs."""
    spec = Spec(mode, layers, 7, 5, direction=direction, num_proj=proj)
    problem = make_problem(spec, 4, 3, np.float64)
    module = torch_reference.make_module(spec, np.zeros_like(problem.params))
    torch.manual_seed(1)
    for parameter in module.parameters():
        torch.nn.init.uniform_(parameter, -0.5, 0.5)
    problem.params = np.concatenate([
        parameter.detach().numpy().ravel() for kind in ("weight", "bias")
        for name, parameter in module.named_parameters() if name.startswith(kind)
    ])  # fmt: skip
    states = tuple(torch.from_numpy(each) for each in problem.states if each is not None)
    y, _ = torch_reference.call(module, torch.from_numpy(problem.x), states, problem.lengths)
    found = package_run.run(package_run.CALLS[0], problem)
    wanted = bound_of(problem)
    assert_within(found["y"], Bounded(y.detach().numpy(), 0.0, 2 * wanted["y"].error), "y")


@pytest.mark.parametrize("mode,direction", list(product(MODES, DIRECTIONS)))
def test_a_trained_layer_goes_on_in_torch(mode, direction):
    """Initialised and trained a step here, then moved by name: PyTorch computes the same."""
    spec = Spec(mode, 2, 5, 3, direction=direction)
    problem = make_problem(spec, 4, 3)
    layer = package_run.make_layer(
        spec,
        np.float64,
        seed=7,
        bias_initializer=lambda shape, dtype: (np.linspace(-0.4, 0.3, shape[0]).astype(dtype)),
    )
    optimizer = openrnn.train.GradientDescentOptimizer(0.1)
    optimizer.minimize(lambda: openrnn.reduce_sum(layer(problem.x)[0]))
    (problem.params,) = layer.get_weights()
    wanted = bound_of(problem)
    states = tuple(each for each in problem.states if each is not None)
    output, _ = layer(problem.x, states)
    theirs = torch_reference.run(problem)["y"]
    assert_within(np.array(output), Bounded(theirs, 0.0, 2 * wanted["y"].error), "y")


def bounded_descent(problem, rate, steps):
    """Parameters after plain gradient descent, with the bound that every step passes on."""
    eps = arithmetic(problem.x.dtype)[0] + np.finfo(np.float64).eps
    params, (h0, c0) = Bounded(problem.params, eps), problem.states
    for _ in range(steps):
        _, _, _, tape = numpy_rnn.forward(
            problem.spec, params, Bounded(problem.x, eps), h0, c0, problem.lengths
        )
        gradient = numpy_rnn.backward(tape, *problem.upstream)[-1]
        params = (params - rate * gradient).stored(None, 0.0)
    return params


@pytest.mark.parametrize("mode,direction", list(product(["lstm", "gru", "rnn_tanh"], DIRECTIONS)))
def test_descent_stays_together(mode, direction):
    """Three steps of gradient descent in both, on one and the same loss."""
    spec, rate, steps = Spec(mode, 2, 4, 3, direction=direction), 0.125, 3
    problem = make_problem(spec, 4, 3, np.float64, np.array([4, 1, 3]))
    ours, theirs = (replace(problem, params=problem.params.copy()) for _ in range(2))
    for _ in range(steps):
        ours.params = ours.params - rate * package_run.run("layer", ours)["dparams"]
        theirs.params = theirs.params - rate * torch_reference.run(theirs)["dparams"]
    wanted = bounded_descent(problem, rate, steps)
    assert np.abs(wanted.value - problem.params).max() > 0.1
    assert_within(ours.params, wanted, "ours")
    assert_within(theirs.params, wanted, "theirs")


@pytest.mark.parametrize("order", ["torch, openrnn", "openrnn, torch"])
def test_one_process_holds_both(order):
    """Imported in either order, and both compute afterwards."""
    script = (
        f"import {order}; import numpy as np\n"
        "layer = openrnn.cudnn_rnn.CudnnLSTM(1, 8)\n"
        "layer(np.ones((2, 3, 4), np.float32))\n"
        "torch.nn.LSTM(4, 8)(torch.ones(2, 3, 4))\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=300)


def test_names_are_those_of_a_state_dict():
    for case, (spec, *_) in torch_vectors.CASES.items():
        params = np.zeros(numpy_layout.params_size(spec))
        module = torch_reference.make_module(spec, params)
        named = torch_mapping.from_canonical(spec, *numpy_layout.params_to_canonical(spec, params))
        shapes = {name: tuple(tensor.shape) for name, tensor in module.state_dict().items()}
        assert {name: array.shape for name, array in named.items()} == shapes, case
