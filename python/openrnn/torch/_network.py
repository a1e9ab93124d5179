"""What a network is, once for each text of options and dtype."""

# PyTorch is not there where types are checked.
# mypy: disable-error-code="import-not-found"

from __future__ import annotations

import json
from typing import Any

import torch

from openrnn import _core
from openrnn.errors import UnsupportedError

# Of PyTorch's floating dtypes those that engines store.
DTYPES = {
    torch.float32: "float32",
    torch.float64: "float64",
    torch.float16: "float16",
    torch.bfloat16: "bfloat16",
}

MODES = {"LSTM": "lstm", "GRU": "gru", "RNN_TANH": "rnn_tanh", "RNN_RELU": "rnn_relu"}

# What PyTorch's constructors name otherwise, or a module decides at each call.
_TAKEN = {
    "rnn_mode", "num_layers", "num_units", "input_size", "direction", "dtype", "num_proj",
    "use_bias", "dropout", "seed",
}  # fmt: skip
# What operations would do around the engine, and PyTorch has modules for.
_AROUND = ("input_dropout", "output_dropout", "drop_connect", "input_mode")


class Network:
    """One network in one dtype: sizes, the places of its parameters, and what the engine holds."""

    __slots__ = (
        "core", "draws", "dtype", "has_cell", "hidden", "input_size", "names", "output", "pieces",
        "rows", "size", "states", "text", "units",
    )  # fmt: skip

    def __init__(self, text: str, dtype: Any) -> None:
        if dtype not in DTYPES:
            raise UnsupportedError(
                f"[openrnn.torch] a network of {dtype}, expected float32, float64, float16 or "
                "bfloat16"
            )
        options = json.loads(text)
        self.text, self.dtype = text, dtype
        self.core = _core.TorchNetwork({**options, "dtype": DTYPES[dtype]}, dtype)
        self.pieces: list[tuple[tuple[int, ...], int, int]] = [
            (shape, offset, size) for _, shape, offset, size in self.core.pieces
        ]
        self.names = [piece[0] for piece in self.core.pieces]
        self.size = self.core.size
        self.has_cell = self.core.has_cell
        self.draws = self.core.draws_masks
        self.rows = self.core.has_row_gradients
        self.units = options["num_units"]
        self.input_size = options["input_size"]
        self.hidden = options.get("num_proj") or self.units
        directions = 2 if options.get("direction") == "bidirectional" else 1
        self.states = options["num_layers"] * directions
        self.output = directions * self.hidden

    def split(self, params: Any) -> list[Any]:
        """An opaque buffer as the parameters; views of it."""
        return [
            params.narrow(0, offset, size).view(shape) for shape, offset, size in self.pieces
        ]

    def joined(self, pieces: list[Any], like: Any) -> Any:
        """The opaque buffer of tensors of the parameters' shapes; None is zeros."""
        parts: list[tuple[int, Any]] = []
        for (_, offset, size), piece in zip(self.pieces, pieces, strict=True):
            flat = like.new_zeros(size) if piece is None else piece.reshape(size)
            parts.append((offset, flat))
        parts.sort(key=lambda part: part[0])
        return torch.cat([part[1] for part in parts])


_networks: dict[tuple[str, Any], Network] = {}


def network(text: str, dtype: Any) -> Network:
    found = _networks.get((text, dtype))
    if found is None:
        found = _networks[text, dtype] = Network(text, dtype)
    return found


def check_options(call: str, options: dict[str, Any]) -> dict[str, Any]:
    """The options of our networks that a module of PyTorch's takes besides its own."""
    for name in _AROUND:
        if name in options:
            raise UnsupportedError(
                f"[{call}] {name} is an option of openrnn.layers, expected modules of torch.nn "
                "around this one"
            )
    _core.require_fields(call, options, sorted(_TAKEN))
    plain = {}
    for name, value in options.items():
        plain[name] = list(value) if isinstance(value, tuple) else value
    return plain


def _word(value: bool) -> str:
    return "true" if value else "false"


def text_of(module: Any, math: str | None = None) -> str:
    """The options of a module of torch.nn, or of one of ours, as the text of `network`.

    Made of what torch.compile can follow. `math` replaces the default arithmetic.
    """
    direction = "bidirectional" if module.bidirectional else "unidirectional"
    text = (
        f'{{"rnn_mode": "{MODES[module.mode]}", "num_layers": {module.num_layers}, '
        f'"num_units": {module.hidden_size}, "input_size": {module.input_size}, '
        f'"direction": "{direction}", "use_bias": {_word(module.bias)}, '
        f'"dropout": {float(module.dropout)}'
    )
    if module.proj_size > 0:
        text += f', "num_proj": {module.proj_size}'
    more: str = getattr(module, "options_text", "")
    if more:
        text += f", {more}"
    if math is not None and '"math"' not in more:
        text += f', "math": "{math}"'
    return text + "}"
