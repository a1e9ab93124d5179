"""A stand-in for JAX over NumPy: arrays are NumPy's, primitives run the engine's handlers by call
frames made by hand, and transformations keep their rules, which tests call. `make test-jax` compares
with JAX itself."""

import sys
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace

import ml_dtypes  # noqa: F401  NumPy knows 'bfloat16' from then on
import numpy as np
from frames import Call


class Array(np.ndarray):
    def unsafe_buffer_pointer(self):
        return self.ctypes.data


class Tracer:
    """What stands for an array in a program that is being made."""


def asarray(value, dtype=None):
    return np.ascontiguousarray(np.asarray(value, dtype)).reshape(np.shape(value)).view(Array)


class custom_vjp:
    """The function; `keep` and `first` are what a gradient runs."""

    def __init__(self, function):
        self.function = function

    def __call__(self, *args):
        return self.function(*args)

    def defvjp(self, keep, first, **options):
        self.keep, self.first, self.options = keep, first, options


class custom_vmap(custom_vjp):
    def def_vmap(self, rule):
        self.rule = rule


class Primitive:
    def __init__(self, name):
        self.name = name

    def def_abstract_eval(self, shapes):
        self.shapes = shapes

    def def_impl(self, function):
        self.function = function

    def bind(self, *args, **attributes):
        if not hasattr(self, "multiple_results"):
            return self.function(*args)
        made = [np.zeros(each.shape, each.dtype).view(Array) for each in self.shapes(*args, **attributes)]
        given = [np.ascontiguousarray(each) for each in args]
        error = Call(given, made, attributes).run(self.name)
        if error:
            raise RuntimeError(error[1])
        return made


class ShapedArray:
    def __init__(self, shape, dtype):
        self.shape, self.dtype = tuple(shape), np.dtype(dtype)


def _map(function, given):
    results = [function([each[n] for each in given]) for n in range(len(given[0]))]
    return tuple(np.stack(column) for column in zip(*results, strict=True))


def _leaves(tree):
    if isinstance(tree, dict):
        tree = list(tree.values())
    if isinstance(tree, (list, tuple)):
        return [leaf for each in tree for leaf in _leaves(each)]
    if hasattr(tree, "tree_flatten"):
        return _leaves(list(tree.tree_flatten()[0]))
    return [tree]


def _jit(function, **options):
    if options:
        function.options = options
    return function


# What was set by `disable_jit`, and the targets by name.
disabled, targets = [], {}


@contextmanager
def _disable_jit(flag=True):
    disabled.append(flag)
    yield


def _device_put(value, device):
    assert device == "cpu"
    return asarray(value)


def _uniform(key, shape, dtype, low, high):
    return np.random.default_rng(key).uniform(low, high, shape).astype(dtype).view(Array)


def _orthogonal():
    def make(key, shape, dtype):
        square = np.random.default_rng(key).normal(size=(max(shape), max(shape)))
        return np.linalg.qr(square)[0][: shape[0], : shape[1]].astype(dtype)

    return make


def _random():
    return SimpleNamespace(
        bits=lambda key, shape, dtype: np.random.default_rng(key).integers(0, 1 << 32, shape, dtype),
        split=lambda key, count: [[*np.atleast_1d(key), n] for n in range(count)],
        uniform=_uniform, key=lambda seed: seed,
    )  # fmt: skip


def _numpy():
    made = ModuleType("jax.numpy")
    made.__dict__.update({name: getattr(np, name) for name in (
        "concatenate", "ravel", "zeros", "ones", "moveaxis", "swapaxes", "broadcast_to", "expand_dims",
        "split", "issubdtype", "integer", "int32", "uint8", "uint32", "float32", "float64", "dtype",
    )})  # fmt: skip
    made.asarray = asarray
    return made


def _module(name, **members):
    made = ModuleType(name)
    made.__dict__.update(members)
    return made


def _ffi_call(name, shapes, vmap_method):
    assert vmap_method == "sequential"

    def call(*operands, **attributes):
        made = [np.zeros(each.shape, each.dtype) for each in shapes]
        error = Call([np.ascontiguousarray(each) for each in operands], made, attributes).run(name)
        if error:
            raise RuntimeError(error[1])
        return made

    return call


def _register(name, capsule, **options):
    targets[name] = capsule, options


class SymbolicZero:
    """The gradient of what nobody used."""


def _modules():
    numpy = _numpy()
    core = _module("jax.core", ShapedArray=ShapedArray, Tracer=Tracer)
    ffi = _module("jax.ffi", ffi_lowering=lambda name: name, ffi_call=_ffi_call,
                  register_ffi_target=_register)  # fmt: skip
    mlir = _module("jax.interpreters.mlir", lowerings={})
    mlir.register_lowering = lambda primitive, rule, platform=None: mlir.lowerings.update(
        {(primitive.name, platform): rule})  # fmt: skip
    jax = _module(
        "jax", __version__="0.5.0", __version_info__=(0, 5, 0), numpy=numpy, core=core, ffi=ffi,
        jit=_jit, custom_vjp=custom_vjp, random=_random(), lax=SimpleNamespace(map=_map),
        tree_util=SimpleNamespace(register_pytree_node_class=lambda cls: cls, tree_leaves=_leaves),
        nn=SimpleNamespace(initializers=SimpleNamespace(orthogonal=_orthogonal)),
        device_put=_device_put, disable_jit=_disable_jit, devices=lambda kind: [kind], Array=Array,
        ShapeDtypeStruct=ShapedArray, default_backend=lambda: "cpu", __path__=[],
    )  # fmt: skip
    batching = _module("jax.interpreters.batching", defvectorized=lambda primitive: None)
    derivatives = _module("jax.custom_derivatives", SymbolicZero=SymbolicZero)
    extend = _module("jax.extend.core", Primitive=Primitive)
    return {
        "jax": jax, "jax.numpy": numpy, "jax.core": core, "jax.ffi": ffi,
        "jax.custom_batching": _module("jax.custom_batching", custom_vmap=custom_vmap),
        "jax.extend": _module("jax.extend", core=extend, __path__=[]), "jax.extend.core": extend,
        "jax.interpreters": _module("jax.interpreters", mlir=mlir, batching=batching, __path__=[]),
        "jax.interpreters.batching": batching, "jax.custom_derivatives": derivatives,
        "jax.interpreters.mlir": mlir,
    }  # fmt: skip


@contextmanager
def installed():
    """openrnn.jax over the stand-in; nothing of either is left in sys.modules."""

    def taken(name):
        return name.split(".")[0] == "jax" or name.startswith(("openrnn.jax", "openrnn.keras._jax"))

    before = {name: sys.modules.pop(name) for name in list(sys.modules) if taken(name)}
    sys.modules.update(_modules())
    try:
        import openrnn.jax

        yield openrnn.jax
    finally:
        for name in filter(taken, list(sys.modules)):
            del sys.modules[name]
        sys.modules.update(before)
        if "openrnn.jax" not in sys.modules:
            del sys.modules["openrnn"].jax
