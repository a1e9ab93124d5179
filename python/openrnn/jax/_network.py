"""What a network is, once for each text of its options."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from openrnn import _core
from openrnn.errors import ArgumentError, UnsupportedError

DTYPES = ("float32", "float64", "bfloat16", "float16")
CELLS = {"lstm": 4, "gru": 3, "rnn": 1}

_KEYS = {
    "weight_ih": "w_ih", "weight_hh": "w_hh", "weight_hr": "w_hr",
    "bias_ih": "b_ih", "bias_hh": "b_hh",
}  # fmt: skip
# What arguments and parameters say.
_TAKEN = [
    "rnn_mode", "num_layers", "num_units", "input_size", "direction", "dtype", "num_proj",
    "use_bias", "single_bias", "seed",
]  # fmt: skip
# What operations would do around the engine, and JAX has functions for.
_AROUND = ("input_dropout", "output_dropout", "drop_connect", "input_mode")


class Piece(NamedTuple):
    """One parameter, and its place in the opaque buffer."""

    at: int  # in the list of dicts: layer * directions + direction
    key: str
    shape: tuple[int, ...]
    offset: int
    size: int


class Network:
    """Sizes of a network and the places of its parameters. One object a text: compared by `is`."""

    def __init__(self, text: str) -> None:
        options = json.loads(text)
        core = _core.TorchNetwork(options, options["dtype"])
        self.text, self.dtype = text, options["dtype"]
        self.size, self.has_cell = core.size, core.has_cell
        self.draws, self.rows = core.draws_masks, core.has_row_gradients
        self.mode = options["rnn_mode"]
        self.units, self.input_size = options["num_units"], options["input_size"]
        self.hidden = options.get("num_proj") or self.units
        self.directions = 2 if options.get("direction") == "bidirectional" else 1
        self.states = options["num_layers"] * self.directions
        self.output = self.directions * self.hidden
        self.pieces = [self._piece(*piece) for piece in core.pieces]

    def _piece(self, name: str, shape: tuple[int, ...], offset: int, size: int) -> Piece:
        found = re.fullmatch(r"(.+)_l(\d+)(_reverse)?", name)
        assert found
        index = int(found[2]) * self.directions + (found[3] is not None)
        return Piece(index, _KEYS.get(found[1], found[1]), tuple(shape), offset, size)


_networks: dict[str, Network] = {}


def by_text(text: str) -> Network:
    found = _networks.get(text)
    if found is None:
        # setdefault: two threads get one object.
        found = _networks.setdefault(text, Network(text))
    return found


class Layout(NamedTuple):
    """What parameters alone do not say."""

    cell: str
    bidirectional: bool
    options: dict[str, Any]


def check_options(call: str, options: dict[str, Any]) -> None:
    for name in _AROUND:
        if name in options:
            raise UnsupportedError(
                f"[{call}] {name} is an option of openrnn.layers, expected functions of JAX around "
                "this one"
            )
    _core.require_fields(call, options, _TAKEN)


def check_cell(call: str, cell: Any) -> str:
    if cell not in CELLS:
        raise ArgumentError(f"[{call}] cell is {cell!r}, expected 'lstm', 'gru' or 'rnn'")
    return str(cell)


def network_of(sizes: dict[str, Any], layout: Layout) -> Network:
    """The network of sizes by the names of options, of one cell."""
    options = dict(layout.options)
    mode = layout.cell
    if mode == "rnn":
        mode = "rnn_relu" if options.get("activation") == "relu" else "rnn_tanh"
        if options.get("activation") in ("relu", "tanh"):
            del options["activation"]
    options = {name: value for name, value in options.items() if value is not None}
    direction = "bidirectional" if layout.bidirectional else "unidirectional"
    return by_text(_core.jax_network({**options, **sizes, "rnn_mode": mode, "direction": direction}))
