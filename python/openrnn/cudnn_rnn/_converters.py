"""Converters between opaque buffers and the tensors of the compatible cells."""

from collections.abc import Sequence
from typing import Any, ClassVar

from openrnn import _arguments, _core
from openrnn._core import Tensor
from openrnn._messages import own_constructor
from openrnn._typing import Direction, InputMode, TensorLike


class CudnnParamsFormatConverter:
    """Base of the converters, which say how; its own methods are abstract.

    network: any other option of the network (openrnn.network_options()), as its layer has it.
    A converted gradient holds the sum of the two biases' equal gradients: twice that of a cell
    with one bias.

    Examples
    --------
    >>> converter = openrnn.cudnn_rnn.CudnnParamsFormatConverterTanh(1, 4, 3)
    >>> weights, biases = converter.opaque_to_tf_canonical(np.arange(36, dtype="float32"))
    >>> buffer = converter.tf_canonical_to_opaque([*weights, *biases])
    >>> weights[0].shape, buffer.shape
    ((7, 4), (36,))
    """

    _rnn_mode: ClassVar[str] = ""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own_constructor(cls)

    def __init__(
        self,
        num_layers: int,
        num_units: int,
        input_size: int,
        num_proj: int | None = None,
        input_mode: InputMode = "linear_input",
        direction: Direction = "unidirectional",
        **network: Any,
    ) -> None:
        given = _arguments.of_call(locals())
        name = type(self).__name__
        _core.require_fields(f"{name}.__init__", network, ["rnn_mode", "dtype"])
        self._num_layers = num_layers
        self._num_units = num_units
        self._input_size = input_size
        self._num_proj = num_proj
        self._input_mode = input_mode
        self._direction = direction
        given["rnn_mode"] = self._rnn_mode
        self._core = _core.Converter(name, given) if self._rnn_mode else None

    def _converter(self) -> _core.Converter:
        if self._core is None:
            raise NotImplementedError("[CudnnParamsFormatConverter] expected one of its subclasses")
        return self._core

    def tf_canonical_to_opaque(
        self, tf_canonicals: Sequence[TensorLike], weights_proj: Sequence[TensorLike] | None = None
    ) -> Tensor:
        """The opaque buffer of one list, weights and then biases, each by layer and direction.

        weights_proj: [U, P] for each layer and direction.
        """
        return self._converter().to_opaque(
            tf_canonicals, None if weights_proj is None else list(weights_proj) or None
        )

    def opaque_to_tf_canonical(self, opaque_param: TensorLike) -> tuple[Any, ...]:
        """(weights, biases), and with a projection weights_proj: lists of Tensors."""
        weights, biases, weights_proj = self._converter().from_opaque(opaque_param)
        return (weights, biases, weights_proj) if self._num_proj else (weights, biases)


class CudnnParamsFormatConverterLSTM(CudnnParamsFormatConverter):
    """Of lstm: kernels [in + O, 4U], column blocks i, c, f, o.

    Examples
    --------
    >>> converter = openrnn.cudnn_rnn.CudnnParamsFormatConverterLSTM(1, 4, 3)
    >>> weights, biases = converter.opaque_to_tf_canonical(np.ones(144, "float32"))
    >>> weights[0].shape, biases[0].shape
    ((7, 16), (16,))
    """

    _rnn_mode = "lstm"


class CudnnParamsFormatConverterGRU(CudnnParamsFormatConverter):
    """Of gru: gates, and the candidate's two projections with a bias each.

    Examples
    --------
    >>> converter = openrnn.cudnn_rnn.CudnnParamsFormatConverterGRU(1, 4, 3)
    >>> weights, biases = converter.opaque_to_tf_canonical(np.ones(108, "float32"))
    >>> [weight.shape for weight in weights]
    [(7, 8), (3, 4), (4, 4)]
    """

    _rnn_mode = "gru"


class CudnnParamsFormatConverterTanh(CudnnParamsFormatConverter):
    """Of rnn_tanh: kernels [in + U, U].

    Examples
    --------
    >>> converter = openrnn.cudnn_rnn.CudnnParamsFormatConverterTanh(1, 4, 3)
    >>> weights, biases = converter.opaque_to_tf_canonical(np.ones(36, "float32"))
    >>> weights[0].shape, biases[0].numpy()
    ((7, 4), array([2., 2., 2., 2.], dtype=float32))
    """

    _rnn_mode = "rnn_tanh"


class CudnnParamsFormatConverterRelu(CudnnParamsFormatConverter):
    """Of rnn_relu: kernels [in + U, U].

    Examples
    --------
    >>> converter = openrnn.cudnn_rnn.CudnnParamsFormatConverterRelu(1, 4, 3)
    >>> weights, biases = converter.opaque_to_tf_canonical(np.ones(36, "float32"))
    >>> weights[0].shape, biases[0].shape
    ((7, 4), (4,))
    """

    _rnn_mode = "rnn_relu"
