"""A module of torch.nn and ours with the same parameters, and what a call gives of each."""

import openrnn.torch as ours
import torch
from torch import nn

MODES = ["LSTM", "GRU", "RNN_tanh", "RNN_relu"]
# What two float implementations may differ by, relative to values of about 1: sums of some ten
# terms through a dozen steps, each rounded; 16-bit results are rounded once more.
TOLERANCE = {torch.float64: 1e-12, torch.float32: 2e-5, torch.float16: 2e-2, torch.bfloat16: 1e-1}


def make_pair(mode, *args, dtype=torch.float32, seed=1, **options):
    name, _, nonlinearity = mode.partition("_")
    if nonlinearity:
        options["nonlinearity"] = nonlinearity
    made = []
    for library in (nn, ours):
        torch.manual_seed(seed)
        made.append(getattr(library, name)(*args, dtype=dtype, **options))
    return made


def states(module, rows, seed=3):
    torch.manual_seed(seed)
    count = module.num_layers * (2 if module.bidirectional else 1)
    dtype = module.weight_ih_l0.dtype
    h = torch.randn(count, rows, module.proj_size or module.hidden_size, dtype=dtype)
    if module.mode != "LSTM":
        return h
    return h, torch.randn(count, rows, module.hidden_size, dtype=dtype)


def flat(output, last):
    """[output, h, ..] of a call's result."""
    output = output.data if isinstance(output, nn.utils.rnn.PackedSequence) else output
    return [output, *(last if isinstance(last, tuple) else (last,))]


def results(module, x, hx, make_input=lambda x: x):
    """Outputs, then the gradients of the input, the states and all parameters."""
    x = x.detach().clone().requires_grad_()
    given = () if hx is None else hx if isinstance(hx, tuple) else (hx,)
    given = [state.detach().clone().requires_grad_() for state in given]
    last = None if hx is None else tuple(given) if isinstance(hx, tuple) else given[0]
    outputs = flat(*module(make_input(x), last))
    torch.manual_seed(4)
    loss = sum((value * torch.randn(value.shape).to(value.dtype)).sum() for value in outputs)
    return outputs + list(torch.autograd.grad(loss, [x, *given, *module.parameters()]))


def assert_close(found, wanted, tolerance):
    assert len(found) == len(wanted)
    for index, (a, b) in enumerate(zip(found, wanted, strict=True)):
        assert a.shape == b.shape and a.dtype == b.dtype, index
        scale = max(1.0, float(b.detach().abs().max())) if b.numel() else 1.0
        assert torch.allclose(a.double(), b.double(), rtol=0, atol=tolerance * scale), index
