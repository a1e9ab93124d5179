"""The few functions of JAX that the worker calls, over NumPy."""

import os
from types import SimpleNamespace

import numpy as np
from small_autograd import Tensor, sigmoid, stacked

assert os.environ["JAX_PLATFORMS"] == "cpu"
__version__ = "0.0"
Array = Tensor
Tensor.__array__ = lambda self, dtype=None, copy=None: np.array(self.data, dtype)
nn = SimpleNamespace(sigmoid=sigmoid)


def leaves_of(tree):
    if isinstance(tree, (list, tuple)):
        return [leaf for part in tree for leaf in leaves_of(part)]
    return [tree]


def mapped(function, tree):
    if isinstance(tree, (list, tuple)):
        return type(tree)(mapped(function, part) for part in tree)
    return function(tree)


def jit(function):
    return function


def block_until_ready(value):
    return value


def vjp(function, *given):
    fresh = mapped(lambda leaf: Tensor(leaf.data).requires_grad_(), given)
    values = function(*fresh)

    def backward(gradients):
        for value, gradient in zip(leaves_of(values), leaves_of(gradients), strict=True):
            value.backward(gradient)
        return mapped(lambda leaf: leaf.grad, fresh)

    return values, backward


def scan(step, state, xs, reverse):
    outputs, order = {}, range(xs.shape[0])
    for t in reversed(order) if reverse else order:
        state, outputs[t] = step(state, xs[t])
    return state, stacked([outputs[t] for t in order])


tree, lax = SimpleNamespace(map=mapped), SimpleNamespace(scan=scan)
