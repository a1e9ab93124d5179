"""torch.func: vmap over inputs, states and weights, gradients of samples, Jacobians, Hessians."""

import openrnn.torch as ours
import pytest
import torch
from torch import nn
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, vjp, vmap

from module_pairs import MODES, assert_close, make_pair, states


def loss_of(module):
    def loss(parameters, x, h=None):
        hx = None if h is None else (h, h * 0.5) if module.mode == "LSTM" else h
        output, last = functional_call(module, parameters, (x, hx))
        last = last if isinstance(last, tuple) else (last,)
        return output.pow(2).sum() + sum(state.pow(3).sum() for state in last)

    return loss


def parameters_of(module):
    return {name: value.detach() for name, value in module.named_parameters()}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("with_states", [False, True])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_gradients_of_samples(mode, batch_first, rows, layers, with_states, dim):
    theirs, mine = make_pair(mode, 4, 5, layers, batch_first=batch_first, dtype=torch.float64)
    samples = 7
    shape = (rows, 6, 4) if batch_first else (6, rows, 4)
    x = torch.randn(samples, *shape, dtype=torch.float64)
    h = torch.randn(samples, layers, rows, 5, dtype=torch.float64) if with_states else None
    found = vmap(
        grad(loss_of(mine), argnums=(0, 1)), in_dims=(None, dim, None if h is None else 1)
    )(parameters_of(mine), x.movedim(0, dim), None if h is None else h.movedim(0, 1))
    for i in range(samples):
        given = (parameters_of(theirs), x[i], None if h is None else h[i])
        wanted = grad(loss_of(theirs), argnums=(0, 1))(*given)
        assert_close([found[1][i]], [wanted[1]], 1e-11)
        assert_close([value[i] for value in found[0].values()], list(wanted[0].values()), 1e-11)


@pytest.mark.parametrize("mode", MODES)
def test_an_ensemble(mode):
    theirs, mine = make_pair(mode, 4, 5, 2, bidirectional=True, dtype=torch.float64)
    x = torch.randn(6, 3, 4, dtype=torch.float64)
    every = {n: torch.stack([v, 2 * v, -v]) for n, v in parameters_of(mine).items()}
    outputs = vmap(lambda p: functional_call(mine, p, (x,))[0])(every)
    found = vmap(grad(loss_of(mine)), in_dims=(0, None))(every, x)
    for i in range(3):
        one = {name: value[i] for name, value in every.items()}
        assert_close([outputs[i]], [functional_call(theirs, one, (x,))[0]], 1e-12)
        wanted = grad(loss_of(theirs))(one, x)
        assert_close([v[i] for v in found.values()], list(wanted.values()), 1e-11)


@pytest.mark.parametrize("mode", MODES)
def test_jacobians_and_hessians(mode):
    theirs, mine = make_pair(mode, 2, 3, dtype=torch.float64)
    x, v = torch.randn(2, 3, 2, 2, dtype=torch.float64)
    with torch.backends.mkldnn.flags(enabled=False):
        wanted = torch.autograd.functional.jacobian(lambda x: theirs(x)[0], x)
        curved = torch.autograd.functional.hessian(lambda x: theirs(x)[0].pow(2).sum(), x)
    assert_close([jacrev(lambda x: mine(x)[0])(x)], [wanted], 1e-12)
    assert_close([jacfwd(lambda x: mine(x)[0])(x)], [wanted], 1e-12)
    assert_close([hessian(lambda x: mine(x)[0].pow(2).sum())(x)], [curved], 1e-11)
    twice = jacrev(jacrev(lambda x: mine(x)[0].pow(2).sum()))
    assert_close([twice(x)], [curved], 1e-11)
    _, moved = jvp(lambda x: mine(x)[0], (x,), (v,))
    assert_close([moved], [(wanted * v).sum((-3, -2, -1))], 1e-12)
    _, back = vjp(lambda x: mine(x)[0], x)
    u = torch.randn(3, 2, 3, dtype=torch.float64)
    assert_close([back(u)[0]], [(wanted * u[..., None, None, None]).sum((0, 1, 2))], 1e-12)


def test_vmap_in_vmap():
    theirs, mine = make_pair("GRU", 4, 5)
    x = torch.randn(2, 3, 6, 2, 4)
    found = vmap(vmap(lambda x: mine(x)[0], in_dims=1), in_dims=2)(x.movedim(0, 2).movedim(1, 1))
    given = x.movedim(0, 2)
    for i in range(2):
        for k in range(found.shape[1]):
            assert_close([found[i, k]], [theirs(given.select(2, i).select(1, k))[0]], 1e-5)


def test_dropout_under_vmap():
    module = ours.LSTM(4, 5, 2, dropout=0.5)
    x = torch.randn(3, 6, 2, 4)
    with pytest.raises(RuntimeError, match="randomness"):
        vmap(lambda x: module(x)[0])(x)
    same = vmap(lambda x: module(x)[0], randomness="same")(x[:1].expand(3, 6, 2, 4))
    assert torch.equal(same[0], same[1]) and torch.equal(same[0], same[2])
    module.eval()
    plain = nn.LSTM(4, 5, 2)
    plain.load_state_dict(module.state_dict())
    found = vmap(lambda x: module(x)[0])(x)
    assert_close([found[1]], [plain(x[1])[0]], 1e-5)
    assert states(module, 2)[0].shape == (2, 2, 5)
