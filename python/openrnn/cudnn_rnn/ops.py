"""The op-level models and functions of tf.contrib.cudnn_rnn, as of r1.4 and later."""

from collections.abc import Sequence
from typing import Any, ClassVar, Final

from openrnn import _arguments, _core
from openrnn._core import Tensor
from openrnn._messages import own_constructor
from openrnn._typing import DTypeLike, Direction, InputMode, Math, TensorLike, WeightsDType
from openrnn._warnings import warn_of_dropout

CUDNN_LSTM: Final = "lstm"
CUDNN_GRU: Final = "gru"
CUDNN_RNN_TANH: Final = "rnn_tanh"
CUDNN_RNN_RELU: Final = "rnn_relu"
CUDNN_RNN_UNIDIRECTION: Final = "unidirectional"
CUDNN_RNN_BIDIRECTION: Final = "bidirectional"
CUDNN_INPUT_LINEAR_MODE: Final = "linear_input"
CUDNN_INPUT_SKIP_MODE: Final = "skip_input"
CUDNN_INPUT_AUTO_MODE: Final = "auto_select"


class _CudnnRNN(_core.OpModel):
    """What the four models share: sizes and conversion.

    T time, B batch, I input size, L layers, D directions, U units; O = P when projecting, else U.
    math, weights_dtype and any other option as of the layers. device: where calls run and host data
    goes; None is where the tensors lie that a call is given.
    """

    _mode: ClassVar[str] = ""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own_constructor(cls)

    def __init__(
        self,
        num_layers: int,
        num_units: int,
        input_size: int,
        input_mode: InputMode = CUDNN_INPUT_LINEAR_MODE,
        direction: Direction = CUDNN_RNN_UNIDIRECTION,
        dtype: DTypeLike = "float32",
        dropout: float = 0.0,
        seed: int | None = 0,
        *,
        math: Math = "float32",
        weights_dtype: WeightsDType | None = None,
        device: str | None = None,
        **network: Any,
    ) -> None:
        self._make(locals())

    def _make(self, arguments: dict[str, Any]) -> None:
        name = type(self).__name__
        _core.require_fields(f"{name}.__init__", arguments["network"], ["rnn_mode", "num_proj"])
        super().__init__(name, {**_arguments.of_call(arguments), "rnn_mode": self._mode})
        warn_of_dropout(name, arguments["num_layers"], arguments["dropout"])

    def params_size(self) -> int:
        """Elements of the opaque buffer."""
        return self.model_params_size()

    def params_to_canonical(self, params: TensorLike) -> tuple[list[Tensor], list[Tensor]]:
        """(weights, biases), by layer, direction and slot."""
        return self.model_params_to_canonical(params)

    def canonical_to_params(
        self, weights: Sequence[TensorLike], biases: Sequence[TensorLike]
    ) -> Tensor:
        """The opaque buffer of such lists."""
        return self.model_canonical_to_params(weights, biases)


class CudnnLSTM(_CudnnRNN):
    """The op-level LSTM.

    Examples
    --------
    >>> model = openrnn.cudnn_rnn.ops.CudnnLSTM(num_layers=1, num_units=4, input_size=3)
    >>> params = openrnn.Variable(np.zeros(model.params_size(), "float32"))
    >>> state = np.zeros((1, 2, 4), "float32")
    >>> output, h, c = model(np.ones((5, 2, 3), "float32"), state, state, params, is_training=False)
    >>> model.params_size(), output.shape, h.shape, c.shape
    (144, (5, 2, 4), (1, 2, 4), (1, 2, 4))
    """

    _mode = CUDNN_LSTM

    def __init__(
        self,
        num_layers: int,
        num_units: int,
        input_size: int,
        input_mode: InputMode = CUDNN_INPUT_LINEAR_MODE,
        direction: Direction = CUDNN_RNN_UNIDIRECTION,
        dtype: DTypeLike = "float32",
        dropout: float = 0.0,
        seed: int | None = 0,
        num_proj: int | None = None,
        *,
        math: Math = "float32",
        weights_dtype: WeightsDType | None = None,
        device: str | None = None,
        **network: Any,
    ) -> None:
        self._make(locals())

    def __call__(
        self,
        input_data: TensorLike,
        input_h: TensorLike,
        input_c: TensorLike,
        params: TensorLike,
        is_training: bool = True,
        *,
        sequence_lengths: TensorLike = None,
        time_major: bool = True,
        save: bool | str | int = False,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """(output [T, B, D*O], output_h [L*D, B, O], output_c [L*D, B, U]).

        time_major False: input and output [B, T, .], states [B, L*D, .], as of the layers.
        params is the opaque buffer. A Variable is packed once for each value that it gets; an
        array or a tensor is packed again at every call, which for 850,000 parameters takes three
        times as long as one step of one row.
        A gradient through is_training=False is a ValueError, unless save says what to keep, as of
        the layers.
        """
        result: tuple[Tensor, Tensor, Tensor] = self.model_call(
            input_data, input_h, input_c, params, is_training, sequence_lengths, time_major, save
        )
        return result


class _NoCell(_CudnnRNN):
    """A model without a cell state."""

    def __call__(
        self,
        input_data: TensorLike,
        input_h: TensorLike,
        params: TensorLike,
        is_training: bool = True,
        *,
        sequence_lengths: TensorLike = None,
        time_major: bool = True,
        save: bool | str | int = False,
    ) -> tuple[Tensor, Tensor]:
        """(output [T, B, D*U], output_h [L*D, B, U]).

        time_major False: input and output [B, T, .], states [B, L*D, .], as of the layers.
        params is the opaque buffer. A Variable is packed once for each value that it gets; an
        array or a tensor is packed again at every call, which for 850,000 parameters takes three
        times as long as one step of one row.
        A gradient through is_training=False is a ValueError, unless save says what to keep, as of
        the layers.
        """
        result: tuple[Tensor, Tensor] = self.model_call(
            input_data, input_h, None, params, is_training, sequence_lengths, time_major, save
        )
        return result


class CudnnGRU(_NoCell):
    """The op-level GRU.

    Examples
    --------
    >>> model = openrnn.cudnn_rnn.ops.CudnnGRU(num_layers=1, num_units=4, input_size=3)
    >>> weights, biases = model.params_to_canonical(np.arange(model.params_size(), dtype="float32"))
    >>> [weight.shape for weight in weights]
    [(4, 3), (4, 3), (4, 3), (4, 4), (4, 4), (4, 4)]
    >>> model.canonical_to_params(weights, biases).numpy()[:3]
    array([0., 1., 2.], dtype=float32)
    """

    _mode = CUDNN_GRU


class CudnnRNNTanh(_NoCell):
    """The op-level network of tanh units.

    Examples
    --------
    >>> model = openrnn.cudnn_rnn.ops.CudnnRNNTanh(num_layers=1, num_units=4, input_size=3)
    >>> params, h = np.zeros(model.params_size(), "float32"), np.zeros((1, 2, 4), "float32")
    >>> output, h = model(np.ones((5, 2, 3), "float32"), h, params)
    >>> output.shape, h.shape
    ((5, 2, 4), (1, 2, 4))
    """

    _mode = CUDNN_RNN_TANH


class CudnnRNNRelu(_NoCell):
    """The op-level network of rectified linear units.

    Examples
    --------
    >>> model = openrnn.cudnn_rnn.ops.CudnnRNNRelu(num_layers=1, num_units=1, input_size=1)
    >>> params = model.canonical_to_params([[[1.0]], [[1.0]]], [[0.0], [0.0]])
    >>> output, h = model(np.ones((3, 1, 1), "float32"), np.zeros((1, 1, 1), "float32"), params)
    >>> output.numpy().ravel()
    array([1., 2., 3.], dtype=float32)
    """

    _mode = CUDNN_RNN_RELU


from openrnn.cudnn_rnn._functions import (  # noqa: E402 - it needs the names above
    cudnn_gru,
    cudnn_lstm,
    cudnn_rnn_canonical_to_opaque_params,
    cudnn_rnn_opaque_params_size,
    cudnn_rnn_opaque_params_to_canonical,
    cudnn_rnn_relu,
    cudnn_rnn_tanh,
)

__all__ = [
    "CUDNN_GRU",
    "CUDNN_INPUT_AUTO_MODE",
    "CUDNN_INPUT_LINEAR_MODE",
    "CUDNN_INPUT_SKIP_MODE",
    "CUDNN_LSTM",
    "CUDNN_RNN_BIDIRECTION",
    "CUDNN_RNN_RELU",
    "CUDNN_RNN_TANH",
    "CUDNN_RNN_UNIDIRECTION",
    "CudnnGRU",
    "CudnnLSTM",
    "CudnnRNNRelu",
    "CudnnRNNTanh",
    "cudnn_gru",
    "cudnn_lstm",
    "cudnn_rnn_canonical_to_opaque_params",
    "cudnn_rnn_opaque_params_size",
    "cudnn_rnn_opaque_params_to_canonical",
    "cudnn_rnn_relu",
    "cudnn_rnn_tanh",
]
