"""A stand-in for PyTorch over NumPy: what openrnn.torch does on the way to the engine is tested where
no PyTorch is. `make test-torch` compares with PyTorch itself."""

import sys
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace

import numpy as np
from numpy_torch import modules
from numpy_torch.tensors import (
    DTYPES, Context, Function, Parameter, Tensor, from_dlpack, grad, no_grad, recorded, seen, told,
)  # fmt: skip

__all__ = ["DTYPES", "Context", "Parameter", "Tensor", "grad", "modules", "no_grad", "seen", "told", "torch"]


class Operation:
    """One of torch.library: what is registered for it, and a call of it on the CPU, with gradients."""

    def __init__(self):
        self.kernels, self.fake, self.gradient, self.context, self.rule = {}, None, None, None, None
        self.default = self

    def __call__(self, *args):
        context = Context(args)
        with no_grad():
            output = self.kernels["CPU"](*args)
        if self.context is not None:
            self.context(context, args, output)
        context.plain = [id(each) for each in output if each.array.dtype == np.uint8]
        return recorded(context, args, output, self.gradient)


class Library:
    def __init__(self, name, kind):
        assert (name, kind) == ("openrnn", "DEF")

    def define(self, text):
        made = Operation()
        made.schema = text
        setattr(torch.ops.openrnn, text.split("(")[0], made)

    def impl(self, name, function, key, with_keyset=False):
        assert with_keyset is (key == "FuncTorchBatched")
        getattr(torch.ops.openrnn, name).kernels[key] = function


def _operation(name):
    return getattr(torch.ops.openrnn, name.removeprefix("openrnn::"))


def _register_fake(name, function):
    _operation(name).fake = function


def _register_autograd(name, gradient, setup_context=None):
    _operation(name).gradient, _operation(name).context = gradient, setup_context


def _register_vmap(name, rule):
    _operation(name).rule = rule


@contextmanager
def _excluded(keys):
    seen.excluded.append(keys)
    yield
    seen.excluded.pop()


def _randint(low, high, shape, dtype, device):
    assert (low, high, shape, device) == (0, 1 << 62, (), "cpu")
    seen.draws += 1
    return Tensor(np.array(seen.draws, dtype.numpy))


def _set_rng_state(state):
    seen.draws = state


def _empty(shape, device=None, dtype=None):
    # What nobody writes is no number.
    made = Tensor(np.full(shape, np.nan, "float32" if dtype is None else dtype.numpy))
    made.device = device or "cpu"
    return made


def _fill(function):
    def fill(parameter, *bounds):
        parameter.array[...] = function(parameter.shape, *bounds)

    return fill


def _uniform(shape, low, high):
    seen.draws += 1
    return np.random.default_rng(seen.draws).uniform(low, high, shape)


def _marked(name):
    """A decorator that leaves its mark."""

    def mark(function):
        setattr(function, name, True)
        return function

    return mark


def _module(name, **members):
    made = ModuleType(name)
    made.__dict__.update(members)
    return made


def _internals():
    return SimpleNamespace(
        _from_dlpack=from_dlpack,
        _len_torch_dispatch_stack=lambda: seen.modes,
        _are_functorch_transforms_active=lambda: seen.transforms,
        _get_tracing_state=lambda: seen.tracing,
        _is_any_autocast_enabled=lambda: seen.autocast is not None,
        DispatchKeySet=lambda key: key, _ExcludeDispatchKeyGuard=_excluded,
        DispatchKey=SimpleNamespace(AutocastCPU=1, FuncTorchBatched=2),
    )  # fmt: skip


def _make():
    made = _module("torch", __file__="/nowhere/torch/__init__.py", __path__=[], Tensor=Tensor,
                   strided="strided", **DTYPES)  # fmt: skip
    made._C = _internals()
    made.is_grad_enabled = lambda: seen.grad
    made.no_grad, made.get_num_threads = no_grad, lambda: seen.threads
    made.empty = _empty
    for mode, step in modules.STEPS.items():
        setattr(made, f"{mode.lower()}_cell", step)
    made.cat = lambda parts: Tensor(np.concatenate([part.numpy() for part in parts]))
    made.stack = lambda parts: Tensor(np.stack([part.numpy() for part in parts]))
    made.randint = _randint
    made.get_rng_state, made.set_rng_state = lambda: seen.draws, _set_rng_state
    made.is_autocast_enabled = lambda kind: seen.autocast is not None
    made.get_autocast_dtype = lambda kind: seen.autocast
    made.autocast = lambda kind, enabled: told(autocast=None)
    made.compiler = SimpleNamespace(is_compiling=lambda: seen.compiling, disable=_marked("disabled"))
    made.from_numpy = Tensor
    made.onnx = SimpleNamespace(is_in_onnx_export=lambda: seen.onnx)
    made.ops = SimpleNamespace(openrnn=SimpleNamespace())
    made.library = SimpleNamespace(
        Library=Library, register_fake=_register_fake, register_autograd=_register_autograd,
        register_vmap=_register_vmap,
    )  # fmt: skip
    made.forward_ad = SimpleNamespace(_current_level=-1)
    made.autograd = _module("torch.autograd", Function=Function, forward_ad=made.forward_ad)
    names = ("Module", "Sequential", "RNNBase", "LSTM", "GRU", "RNN", "LSTMCell", "GRUCell", "RNNCell")
    made.nn = _module("torch.nn", Parameter=Parameter, __path__=[], **{n: getattr(modules, n) for n in names})
    made.nn.init = SimpleNamespace(ones_=_fill(np.ones), zeros_=_fill(np.zeros), uniform_=_fill(_uniform))
    return made


torch = _make()


@contextmanager
def installed():
    """openrnn.torch over the stand-in; nothing of either is left in sys.modules."""
    rnn = _module("torch.nn.utils.rnn", PackedSequence=modules.PackedSequence)
    there = {"torch": torch, "torch.nn": torch.nn, "torch.autograd": torch.autograd,
             "torch.autograd.function": _module("torch.autograd.function", once_differentiable=_marked("once")),
             "torch.nn.utils": _module("torch.nn.utils", rnn=rnn, __path__=[]), "torch.nn.utils.rnn": rnn}
    before = {name: sys.modules.pop(name) for name in list(sys.modules)
              if name.split(".")[0] == "torch" or name.startswith("openrnn.torch")}
    sys.modules.update(there)
    try:
        import openrnn.torch

        yield openrnn.torch
    finally:
        for name in list(sys.modules):
            if name.split(".")[0] == "torch" or name.startswith(
                    ("openrnn.torch", "openrnn._torch_threads", "openrnn.keras._torch")):
                del sys.modules[name]
        sys.modules.update(before)
        if hasattr(sys.modules["openrnn"], "torch") and "openrnn.torch" not in sys.modules:
            del sys.modules["openrnn"].torch
