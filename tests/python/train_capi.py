"""Optimizers, clipping, losses and schedules of the C++ library through its plain C interface."""

import ctypes
from ctypes import byref, c_char_p, c_double, c_int32, c_int64, c_void_p

import numpy as np

import rnn_capi

_NUMBERS = "learning_rate momentum decay beta1 beta2 epsilon initial_accumulator"


class _Optimizer(ctypes.Structure):
    _fields_ = (
        [(name, c_char_p) for name in ("kind", "dtype")]
        + [(name, c_double) for name in _NUMBERS.split()]
        + [(name, c_int32) for name in ("nesterov", "centered")]
    )


def _call(name, *arguments):
    function = getattr(rnn_capi.library(), "openrnn_test_" + name)
    function.restype = c_char_p
    rnn_capi.checked(function(*arguments))


def _pointer(array):
    return c_void_p(array.ctypes.data)


def optimize(optimizer, start, gradients):
    """{name: (dtype name, values)} of every variable after one update for each gradient; those of a
    variable of 16 bits are float32."""
    values = {name: v.encode() if isinstance(v, str) else v for name, v in vars(optimizer).items()}
    block = _Optimizer(dtype=start.dtype.name.encode(), **values)
    wide = np.float32 if start.dtype.itemsize == 2 else start.dtype
    variable, gradients = start.copy(), np.ascontiguousarray(gradients, wide)
    out, names = np.full(8 * start.size + 8, np.nan), ctypes.create_string_buffer(4096)
    _call(
        "optimize", byref(block), c_int64(start.size), c_int64(len(gradients)),
        _pointer(variable), _pointer(gradients), _pointer(out), names,
    )  # fmt: skip
    found, offset = {}, 0
    for line in names.value.decode().splitlines():
        name, dtype, size = line.split()
        found[name] = dtype, out[offset : offset + int(size)]
        offset += int(size)
    assert np.array_equal(found["X"][1], variable.astype(np.float64))
    return found


def clip_by_global_norm(tensors, clip_norm):
    """(clipped, norm)"""
    tensors, norm = [tensor.copy() for tensor in tensors], c_double()
    sizes = (c_int64 * len(tensors))(*[tensor.size for tensor in tensors])
    pointers = (c_void_p * len(tensors))(*[tensor.ctypes.data for tensor in tensors])
    _call(
        "clip", tensors[0].dtype.name.encode(), c_int64(len(tensors)), sizes, pointers,
        c_double(clip_norm), byref(norm),
    )  # fmt: skip
    return tensors, norm.value


def loss(kind, x, target):
    """(loss, d loss / dx)"""
    value, gradient = c_double(), np.full_like(x, np.nan)
    _call(
        "loss", kind.encode(), x.dtype.name.encode(), c_int64(x.shape[0]), c_int64(x.shape[1]),
        _pointer(x), _pointer(np.ascontiguousarray(target)), byref(value), _pointer(gradient),
    )  # fmt: skip
    return value.value, gradient


def schedule(
    kind, step, learning_rate, decay_rate=0.5, final_fraction=0.0, warmup=0, decay_steps=0
):
    numbers = (c_double * 3)(learning_rate, decay_rate, final_fraction)
    steps, rate = (c_int64 * 2)(warmup, decay_steps), c_double()
    _call("schedule", kind.encode(), numbers, steps, c_int64(step), byref(rate))
    return rate.value
