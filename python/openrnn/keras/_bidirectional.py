"""Both directions of a Bidirectional layer in one call of the engine, where its layers are alike."""

# Keras is not there where types are checked.
# mypy: disable-error-code="import-not-found, import-untyped, misc"

from __future__ import annotations

from typing import Any

import keras

from openrnn.keras import _cells, _loop


def _on_engine(layer: Any) -> bool:
    """Whether it is just a layer of Keras or of ours, computed here: not of somebody's subclass."""
    return hasattr(vars(type(layer)).get("inner_loop"), "_openrnn_own") and not _loop.why_not(layer)


# Of torch.nn.Module, which Keras's layers are under its torch backend.
_HOOKS = ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks")


def _plain(layer: Any) -> bool:
    """Whether a call of it is no more than its loop: no masks drawn, no states kept, no losses, and
    nothing of somebody's that a call of the layer alone would run."""
    cell, own = layer.cell, vars(layer)
    return (
        layer.built
        and "call" not in own
        and "inner_loop" not in own
        and not any(own.get(hooks) for hooks in _HOOKS)
        and not layer.stateful
        and layer.activity_regularizer is None
        and not cell.dropout
        and not cell.recurrent_dropout
    )


def _dtypes(layer: Any) -> Any:
    """What a call of the layer rounds its weights by."""
    return layer.compute_dtype, layer.variable_dtype, layer.autocast


def _key(layer: Any) -> Any:
    """What both layers must have in common."""
    options = _cells.options_of(layer.cell, 1, layer.compute_dtype)
    return layer.return_sequences, layer.zero_output_for_mask, layer.unroll, options


def alike(layer: Any) -> bool:
    """Whether the layers of a Bidirectional differ in nothing but weights and direction."""
    forward, backward = layer.forward_layer, layer.backward_layer
    return (
        _on_engine(forward)
        and _on_engine(backward)
        and _plain(forward)
        and _plain(backward)
        and not forward.go_backwards
        and backward.go_backwards
        and _dtypes(layer) == _dtypes(forward) == _dtypes(backward)
        and _key(forward) == _key(backward)
    )


def _states(layer: Any, sequences: Any, given: Any) -> Any:
    """Those of each direction, as Keras makes or divides them; None where that does not fit."""
    both = layer.forward_layer, layer.backward_layer
    if given is None:
        batch = keras.ops.shape(sequences)[0]
        return [each.get_initial_state(batch_size=batch) for each in both]
    count = len(layer.forward_layer.state_size)
    if not isinstance(given, (list, tuple)) or len(given) != 2 * count:
        return None
    states = [[keras.ops.convert_to_tensor(each) for each in half]
              for half in (given[:count], given[count:])]  # fmt: skip
    fits = all(_loop.states_fit(each, sequences, layer.forward_layer.cell.units) for each in states)
    return states if fits else None


_MERGES = ("concat", "sum", "ave", "mul", None)


def _merged(layer: Any, y: Any, units: int) -> Any:
    """y [.., 2U] as Keras merges its halves."""
    if layer.merge_mode == "concat":
        return y
    one, other = y[..., :units], y[..., units:]
    if layer.merge_mode == "sum":
        return one + other
    if layer.merge_mode == "ave":
        return (one + other) / 2
    return one * other if layer.merge_mode == "mul" else (one, other)


def _run(layer: Any, sequences: Any, initial_state: Any, mask: Any, training: Any) -> Any:
    forward, backend = layer.forward_layer, _loop.engine_backend()
    if layer.merge_mode not in _MERGES or not _loop.is_readable(sequences, forward.cell):
        return None
    if (forward.unroll and sequences.shape[1] is None) or not backend.on_cpu(sequences):
        return None
    readable, mask = _loop.mask_of(mask, sequences)
    states = _states(layer, sequences, initial_state)
    # Keras's loop may show initial states before the first step that counts: of zeros, nothing else.
    shown = mask is not None and initial_state is not None and _loop.shows_initial(forward)
    if not readable or states is None or shown:
        return None
    cells = [forward.cell, layer.backward_layer.cell]
    dtype, flags = _loop.DTYPES[layer.compute_dtype], _loop.flags_of(forward)
    place = _cells.place_of(cells[0], sequences.shape[2], dtype, flags, both=True)
    arrays = _loop.tensors(cells, sequences, states, dtype)
    found = backend.run(place, arrays, mask, bool(training))
    y, *last = (_loop.cast(each, layer.compute_dtype) for each in found if each is not None)
    merged = _merged(layer, y, forward.cell.units)
    if not layer.return_state:
        return merged
    return (*merged, *last) if layer.merge_mode is None else (merged, *last)


def run(
    layer: Any, own: Any, sequences: Any, initial_state: Any, mask: Any, training: Any
) -> Any:
    """The outputs of a call, by `own`, Keras's call of one layer after the other, if they differ."""
    found = None
    if alike(layer):
        found = _run(layer, sequences, initial_state, mask, training)
    if found is None:
        return own(sequences, initial_state=initial_state, mask=mask, training=training)
    return found
