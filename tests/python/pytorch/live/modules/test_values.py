"""Values and gradients of LSTM, GRU and RNN are those of torch.nn."""

import openrnn.torch as ours
import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

from module_pairs import MODES, TOLERANCE, assert_close, flat, make_pair, results, states


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("with_states", [False, True])
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("packed", [False, True])
def test_a_call_and_its_gradients(
    mode, layers, bidirectional, batch_first, bias, dtype, with_states, rows, packed
):
    theirs, mine = make_pair(
        mode, 4, 5, layers, bidirectional=bidirectional, batch_first=batch_first, bias=bias,
        dtype=dtype,
    )  # fmt: skip
    x = torch.randn((rows, 6, 4) if batch_first else (6, rows, 4), dtype=dtype)
    hx = states(theirs, rows) if with_states else None
    make_input = lambda x: x  # noqa: E731
    if packed:
        lengths = [2, 6, 1][:rows]
        make_input = lambda x: pack_padded_sequence(  # noqa: E731
            x, lengths, batch_first=batch_first, enforce_sorted=False
        )
    wanted = results(theirs, x, hx, make_input)
    assert_close(results(mine, x, hx, make_input), wanted, TOLERANCE[dtype])


@pytest.mark.parametrize("projection", [1, 3])
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("bias", [True, False])
def test_projections(projection, layers, bidirectional, batch_first, bias):
    theirs, mine = make_pair(
        "LSTM", 4, 5, layers, bidirectional=bidirectional, batch_first=batch_first, bias=bias,
        proj_size=projection, dtype=torch.float64,
    )  # fmt: skip
    x, hx = torch.randn(3, 3, 4, dtype=torch.float64), states(theirs, 3)
    assert_close(results(mine, x, hx), results(theirs, x, hx), 1e-12)


@pytest.mark.parametrize("mode", MODES)
def test_one_generator_gives_the_same_parameters_in_the_same_order(mode):
    theirs, mine = make_pair(mode, 3, 7, 2, bidirectional=True)
    assert list(mine.state_dict()) == list(theirs.state_dict())
    assert all(map(torch.equal, mine.parameters(), theirs.parameters()))
    assert torch.equal(torch.rand(3), make_pair(mode, 3, 7, 2, bidirectional=True) and torch.rand(3))
    mine.load_state_dict(theirs.state_dict())
    assert repr(mine) == repr(theirs)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("with_states", [False, True])
def test_an_unbatched_call(mode, batch_first, with_states):
    theirs, mine = make_pair(mode, 4, 5, 2, batch_first=batch_first, bidirectional=True)
    x, hx = torch.randn(6, 4), states(theirs, 1)
    hx = tuple(s[:, 0] for s in hx) if isinstance(hx, tuple) else hx[:, 0]
    given = hx if with_states else None
    assert_close(results(mine, x, given), results(theirs, x, given), 2e-5)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_sixteen_bits(mode, dtype):
    theirs, mine = make_pair(mode, 4, 5, 2, dtype=dtype)
    x = torch.randn(6, 3, 4).to(dtype)
    wide = make_pair(mode, 4, 5, 2)[0]
    wide.load_state_dict({k: v.float() for k, v in theirs.state_dict().items()})
    found, wanted = results(mine, x, None), results(wide, x.float(), None)
    assert {value.dtype for value in found} == {dtype}
    assert_close([value.float() for value in found], wanted, TOLERANCE[dtype])


@pytest.mark.parametrize("mode", MODES)
def test_inputs_that_are_views(mode):
    theirs, mine = make_pair(mode, 4, 5, 2)
    torch.manual_seed(5)
    wide = torch.randn(3, 6, 8)
    views = [
        wide[..., ::2].transpose(0, 1), torch.randn(1, 3, 4).expand(6, 3, 4),
        torch.randn(6, 1, 4).expand(6, 3, 4), wide[:, :, :4].permute(1, 0, 2),
    ]  # fmt: skip
    count = torch.randn(2, 1, 5).expand(2, 3, 5)
    hx = (count, count.flip(0)) if mode == "LSTM" else count
    for x in views:
        assert not x.is_contiguous()
        assert_close(results(mine, x, hx), results(theirs, x, hx), 2e-5)
        with torch.no_grad():
            assert_close(flat(*mine(x, hx)), flat(*theirs(x, hx)), 2e-5)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("batch_first", [False, True])
def test_an_empty_batch(mode, batch_first):
    _, mine = make_pair(mode, 4, 5, 2, batch_first=batch_first)
    x = torch.randn((0, 6, 4) if batch_first else (6, 0, 4))
    found = results(mine, x, None)
    assert found[0].shape == ((0, 6, 5) if batch_first else (6, 0, 5))
    assert all(not value.any() for value in found if value.numel())


def test_dropout_repeats_with_the_seed_and_only_trains():
    module = ours.LSTM(4, 8, 2, dropout=0.5)
    x = torch.randn(6, 3, 4)
    torch.manual_seed(0)
    first, second = module(x)[0], module(x)[0]
    torch.manual_seed(0)
    again = module(x)[0]
    assert torch.equal(first, again) and not torch.equal(first, second)
    plain = nn.LSTM(4, 8, 2)
    plain.load_state_dict(module.state_dict())
    module.eval()
    assert torch.allclose(module(x)[0], plain(x)[0], atol=1e-6)
    before = torch.get_rng_state()
    module(x)
    assert torch.equal(before, torch.get_rng_state())
    module.train()
    module.dropout = 0.0
    assert torch.allclose(module(x)[0], plain(x)[0], atol=1e-6)


def test_dropout_drops_at_its_rate_and_its_gradient_is_of_the_same_mask():
    module = ours.GRU(3, 50, 2, dropout=0.25, dtype=torch.float64)
    x = torch.randn(4, 2, 3, dtype=torch.float64, requires_grad=True)

    def call(x):
        torch.manual_seed(7)
        return module(x)[0]

    assert torch.autograd.gradcheck(call, (x,), fast_mode=True)
    module.dropout = 1.0
    with torch.no_grad():
        module.weight_ih_l1.mul_(1e6)
        module.weight_hh_l1.zero_()
        module.bias_ih_l1.zero_()
        module.bias_hh_l1.zero_()
    assert not module(x)[0].any()


@pytest.mark.parametrize(
    "options",
    [
        {"use_peepholes": True},
        {"cell_clip": 0.1},
        {"forget_bias": 1.0},
        {"layer_norm": "products", "layer_norm_cell": "output"},
        {"single_bias": True},
        {"math": "bf16"},
    ],
)
def test_options_of_our_networks(options):
    import numpy as np
    from openrnn import layers

    module = ours.LSTM(4, 5, 2, bidirectional=True, **options)
    layer = layers.LSTM(5, num_layers=2, direction="bidirectional", **options)
    layer.build((None, None, 4))
    net = module(torch.zeros(1, 1, 4)) and module._engine.net
    buffer = net.joined(list(module.parameters()), torch.zeros(())).detach().numpy()
    layer.set_weights([buffer])
    x = np.random.default_rng(0).normal(size=(6, 3, 4)).astype("float32")
    assert np.array_equal(module(torch.from_numpy(x))[0].detach().numpy(), layer(x, training=False)[0])
    assert module.state_dict().keys() == dict(module.named_parameters()).keys()
    module(torch.from_numpy(x))[0].sum().backward()
    assert all(p.grad is not None and p.grad.shape == p.shape for p in module.parameters())


def test_weights_of_eight_bits_are_for_inference():
    module = ours.LSTM(16, 32, weights_dtype="int8")
    x = torch.randn(5, 2, 16)
    with torch.no_grad():
        found = module(x)[0]
    plain = nn.LSTM(16, 32)
    plain.load_state_dict(module.state_dict())
    assert 0 < (found - plain(x)[0]).abs().max() < 0.02
    with pytest.raises(NotImplementedError, match="weights_dtype is 'int8', which is for inference"):
        module(x)


@pytest.mark.parametrize("mode", MODES)
def test_negated_views_are_read_as_what_they_say(mode):
    """PyTorch negates them when it reads them: `z.conj().imag` is one."""
    theirs, mine = make_pair(mode, 4, 5, 2)
    x = torch._neg_view(torch.randn(6, 3, 4))
    for context in (torch.no_grad, torch.enable_grad):
        with context():
            torch.testing.assert_close(mine(x)[0], theirs(x)[0])
            torch.testing.assert_close(mine(x)[0], theirs(x)[0])
