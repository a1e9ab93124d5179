"""What users of autograd do: second derivatives, retained graphs, checkpoints, hooks."""

import gc

import openrnn.torch as ours
import pytest
import torch
from openrnn import _core
from torch.func import functional_call
from torch.nn.utils.rnn import pack_padded_sequence
from torch.utils.checkpoint import checkpoint

from module_pairs import MODES, assert_close, make_pair, results, states


def as_function(module):
    names = [name for name, _ in module.named_parameters()]

    def call(x, *rest):
        parameters, given = rest[: len(names)], rest[len(names) :]
        hx = given if module.mode == "LSTM" else given[0]
        output, last = functional_call(module, dict(zip(names, parameters, strict=True)), (x, hx))
        return (output, *(last if isinstance(last, tuple) else (last,)))

    return call


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_first_second_and_forward_derivatives(mode, batch_first, bidirectional):
    _, module = make_pair(
        mode, 2, 3, 2, batch_first=batch_first, bidirectional=bidirectional, dtype=torch.float64
    )
    x = torch.randn((2, 3, 2) if batch_first else (3, 2, 2), dtype=torch.float64)
    hx = states(module, 2)
    given = (x, *module.parameters(), *(hx if isinstance(hx, tuple) else (hx,)))
    given = tuple(value.detach().clone().requires_grad_() for value in given)
    call = as_function(module)
    assert torch.autograd.gradcheck(call, given, fast_mode=True, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(call, given, fast_mode=True)


def test_derivatives_of_packed_sequences_and_projections():
    module = ours.LSTM(2, 4, proj_size=3, dtype=torch.float64)
    x = torch.randn(4, 3, 2, dtype=torch.float64, requires_grad=True)

    def call(x):
        output, last = module(pack_padded_sequence(x, [1, 4, 2], enforce_sorted=False))
        return (output.data, *last)

    assert torch.autograd.gradcheck(call, (x,))
    assert torch.autograd.gradgradcheck(call, (x,))


def test_a_third_derivative_is_refused():
    module = ours.GRU(2, 3)
    x = torch.randn(3, 1, 2, requires_grad=True)
    first = torch.autograd.grad(module(x)[0].pow(2).sum(), x, create_graph=True)[0]
    second = torch.autograd.grad(first.pow(2).sum(), x, create_graph=True)[0]
    with pytest.raises(RuntimeError, match="a third derivative"):
        torch.autograd.grad(second.sum(), x)


def test_only_what_is_needed_is_computed():
    module = ours.LSTM(3, 4, 2)
    x = torch.randn(5, 2, 3)
    module.weight_hh_l0.requires_grad_(False)
    module(x)[1][1].sum().backward()
    assert module.weight_hh_l0.grad is None and x.grad is None
    assert module.weight_ih_l1.grad.abs().sum() > 0
    for parameter in module.parameters():
        parameter.requires_grad_(False)
    assert not module(x)[0].requires_grad
    x.requires_grad_()
    output = module(x)[0]
    output.sum().backward()
    assert x.grad.abs().sum() > 0
    assert all(parameter.grad is None for parameter in list(module.parameters())[1:2])


def test_gradients_accumulate_and_are_separate_tensors():
    module = ours.GRU(3, 4)
    x = torch.randn(5, 2, 3)
    module(x)[0].sum().backward()
    once = [parameter.grad.clone() for parameter in module.parameters()]
    module.weight_ih_l0.grad.mul_(2)
    assert torch.equal(module.weight_hh_l0.grad, once[1])
    module.zero_grad()
    for _ in range(2):
        module(x)[0].sum().backward()
    assert_close([p.grad for p in module.parameters()], [2 * grad for grad in once], 1e-6)


def test_saved_calls_are_freed_when_autograd_frees_what_it_saved():
    module = ours.LSTM(3, 4)
    x = torch.randn(5, 2, 3)
    gc.collect()
    before = _core.torch_saved_calls()
    loss = module(x)[0].sum()
    assert _core.torch_saved_calls() == before + 1
    loss.backward()
    assert _core.torch_saved_calls() == before
    with pytest.raises(RuntimeError, match="second time"):
        loss.backward()
    kept = module(x)[0].sum()
    kept.backward(retain_graph=True)
    kept.backward()
    assert _core.torch_saved_calls() == before
    unused = module(x)
    del unused
    gc.collect()
    assert _core.torch_saved_calls() == before


def test_retained_graphs_give_the_same_gradient_again():
    module = ours.LSTM(3, 4)
    x = torch.randn(5, 2, 3, requires_grad=True)
    loss = module(x)[0].pow(2).sum()
    first = torch.autograd.grad(loss, [x, *module.parameters()], retain_graph=True)
    second = torch.autograd.grad(loss, [x, *module.parameters()])
    assert all(map(torch.equal, first, second))


def test_a_weight_written_between_forward_and_backward_is_an_error():
    module = ours.LSTM(3, 4)
    loss = module(torch.randn(5, 2, 3))[0].sum()
    with torch.no_grad():
        module.weight_hh_l0.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@pytest.mark.parametrize("reentrant", [False, True])
def test_activation_checkpointing_with_dropout(reentrant):
    module = ours.LSTM(3, 4, 2, dropout=0.5)
    x = torch.randn(5, 2, 3, requires_grad=True)
    torch.manual_seed(2)
    wanted = torch.autograd.grad(module(x)[0].pow(2).sum(), x)[0]
    torch.manual_seed(2)
    output = checkpoint(lambda x: module(x)[0], x, use_reentrant=reentrant)
    output.pow(2).sum().backward()
    assert torch.equal(x.grad, wanted)


def test_saved_tensors_that_are_copied_are_computed_again():
    module = ours.GRU(3, 4, 2, dropout=0.5)
    x = torch.randn(5, 2, 3, requires_grad=True)
    torch.manual_seed(2)
    wanted = torch.autograd.grad(module(x)[0].pow(2).sum(), [x, *module.parameters()])
    torch.manual_seed(2)
    with torch.autograd.graph.saved_tensors_hooks(torch.clone, torch.clone):
        loss = module(x)[0].pow(2).sum()
    found = torch.autograd.grad(loss, [x, *module.parameters()])
    assert all(map(torch.equal, found, wanted))


def test_anomaly_mode_and_hooks():
    module = ours.LSTM(3, 4)
    seen = []
    module.register_forward_hook(lambda module, args, output: seen.append("forward"))
    module.register_full_backward_hook(lambda module, before, after: seen.append("backward"))
    x = torch.randn(5, 2, 3, requires_grad=True)
    with torch.autograd.detect_anomaly(check_nan=True):
        module(x)[0].sum().backward()
    assert seen == ["forward", "backward"]


def test_forward_derivatives_are_not_lost_without_gradients():
    import torch.autograd.forward_ad as forward_ad

    theirs, module = make_pair("GRU", 3, 4, dtype=torch.float64)
    x, v = torch.randn(2, 4, 2, 3, dtype=torch.float64)
    found = []
    for each in (theirs, module):
        with torch.no_grad(), forward_ad.dual_level():
            found.append(forward_ad.unpack_dual(each(forward_ad.make_dual(x, v))[0]).tangent)
    assert_close([found[1]], [found[0]], 1e-12)


def test_forward_derivatives_with_weights_that_lie_otherwise():
    import torch.autograd.forward_ad as forward_ad

    theirs, module = make_pair("GRU", 3, 4, dtype=torch.float64)
    x, v = torch.randn(2, 4, 2, 3, dtype=torch.float64)
    found = []
    for each in (theirs, module):
        each.weight_hh_l0.data = each.weight_hh_l0.data.T.contiguous().T
        with forward_ad.dual_level():
            found.append(forward_ad.unpack_dual(each(forward_ad.make_dual(x, v))[0]).tangent)
    assert not module.weight_hh_l0.is_contiguous()
    assert_close([found[1]], [found[0]], 1e-12)


def test_tied_weights_get_the_sum_of_their_gradients():
    theirs, module = make_pair("RNN_tanh", 4, 4, 2, dtype=torch.float64)
    for each in (theirs, module):
        each.weight_ih_l1 = each.weight_hh_l0 = each.weight_ih_l0
    x = torch.randn(5, 2, 4, dtype=torch.float64)
    assert len(list(module.parameters())) == len(list(theirs.parameters())) == 6
    assert_close(results(module, x, None), results(theirs, x, None), 1e-12)
