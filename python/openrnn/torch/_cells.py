"""LSTMCell, GRUCell and RNNCell: one step on this engine."""

# PyTorch is not there where types are checked.
# mypy: disable-error-code="import-not-found, misc"

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from openrnn.errors import UnsupportedError
from openrnn.torch import _forward
from openrnn.torch._forward import Step

OWN_FORWARD = {cls: cls.forward for cls in (nn.LSTMCell, nn.GRUCell, nn.RNNCell)}


def _mode(cell: Any) -> str | None:
    if isinstance(cell, nn.LSTMCell):
        return "LSTM"
    if isinstance(cell, nn.GRUCell):
        return "GRU"
    return {"tanh": "RNN_TANH", "relu": "RNN_RELU"}.get(cell.nonlinearity)


def _own(cell: Any, input: Any, hx: Any) -> Any:
    """PyTorch's result or error."""
    for cls, forward in OWN_FORWARD.items():
        if isinstance(cell, cls):
            return forward(cell, input, hx)
    raise TypeError(type(cell).__name__)


def _states(hx: Any, lstm: bool, rank: int) -> tuple[bool, Any]:
    """(whether they are states of that rank, as [1, B, U])."""
    if hx is None:
        return True, None
    given = hx if lstm else (hx,)
    if not isinstance(given, (tuple, list)) or len(given) != (2 if lstm else 1):
        return False, None
    if not all(isinstance(state, Tensor) and state.dim() == rank for state in given):
        return False, None
    raised = tuple(
        state.unsqueeze(0) if rank == 2 else state.unsqueeze(0).unsqueeze(0) for state in given
    )
    return True, raised if lstm else raised[0]


def step(cell: Any, input: Any, hx: Any) -> Any:
    """The cell's result."""
    mode = _mode(cell)
    tensor = isinstance(input, Tensor) and input.dim() in (1, 2)
    if mode is None or not tensor or not _forward.is_readable(input):
        return _own(cell, input, hx)
    good, states = _states(hx, mode == "LSTM", input.dim())
    x = input.unsqueeze(0) if input.dim() == 2 else input.unsqueeze(0).unsqueeze(0)
    network = Step(cell, mode)
    weight = cell.weight_ih
    if not good or x.shape[2] != cell.input_size or weight is None or weight.device != x.device:
        return _own(cell, input, hx)
    if weight.dtype != x.dtype and not torch._C._is_any_autocast_enabled():
        return _own(cell, input, hx)
    if not torch._C._is_any_autocast_enabled() and hx is not None:
        pair = states if mode == "LSTM" else (states,)
        shape = (1, x.shape[1], cell.hidden_size)
        if not all(_forward.fits(network, state, shape, x.dtype) for state in pair):
            return _own(cell, input, hx)
    last = _forward.forward(network, x, states)[1]
    if mode == "LSTM":
        h, c = (state.squeeze(0) for state in last)
        return (h, c) if input.dim() == 2 else (h.squeeze(0), c.squeeze(0))
    last = last.squeeze(0)
    return last if input.dim() == 2 else last.squeeze(0)


class _Cell:
    """What the three share."""

    def __prepare_scriptable__(self) -> Any:
        raise UnsupportedError(
            f"[torch.jit.script] openrnn.torch.{type(self).__name__}, expected the module that "
            "openrnn.torch.revert makes of it, torch.jit.trace, or torch.compile"
        )

    def forward(self, input: Any, hx: Any = None) -> Any:
        return step(self, input, hx)

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        _forward.forget(self)
        return super()._apply(fn, recurse)


class LSTMCell(_Cell, nn.LSTMCell):
    """torch.nn.LSTMCell on this engine.

    Examples
    --------
    >>> h, c = openrnn.torch.LSTMCell(3, 4)(torch.ones(2, 3))
    >>> tuple(h.shape), tuple(c.shape)
    ((2, 4), (2, 4))
    """


class GRUCell(_Cell, nn.GRUCell):
    """torch.nn.GRUCell on this engine.

    Examples
    --------
    >>> tuple(openrnn.torch.GRUCell(3, 4)(torch.ones(2, 3)).shape)
    (2, 4)
    """


class RNNCell(_Cell, nn.RNNCell):
    """torch.nn.RNNCell on this engine.

    Examples
    --------
    >>> tuple(openrnn.torch.RNNCell(3, 4, nonlinearity="relu")(torch.ones(2, 3)).shape)
    (2, 4)
    """
