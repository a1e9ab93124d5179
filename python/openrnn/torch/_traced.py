"""Calls that somebody looks on at: torch.compile and torch.export, modes, traces, autocast."""

# PyTorch is not there where types are checked.
# mypy: disable-error-code="import-not-found"

from __future__ import annotations

from typing import Any

import torch
from torch.nn.utils.rnn import PackedSequence

from openrnn.torch import _forward, _ops
from openrnn.torch._network import text_of

def forward(module: Any, input: Any, hx: Any) -> Any:
    """The module's result, by operations that the onlooker sees."""
    if not torch.compiler.is_compiling() and torch._C._get_tracing_state() is not None:
        # A trace cannot hold our operation by its name everywhere; torch.onnx knows PyTorch's.
        return _forward.own_forward(module, input, hx)
    if torch.onnx.is_in_onnx_export() and not _forward.is_extended(module):
        return _forward.own_forward(module, input, hx)
    if torch.is_autocast_enabled("cpu"):
        return _autocast(module, input, hx)
    return _run(module, input, hx, None)


def _run(module: Any, input: Any, hx: Any, math: str | None) -> Any:
    eager = not torch.compiler.is_compiling() and not torch._C._len_torch_dispatch_stack()

    def run(x: Any, h0: Any, c0: Any, batch_sizes: Any) -> Any:
        if eager:
            engine = _forward.engine_of(module, x.dtype, math)
            return _forward.compute(engine, module, x, h0, c0, batch_sizes)
        return _operation(module, x, h0, c0, batch_sizes, math)

    if isinstance(input, PackedSequence):
        return _forward.packed_call(module, input, hx, run)
    return _forward.plain_call(module, input, hx, run)


def _operation(module: Any, x: Any, h0: Any, c0: Any, batch_sizes: Any, math: Any) -> Any:
    weights = _forward.weights_of(module, module._flat_weights_names)
    draws = (module.dropout > 0 and module.num_layers > 1) or getattr(module, "draws", False)
    seed = None
    if module.training and draws:
        seed = torch.randint(0, 1 << 62, (), dtype=torch.int64, device="cpu")
    saving = torch.is_grad_enabled() and (
        x.requires_grad
        or (h0 is not None and h0.requires_grad)
        or (c0 is not None and c0.requires_grad)
        or any(weight.requires_grad for weight in weights)
    )
    if batch_sizes is not None and h0 is None:
        directions = 2 if module.bidirectional else 1
        rows = int(batch_sizes[0])
        count = module.num_layers * directions
        h0 = x.new_zeros((count, rows, module.proj_size or module.hidden_size))
    batch_first = module.batch_first and batch_sizes is None
    y, hn, cn, _ = torch.ops.openrnn.rnn(
        x, h0, c0, weights, batch_sizes, seed, text_of(module, math), batch_first,
        module.training, saving,
    )  # fmt: skip
    return y, hn, cn if module.mode == "LSTM" else None


def _autocast(module: Any, input: Any, hx: Any) -> Any:
    """As PyTorch's: products of bfloat16, and results in the dtypes that it gives."""
    weights = _forward.weights_of(module, module._flat_weights_names[:1])
    dtype = weights[0].dtype
    lower = torch.get_autocast_dtype("cpu")
    math = "bf16" if lower is torch.bfloat16 and dtype is torch.float32 else None
    packed = isinstance(input, PackedSequence)
    result = input.data.dtype if packed else input.dtype
    states = () if hx is None else (hx if isinstance(hx, (tuple, list)) else (hx,))
    if states:
        result = states[0].dtype
    if module.mode.startswith("RNN"):
        result = lower  # that of its products
    if result not in _forward._READABLE:
        return _forward.own_forward(module, input, hx)
    given = input
    if packed:
        given = PackedSequence(input.data.to(dtype), *input[1:])
    else:
        given = input.to(dtype)
    if hx is not None:
        moved = tuple(state.to(dtype) for state in states)
        hx = moved if isinstance(hx, (tuple, list)) else moved[0]
    with torch.autocast("cpu", enabled=False):
        y, last = _run(module, given, hx, math)
    if packed:
        y = PackedSequence(y.data.to(result), *y[1:])
    else:
        y = y.to(result)
    if isinstance(last, tuple):
        return y, tuple(state.to(result) for state in last)
    return y, last.to(result)
