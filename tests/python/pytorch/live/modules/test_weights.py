"""A weight that somebody writes, in whatever way, is what the next call uses."""

import io

import numpy as np
import openrnn.torch as ours
import pytest
import torch
from torch import nn
from torch.func import functional_call


def by_data(module):
    module.weight_hh_l0.data.add_(0.25)


def by_numpy(module):
    module.weight_hh_l0.detach().numpy()[1, 2] += 0.5


def by_one_bit(module):
    module.bias_hh_l0.detach().numpy().view(np.int32)[3] ^= 1 << 30


def by_optimizer(module):
    for parameter in module.parameters():
        parameter.grad = torch.ones_like(parameter)
    torch.optim.Adam(module.parameters(), lr=0.05).step()


def by_fused_optimizer(module):
    for parameter in module.parameters():
        parameter.grad = torch.ones_like(parameter)
    torch.optim.SGD(module.parameters(), lr=0.05, foreach=True).step()


def by_copy(module):
    with torch.no_grad():
        module.weight_ih_l0.copy_(torch.randn_like(module.weight_ih_l0))


def by_set(module):
    with torch.no_grad():
        module.weight_ih_l0.set_(torch.randn_like(module.weight_ih_l0))


def by_data_assignment(module):
    module.weight_ih_l0.data = torch.randn_like(module.weight_ih_l0)


def by_transposed_data(module):
    rows, columns = module.weight_ih_l0.shape
    module.weight_ih_l0.data = torch.randn(columns, rows).t()


def by_state_dict(module):
    torch.manual_seed(9)
    module.load_state_dict({k: torch.randn_like(v) for k, v in module.state_dict().items()})


def by_parameter(module):
    module.weight_hh_l0 = nn.Parameter(torch.randn_like(module.weight_hh_l0))


def by_negation(module):
    with torch.no_grad():
        module.weight_hh_l0.neg_()


def by_exchange(module):
    with torch.no_grad():
        first = module.weight_hh_l0[0].clone()
        module.weight_hh_l0[0] = module.weight_hh_l0[1]
        module.weight_hh_l0[1] = first


WAYS = [value for name, value in list(globals().items()) if name.startswith("by_")]


def wanted(module, x):
    plain = {"LSTM": nn.LSTM, "GRU": nn.GRU}[module.mode](module.input_size, module.hidden_size)
    with torch.no_grad():
        for name, parameter in plain.named_parameters():
            parameter.copy_(getattr(module, name))
        return plain(x)[0]


@pytest.mark.parametrize("write", WAYS)
@pytest.mark.parametrize("history", [False, True])
def test_a_written_weight_is_seen(write, history):
    module = ours.LSTM(4, 5)
    x = torch.randn(3, 2, 4)
    with torch.set_grad_enabled(history):
        before = module(x)[0].detach().clone()
        write(module)
        after = module(x)[0].detach()
    assert torch.allclose(after, wanted(module, x), atol=1e-5)
    assert not torch.allclose(after, before, atol=1e-5)


@pytest.mark.parametrize("write", WAYS)
def test_only_frozen_modules_do_not_look(write):
    model = nn.Sequential(ours.LSTM(4, 5))
    module = model[0]
    x = torch.randn(3, 2, 4)
    assert ours.freeze(model) is model
    with torch.no_grad():
        before = module(x)[0].clone()
        write(module)
        after = module(x)[0]
        assert torch.equal(after, before) == (write is not by_state_dict)
        ours.unfreeze(model)
        assert torch.allclose(module(x)[0], wanted(module, x), atol=1e-5)


def test_what_was_packed_is_used_again_while_nothing_changes():
    module = ours.GRU(4, 5)
    x = torch.randn(3, 2, 4)
    with torch.no_grad():
        for _ in range(4):
            module(x)
        assert module._engine.held.packings == 1
        module.weight_ih_l0.mul_(1.0)
        module(x)
        assert module._engine.held.packings == 1
        module.weight_ih_l0.mul_(2.0)
        module(x)
        assert module._engine.held.packings == 2


def test_inference_tensors_have_no_version():
    with torch.inference_mode():
        module = ours.LSTM(4, 5)
        x = torch.randn(3, 2, 4)
        module(x)
        module.weight_hh_l0.add_(0.5)
        found = module(x)[0]
    assert torch.allclose(found, wanted(module, x), atol=1e-6)


def test_an_address_that_comes_again_is_another_weight():
    module = ours.GRU(4, 5)
    x = torch.randn(3, 2, 4)
    with torch.no_grad():
        for _ in range(20):
            module.weight_ih_l0 = nn.Parameter(torch.randn(15, 4))
            assert torch.allclose(module(x)[0], wanted(module, x), atol=1e-6)


def test_functional_call_and_a_moved_module():
    module = ours.LSTM(4, 5)
    x = torch.randn(3, 2, 4)
    other = {name: torch.randn_like(value) for name, value in module.named_parameters()}
    plain = nn.LSTM(4, 5)
    found = functional_call(module, other, (x,))[0]
    assert torch.allclose(found, functional_call(plain, other, (x,))[0], atol=1e-6)
    plain.load_state_dict(module.state_dict())
    assert torch.allclose(module(x)[0], plain(x)[0], atol=1e-6)
    module.double()
    assert module(x.double())[0].dtype == torch.float64
    assert torch.allclose(module(x.double())[0].float(), plain(x)[0], atol=1e-6)
    module.float()
    assert torch.allclose(module(x)[0], plain(x)[0], atol=1e-6)


def write_shared(parameter):
    with torch.no_grad():
        parameter.add_(0.5)


def test_another_process_writes_to_shared_memory():
    module = ours.LSTM(4, 5).share_memory()
    x = torch.randn(3, 2, 4)
    with torch.no_grad():
        before = module(x)[0].clone()
        context = torch.multiprocessing.get_context("spawn")
        process = context.Process(target=write_shared, args=(module.weight_hh_l0,))
        process.start()
        process.join(120)
        assert process.exitcode == 0
        after = module(x)[0]
    assert torch.allclose(after, wanted(module, x), atol=1e-6) and not torch.equal(after, before)


def test_copies_and_files_have_their_own_weights():
    import copy
    import pickle

    module = ours.LSTM(4, 5, 2, bidirectional=True)
    x = torch.randn(3, 2, 4)
    result = module(x)[0]
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    copies = [copy.deepcopy(module), pickle.loads(pickle.dumps(module)), copy.copy(module)]
    copies.append(torch.load(file, weights_only=False))
    for each in copies:
        assert torch.equal(each(x)[0], result)
    with torch.no_grad():
        for parameter in copies[0].parameters():
            parameter.zero_()
    assert not copies[0](x)[0].any() and torch.equal(module(x)[0], result)
