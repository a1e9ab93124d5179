"""Signatures of the compiled classes that users construct, for inspect.signature."""

import inspect
from typing import Any

from openrnn import _core


def _parameter(name: str, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default)


def _set_signature(cls: type, *parameters: inspect.Parameter) -> None:
    setattr(cls, "__signature__", inspect.Signature(list(parameters)))


_device = inspect.Parameter("device", inspect.Parameter.KEYWORD_ONLY, default=None)

_set_signature(_core.Tensor, _parameter("value"), _parameter("dtype", None), _device)
_set_signature(
    _core.Variable,
    _parameter("initial_value"),
    _parameter("trainable", True),
    _parameter("name", None),
    _parameter("dtype", None),
    _device,
)
for _saveable in (
    _core.CudnnLSTMSaveable,
    _core.CudnnGRUSaveable,
    _core.CudnnRNNTanhSaveable,
    _core.CudnnRNNReluSaveable,
):
    _set_signature(
        _saveable,
        _parameter("opaque_params"),
        _parameter("num_layers"),
        _parameter("num_units"),
        _parameter("input_size"),
        _parameter("input_mode", "linear_input"),
        _parameter("direction", "unidirectional"),
        _parameter("scope", None),
        _parameter("name", "cudnn_rnn_saveable"),
        inspect.Parameter("num_proj", inspect.Parameter.KEYWORD_ONLY, default=None),
        inspect.Parameter("network", inspect.Parameter.VAR_KEYWORD),
    )
