"""convert, revert and enabled keep everything but the engine."""

import pickle

import openrnn.torch as ours
import pytest
import torch
from openrnn import _core
from torch import nn
from torch.nn.utils import parametrizations

from module_pairs import assert_close


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.LSTM(4, 5, 2, bidirectional=True)
        self.normed = parametrizations.weight_norm(nn.GRU(10, 6), "weight_hh_l0")
        self.cells = nn.ModuleList([nn.LSTMCell(6, 3), nn.GRUCell(3, 3), nn.RNNCell(3, 3)])
        self.again = self.first
        self.plain = nn.RNN(3, 2)

    def forward(self, x):
        y = self.normed(self.first(x)[0])[0]
        h = self.cells[0](y[-1])[0]
        for cell in list(self.cells)[1:]:
            h = cell(h)
        return self.plain(h[None])[0]


def gradients(model, x):
    return list(torch.autograd.grad(model(x).pow(2).sum(), list(model.parameters())))


def test_convert_and_revert():
    torch.manual_seed(0)
    model, x = Model(), torch.randn(6, 3, 4)
    classes = [type(module) for module in model.modules()]
    wanted = [model(x).detach(), *gradients(model, x)]
    parameters = [id(parameter) for parameter in model.parameters()]
    keys = list(model.state_dict())
    seen = []
    model.first.register_forward_hook(lambda module, args, output: seen.append(type(module)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    assert ours.convert(model) is model and ours.convert(model) is model
    assert type(model.first) is ours.LSTM and model.again is model.first
    assert isinstance(model.normed, ours.GRU) and type(model.cells[1]) is ours.GRUCell
    assert type(model.plain) is ours.RNN
    assert [id(p) for p in model.parameters()] == parameters and list(model.state_dict()) == keys
    before = _core.torch_saved_calls()
    result = model(x)
    assert _core.torch_saved_calls() > before and seen == [ours.LSTM]
    assert_close([result.detach(), *gradients(model, x)], wanted, 1e-5)
    for parameter, grad in zip(model.parameters(), gradients(model, x), strict=True):
        parameter.grad = grad
    optimizer.step()
    changed = model(x).detach()
    assert not torch.allclose(changed, wanted[0])
    assert ours.revert(model) is model
    assert [type(module).__name__ for module in model.modules()] == [c.__name__ for c in classes]
    assert type(model.first) is nn.LSTM and isinstance(model.normed, nn.GRU)
    assert_close([model(x).detach()], [changed], 1e-5)
    nn.utils.parametrize.remove_parametrizations(model.normed, "weight_hh_l0")
    assert type(model.normed) is nn.GRU


def test_other_parametrizations_and_pruning():
    from torch.nn.utils import prune, spectral_norm

    x = torch.randn(6, 3, 4)
    for change in (
        lambda module: parametrizations.orthogonal(module, "weight_hh_l0"),
        lambda module: parametrizations.spectral_norm(module, "weight_ih_l0"),
        lambda module: prune.l1_unstructured(module, "weight_ih_l0", 0.5),
        lambda module: spectral_norm(module, "weight_hh_l0"),
    ):
        torch.manual_seed(0)
        module = change(nn.LSTM(4, 5)).eval()
        wanted = module(x)[0]
        assert_close([ours.convert(module)(x)[0]], [wanted], 1e-5)
        module(x)[0].sum().backward()
        assert all(p.grad is not None for p in module.parameters())


def test_a_subclass_is_left_with_a_warning():
    class Special(nn.LSTM):
        pass

    model = nn.ModuleDict({"rnn": Special(3, 4)})
    with pytest.warns(UserWarning, match=r"\[convert\] 'rnn' is a Special, a subclass"):
        ours.convert(model)
    assert type(model["rnn"]) is Special


def test_revert_refuses_what_torch_has_not():
    model = nn.Sequential(ours.GRU(3, 4), ours.LSTM(4, 5, use_peepholes=True))
    with pytest.raises(ValueError, match=r"\[revert\] '1' has use_peepholes, expected a network"):
        ours.revert(model)
    assert type(model[0]) is ours.GRU


def test_enabled_holds_for_its_block():
    own = nn.LSTM.forward
    module, x = nn.LSTM(4, 5), torch.randn(6, 3, 4)
    wanted = module(x)[0]
    assert "_engine" not in module.__dict__
    with ours.enabled():
        with ours.enabled():
            found = module(x)[0]
        assert module._engine.net.names[0] == "weight_ih_l0"
        assert_close([found], [wanted], 1e-5)
        assert b"openrnn" not in pickle.dumps(module)
        nn.GRUCell(4, 5)(x[0])
    assert nn.LSTM.forward is own and torch.equal(module(x)[0], wanted)


def test_what_has_no_module_of_ours_cannot_be_frozen():
    with pytest.raises(ValueError, match=r"\[freeze\] a LSTM without a module of openrnn.torch"):
        ours.freeze(nn.LSTM(3, 4))
    with pytest.raises(ValueError, match=r"\[convert\] 'int' is given, expected a torch.nn.Module"):
        ours.convert(3)


def test_data_parallel_without_a_gpu():
    module = ours.LSTM(4, 5)
    x = torch.randn(6, 3, 4)
    assert torch.equal(nn.DataParallel(module)(x)[0], module(x)[0])
    replica = module._replicate_for_data_parallel()
    assert "_engine" not in replica.__dict__


@pytest.mark.parametrize("name", ["LSTMCell", "GRUCell", "RNNCell"])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("batched", [True, False])
@pytest.mark.parametrize("with_states", [True, False])
def test_cells(name, bias, batched, with_states):
    made = []
    for library in (nn, ours):
        torch.manual_seed(1)
        made.append(getattr(library, name)(4, 5, bias=bias, dtype=torch.float64))
    shape = (3,) if batched else ()
    x = torch.randn(*shape, 4, dtype=torch.float64, requires_grad=True)
    h = torch.randn(*shape, 5, dtype=torch.float64)
    hx = (h, h.flip(-1)) if name == "LSTMCell" else h
    found = []
    for cell in made:
        result = cell(x, hx) if with_states else cell(x)
        outputs = result if isinstance(result, tuple) else (result,)
        loss = sum((value * torch.arange(5)).sum() for value in outputs)
        found.append([*outputs, *torch.autograd.grad(loss, [x, *cell.parameters()])])
    assert_close(found[1], found[0], 1e-12)
