"""The C++ library through a plain C interface built for these tests: NumPy arrays in and out."""

import ctypes
import os
from ctypes import (
    POINTER,
    byref,
    c_char_p,
    c_double,
    c_int32,
    c_int64,
    c_uint32,
    c_uint64,
    c_void_p,
)
from functools import cache
from pathlib import Path

import numpy as np


class CallError(Exception):
    """What the library threw; `kind` is the name of its C++ type."""

    def __init__(self, text):
        self.kind, _, message = text.partition(": ")
        super().__init__(message)


class _Spec(ctypes.Structure):
    _fields_ = (
        [(name, c_char_p) for name in ("mode", "input_mode", "direction", "dtype")]
        + [(name, c_int64) for name in ("num_layers", "num_units", "input_size", "num_proj")]
        + [(name, c_double) for name in ("dropout", "clip_low", "clip_high")]
        + [("options", c_char_p)]
    )


class _Run(ctypes.Structure):
    _fields_ = (
        [("engine", c_char_p), ("params", c_void_p)]
        + [(name, c_int64) for name in ("params_size", "max_time", "batch")]
        + [(name, c_int32) for name in ("time_major", "training", "saving", "backward_calls")]
        + [(name, c_uint64) for name in ("dropout_seed", "dropout_call")]
        + [
            (name, c_void_p)
            for name in "lengths x h0 c0 y hn cn dy dhn dcn dx dh0 dc0 dparams".split()
        ]
    )


class _Region(ctypes.Structure):
    _fields_ = [
        (name, c_int64)
        for name in ("is_bias", "layer", "direction", "slot", "rows", "cols", "offset")
    ]


@cache
def library():
    """Loaded from $OPENRNN_BUILD_DIR, else build/release; a missing one is a failure, not a skip."""
    default = Path(__file__).parents[2] / "build" / "release"
    folder = Path(os.environ.get("OPENRNN_BUILD_DIR", default))
    path = (folder / "libopenrnn_testapi.so").resolve()
    if not path.exists():
        raise FileNotFoundError(f"{path}: build it, and name its folder in OPENRNN_BUILD_DIR")
    loaded = ctypes.CDLL(str(path))
    signatures = {
        "run": [POINTER(_Spec), POINTER(_Run)],
        "params_size": [POINTER(_Spec), POINTER(c_int64)],
        "layout": [POINTER(_Spec), POINTER(_Region), POINTER(c_int64)],
        "to_canonical": [POINTER(_Spec), c_void_p, c_int64, c_void_p, c_void_p],
        "to_params": [POINTER(_Spec), c_void_p, c_void_p, c_void_p],
        "tf_tensors": [POINTER(_Spec), c_char_p, c_int64],
        "to_tf": [POINTER(_Spec), c_void_p, c_int64, c_void_p],
        "from_tf": [POINTER(_Spec), c_void_p, c_void_p],
        "set_num_threads": [c_int32],
        "cpu_isas": [c_char_p, c_int64],
        "force_cpu_isa": [c_char_p],
    }
    for name, arguments in signatures.items():
        function = getattr(loaded, "openrnn_test_" + name)
        function.argtypes, function.restype = arguments, c_char_p
    loaded.openrnn_test_dropout_row.argtypes = (
        [c_uint64, c_uint64, c_int32] + [c_uint32] * 3 + [c_double, c_int32, c_int64, c_void_p]
    )
    loaded.openrnn_test_dropout_row.restype = None
    return loaded


def checked(text):
    if text is not None:
        raise CallError(text.decode())


def call(name, *arguments):
    checked(getattr(library(), "openrnn_test_" + name)(*arguments))


def _spec(spec, dtype, dropout=0.0):
    names = [spec.mode, spec.input_mode, spec.direction, np.dtype(dtype).name]
    sizes = [spec.num_layers, spec.num_units, spec.input_size, spec.num_proj]
    low, high = spec.cell_clip or (np.nan, np.nan)
    return _Spec(*[name.encode() for name in names], *sizes, dropout, low, high, _options(spec))


def _options(spec):
    """The options of a CellSpec that are not at their defaults, but for cell_clip."""

    def text(value):
        if isinstance(value, tuple):
            return ":".join(repr(bound) for bound in value)
        return str(int(value)) if isinstance(value, bool) else str(value)

    options = dict(getattr(spec, "options", {}))
    options.pop("cell_clip", None)
    return ";".join(f"{name}={text(value)}" for name, value in options.items()).encode()


def _pointer(array):
    return None if array is None else array.ctypes.data


def _pointers(arrays):
    return (c_void_p * len(arrays))(*[array.ctypes.data for array in arrays])


def params_size(spec, dtype=np.float32):
    size = c_int64()
    call("params_size", byref(_spec(spec, dtype)), byref(size))
    return size.value


def layout(spec, dtype=np.float32):
    """[(is_bias, layer, direction, slot, rows, cols, offset)] in the order of the buffer."""
    count = c_int64(0)
    call("layout", byref(_spec(spec, dtype)), None, byref(count))
    out = (_Region * count.value)()
    call("layout", byref(_spec(spec, dtype)), out, byref(count))
    return [tuple(getattr(r, name) for name, _ in _Region._fields_) for r in out]


def params_to_canonical(spec, params):
    regions = layout(spec, params.dtype)
    weights = [np.empty((r[4], r[5]), params.dtype) for r in regions if not r[0]]
    biases = [np.empty(r[4], params.dtype) for r in regions if r[0]]
    call(
        "to_canonical", byref(_spec(spec, params.dtype)), _pointer(params), params.size,
        _pointers(weights), _pointers(biases),
    )  # fmt: skip
    return weights, biases


def canonical_to_params(spec, weights, biases):
    dtype = biases[0].dtype
    params = np.empty(params_size(spec, dtype), dtype)
    weights, biases = ([np.ascontiguousarray(a) for a in part] for part in (weights, biases))
    call(
        "to_params", byref(_spec(spec, dtype)), _pointers(weights), _pointers(biases),
        _pointer(params),
    )  # fmt: skip
    return params


def tf_tensors(spec, dtype=np.float32):
    """[(name, shape)] of the format of TensorFlow's cells."""
    out = ctypes.create_string_buffer(1 << 16)
    call("tf_tensors", byref(_spec(spec, dtype)), out, len(out))
    lines = [line.split() for line in out.value.decode().splitlines()]
    return [(name, tuple(int(size) for size in shape)) for name, *shape in lines]


def to_tf(spec, params):
    """[(name, tensor)]"""
    named = [(name, np.empty(shape, params.dtype)) for name, shape in tf_tensors(spec)]
    arrays = _pointers([array for _, array in named])
    call("to_tf", byref(_spec(spec, params.dtype)), _pointer(params), params.size, arrays)
    return named


def from_tf(spec, tensors):
    dtype = tensors[0].dtype
    tensors = [np.ascontiguousarray(tensor) for tensor in tensors]
    params = np.empty(params_size(spec, dtype), dtype)
    call("from_tf", byref(_spec(spec, dtype)), _pointers(tensors), _pointer(params))
    return params


def dropout_mask(spec, dtype, rate, time, batch, seed=0, number=0):
    """Per layer but the last the mask [T, B, D * O] that the library itself generates."""
    mask_type = np.float64 if dtype == np.float64 else np.float32
    masks = np.empty(
        (spec.num_layers - 1, time, batch, spec.num_dirs * spec.state_width), mask_type
    )
    for layer, t, b in np.ndindex(masks.shape[:3]):
        library().openrnn_test_dropout_row(
            seed, number, 0, layer, t, b, rate, mask_type == np.float64, masks.shape[3],
            masks[layer, t, b].ctypes.data,
        )  # fmt: skip
    return masks


# Those inside a step, by the numbers of openrnn::MaskOf.
STEP_MASKS = {"state": 4, "candidate": 5, "zoneout": 6, "zoneout_cell": 7}


def step_masks(spec, time, batch, seed=0, number=0):
    """The masks inside the steps that the library itself generates, in float64, by the names of
    STEP_MASKS: [L * D, B, O] of the state, else [L * D, T, B, U], of zoneout [L * D, T, B, O]."""
    form = spec.recurrent_dropout_form
    rates = {"zoneout": spec.zoneout, "zoneout_cell": spec.zoneout_cell}
    rates[form] = spec.recurrent_dropout
    found = {}
    for name, rate in rates.items():
        width = spec.state_width if name in ("state", "zoneout") else spec.num_units
        found[name] = np.empty((spec.num_pseudo, 1 if name == "state" else time, batch, width))
        for pseudo, t, b in np.ndindex(found[name].shape[:3]):
            library().openrnn_test_dropout_row(
                seed, number, STEP_MASKS[name], pseudo, t, b, rate, True, width,
                found[name][pseudo, t, b].ctypes.data,
            )  # fmt: skip
    return found


def set_num_threads(count):
    call("set_num_threads", count)


def cpu_isas():
    """Those that this processor has, widest last."""
    out = ctypes.create_string_buffer(256)
    call("cpu_isas", out, len(out))
    return out.value.decode().split()


def force_cpu_isa(name):
    call("force_cpu_isa", name.encode())


def run(
    engine, problem, *, training=False, saving=False, backward_calls=0, dropout=0.0, seed=0,
    number=0, time_major=True, params=None,
):  # fmt: skip
    """One forward call, and backward when asked: dict of y h c dx dh0 dc0 dparams.

    Every output starts as NaN, so that what an engine leaves out shows. Batch-major data are asked
    for with time_major=False: the problem stays time-major and is transposed here, in and out."""
    spec, dtype = problem.spec, problem.x.dtype
    turn = (lambda a: a) if time_major else (lambda a: np.ascontiguousarray(a.swapaxes(0, 1)))
    has_cell = spec.has_cell
    params = problem.params if params is None else params
    given = {name: turn(getattr(problem, name)) for name in ("x", "h0", "c0", "dy", "dh", "dc")}
    names = {"y": "dy", "hn": "h0", "cn": "c0"}
    if backward_calls:
        names.update(dx="x", dh0="h0", dc0="c0")
    if not has_cell:
        for each in ("cn", "dc0"):
            names.pop(each, None)
    out = {name: np.full_like(given[like], np.nan) for name, like in names.items()}
    if backward_calls:
        out["dparams"] = np.full(params.shape, np.nan, dtype)
    block = _Run(
        engine=engine.encode(), params=_pointer(params), params_size=params.size,
        max_time=problem.x.shape[0], batch=problem.x.shape[1], time_major=time_major,
        training=training, saving=saving, backward_calls=backward_calls, dropout_seed=seed,
        dropout_call=number, lengths=_pointer(problem.lengths), x=_pointer(given["x"]),
        h0=_pointer(given["h0"]), c0=_pointer(given["c0"]) if has_cell else None,
        dy=_pointer(given["dy"]), dhn=_pointer(given["dh"]),
        dcn=_pointer(given["dc"]) if has_cell else None,
        **{name: _pointer(array) for name, array in out.items()},
    )  # fmt: skip
    call("run", byref(_spec(spec, dtype, dropout)), byref(block))
    return {
        {"hn": "h", "cn": "c"}.get(name, name): array if name == "dparams" else turn(array)
        for name, array in out.items()
    }
