"""LSTM, GRU and RNN: the recurrent layers with each option of a network as an argument."""

from typing import Any

from openrnn import _arguments, _core
from openrnn._typing import (
    DTypeLike,
    Direction,
    Initializer,
    InputMode,
    LayerNorm,
    Math,
    RecurrentDropoutForm,
    Regularizer,
    WeightsDType,
)
from openrnn.cudnn_rnn._layers import CudnnGRU, CudnnLSTM, CudnnRNN

_Clip = float | tuple[float, float] | None


class LSTM(CudnnLSTM):
    """Long short-term memory with every option of a network; states (h, c), named 'lstm'.

    The layer CudnnLSTM, its options as named arguments (openrnn.network_options() says what each
    means). A clip is (low, high), or one number for both sides of 0; an activation is a name, such
    as 'leaky_relu(0.1)'.

    Examples
    --------
    >>> lstm = openrnn.layers.LSTM(4, forget_bias=1.0, num_proj=3)
    >>> output, (h, c) = lstm(np.ones((5, 2, 6), "float32"), training=False)
    >>> output.shape, h.shape, c.shape
    ((5, 2, 3), (1, 2, 3), (1, 2, 4))
    """

    _kind = "LSTM"

    def __init__(
        self,
        num_units: int,
        num_layers: int = 1,
        *,
        input_mode: InputMode = "linear_input",
        direction: Direction = "unidirectional",
        dropout: float = 0.0,
        seed: int | None = None,
        dtype: DTypeLike = "float32",
        kernel_initializer: Initializer = None,
        bias_initializer: Initializer = None,
        name: str | None = None,
        num_proj: int | None = None,
        cell_clip: _Clip = None,
        forget_bias: float = 0.0,
        activation: str | None = None,
        recurrent_activation: str | None = None,
        output_activation: str | None = None,
        use_peepholes: bool = False,
        coupled_gates: bool = False,
        proj_clip: _Clip = None,
        gate_clip: _Clip = None,
        use_bias: bool = True,
        single_bias: bool = False,
        layer_norm: LayerNorm | None = None,
        layer_norm_cell: str | None = None,
        layer_norm_epsilon: float = 1e-5,
        zoneout: float = 0.0,
        zoneout_cell: float = 0.0,
        input_dropout: float = 0.0,
        output_dropout: float = 0.0,
        drop_connect: float = 0.0,
        recurrent_dropout: float = 0.0,
        recurrent_dropout_form: RecurrentDropoutForm = "state",
        trainable: bool = True,
        activity_regularizer: Regularizer | None = None,
        math: Math = "float32",
        weights_dtype: WeightsDType | None = None,
        device: str | None = None,
    ) -> None:
        self._make_network(_arguments.of_call(locals()))


class GRU(CudnnGRU):
    """Gated recurrent unit with every option of a network; states (h,), named 'gru'.

    The layer CudnnGRU, its options as named arguments, as LSTM has them. reset_after=False: the
    reset gate before the recurrent product. With num_proj the states are (h, c): c is what the gate
    z interpolates, [L*D, B, U], and h its projection.

    Examples
    --------
    >>> gru = openrnn.layers.GRU(4, direction="bidirectional", reset_after=False)
    >>> output, (h,) = gru(np.ones((5, 2, 6), "float32"), training=False)
    >>> output.shape, h.shape
    ((5, 2, 8), (2, 2, 4))
    """

    _kind = "GRU"

    def __init__(
        self,
        num_units: int,
        num_layers: int = 1,
        *,
        input_mode: InputMode = "linear_input",
        direction: Direction = "unidirectional",
        dropout: float = 0.0,
        seed: int | None = None,
        dtype: DTypeLike = "float32",
        kernel_initializer: Initializer = None,
        bias_initializer: Initializer = None,
        name: str | None = None,
        num_proj: int | None = None,
        reset_after: bool = True,
        activation: str | None = None,
        recurrent_activation: str | None = None,
        proj_clip: _Clip = None,
        gate_clip: _Clip = None,
        use_bias: bool = True,
        single_bias: bool = False,
        layer_norm: LayerNorm | None = None,
        layer_norm_epsilon: float = 1e-5,
        zoneout: float = 0.0,
        zoneout_cell: float = 0.0,
        input_dropout: float = 0.0,
        output_dropout: float = 0.0,
        drop_connect: float = 0.0,
        recurrent_dropout: float = 0.0,
        recurrent_dropout_form: RecurrentDropoutForm = "state",
        trainable: bool = True,
        activity_regularizer: Regularizer | None = None,
        math: Math = "float32",
        weights_dtype: WeightsDType | None = None,
        device: str | None = None,
    ) -> None:
        self._make_network(_arguments.of_call(locals()))


class RNN(CudnnRNN):
    """A plain network of any activation, h = activation(W x + R h' + bW + bR); named 'rnn'.

    States (h,); options as LSTM has them. With 'tanh' and 'relu' it is the network of CudnnRNNTanh
    and CudnnRNNRelu.

    Examples
    --------
    >>> rnn = openrnn.layers.RNN(1, activation="relu", kernel_initializer="ones")
    >>> output, (h,) = rnn(np.ones((3, 1, 1), "float32"), training=False)
    >>> output.numpy().ravel()
    array([1., 2., 3.], dtype=float32)
    """

    _kind = "RNN"

    def __init__(
        self,
        num_units: int,
        num_layers: int = 1,
        *,
        input_mode: InputMode = "linear_input",
        direction: Direction = "unidirectional",
        dropout: float = 0.0,
        seed: int | None = None,
        dtype: DTypeLike = "float32",
        kernel_initializer: Initializer = None,
        bias_initializer: Initializer = None,
        name: str | None = None,
        num_proj: int | None = None,
        activation: str | None = "tanh",
        proj_clip: _Clip = None,
        gate_clip: _Clip = None,
        use_bias: bool = True,
        single_bias: bool = False,
        zoneout: float = 0.0,
        input_dropout: float = 0.0,
        output_dropout: float = 0.0,
        drop_connect: float = 0.0,
        recurrent_dropout: float = 0.0,
        recurrent_dropout_form: RecurrentDropoutForm = "state",
        trainable: bool = True,
        activity_regularizer: Regularizer | None = None,
        math: Math = "float32",
        weights_dtype: WeightsDType | None = None,
        device: str | None = None,
    ) -> None:
        self._make_network(_arguments.of_call(locals()))

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument, with the name that the layer has now."""
        config = super().get_config()
        config.setdefault("activation", self.rnn_mode.removeprefix("rnn_"))
        return config


_core.set_layer_classes({cls._kind: cls for cls in (LSTM, GRU, RNN)})
