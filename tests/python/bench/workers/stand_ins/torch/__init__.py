"""The few functions of PyTorch that the workers call, over NumPy."""

import contextlib
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import small_autograd
from small_autograd import Tensor as Base
from small_autograd import clamp, joined, sigmoid, stacked, tanh

__all__ = ["clamp", "nn", "optim", "sigmoid", "tanh"]
__version__ = "0.0"
__config__ = SimpleNamespace(show=lambda: "Built with\n  - MKL\n  - Intel oneDNN v9\n")
float32, bfloat16 = "float32", "bfloat16"
used = set()  # names of operations
flags = {"onednn": True, "threads": 0}
backends = SimpleNamespace(mkldnn=SimpleNamespace(set_flags=lambda on: flags.update(onednn=on)))


class Tensor(Base):
    """With the methods that the workers call; 16 bits are rounded and stay float32."""


def _method(function):
    setattr(Base, function.__name__, function)


@_method
def to(self, dtype):
    if dtype == bfloat16:
        self.data = self.data.astype(ml_dtypes.bfloat16).astype("float32")
    return self


@_method
def chunk(self, count, axis):
    return self.parts(count, axis)


@_method
def unbind(self, axis):
    assert axis == 0
    return [self[n] for n in range(len(self.data))]


@_method
def flatten(self, first=0, last=None):
    shape = self.shape if last is None else self.shape[last + 1 :]
    return self.reshape(-1, *shape) if last is not None else self.reshape(-1)


@_method
def detach(self):
    return Base(self.data)


@_method
def numpy(self):
    assert not self.requires_grad
    return self.data


for _name in ("float", "cpu", "contiguous"):
    setattr(Base, _name, lambda self: self)
Base.__float__ = lambda self: float(self.data)


def set_num_threads(count):
    flags["threads"] = count


def from_numpy(array):
    return Base(array)


def zeros(*shape):
    return Base(np.zeros(shape, "float32"))


def zeros_like(like):
    return zeros(*like.shape)


def addmm(x, a, b):
    used.add("aten::addmm")
    return x + a @ b


def stack(tensors):
    return stacked(tensors)


def cat(tensors):
    return joined(tensors, 0)


@contextlib.contextmanager
def inference_mode(on=True):
    small_autograd.recording.append(not on)
    try:
        yield
    finally:
        small_autograd.recording.pop()


class compile:  # noqa: A001, N801 - PyTorch's name
    """What was compiled; its parameters have other names."""

    def __init__(self, made, dynamic=None):
        self.made, self.dynamic = made, dynamic

    def __call__(self, *given):
        used.add("compiled")
        return self.made(*given)

    def named_parameters(self):
        return [(f"_orig_mod.{name}", each) for name, each in self.made.named_parameters()]

    def __getattr__(self, name):
        return getattr(self.made, name)


class profile:  # noqa: N801 - PyTorch's name
    """The operations inside of the block."""

    def __enter__(self):
        used.clear()
        return self

    def __exit__(self, *_):
        self.found = sorted(used)

    def key_averages(self):
        return [SimpleNamespace(key=name) for name in [*self.found, "aten::other"]]


profiler = SimpleNamespace(profile=profile)

from torch import nn, optim  # noqa: E402
