"""Keras's cells as networks of the engine."""

# Keras is not there where types are checked.
# mypy: disable-error-code="import-not-found, import-untyped, misc"

from __future__ import annotations

import weakref
from typing import Any

import keras

from openrnn import _core

_ACTIVATIONS = {
    keras.activations.tanh: "tanh",
    keras.activations.sigmoid: "sigmoid",
    keras.activations.relu: "relu",
    keras.activations.linear: "linear",
    keras.activations.hard_sigmoid: f"hard_sigmoid({1 / 6!r}, 0.5)",
    keras.activations.softsign: "softsign",
    keras.activations.softplus: "softplus",
    keras.activations.elu: "elu",
}

MODES = {
    keras.layers.LSTMCell: "lstm",
    keras.layers.GRUCell: "gru",
    keras.layers.SimpleRNNCell: "rnn_tanh",
}


class Place:
    """What is fixed of a call besides its arrays: the cell, and how its outputs are shown.

    Arrays of a call are a list: x, h and c of each direction, kernel, recurrent_kernel and bias of
    each direction; its outputs are y, hn and cn of each direction. None stands where there is none.
    """

    __slots__ = ("cell", "directions", "flags", "function", "lstm", "units")

    def __init__(self, cell: Any, options: dict[str, Any], flags: tuple[bool, bool, bool]) -> None:
        self.cell = cell
        self.units: int = options["num_units"]
        self.directions = 2 if options.get("direction") == "bidirectional" else 1
        self.lstm = options["rnn_mode"] == "lstm"
        # go_backwards, return_sequences, zero_output_for_mask
        self.flags = flags
        self.function: Any = None  # a backend's own

    def outputs(self, of_y: Any, of_state: Any) -> list[Any]:
        """One thing for y and one for each state; None for a c that is not there."""
        return [of_y, *(of_state, of_state if self.lstm else None) * self.directions]


def activation_name(function: Any) -> str | None:
    """The engine's name of an activation of Keras; None: it has none."""
    try:
        return _ACTIVATIONS.get(function)
    except TypeError:  # not hashable
        return None


def why_not(cell: Any) -> str:
    """Why the engine does not compute a cell; empty if it does."""
    if type(cell) not in MODES:
        return f"a {type(cell).__name__}, expected Keras's own LSTMCell, GRUCell or SimpleRNNCell"
    for name in ("activation", "recurrent_activation"):
        function = getattr(cell, name, keras.activations.tanh)
        if activation_name(function) is None:
            given = getattr(function, "__name__", type(function).__name__)
            return f"{name} {given}, expected one of {', '.join(sorted(_names()))}"
    return ""


def _names() -> list[str]:
    return [function.__name__ for function in _ACTIVATIONS]


def options_of(cell: Any, input_size: int, dtype: str) -> dict[str, Any]:
    """The options of a cell's network."""
    mode = MODES[type(cell)]
    options: dict[str, Any] = {
        "rnn_mode": mode,
        "num_units": cell.units,
        "input_size": input_size,
        "dtype": dtype,
        "use_bias": cell.use_bias,
    }
    activation = activation_name(cell.activation)
    if mode == "rnn_tanh" and activation == "relu":
        options["rnn_mode"] = "rnn_relu"
    elif activation != "tanh":
        options["activation"] = activation
        if mode == "lstm":
            options["output_activation"] = activation
    if mode != "rnn_tanh":
        gates = activation_name(cell.recurrent_activation)
        if gates != "sigmoid":
            options["recurrent_activation"] = gates
    if mode == "gru":
        options["reset_after"] = bool(cell.reset_after)
    if cell.use_bias and not options.get("reset_after"):
        options["single_bias"] = True
    return options


_cells: weakref.WeakKeyDictionary[Any, dict[Any, Any]] = weakref.WeakKeyDictionary()


def place_of(
    cell: Any, input_size: int, dtype: str, flags: tuple[bool, bool, bool], both: bool = False
) -> Place:
    """The place of a call, made once for each cell, dtype and flags.

    With `both` it is that of two directions, whose cells have the same options.
    """
    options = options_of(cell, input_size, dtype)
    if both:
        options["direction"] = "bidirectional"
    kept = _cells.setdefault(cell, {})
    text = tuple(options.items())
    place: Place | None = kept.get((text, flags))
    if place is None:
        core = kept.get(text)
        if core is None:
            core = kept[text] = _core.KerasCell(options)
        place = kept[text, flags] = Place(core, options, flags)
    return place
