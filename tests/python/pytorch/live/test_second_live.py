"""PyTorch's double backward: LSTM and GRU as loops, and the operations, in float64."""

import pathlib
import sys

import numpy as np
import openrnn
import pytest
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "second"))
import second_cells


class Ops:
    split = staticmethod(lambda row, n: row.chunk(n, 1))
    reshape, stack, transpose = torch.reshape, torch.stack, torch.t
    sigmoid, tanh = torch.sigmoid, torch.tanh


@pytest.mark.parametrize("mode", ["lstm", "gru"])
def test_networks(mode):
    x, params, weights, slopes = (torch.tensor(a) for a in second_cells.data(mode))
    sources = [x.requires_grad_(), params.requires_grad_()]
    y = second_cells.run(mode, x, params, Ops)
    first = torch.autograd.grad((y * y * weights).sum(), sources, create_graph=True)
    second = torch.autograd.grad((first[0] ** 2).sum() + (first[1] * slopes).sum(), sources)
    second_cells.assert_same(mode, [found.detach().numpy() for found in (y, *first, *second)])


def softmax_loss(logits):
    return torch.nn.functional.cross_entropy(logits, torch.tensor([2, 0, 1]))


OPERATIONS = {
    "relu": (openrnn.nn.relu, torch.relu),
    "tanh": (openrnn.tanh, torch.tanh),
    "sigmoid": (openrnn.sigmoid, torch.sigmoid),
    "exp": (openrnn.exp, torch.exp),
    "square": (openrnn.square, torch.square),
    "abs": (openrnn.abs, torch.abs),
    "softmax": (openrnn.nn.softmax, lambda a: torch.softmax(a, -1)),
    "divide": (lambda a: a / (a * a + 1.0), lambda a: a / (a * a + 1.0)),
    "matmul": (lambda a: openrnn.matmul(a, a, transpose_b=True), lambda a: a @ a.T),
    "cross_entropy": (
        lambda a: openrnn.losses.sparse_softmax_cross_entropy(np.array([2, 0, 1], "int32"), a),
        softmax_loss,
    ),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations(name):
    mine, torchs = OPERATIONS[name]
    start = np.random.default_rng(3).uniform(-2, 2, (3, 4))
    start[0, 0] = 0.0  # a kink: the second derivative of relu and abs is 0 there too
    a = torch.tensor(start, requires_grad=True)
    (first,) = torch.autograd.grad((torchs(a) ** 2).sum(), a, create_graph=True)
    (second,) = torch.autograd.grad((first**2).sum(), a)
    x = openrnn.constant(start)
    with openrnn.GradientTape() as outer:
        outer.watch(x)
        with openrnn.GradientTape() as inner:
            loss = openrnn.reduce_sum(openrnn.square(mine(x)))
        slope = inner.gradient(loss, x)
        penalty = openrnn.reduce_sum(openrnn.square(slope))
    np.testing.assert_allclose(slope.numpy(), first.detach().numpy(), rtol=1e-10, atol=1e-12)
    found = outer.gradient(penalty, x).numpy()
    np.testing.assert_allclose(found, second.numpy(), rtol=1e-9, atol=1e-11)
