"""The loop over time of a recurrent layer of Keras, on the engine.

This file decides whether the engine computes a call, with the networks of `_cells.py`; the file of
Keras's backend calls it, with a gradient: under jax by calls of XLA, under the others on NumPy's
arrays, which `_host.py` runs. `_layers.py` and `_install.py` put it in the place of Keras's own
`inner_loop`. Two directions at once are in `_bidirectional.py`.
"""

# Keras is not there where types are checked.
# mypy: disable-error-code="import-not-found, import-untyped, misc"

from __future__ import annotations

import functools
import importlib
from typing import Any

import keras

from openrnn.errors import ArgumentError
from openrnn.keras import _cells

_BACKENDS = ("torch", "tensorflow", "jax", "numpy")
# The engine's dtypes; of half precision the sums and states are float32.
DTYPES = {
    "float64": "float64",
    "float32": "float32",
    "float16": "float32",
    "bfloat16": "float32",
}


@functools.cache
def _backend(name: str) -> tuple[Any, str]:
    """(the file of a backend of Keras, why there is none)."""
    if name not in _BACKENDS:
        return None, f"Keras's backend is {name}, expected one of {', '.join(_BACKENDS)}"
    try:
        return importlib.import_module(f"openrnn.keras._{name}"), ""
    except ModuleNotFoundError as error:
        if error.name != "jax":
            raise
        return None, str(error)  # openrnn.jax says so of a JAX that is too old


def engine_backend() -> Any:
    return _backend(keras.backend.backend())[0]


def why_not(layer: Any) -> str:
    """Why a recurrent layer of Keras does not run on the engine; empty if it does.

    It then takes Keras's own loop. A call may still do so for what this cannot tell beforehand:
    recurrent_dropout in training, dropout in training with implementation=1, tensors on a GPU.
    Raises ArgumentError for any other layer.

    Examples
    --------
    >>> openrnn.keras.why_not(keras.layers.LSTM(4))
    ''
    >>> openrnn.keras.why_not(keras.layers.LSTM(4, activation="gelu"))
    'activation gelu, expected one of elu, ...'
    """
    if not isinstance(layer, keras.layers.RNN):
        raise ArgumentError(
            f"[why_not] a {type(layer).__name__}, expected a recurrent layer of Keras"
        )
    missing = _backend(keras.backend.backend())[1]
    if missing:
        return missing
    if getattr(layer, "use_cudnn", None) is True:
        return "use_cudnn=True, expected 'auto' or False"
    if layer.compute_dtype not in DTYPES:
        return f"dtype {layer.compute_dtype}, expected one of {', '.join(DTYPES)}"
    return _cells.why_not(layer.cell)


def _dropped(layer: Any, sequences: Any) -> Any:
    """The inputs under Keras's own mask of dropout, one for all steps; None: one for each gate."""
    cell = layer.cell
    if not isinstance(cell, keras.layers.SimpleRNNCell) and not 0.0 < cell.dropout < 1.0:
        return sequences
    mask = cell.get_dropout_mask(sequences[:, 0, :])
    if isinstance(mask, (list, tuple)):
        return None
    return sequences * keras.ops.expand_dims(mask, axis=1)


def mask_of(mask: Any, sequences: Any) -> Any:
    """(whether it is one that the engine reads, the mask as bool [B, T] or None)."""
    if isinstance(mask, (list, tuple)):
        mask = mask[0] if mask else None
    if mask is None:
        return True, None
    mask = keras.ops.convert_to_tensor(mask)
    if len(mask.shape) == 3 and mask.shape[-1] == 1:
        mask = keras.ops.squeeze(mask, axis=-1)
    fits = len(mask.shape) == 2 and all(
        a is None or b is None or a == b
        for a, b in zip(mask.shape, sequences.shape[:2], strict=True)
    )
    return fits, keras.ops.cast(mask, "bool") if fits else None


def is_readable(sequences: Any, cell: Any) -> bool:
    """Whether it is an x of the cell's; what Keras says of another one is Keras's own."""
    shape = sequences.shape
    return len(shape) == 3 and shape[1] != 0 != shape[2] and shape[2] == cell.kernel.shape[0]


def states_fit(states: Any, sequences: Any, units: int) -> bool:
    batch = sequences.shape[0]
    return all(
        len(state.shape) == 2
        and state.shape[1] == units
        and (batch is None or state.shape[0] in (None, batch))
        for state in states
    )


def cast(value: Any, dtype: str) -> Any:
    value = keras.ops.convert_to_tensor(value)
    same = keras.backend.standardize_dtype(value.dtype) == dtype
    return value if same else keras.ops.cast(value, dtype)


def tensors(cells: Any, x: Any, states: Any, dtype: str) -> list[Any]:
    """The arrays of a call as Place says, of one cell or two with the states of each."""
    pairs = (state if len(state) == 2 else (state[0], None) for state in states)
    weights = (
        (cell.kernel, cell.recurrent_kernel, cell.bias if cell.use_bias else None) for cell in cells
    )
    given = (x, *(each for pair in pairs for each in pair), *(each for own in weights for each in own))
    return [None if each is None else cast(each, dtype) for each in given]


def flags_of(layer: Any) -> tuple[bool, bool, bool]:
    zero = layer.zero_output_for_mask
    return bool(layer.go_backwards), bool(layer.return_sequences), bool(zero)


def shows_initial(layer: Any) -> bool:
    """Whether Keras's loop shows the initial state before a row's first step that counts: under jax
    and numpy, unless unrolled. The engine shows zeros there."""
    loops = keras.backend.backend() in ("jax", "numpy") and not layer.unroll
    return loops and not layer.zero_output_for_mask


def _before_the_first(layer: Any, y: Any, h0: Any, mask: Any) -> Any:
    """y with what Keras's loop shows before a row's first step that counts."""
    if mask is None or not shows_initial(layer):
        return y
    backwards, sequences, _ = flags_of(layer)
    ops = keras.ops
    walked = ops.flip(mask, axis=1) if backwards else mask
    none_yet = ops.cumsum(ops.cast(walked, "int32"), axis=1) == 0
    h0 = ops.cast(h0, y.dtype)
    if sequences:
        return ops.where(none_yet[:, :, None], h0[:, None, :], y)
    return ops.where(none_yet[:, -1:], h0, y)


def run(
    layer: Any, own: Any, sequences: Any, initial_state: Any, mask: Any, training: Any
) -> Any:
    """(last output, outputs, states), by `own`, Keras's inner_loop, where the engine cannot."""
    found = _run(layer, sequences, initial_state, mask, training)
    if found is None:
        return own(sequences, initial_state, mask, training=training)
    return found


def _run(layer: Any, sequences: Any, initial_state: Any, mask: Any, training: Any) -> Any:
    if why_not(layer):
        return None
    cell, backend = layer.cell, engine_backend()
    if not is_readable(sequences, cell):
        return None
    states = list(initial_state) if isinstance(initial_state, (list, tuple)) else [initial_state]
    readable, mask = mask_of(mask, sequences)
    if not readable or not states_fit(states, sequences, cell.units) or not backend.on_cpu(sequences):
        return None
    x = sequences
    if training and cell.recurrent_dropout:
        return None
    if training and cell.dropout:
        x = _dropped(layer, sequences)
        if x is None:  # Keras's own way there takes one mask, not a list
            return keras.layers.RNN.inner_loop(layer, sequences, states, mask, training=training)
    dtype = DTYPES[layer.compute_dtype]
    place = _cells.place_of(cell, sequences.shape[2], dtype, flags_of(layer))
    arrays = tensors([cell], x, [states], dtype)
    y, hn, cn = backend.run(place, arrays, mask, bool(training))
    y = _before_the_first(layer, y, states[0], mask)
    last = y[:, -1] if layer.return_sequences else y
    return last, y, [hn] if cn is None else [hn, cn]


def compiles(layer: Any) -> bool:
    """Whether XLA may compile a model with the layer: not host functions of TensorFlow."""
    return keras.backend.backend() != "tensorflow" or bool(why_not(layer))
