"""Functions of torch.nn."""

import numpy as np
import torch
from small_autograd import Tensor, softsign

__all__ = ["cross_entropy", "layer_norm", "linear", "softsign"]


def linear(x, weight, bias=None):
    torch.used.add("aten::linear")
    return x @ weight.t() if bias is None else x @ weight.t() + bias


def layer_norm(x, shape, weight, bias, epsilon):
    assert shape == (x.shape[-1],)
    mean, root = x.data.mean(-1, keepdims=True), np.sqrt(x.data.var(-1, keepdims=True) + epsilon)
    value = (x.data - mean) / root

    def back(g):
        return (g - g.mean(-1, keepdims=True) - value * (g * value).mean(-1, keepdims=True)) / root

    return Tensor(value, (x, back)) * weight + bias


def cross_entropy(logits, targets):
    chances = np.exp(logits.data - logits.data.max(1, keepdims=True))
    chances /= chances.sum(1, keepdims=True)
    rows = np.arange(len(targets.data)), targets.data

    def back(g):
        made = chances.copy()
        made[rows] -= 1
        return g * made / len(made)

    return Tensor(-np.log(chances[rows]).mean(), (logits, back))
