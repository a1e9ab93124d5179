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

    Examples
    --------
    >>> ops = openrnn.cudnn_rnn.ops
    >>> params = np.zeros(ops.cudnn_rnn_opaque_params_size("lstm", 1, 4, 3), "float32")
    >>> state = np.zeros((1, 2, 4), "float32")
    >>> output, h, c = ops.cudnn_lstm(np.ones((5, 2, 3), "float32"), state, state, params)
    >>> output.shape, h.shape, c.shape
    ((5, 2, 4), (1, 2, 4), (1, 2, 4))
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

    Examples
    --------
    >>> ops = openrnn.cudnn_rnn.ops
    >>> params = np.zeros(ops.cudnn_rnn_opaque_params_size("gru", 1, 4, 3), "float32")
    >>> x, h = np.ones((5, 2, 3), "float32"), np.zeros((1, 2, 4), "float32")
    >>> output, h = ops.cudnn_gru(x, h, params)
    >>> output.shape, h.shape
    ((5, 2, 4), (1, 2, 4))
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

    Examples
    --------
    >>> ops = openrnn.cudnn_rnn.ops
    >>> params = np.zeros(ops.cudnn_rnn_opaque_params_size("rnn_tanh", 1, 4, 3), "float32")
    >>> x, h = np.ones((5, 2, 3), "float32"), np.zeros((1, 2, 4), "float32")
    >>> output, h = ops.cudnn_rnn_tanh(x, h, params)
    >>> output.shape, h.shape
    ((5, 2, 4), (1, 2, 4))
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

    Examples
    --------
    >>> params = [1.0, 1.0, 0.0, 0.0]  # W, R, bW, bR
    >>> x, h = np.ones((3, 1, 1), "float32"), np.zeros((1, 1, 1), "float32")
    >>> output, h = openrnn.cudnn_rnn.ops.cudnn_rnn_relu(x, h, params)
    >>> output.numpy().ravel()
    array([1., 2., 3.], dtype=float32)
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
    """Elements of the opaque buffer.

    Examples
    --------
    >>> openrnn.cudnn_rnn.ops.cudnn_rnn_opaque_params_size("lstm", 1, num_units=4, input_size=3)
    144
    """
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
    """(weights, biases) of a buffer, by layer, direction and slot.

    Examples
    --------
    >>> weights, biases = openrnn.cudnn_rnn.ops.cudnn_rnn_opaque_params_to_canonical(
    ...     "rnn_tanh", 1, 2, 1, np.arange(10, dtype="float32"))
    >>> [weight.numpy().tolist() for weight in weights]
    [[[0.0], [1.0]], [[2.0, 3.0], [4.0, 5.0]]]
    >>> [bias.numpy().tolist() for bias in biases]
    [[6.0, 7.0], [8.0, 9.0]]
    """
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
    """The opaque buffer of such lists.

    Examples
    --------
    >>> params = openrnn.cudnn_rnn.ops.cudnn_rnn_canonical_to_opaque_params(
    ...     "rnn_tanh", 1, 1, 1, weights=[[[5.0]], [[6.0]]], biases=[[7.0], [8.0]])
    >>> params.numpy()
    array([5., 6., 7., 8.], dtype=float32)
    """
    arguments, call = locals(), "cudnn_rnn_canonical_to_opaque_params"
    weights = _arguments.as_list(call, "weights", weights, "matrices")
    first = _core.convert(weights[0] if weights else 0.0, None)
    return _model(call, arguments, first.dtype).model_canonical_to_params(weights, biases)
