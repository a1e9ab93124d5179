"""The NumPy model, the engines and the package against stored results of PyTorch.

Both sides may err by their own bound, so they may differ by twice the bound of one; the model itself
is exact to that bound's own eps of float64.
"""

from functools import cache
from itertools import product

import numpy as np
import openrnn
import pytest

import rnn_capi
import torch_mapping
import torch_vectors
from engine_check import assert_within
from model import numpy_layout, package_run
from model.error_bound import Bounded, bound

CASES = list(product(torch_vectors.CASES, torch_vectors.DTYPES))


@pytest.fixture(scope="module")
def archive():
    with np.load(torch_vectors.PATH) as found:
        return dict(found)


@cache
def wanted_of(case, dtype):
    """Values and bounds of the case, the same for everyone who computes in this type."""
    with np.load(torch_vectors.PATH) as archive:
        problem = torch_vectors.stored_problem(dict(archive), case, dtype)
    h0, c0 = problem.states
    return bound(
        problem.spec, np.dtype(dtype), problem.params, problem.x, h0, c0, problem.lengths, None,
        problem.upstream,
    )  # fmt: skip


def assert_equal_torch(found, theirs, wanted):
    """Every element of every result within the sum of both bounds."""
    assert found.keys() == theirs.keys() == wanted.keys()
    for name, value in found.items():
        assert value.dtype == theirs[name].dtype, name
        assert_within(value, Bounded(theirs[name], 0.0, 2.0 * wanted[name].error), name)


@pytest.mark.parametrize("case,dtype", CASES)
def test_numpy_model(archive, case, dtype):
    theirs = torch_vectors.stored_results(archive, case, dtype)
    wanted = wanted_of(case, dtype)
    assert theirs.keys() == wanted.keys()
    for name, value in theirs.items():
        assert_within(value, wanted[name], name)


@pytest.mark.parametrize("engine", ["reference", "cpu"])
@pytest.mark.parametrize("case,dtype", CASES)
def test_engine(archive, engine, case, dtype):
    problem = torch_vectors.stored_problem(archive, case, dtype)
    found = rnn_capi.run(engine, problem, saving=True, training=True, backward_calls=1)
    theirs = torch_vectors.stored_results(archive, case, dtype)
    assert_equal_torch(found, theirs, wanted_of(case, dtype))


@pytest.mark.parametrize("call", package_run.CALLS)
@pytest.mark.parametrize("case,dtype", CASES)
def test_package(archive, call, case, dtype):
    problem = torch_vectors.stored_problem(archive, case, dtype)
    found = package_run.run(call, problem)
    theirs = torch_vectors.stored_results(archive, case, dtype)
    assert_equal_torch(found, theirs, wanted_of(case, dtype))


@pytest.mark.parametrize("case", torch_vectors.CASES)
def test_weights_go_to_torch_names_and_back(archive, case):
    """Through the lists of the package's own model, bit for bit, in both directions."""
    spec, params = torch_vectors.CASES[case][0], archive[f"{case}/params"]
    model = package_run.make_op(spec, params.dtype)
    weights, biases = model.params_to_canonical(params)
    named = torch_mapping.from_canonical(spec, weights, biases)
    shapes = {name: array.shape for name, array in named.items()}
    assert shapes == torch_shapes(spec)
    again = model.canonical_to_params(*torch_mapping.to_canonical(spec, named))
    assert np.array_equal(again, params)


def torch_shapes(spec):
    """The state_dict that PyTorch documents."""
    rows, units, out = spec.num_gates * spec.num_units, spec.num_units, spec.state_width
    shapes = {}
    for layer in range(spec.num_layers):
        for end in ("", "_reverse")[: spec.num_dirs]:
            shapes[f"weight_ih_l{layer}{end}"] = (rows, spec.input_width(layer))
            shapes[f"weight_hh_l{layer}{end}"] = (rows, out)
            shapes[f"bias_ih_l{layer}{end}"] = shapes[f"bias_hh_l{layer}{end}"] = (rows,)
            if spec.num_proj:
                shapes[f"weight_hr_l{layer}{end}"] = (spec.num_proj, units)
    return shapes


@pytest.mark.parametrize("case", torch_vectors.CASES)
def test_the_opaque_buffer_is_torch_s_parameters_in_order(archive, case):
    """All weights, then all biases; `torch_shapes` has the order in which PyTorch registers them."""
    spec, params = torch_vectors.CASES[case][0], archive[f"{case}/params"]
    named = torch_mapping.from_canonical(spec, *rnn_capi.params_to_canonical(spec, params))
    ordered = [named[name].ravel() for kind in ("weight", "bias") for name in torch_shapes(spec)
               if name.startswith(kind)]
    assert np.array_equal(np.concatenate(ordered), params)


@pytest.mark.parametrize("case", torch_vectors.CASES)
def test_weights_in_the_library(archive, case):
    """The same through the C++ conversion: its lists are those of the NumPy model."""
    spec, params = torch_vectors.CASES[case][0], archive[f"{case}/params"]
    named = torch_mapping.from_canonical(spec, *rnn_capi.params_to_canonical(spec, params))
    assert {name: array.shape for name, array in named.items()} == torch_shapes(spec)
    lists = torch_mapping.to_canonical(spec, named)
    assert np.array_equal(rnn_capi.canonical_to_params(spec, *lists), params)
    assert np.array_equal(numpy_layout.canonical_to_params(spec, *lists), params)


def test_an_exchanged_gate_is_seen(archive):
    """The check can fail: the reset and update gates of one layer exchanged."""
    case = "gru_both_ways"
    problem = torch_vectors.stored_problem(archive, case, "float32")
    weights, biases = numpy_layout.params_to_canonical(problem.spec, problem.params)
    biases[6], biases[7] = biases[7], biases[6]
    problem.params = numpy_layout.canonical_to_params(problem.spec, weights, biases)
    found = rnn_capi.run("reference", problem, saving=True, training=True, backward_calls=1)
    theirs = torch_vectors.stored_results(archive, case, "float32")
    with pytest.raises(AssertionError, match="outside"):
        assert_equal_torch(found, theirs, wanted_of(case, "float32"))


@pytest.mark.parametrize("ending", ["npz", "pt", "safetensors"])
@pytest.mark.parametrize("case,dtype", CASES)
def test_a_file_of_pytorchs_names(archive, tmp_path, ending, case, dtype):
    """The network of a state_dict, saved by NumPy or by us, computes what PyTorch computed."""
    problem = torch_vectors.stored_problem(archive, case, dtype)
    spec, hint = problem.spec, {}
    canonical = numpy_layout.params_to_canonical(spec, problem.params)
    named = torch_mapping.from_canonical(spec, *canonical)
    np.savez(tmp_path / "given.npz", **{f"net.{name}": array for name, array in named.items()})
    if spec.mode.startswith("rnn"):
        hint = {"rnn_mode": spec.mode}
    model = openrnn.load(tmp_path / "given.npz", **hint)
    if ending != "npz":
        openrnn.save(tmp_path / f"m.{ending}", model)
        model = openrnn.load(tmp_path / f"m.{ending}", **hint)
    np.testing.assert_array_equal(model["net"].params, problem.params)
    states = [each for each in problem.states if each is not None]
    y, _ = openrnn.InferenceSession(model["net"].packed()).run(
        problem.x, tuple(states), sequence_lengths=problem.lengths
    )
    theirs = torch_vectors.stored_results(archive, case, dtype)["y"]
    assert_within(y, Bounded(theirs, 0.0, 2.0 * wanted_of(case, dtype)["y"].error), "y")
