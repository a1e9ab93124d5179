"""Results and gradients of the modules, by each way a call can go, against the package's own."""

import numpy as np
import openrnn
import pytest
import torch_vectors
from numpy_torch import DTYPES, Tensor, grad, no_grad, told
from numpy_torch.modules import Own
from problems import Rows, joined, leaf, module_of

from model import package_run

# Who looks on: nobody, a transform, a compiler; and calls without gradients.
ONLOOKERS = {"nobody": {}, "transform": {"transforms": True}, "compiler": {"compiling": True}}


class Call:
    """One call of a problem; sequences and states as PyTorch has them."""

    def __init__(self, problem, batch_first):
        self.problem = problem
        self.rows = None if problem.lengths is None else Rows(problem.lengths, len(problem.x))
        self.swapped = batch_first and self.rows is None

    def theirs(self, padded):
        if self.rows is not None:
            return np.ascontiguousarray(self.rows.flat(padded))
        return np.ascontiguousarray(padded.swapaxes(0, 1) if self.swapped else padded)

    def ours(self, tensor):
        if self.rows is not None:
            return self.rows.padded(tensor.numpy())
        return tensor.numpy().swapaxes(0, 1) if self.swapped else tensor.numpy()

    def run(self, module, x, states):
        """[y, h, ..]; rows of a PackedSequence as they lie."""
        given = tuple(states) if module.mode == "LSTM" else states[0]
        y, last = module(x if self.rows is None else self.rows.packed(x), given)
        if self.rows is not None:
            assert (y.batch_sizes.array == self.rows.sizes).all()
            y = y.data
        return [y, *(last if isinstance(last, tuple) else [last])]


def states_of(problem):
    return [each for each in problem.states if each is not None]


@pytest.mark.parametrize("onlooker", ONLOOKERS)
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("dtype", torch_vectors.DTYPES)
@pytest.mark.parametrize("case", torch_vectors.CASES)
def test_results_and_gradients(ours, case, dtype, batch_first, onlooker):
    with np.load(torch_vectors.PATH) as archive:
        problem = torch_vectors.stored_problem(dict(archive), case, dtype)
    wanted = package_run.run("op", problem)
    module = module_of(ours.torch, problem.spec, problem.params, batch_first=batch_first)
    call = Call(problem, batch_first)
    x, states = leaf(call.theirs(problem.x)), [leaf(each) for each in states_of(problem)]
    with told(**ONLOOKERS[onlooker]):
        outputs = call.run(module, x, states)
    upstream = [each for each in problem.upstream if each is not None]
    upstream = [Tensor(call.theirs(upstream[0])), *map(Tensor, upstream[1:])]
    weights = dict(module._parameters)
    found = grad(outputs, [x, *states, *weights.values()], upstream)
    names = ["h", "c"][: len(states)]
    results = {"y": call.ours(outputs[0]), "dx": call.ours(found[0])}
    results.update((name, each.numpy()) for name, each in zip(names, outputs[1:], strict=True))
    results.update((f"d{name}0", each.numpy()) for name, each in zip(names, found[1:]))
    results["dparams"] = joined(problem.spec, dict(zip(weights, found[1 + len(states) :], strict=True)))
    assert results.keys() == wanted.keys()
    for name, value in results.items():
        assert value.dtype == dtype, name
        np.testing.assert_allclose(value, wanted[name], rtol=0, atol=1e-12 if dtype == "float64" else 1e-5)
    with no_grad():
        for again in (call.run(module.eval(), x, states), call.run(module, x, states)):
            for a, b in zip(again, outputs, strict=True):
                np.testing.assert_array_equal(a.numpy(), b.numpy())
                assert not a.requires_grad


@pytest.fixture
def lstm(ours):
    with np.load(torch_vectors.PATH) as archive:
        problem = torch_vectors.stored_problem(dict(archive), "lstm_projection", "float32")
    return problem, module_of(ours.torch, problem.spec, problem.params)


@pytest.mark.parametrize("onlooker", ONLOOKERS)
def test_states_that_are_not_given_are_zeros(lstm, onlooker):
    problem, module = lstm
    zeros = tuple(Tensor(np.zeros_like(each)) for each in states_of(problem))
    packed = Rows([3, 3, 1], 3).packed(Tensor(np.resize(problem.x, (7, 3))))
    with told(**ONLOOKERS[onlooker]):
        for given in (Tensor(problem.x), packed):
            (y, last), (right, right_last) = module(given), module(given, zeros)
            for a, b in zip((y.data, *last), (right.data, *right_last), strict=True):
                np.testing.assert_array_equal(a.numpy(), b.numpy())


@pytest.mark.parametrize("batch_first", [False, True])
def test_one_sequence_without_a_batch(lstm, ours, batch_first):
    problem, _ = lstm
    module = module_of(ours.torch, problem.spec, problem.params, batch_first=batch_first)
    x, states = problem.x[:, :1], [each[:, :1] for each in states_of(problem)]
    y, last = module(Tensor(x.swapaxes(0, 1) if batch_first else x), tuple(map(Tensor, states)))
    alone, last_alone = module(Tensor(x[:, 0]), tuple(Tensor(each[:, 0]) for each in states))
    np.testing.assert_array_equal(alone.numpy(), y.numpy().reshape(alone.shape))
    for a, b in zip(last_alone, last, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy()[:, 0])
    zeros = tuple(Tensor(0 * each[:, 0]) for each in states)
    for a, b in zip(module(Tensor(x[:, 0]))[1], module(Tensor(x[:, 0]), zeros)[1], strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_memory_of_any_order_and_sign_is_read(lstm):
    """Views that are not dense, values that are negated when they are read: x, states, weights."""
    problem, module = lstm
    plain = [Tensor(each) for each in (problem.x, *states_of(problem))]
    right = module(plain[0], tuple(plain[1:]))[0].numpy()
    strided = [Tensor(np.repeat(each.array, 2, axis=-1)[..., ::2]) for each in plain]
    negated = [Tensor(-each.array, negated=True) for each in plain]
    with no_grad():
        for x, *states in (strided, negated):
            np.testing.assert_array_equal(module(x, tuple(states))[0].numpy(), right)
        weight = module._parameters["weight_hh_l0"]
        weight.array = np.asfortranarray(weight.array)
        np.testing.assert_array_equal(module(plain[0], tuple(plain[1:]))[0].numpy(), right)


def test_gradients_are_read_as_they_are(lstm):
    problem, module = lstm
    x = leaf(problem.x)
    y, _ = module(x)
    (right,) = grad([y], [x], [Tensor(problem.dy)])
    for other in (Tensor(-problem.dy, negated=True), Tensor(np.repeat(problem.dy, 2, 1)[:, ::2])):
        np.testing.assert_array_equal(grad([y], [x], [other])[0].numpy(), right.numpy())


@pytest.mark.parametrize("weight", ["weight_ih_l0", "bias_ih_l0", "weight_hr_l0"])
@pytest.mark.parametrize("onlooker", ONLOOKERS)
def test_gradients_of_what_wants_them_alone(lstm, onlooker, weight):
    problem, module = lstm
    wanted = package_run.run("op", problem)
    for parameter in module._parameters.values():
        parameter.requires_grad = False
    module._parameters[weight].requires_grad = True
    h, c = Tensor(problem.h0), leaf(problem.c0)
    with told(**ONLOOKERS[onlooker]):
        y, last = module(Tensor(problem.x), (h, c))
    upstream = [Tensor(each) for each in problem.upstream]
    names = list(module._parameters)
    found = grad([y, *last], [h, c, *module._parameters.values()], upstream)
    assert [each is not None for each in found] == [False, True, *(name == weight for name in names)]
    np.testing.assert_allclose(found[1].numpy(), wanted["dc0"], atol=1e-6)
    # Of the last outputs alone.
    (only,) = grad(last[:1], [c], upstream[1:2])
    problem.dy[...] = problem.dc[...] = 0
    np.testing.assert_allclose(only.numpy(), package_run.run("op", problem)["dc0"], atol=1e-6)


def refused(lstm):
    """Calls that PyTorch refuses, or that no network here computes, by name."""
    problem, module = lstm
    x, h, c = map(Tensor, (problem.x, problem.h0, problem.c0))
    integers = Tensor(problem.x.astype("int64"))
    rows = Rows([4, 4, 1], 4)
    packed = rows.packed(Tensor(np.resize(problem.x, (9, 3))))
    elsewhere = Tensor(problem.x)
    elsewhere.is_cpu = False
    sparse = Tensor(problem.h0)
    sparse.layout = "sparse"
    return module, {
        "another width": (Tensor(problem.x[..., :2]),), "no steps": (x[:0],),
        "four dimensions": (x.unsqueeze(0),), "integers": (integers,), "an array": (problem.x,),
        "another dtype": (Tensor(problem.x.astype("float64")),), "elsewhere": (elsewhere,),
        "one state": (x, h), "three states": (x, (h, c, c)), "a state of None": (x, (h, None)),
        "another batch": (x, (h[:, :2], c)), "c as wide as h": (x, (h, h)),
        "double states": (x, (Tensor(problem.h0.astype("float64")), c)), "sparse": (x, (sparse, c)),
        "states without a batch": (x, (h[:, 0], c[:, 0])), "a batch of states": (x[:, 0], (h, c)),
        "packed, another width": (packed._replace(data=packed.data[:, :2]), (h, c)),
        "packed, one state": (packed, h),
        "packed, double": (packed._replace(data=packed.data.to(DTYPES["float64"])),),
        "packed, no steps": (packed._replace(batch_sizes=packed.batch_sizes[:0]),),
    }  # fmt: skip


@pytest.mark.parametrize("onlooker", [{}, {"grad": False}, {"compiling": True}], ids=str)
def test_what_the_engine_does_not_compute_is_pytorch_s(lstm, onlooker):
    module, calls = refused(lstm)
    with no_grad():
        module(Tensor(lstm[0].x))  # what is kept from then on takes usual calls
    for name, args in calls.items():
        with told(**onlooker):
            found = module(*args)
        assert isinstance(found, Own), name
        assert found.kind == "LSTM" and found.module is module and found.input is args[0]


def test_a_call_that_an_extended_module_does_not_compute(ours):
    module = ours.torch.GRU(3, 4, reset_after=False)
    with pytest.raises(openrnn.ArgumentError, match=r"^\[GRU\] a call that this engine does not compute"):
        module(Tensor(np.ones((5, 2, 7), "float32")))
