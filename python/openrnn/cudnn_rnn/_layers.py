"""The layers CudnnLSTM, CudnnGRU, CudnnRNNTanh and CudnnRNNRelu."""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias, TypeVar, overload

from openrnn import _arguments, _core, initializers
from openrnn._core import Tensor, Variable
from openrnn._layer import Layer
from openrnn._steps import step_flags
from openrnn._subclasses import or_own_call
from openrnn._typing import (
    DTypeLike,
    Direction,
    Initializer,
    InputMode,
    Math,
    Regularizer,
    TensorLike,
    WeightsDType,
)
from openrnn._warnings import warn_of_dropout
from openrnn.errors import ArgumentError, StateError

_Shape = list[int]
_State: TypeAlias = tuple[TensorLike, ...] | None
_Save: TypeAlias = bool | Literal["inputs"] | int
_INITIALIZERS = ("kernel_initializer", "bias_initializer")
_Self = TypeVar("_Self", bound="CudnnRNN")


class EveryLayer(NamedTuple):
    """What `return_all` adds: of each layer its output, and its c of every step if it has one.

    Examples
    --------
    >>> lstm = openrnn.cudnn_rnn.CudnnLSTM(2, 4)
    >>> output, state, every = lstm(np.ones((5, 3, 2), "float32"), training=False, return_all=True)
    >>> [one.shape for one in every.outputs], [one.shape for one in every.cells]
    ([(5, 3, 4), (5, 3, 4)], [(5, 3, 4), (5, 3, 4)])
    """

    outputs: list[Tensor]
    cells: list[Tensor]


class CudnnRNN(Layer):
    """A stack of recurrent layers over one opaque parameter buffer, `NAME/opaque_kernel`.

    T time, B batch, I input size, L layers, D directions, U units, P projection size; O = P when
    projecting, else U.

    math, the arithmetic of the products: 'float32', 'bf16', 'bf16x3'. weights_dtype, what weights
    are stored as for inference: None, 'float16', 'bfloat16', 'int8'; a call that gradients may be
    asked of raises NotImplementedError with one. device, where the variables lie and the layer
    runs: 'cpu', 'gpu:0'; None is the default device. Any other option of a network goes by its name
    (openrnn.network_options()).
    """

    _kind: ClassVar[str] = ""

    def __init__(
        self,
        num_layers: int,
        num_units: int,
        input_mode: InputMode = "linear_input",
        direction: Direction = "unidirectional",
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
        math: Math = "float32",
        weights_dtype: WeightsDType | None = None,
        device: str | None = None,
        **network: Any,
    ) -> None:
        arguments = _arguments.of_call(locals())
        _core.require_fields(
            f"{type(self).__name__}.__init__", network, ["rnn_mode", "input_size"]
        )
        if isinstance(input_mode, int):
            name = next(cls.__name__ for cls in type(self).__mro__ if cls in _LAYERS)
            raise ArgumentError(
                f"[{name}] input_mode is {input_mode}, expected 'linear_input', 'skip_input' or "
                "'auto_select'. The model of (num_layers, num_units, input_size) is "
                f"openrnn.cudnn_rnn.ops.{name}"
            )
        self._make_network(arguments)

    def _make_network(self, arguments: dict[str, Any]) -> None:
        """Makes the layer of a constructor's arguments."""
        for key in _INITIALIZERS:
            arguments[key] = initializers.get(arguments[key])
        self._make(self._kind, arguments)
        warn_of_dropout(type(self).__name__, arguments["num_layers"], arguments["dropout"])

    # fmt: off
    @overload
    def __call__(
        self, inputs: TensorLike, initial_state: _State = ..., training: bool = ..., *,
        sequence_lengths: TensorLike = ..., time_major: bool = ..., save: _Save = ...,
        return_all: Literal[False] = ..., mask: TensorLike = ..., zero_output_for_mask: bool = ...,
        reset: TensorLike = ..., reset_to_initial: bool = ..., scope: Any = ...,
    ) -> tuple[Tensor, tuple[Tensor, ...]]: ...

    @overload
    def __call__(
        self, inputs: TensorLike, initial_state: _State = ..., training: bool = ..., *,
        sequence_lengths: TensorLike = ..., time_major: bool = ..., save: _Save = ...,
        return_all: Literal[True], mask: TensorLike = ..., zero_output_for_mask: bool = ...,
        reset: TensorLike = ..., reset_to_initial: bool = ..., scope: Any = ...,
    ) -> tuple[Tensor, tuple[Tensor, ...], EveryLayer]: ...

    @overload
    def __call__(
        self, inputs: TensorLike, initial_state: _State = ..., training: bool = ..., *,
        sequence_lengths: TensorLike = ..., time_major: bool = ..., save: _Save = ...,
        return_all: bool, mask: TensorLike = ..., zero_output_for_mask: bool = ...,
        reset: TensorLike = ..., reset_to_initial: bool = ..., scope: Any = ...,
    ) -> tuple[Tensor, tuple[Tensor, ...]] | tuple[Tensor, tuple[Tensor, ...], EveryLayer]: ...

    @or_own_call
    def __call__(
        self,
        inputs: TensorLike,
        initial_state: _State = None,
        training: bool = True,
        *,
        sequence_lengths: TensorLike = None,
        time_major: bool = True,
        save: _Save = False,
        return_all: bool = False,
        mask: TensorLike = None,
        zero_output_for_mask: bool = True,
        reset: TensorLike = None,
        reset_to_initial: bool = False,
        scope: Any = None,
    ) -> Any:
        """Runs the network; builds it first if need be. Returns (output, states).

        inputs [T, B, I]; output [T, B, D*O]; states (h [L*D, B, O], c [L*D, B, U]) of an lstm
        and of a gru with num_proj, (h,) of the others, and so is initial_state, None for zeros, or
        an LSTMStateTuple, which is taken by name. sequence_lengths [B], each 0 to T.
        time_major False: inputs and output [B, T, .], states [B, L*D, .]. A state that a call
        returned carries its layout and is transposed by a call of the other one. Any other array
        is read as the call's time_major says: where B == L*D, [L*D, B, .] and [B, L*D, .] have
        one shape, and an array in the wrong one cannot be refused.
        `training`: dropout is on and gradients may be asked for; `save`: gradients without
        dropout. save='inputs' keeps inputs and a few states alone and computes the rest again in
        the backward pass, in chunks of about the root of T steps; save=k in chunks of k steps,
        rounded up to a multiple of 32. The same bits for less memory and one more forward pass; on
        the cpu. mask [T, B] ([B, T] when batch-major): a step that is False passes its row's state
        through and puts out 0, or, with zero_output_for_mask False, the direction's last output.
        reset [T, B]: True puts the row's state back before the step, to zeros or, with
        reset_to_initial, to initial_state; the row goes on as a sequence of its own, in both
        directions. What is skipped costs nothing. `return_all` returns (output, states,
        EveryLayer). `scope`: a variable scope for the first use.
        """
        flags = step_flags(self.name, inputs, mask, zero_output_for_mask, reset, reset_to_initial)
        return self._run(inputs, initial_state, training, sequence_lengths, time_major, save,
                         return_all, scope, flags)  # fmt: skip

    @overload
    def call(
        self, inputs: TensorLike, initial_state: _State = ..., training: bool = ..., *,
        sequence_lengths: TensorLike = ..., time_major: bool = ..., save: _Save = ...,
        return_all: Literal[False] = ..., mask: TensorLike = ..., zero_output_for_mask: bool = ...,
        reset: TensorLike = ..., reset_to_initial: bool = ...,
    ) -> tuple[Tensor, tuple[Tensor, ...]]: ...

    @overload
    def call(
        self, inputs: TensorLike, initial_state: _State = ..., training: bool = ..., *,
        sequence_lengths: TensorLike = ..., time_major: bool = ..., save: _Save = ...,
        return_all: Literal[True], mask: TensorLike = ..., zero_output_for_mask: bool = ...,
        reset: TensorLike = ..., reset_to_initial: bool = ...,
    ) -> tuple[Tensor, tuple[Tensor, ...], EveryLayer]: ...

    @overload
    def call(
        self, inputs: TensorLike, initial_state: _State = ..., training: bool = ..., *,
        sequence_lengths: TensorLike = ..., time_major: bool = ..., save: _Save = ...,
        return_all: bool, mask: TensorLike = ..., zero_output_for_mask: bool = ...,
        reset: TensorLike = ..., reset_to_initial: bool = ...,
    ) -> tuple[Tensor, tuple[Tensor, ...]] | tuple[Tensor, tuple[Tensor, ...], EveryLayer]: ...

    def call(
        self,
        inputs: TensorLike,
        initial_state: _State = None,
        training: bool = True,
        *,
        sequence_lengths: TensorLike = None,
        time_major: bool = True,
        save: _Save = False,
        return_all: bool = False,
        mask: TensorLike = None,
        zero_output_for_mask: bool = True,
        reset: TensorLike = None,
        reset_to_initial: bool = False,
    ) -> Any:
        """What the class computes; the layer must be built."""
        if not self.built:
            raise StateError(f"[{self.name}] call() of an unbuilt layer, expected build() before")
        flags = step_flags(self.name, inputs, mask, zero_output_for_mask, reset, reset_to_initial)
        return self._run(inputs, initial_state, training, sequence_lengths, time_major, save,
                         return_all, None, flags)  # fmt: skip

    def _run(self, *arguments: Any) -> Any:
        output, states, *every = _core.rnn_call(self, *arguments)
        return (output, states, EveryLayer(*every)) if every else (output, states)

    @property
    def num_layers(self) -> int:
        """L."""
        return int(_core.rnn_field(self, "num_layers"))

    @property
    def num_units(self) -> int:
        """U."""
        return int(_core.rnn_field(self, "num_units"))

    @property
    def num_dirs(self) -> int:
        """D: 1, or 2 when bidirectional."""
        return _core.rnn_num_dirs(self)

    @property
    def input_mode(self) -> str:
        """'linear_input', 'skip_input' or 'auto_select', as given."""
        return str(_core.rnn_field(self, "input_mode"))

    @property
    def direction(self) -> str:
        """'unidirectional' or 'bidirectional'."""
        return str(_core.rnn_field(self, "direction"))

    @property
    def rnn_mode(self) -> str:
        """'lstm', 'gru', 'rnn_tanh' or 'rnn_relu'."""
        return str(_core.rnn_field(self, "rnn_mode"))

    @property
    def dropout(self) -> float:
        """The rate between layers."""
        return float(_core.rnn_field(self, "dropout"))

    @property
    def num_proj(self) -> int | None:
        """P; None without projection."""
        value: int | None = _core.rnn_field(self, "num_proj")
        return value

    @property
    def input_size(self) -> int:
        """I. Raises ValueError before the layer is built."""
        return _core.rnn_input_size(self)

    @property
    def math(self) -> str:
        """The arithmetic of the products."""
        return str(_core.rnn_field(self, "math"))

    @property
    def weights_dtype(self) -> str | None:
        """Storage of the weights for inference; None: the dtype."""
        value: str | None = _core.rnn_field(self, "weights_dtype")
        return value

    @property
    def math_kind(self) -> str:
        """The arithmetic of the products on this machine, as openrnn.math_kind."""
        return _core.rnn_math_kind(self)

    @property
    def saveable(self) -> _core.SaveableObject | None:
        """The layer's Saveable; None before it is built."""
        return _core.rnn_saveable(self)

    @property
    def dropout_calls(self) -> int:
        """Training calls with dropout so far; with the seed it names the next masks."""
        return _core.rnn_dropout_calls(self)

    @dropout_calls.setter
    def dropout_calls(self, calls: int) -> None:
        _core.rnn_set_dropout_calls(self, calls)

    @property
    def canonical_weight_shapes(self) -> list[tuple[int, ...]]:
        """Of each canonical matrix, by layer, direction and slot; [U, 0] where there is none."""
        return _core.rnn_canonical_weight_shapes(self)

    @property
    def canonical_bias_shapes(self) -> list[_Shape]:
        """Of each canonical bias, [U]; before the layer is built too."""
        return _core.rnn_canonical_bias_shapes(self)

    @property
    def kernel(self) -> Variable:
        """The opaque variable. Raises ValueError before the layer is built."""
        return _core.rnn_kernel(self)

    def state_shape(self, batch_size: int | None) -> tuple[_Shape, ...]:
        """([L*D, B, O], [L*D, B, U]) where there is a c, else ([L*D, B, O],)."""
        return _core.rnn_state_shape(self, batch_size)

    def _canonical_weight_shape(self, layer: int) -> list[tuple[int, ...]]:
        return _core.rnn_canonical_weight_shape(self, layer)

    def _canonical_to_opaque(
        self, cu_weights: Sequence[TensorLike], cu_biases: Sequence[TensorLike]
    ) -> Tensor:
        return _core.rnn_canonical_to_opaque(self, cu_weights, cu_biases)

    def _create_saveable(self) -> None:
        _core.rnn_create_saveable(self)

    def with_arithmetic(
        self: _Self, *, math: Math = "float32", weights_dtype: WeightsDType | None = None
    ) -> _Self:
        """A layer of the same variables with another arithmetic: one trains, the other runs.

        Raises RuntimeError before the layer is built.
        """
        made: _Self = self._with_attributes(_core.rnn_with_arithmetic(self, math, weights_dtype))
        return made

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument, with the name that the layer has now."""
        config = _core.rnn_config(self)
        for key in _INITIALIZERS:
            config[key] = initializers.serialize(config[key])
        return config


class CudnnLSTM(CudnnRNN):
    """Long short-term memory; states (h, c).

    i, f, o = sigmoid(W x + R h' + bW + bR), g = tanh(the same), c = f c' + i g, h = o tanh(c).

    Examples
    --------
    >>> lstm = openrnn.cudnn_rnn.CudnnLSTM(num_layers=2, num_units=4)
    >>> output, (h, c) = lstm(np.ones((5, 3, 2), "float32"), training=False)
    >>> output.shape, h.shape, bool((h.numpy()[-1] == output.numpy()[-1]).all())
    ((5, 3, 4), (2, 3, 4), True)
    """

    _kind = "lstm"


class CudnnGRU(CudnnRNN):
    """Gated recurrent unit, the reset gate after the recurrent product; states (h,).

    r, z = sigmoid(W x + R h' + bW + bR), n = tanh(W x + bW + r (R h' + bR)),
    h = (1 - z) n + z h'.

    Examples
    --------
    >>> gru = openrnn.cudnn_rnn.CudnnGRU(1, 4, direction="bidirectional")
    >>> output, (h,) = gru(np.ones((5, 3, 2), "float32"), sequence_lengths=[5, 0, 2])
    >>> output.shape, h.shape, float(abs(output.numpy()[:, 1]).max())
    ((5, 3, 8), (2, 3, 4), 0.0)
    """

    _kind = "gru"


class CudnnRNNTanh(CudnnRNN):
    """h = tanh(W x + R h' + bW + bR); states (h,).

    Examples
    --------
    >>> rnn = openrnn.cudnn_rnn.CudnnRNNTanh(1, 4)
    >>> output, (h,) = rnn(np.ones((5, 3, 2), "float32"), training=False)
    >>> output.shape, h.shape, bool(abs(output.numpy()).max() < 1.0)
    ((5, 3, 4), (1, 3, 4), True)
    """

    _kind = "rnn_tanh"


class CudnnRNNRelu(CudnnRNN):
    """h = max(0, W x + R h' + bW + bR); states (h,).

    Examples
    --------
    >>> rnn = openrnn.cudnn_rnn.CudnnRNNRelu(1, 1, kernel_initializer="ones")
    >>> output, (h,) = rnn(np.ones((3, 1, 1), "float32"), training=False)
    >>> output.numpy().ravel()
    array([1., 2., 3.], dtype=float32)
    """

    _kind = "rnn_relu"


_LAYERS = (CudnnLSTM, CudnnGRU, CudnnRNNTanh, CudnnRNNRelu)
_core.set_layer_classes({cls._kind: cls for cls in _LAYERS})
