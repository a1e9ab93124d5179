"""LSTM, GRU and RNN with the constructors and parameters of torch.nn's."""

# PyTorch is not there where types are checked.
# mypy: disable-error-code="import-not-found, misc, has-type, no-any-return"

from __future__ import annotations

import json
import math
from typing import Any

import torch
from torch import nn
from torch.nn import init

from openrnn.errors import UnsupportedError
from openrnn.torch import _forward
from openrnn.torch._network import check_options, network, text_of


_DRAWING = ("recurrent_dropout", "zoneout", "zoneout_cell")


class _Module(nn.RNNBase):
    """What the three share: parameters of options, forward, what is not copied.

    They derive from nn.RNNBase and not from nn.LSTM and its like, since torch.compile would leave
    the graph at those: `isinstance(module, nn.LSTM)` is False.
    """

    __constants__: list[str] = []
    # Whether steps use random masks in training.
    draws = False

    def _extend(self, options: dict[str, Any], factory: dict[str, Any]) -> None:
        """Registers what options add to the parameters, and initializes all again in order."""
        self.options = check_options(type(self).__name__, options)
        self.options_text = json.dumps(self.options, sort_keys=True)[1:-1]
        if not self.options:
            return
        self.draws = any(options.get(name) for name in _DRAWING)
        state = torch.get_rng_state()
        net = network(text_of(self), torch.float32)
        wanted = {name: piece[0] for name, piece in zip(net.names, net.pieces, strict=True)}
        had = dict(self._parameters)
        self._flat_weights_names = []
        for name in had:
            delattr(self, name)
        for name, shape in wanted.items():
            new = had[name] if name in had else nn.Parameter(torch.empty(shape, **factory))
            self.register_parameter(name, new)
        self._flat_weights_names = list(wanted)
        self._all_weights = [
            [name for name in wanted if name.endswith((f"_l{k}{suffix}"))]
            for k in range(self.num_layers)
            for suffix in (("", "_reverse") if self.bidirectional else ("",))
        ]
        self._init_flat_weights()
        torch.set_rng_state(state)

    def reset_parameters(self) -> None:
        """Uniform within 1/sqrt(hidden_size), as torch.nn; gains are 1, biases of cells 0."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for name, parameter in self.named_parameters():
            if "gain" in name:
                init.ones_(parameter)
            elif name.startswith("cell_bias"):
                init.zeros_(parameter)
            else:
                init.uniform_(parameter, -bound, bound)

    def forward(self, input: Any, hx: Any = None) -> Any:
        return _forward.forward(self, input, hx)

    def check_forward_args(self, input: Any, hidden: Any, batch_sizes: Any) -> None:
        _forward.OWN[self.mode].check_forward_args(self, input, hidden, batch_sizes)

    def permute_hidden(self, hx: Any, permutation: Any) -> Any:
        return _forward.OWN[self.mode].permute_hidden(self, hx, permutation)

    def get_expected_cell_size(self, input: Any, batch_sizes: Any) -> Any:
        return nn.LSTM.get_expected_cell_size(self, input, batch_sizes)

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        _forward.forget(self)
        return super()._apply(fn, recurse)

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        super()._load_from_state_dict(*args, **kwargs)
        _forward.forget(self)

    def _replicate_for_data_parallel(self) -> Any:
        replica = super()._replicate_for_data_parallel()
        _forward.forget(replica)
        return replica

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("options", {})
        self.__dict__.setdefault("options_text", "")

    def __prepare_scriptable__(self) -> Any:
        raise UnsupportedError(
            f"[torch.jit.script] openrnn.torch.{type(self).__name__}, expected the module that "
            "openrnn.torch.revert makes of it, torch.jit.trace, or torch.compile"
        )

    def extra_repr(self) -> str:
        more = "".join(f", {name}={value!r}" for name, value in self.options.items())
        return super().extra_repr() + more


class LSTM(_Module):
    """torch.nn.LSTM on this engine.

    Arguments, parameters, calls, results and errors are torch.nn.LSTM's. Options of our networks
    follow by keyword: `math`, `weights_dtype` (for calls without gradients) and the cells of
    docs/cells_reference.md, such as `use_peepholes`.

    Examples
    --------
    >>> lstm = openrnn.torch.LSTM(3, 4, bidirectional=True)
    >>> output, (h, c) = lstm(torch.ones(5, 2, 3))
    >>> tuple(output.shape), tuple(h.shape)
    ((5, 2, 8), (2, 2, 4))
    """

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
        batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False,
        proj_size: int = 0, device: Any = None, dtype: Any = None, **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(
            "LSTM", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional,
            proj_size, device, dtype,
        )  # fmt: skip
        self._extend(options, {"device": device, "dtype": dtype})
        if self.options:
            self.reset_parameters()


class GRU(_Module):
    """torch.nn.GRU on this engine; options as of LSTM, such as `reset_after`.

    Examples
    --------
    >>> gru = openrnn.torch.GRU(3, 4, batch_first=True)
    >>> output, h = gru(torch.ones(2, 5, 3))
    >>> tuple(output.shape), tuple(h.shape)
    ((2, 5, 4), (1, 2, 4))
    """

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
        batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False,
        device: Any = None, dtype: Any = None, **options: Any,
    ) -> None:  # fmt: skip
        if "proj_size" in options:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__(
            "GRU", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional,
            0, device, dtype,
        )  # fmt: skip
        self._extend(options, {"device": device, "dtype": dtype})
        if self.options:
            self.reset_parameters()


class RNN(_Module):
    """torch.nn.RNN on this engine; options as of LSTM, such as `activation`.

    Examples
    --------
    >>> rnn = openrnn.torch.RNN(3, 4, nonlinearity="relu")
    >>> output, h = rnn(torch.ones(5, 2, 3))
    >>> tuple(output.shape), bool((output >= 0).all())
    ((5, 2, 4), True)
    """

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, nonlinearity: str = "tanh",
        bias: bool = True, batch_first: bool = False, dropout: float = 0.0,
        bidirectional: bool = False, device: Any = None, dtype: Any = None, **options: Any,
    ) -> None:  # fmt: skip
        if "proj_size" in options:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(
                f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'."
            )
        super().__init__(
            "RNN_" + nonlinearity.upper(), input_size, hidden_size, num_layers, bias, batch_first,
            dropout, bidirectional, 0, device, dtype,
        )  # fmt: skip
        self.nonlinearity = nonlinearity
        self._extend(options, {"device": device, "dtype": dtype})
        if self.options:
            self.reset_parameters()
