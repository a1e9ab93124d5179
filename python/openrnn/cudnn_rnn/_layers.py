"""The layers CudnnLSTM, CudnnGRU, CudnnRNNTanh and CudnnRNNRelu."""

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple, TypeVar

from openrnn import _core, initializers
from openrnn._core import Tensor, Variable
from openrnn._typing import DTypeLike, Initializer, Regularizer, TensorLike
from openrnn.errors import StateError
from openrnn.layers import Layer

_Shape = list[int]
_Self = TypeVar("_Self", bound="CudnnRNN")


class EveryLayer(NamedTuple):
    """What `return_all` adds: of each layer its output, and of an lstm its cells of every step."""

    outputs: list[Tensor]
    cells: list[Tensor]


class CudnnRNN(Layer):
    """A stack of recurrent layers over one opaque parameter buffer, `NAME/opaque_kernel`.

    T time, B batch, I input size, L layers, D directions, U units, P projection size; O = P when
    projecting, else U.

    math, the arithmetic of the products: 'float32', 'bf16', 'bf16x3'. weights_dtype, what weights
    are stored as for inference: None, 'float16', 'bfloat16', 'int8'; a call that gradients may be
    asked of raises NotImplementedError with one. device, where the variables lie and the layer
    runs: 'cpu', 'gpu:0'; None is the default device.
    """

    _rnn_mode: ClassVar[str] = ""

    def __init__(
        self,
        num_layers: int,
        num_units: int,
        input_mode: str = "linear_input",
        direction: str = "unidirectional",
        dropout: float = 0.0,
        seed: int | None = None,
        dtype: DTypeLike = "float32",
        kernel_initializer: Initializer = None,
        bias_initializer: Initializer = None,
        name: str | None = None,
        *,
        num_proj: int | None = None,
        trainable: bool = True,
        activity_regularizer: Regularizer | None = None,
        math: str = "float32",
        weights_dtype: str | None = None,
        device: str | None = None,
    ) -> None:
        self._make(
            self._rnn_mode,
            {
                "num_layers": num_layers,
                "num_units": num_units,
                "input_mode": input_mode,
                "direction": direction,
                "dropout": dropout,
                "seed": seed,
                "dtype": dtype,
                "kernel_initializer": initializers.get(kernel_initializer),
                "bias_initializer": initializers.get(bias_initializer),
                "name": name,
                "num_proj": num_proj,
                "trainable": trainable,
                "activity_regularizer": activity_regularizer,
                "math": math,
                "weights_dtype": weights_dtype,
                "device": device,
            },
        )

    def __call__(
        self,
        inputs: TensorLike,
        initial_state: tuple[TensorLike, ...] | None = None,
        training: bool = True,
        *,
        sequence_lengths: TensorLike = None,
        time_major: bool = True,
        save: bool = False,
        return_all: bool = False,
        scope: Any = None,
    ) -> Any:
        """Runs the network; builds it first if need be. Returns (output, states).

        inputs [T, B, I]; output [T, B, D*O]; states (h [L*D, B, O], c [L*D, B, U]) of an lstm,
        (h,) of the others, and so is initial_state, None for zeros. sequence_lengths [B], each 0
        to T. time_major False: inputs and output [B, T, .], states [B, L*D, .].
        `training`: dropout is on and gradients may be asked for; `save`: gradients without
        dropout. `return_all` returns (output, states, EveryLayer). `scope`: a variable scope for
        the first use.
        """
        result = self.rnn_call(
            inputs, initial_state, training, sequence_lengths, time_major, save, return_all, scope
        )
        if not return_all:
            return result
        return result[0], result[1], EveryLayer(result[2], result[3])

    def call(
        self,
        inputs: TensorLike,
        initial_state: tuple[TensorLike, ...] | None = None,
        training: bool = True,
        *,
        sequence_lengths: TensorLike = None,
        time_major: bool = True,
        save: bool = False,
        return_all: bool = False,
    ) -> Any:
        """The same as calling the layer, which must be built."""
        if not self.built:
            raise StateError(f"[{self.name}] call() of an unbuilt layer, expected build() before")
        return self(
            inputs,
            initial_state,
            training,
            sequence_lengths=sequence_lengths,
            time_major=time_major,
            save=save,
            return_all=return_all,
        )

    @property
    def canonical_weight_shapes(self) -> list[tuple[int, ...]]:
        """Of each canonical matrix, by layer, direction and slot; [U, 0] where there is none."""
        return self.rnn_canonical_weight_shapes()

    @property
    def num_units(self) -> int:
        """U."""
        return self.rnn_num_units()

    @property
    def kernel(self) -> Variable:
        """The opaque variable. Raises ValueError before the layer is built."""
        return self.rnn_kernel()

    def state_shape(self, batch_size: int | None) -> tuple[_Shape, ...]:
        """([L*D, B, O], [L*D, B, U]) of an lstm, ([L*D, B, U],) of the others."""
        return self.rnn_state_shape(batch_size)

    def _canonical_weight_shape(self, layer: int) -> list[tuple[int, ...]]:
        return self.rnn_canonical_weight_shape(layer)

    def _canonical_to_opaque(
        self, cu_weights: Sequence[TensorLike], cu_biases: Sequence[TensorLike]
    ) -> Tensor:
        return self.rnn_canonical_to_opaque(cu_weights, cu_biases)

    def _create_saveable(self) -> None:
        self.rnn_create_saveable()

    def with_arithmetic(
        self: _Self, *, math: str = "float32", weights_dtype: str | None = None
    ) -> _Self:
        """A layer of the same variables with another arithmetic: one trains, the other runs.

        Raises RuntimeError before the layer is built.
        """
        made: _Self = self._copy_attributes(self.rnn_with_arithmetic(math, weights_dtype), {})
        return made

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument, with the name that the layer has now."""
        config = self.rnn_config()
        for key in ("kernel_initializer", "bias_initializer"):
            config[key] = initializers.serialize(config[key])
        return config


class CudnnLSTM(CudnnRNN):
    """Long short-term memory; states (h, c).

    i, f, o = sigmoid(W x + R h' + bW + bR), g = tanh(the same), c = f c' + i g, h = o tanh(c).
    """

    _rnn_mode = "lstm"


class CudnnGRU(CudnnRNN):
    """Gated recurrent unit, the reset gate after the recurrent product; states (h,).

    r, z = sigmoid(W x + R h' + bW + bR), n = tanh(W x + bW + r (R h' + bR)),
    h = (1 - z) n + z h'.
    """

    _rnn_mode = "gru"


class CudnnRNNTanh(CudnnRNN):
    """h = tanh(W x + R h' + bW + bR); states (h,)."""

    _rnn_mode = "rnn_tanh"


class CudnnRNNRelu(CudnnRNN):
    """h = max(0, W x + R h' + bW + bR); states (h,)."""

    _rnn_mode = "rnn_relu"


_core.set_layer_classes(
    {cls._rnn_mode: cls for cls in (CudnnLSTM, CudnnGRU, CudnnRNNTanh, CudnnRNNRelu)}
)
