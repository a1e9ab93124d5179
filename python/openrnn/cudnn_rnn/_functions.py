"""The functions of the same meaning as the models."""

from collections.abc import Sequence
from typing import Any, Final

from openrnn import _arguments, _core
from openrnn._core import Tensor
from openrnn._typing import DTypeLike, Direction, InputMode, Math, TensorLike, WeightsDType
from openrnn._warnings import warn_of_dropout
from openrnn.errors import ArgumentError

_LINEAR: Final = "linear_input"
_UNIDIRECTIONAL: Final = "unidirectional"
# What a function is called with; its other arguments are options of its network.
_CALL = ("inputs", "input_h", "input_c", "params", "is_training", "sequence_lengths", "time_major")


def _run(rnn_mode: str, arguments: dict[str, Any]) -> Any:
    call: dict[str, Any] = {name: arguments.get(name) for name in _CALL}
    result = _core.cudnn_rnn_function(rnn_mode, **call, network=arguments)
    states = result[1].shape[0 if arguments["time_major"] else 1]
    num_layers = states // (1 if arguments["direction"] == _UNIDIRECTIONAL else 2)
    warn_of_dropout(f"cudnn_{rnn_mode}", num_layers, arguments["dropout"])
    return result


def _check_num_proj(input_h: TensorLike, num_proj: int | None) -> None:
    if not num_proj:
        return
    given = _core.convert(input_h, None).shape[-1]
    if given != num_proj:
        raise ArgumentError(
            f"[cudnn_lstm] num_proj is {num_proj}, expected {given}, the width of input_h"
        )


def cudnn_lstm(
    inputs: TensorLike,
    input_h: TensorLike,
    input_c: TensorLike,
    params: TensorLike,
    is_training: bool = True,
    input_mode: InputMode = _LINEAR,
    direction: Direction = _UNIDIRECTIONAL,
    dropout: float = 0.0,
    seed: int | None = 0,
    name: str | None = None,
    *,
    sequence_lengths: TensorLike = None,
    time_major: bool = True,
    num_proj: int | None = None,
    math: Math = "float32",
    weights_dtype: WeightsDType | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """(output, output_h, output_c). Sizes are those of the tensors; `name` is not used.

    params is packed at every call; a model of `ops` keeps what it packed from a Variable.
    num_proj, when given, must be the width of input_h.
    """
    _check_num_proj(input_h, num_proj)
    result: tuple[Tensor, Tensor, Tensor] = _run("lstm", locals())
    return result


def cudnn_gru(
    inputs: TensorLike,
    input_h: TensorLike,
    params: TensorLike,
    is_training: bool = True,
    input_mode: InputMode = _LINEAR,
    direction: Direction = _UNIDIRECTIONAL,
    dropout: float = 0.0,
    seed: int | None = 0,
    name: str | None = None,
    *,
    sequence_lengths: TensorLike = None,
    time_major: bool = True,
    math: Math = "float32",
    weights_dtype: WeightsDType | None = None,
) -> tuple[Tensor, Tensor]:
    """(output, output_h). Sizes are those of the tensors; `name` is not used.

    params is packed at every call; a model of `ops` keeps what it packed from a Variable.
    """
    result: tuple[Tensor, Tensor] = _run("gru", locals())
    return result


def cudnn_rnn_tanh(
    inputs: TensorLike,
    input_h: TensorLike,
    params: TensorLike,
    is_training: bool = True,
    input_mode: InputMode = _LINEAR,
    direction: Direction = _UNIDIRECTIONAL,
    dropout: float = 0.0,
    seed: int | None = 0,
    name: str | None = None,
    *,
    sequence_lengths: TensorLike = None,
    time_major: bool = True,
    math: Math = "float32",
    weights_dtype: WeightsDType | None = None,
) -> tuple[Tensor, Tensor]:
    """(output, output_h). Sizes are those of the tensors; `name` is not used.

    params is packed at every call; a model of `ops` keeps what it packed from a Variable.
    """
    result: tuple[Tensor, Tensor] = _run("rnn_tanh", locals())
    return result


def cudnn_rnn_relu(
    inputs: TensorLike,
    input_h: TensorLike,
    params: TensorLike,
    is_training: bool = True,
    input_mode: InputMode = _LINEAR,
    direction: Direction = _UNIDIRECTIONAL,
    dropout: float = 0.0,
    seed: int | None = 0,
    name: str | None = None,
    *,
    sequence_lengths: TensorLike = None,
    time_major: bool = True,
    math: Math = "float32",
    weights_dtype: WeightsDType | None = None,
) -> tuple[Tensor, Tensor]:
    """(output, output_h). Sizes are those of the tensors; `name` is not used.

    params is packed at every call; a model of `ops` keeps what it packed from a Variable.
    """
    result: tuple[Tensor, Tensor] = _run("rnn_relu", locals())
    return result


def _model(call: str, arguments: dict[str, Any], dtype: DTypeLike) -> _core.OpModel:
    return _core.OpModel(call, {**arguments, "dtype": dtype})


def cudnn_rnn_opaque_params_size(
    rnn_mode: str,
    num_layers: int,
    num_units: int,
    input_size: int,
    input_mode: InputMode = _LINEAR,
    direction: Direction = _UNIDIRECTIONAL,
    dtype: DTypeLike = "float32",
    dropout: float = 0.0,
    seed: int | None = 0,
    name: str | None = None,
    *,
    num_proj: int | None = None,
) -> int:
    """Elements of the opaque buffer."""
    return _model("cudnn_rnn_opaque_params_size", locals(), dtype).model_params_size()


def cudnn_rnn_opaque_params_to_canonical(
    rnn_mode: str,
    num_layers: int,
    num_units: int,
    input_size: int,
    params: TensorLike,
    input_mode: InputMode = _LINEAR,
    direction: Direction = _UNIDIRECTIONAL,
    dropout: float = 0.0,
    seed: int | None = 0,
    name: str | None = None,
    *,
    num_proj: int | None = None,
) -> tuple[list[Tensor], list[Tensor]]:
    """(weights, biases) of a buffer, by layer, direction and slot."""
    arguments, buffer = locals(), _core.convert(params, None)
    model = _model("cudnn_rnn_opaque_params_to_canonical", arguments, buffer.dtype)
    return model.model_params_to_canonical(buffer)


def cudnn_rnn_canonical_to_opaque_params(
    rnn_mode: str,
    num_layers: int,
    num_units: int,
    input_size: int,
    weights: Sequence[TensorLike],
    biases: Sequence[TensorLike],
    input_mode: InputMode = _LINEAR,
    direction: Direction = _UNIDIRECTIONAL,
    dropout: float = 0.0,
    seed: int | None = 0,
    name: str | None = None,
    *,
    num_proj: int | None = None,
) -> Tensor:
    """The opaque buffer of such lists."""
    arguments, call = locals(), "cudnn_rnn_canonical_to_opaque_params"
    weights = _arguments.as_list(call, "weights", weights, "matrices")
    first = _core.convert(weights[0] if weights else 0.0, None)
    return _model(call, arguments, first.dtype).model_canonical_to_params(weights, biases)
