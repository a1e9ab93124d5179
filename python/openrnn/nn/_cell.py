"""RNNCell, the base class of cells, and what those with variables share."""

import operator
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple

from openrnn import _arguments, _copies, _core, _ops, initializers
from openrnn._core import Tensor, Variable
from openrnn._structure import flatten as _flatten
from openrnn._structure import pack as _pack
from openrnn._subclasses import is_overridden, snake_case
from openrnn._typing import DTypeLike, ShapeLike, TensorLike
from openrnn.errors import ArgumentError
from openrnn._layer import Layer


if TYPE_CHECKING:
    from typing_extensions import TypeVar

    _Part = TypeVar("_Part", default=Any)

    class LSTMStateTuple(NamedTuple, Generic[_Part]):
        """State of an LSTM cell: (c, h); of tensors, or of their sizes."""

        c: _Part
        h: _Part

else:

    class LSTMStateTuple(NamedTuple):
        """State of an LSTM cell: (c, h), where the layers have (h, c).

        Examples
        --------
        >>> state = openrnn.nn.rnn_cell.BasicLSTMCell(4).zero_state(2, "float32")
        >>> state.c.shape, state.h.shape
        ((2, 4), (2, 4))
        """

        c: Any
        h: Any


def dtype_given(inputs: Any) -> Any:
    """The dtype of inputs; of a tensor, whose dtype was chosen, its name."""
    dtype = getattr(inputs, "dtype", None)
    return str(dtype) if isinstance(inputs, (Tensor, Variable)) else dtype


def _scope_text(scope: Any) -> str:
    return "" if scope is None else str(getattr(scope, "name", scope))


_OVERRIDABLE = ("call", "__call__", "zero_state", "state_size", "output_size")


def _parts(size: Any, memory: bool = False) -> list[tuple[int, bool]]:
    """(width, whether dropout skips it) of each tensor of a state_size."""
    if isinstance(size, LSTMStateTuple):
        return [*_parts(size.c, True), *_parts(size.h)]
    if isinstance(size, (list, tuple)):
        return [part for each in size for part in _parts(each, memory)]
    return [(operator.index(size), memory)]


class RNNCell(Layer):
    """What the cells share. B batch, I input depth.

    Your own subclass has `state_size`, an integer or a nested tuple, `output_size`, and
    call(inputs, state), which returns (output, new state); it may make weights in `build`. It runs
    in every loop and wrapper.

    Examples
    --------
    >>> class Sum(openrnn.nn.rnn_cell.RNNCell):
    ...     state_size = output_size = 3
    ...     def call(self, inputs, state):
    ...         return state + inputs, state + inputs
    >>> x = np.ones((1, 4, 3), "float32")
    >>> outputs, state = openrnn.nn.dynamic_rnn(Sum(), x, dtype="float32")
    >>> state.numpy()
    array([[4., 4., 4.]], dtype=float32)
    """

    _steps = True
    _kind: ClassVar[str] = "python_cell"
    _overridden: ClassVar[list[str]] = []

    def __init__(
        self,
        trainable: bool = True,
        name: str | None = None,
        dtype: DTypeLike = None,
        *,
        device: str | None = None,
        _reuse: bool | None = None,
    ) -> None:
        self._make_cell(
            {
                "trainable": trainable,
                "name": name or "",
                "default_name": snake_case(type(self).__name__),
                "device": device,
            },
            dtype,
            bool(_reuse),
        )

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._overridden = [name for name in _OVERRIDABLE if is_overridden(cls, name)]

    def _make_cell(
        self, options: dict[str, Any], dtype: DTypeLike, reuse: bool | None
    ) -> None:
        self._options = {**options, "dtype": dtype or "float32", "reuse": reuse}
        self._dtype_given = dtype is not None
        self._make(self._kind, self._options)

    def _install(self) -> None:
        super()._install()
        if self._overridden:
            _core.cell_override(self, self._overridden)

    def build(self, input_shape: ShapeLike | None) -> None:
        """Makes the variables for inputs of that shape; None: the first call makes them."""
        if input_shape is not None or _core.layer_building(self):
            super().build(input_shape or ())

    @property
    def state_size(self) -> Any:
        """Widths in the structure of the state."""
        return self._structure(iter(_core.cell_state_size(self)))

    @property
    def output_size(self) -> int:
        """Width of the output."""
        return _core.cell_output_size(self)

    def zero_state(self, batch_size: int, dtype: DTypeLike) -> Any:
        """Zeros [batch_size, size] in the structure of the state."""
        size = _arguments.as_integer("zero_state", "batch_size", batch_size)
        return self._state_of(iter(_core.cell_zero_state(self, size, dtype)))

    def __call__(self, inputs: TensorLike, state: Any, scope: Any = None) -> tuple[Tensor, Any]:
        """One step on inputs [B, I]: (output [B, output_size], new state)."""
        self._take_dtype(dtype_given(inputs))
        output, new_state = _core.cell_step(
            self, inputs, self._flat_state(state), _scope_text(scope)
        )
        return output, self._state_of(iter(new_state))

    def call(self, inputs: TensorLike, state: Any) -> Any:
        """What the class computes: (output, new state)."""
        if self._kind == RNNCell._kind:
            raise NotImplementedError(f"[{type(self).__name__}] it has no call(), expected one")
        output, new_state = _core.cell_class_step(self, inputs, self._flat(state))
        return output, self._structure(iter(new_state))

    def _own_step(self, inputs: Tensor, flat: list[Tensor]) -> tuple[Any, list[Any]]:
        return self._own_result("call", self.call(inputs, self._state_of(iter(flat))))

    def _own_call(self, inputs: Tensor, flat: list[Tensor], scope: str) -> tuple[Any, list[Any]]:
        arguments = (inputs, self._state_of(iter(flat)), *([scope] if scope else []))
        return self._own_result("__call__", self(*arguments))

    def _own_result(self, what: str, result: Any) -> tuple[Any, list[Any]]:
        if not isinstance(result, (list, tuple)) or len(result) != 2:
            raise ArgumentError(
                f"[{self.name}] {what}() returned {_shown(result)}, expected (output, state)"
            )
        output, state = result
        return output, self._flat_state(state)

    def _own_zero_state(self, batch_size: int, dtype: str) -> list[Any]:
        return self._flat_state(self.zero_state(batch_size, dtype))

    def _own_state(self) -> list[tuple[int, bool]]:
        return _parts(self.state_size)

    def _take_dtype(self, dtype: Any) -> bool:
        """Takes the dtype of the first input where none was given; returns whether it changed."""
        name = str(getattr(dtype, "name", dtype))
        # An array's dtype is NumPy's, a tensor's comes as its name. float64 is NumPy's default: an
        # array of it does not make the cell float64.
        wanted = name in ("float16", "bfloat16") or (name == "float64" and isinstance(dtype, str))
        if self._dtype_given or self.built or not wanted or name == self.dtype:
            return False
        self._options["dtype"] = name
        self._remake(self._options)
        return True

    def _remake(self, options: dict[str, Any]) -> None:
        _core.cell_remake(self, self._kind, options)
        self._install()

    def _state_of(self, flat: Any) -> Any:
        """One state from an iterator over flat values."""
        own = "state_size" in self._overridden
        return _pack(self.state_size, flat) if own else self._structure(flat)

    def _flat_state(self, state: Any) -> list[Any]:
        """The inverse; raises where the structure is another one."""
        if "state_size" not in self._overridden:
            return self._flat(state)
        size, given = self.state_size, _flatten(state)
        nested = isinstance(size, (list, tuple))
        if isinstance(state, (list, tuple)) != nested or len(given) != len(_flatten(size)):
            wanted = f"a tuple of {len(_flatten(size))}" if nested else "one tensor"
            raise ArgumentError(
                f"[{self.name}] the state is {_shown(state)}, expected {wanted} as state_size"
            )
        return given

    def _around(self, made: tuple[str, dict[str, Any]], **attributes: Any) -> Any:
        """A copy of a wrapper around other cells."""
        copied = self._with_attributes(
            _copies.make_layer(type(self), made, _core.layer_state(self))
        )
        copied.__dict__.update(attributes, _made=made)
        return copied

    def _structure(self, flat: Any) -> Any:
        """_state_of() as the class has it."""
        return next(flat)

    def _flat(self, state: Any) -> list[Any]:
        """_flat_state() as the class has it."""
        if isinstance(state, (list, tuple)):
            raise ArgumentError(f"[{self.name}] the state is {_shown(state)}, expected one tensor")
        return [state]


def _shown(value: Any) -> str:
    if value is None:
        return "None"
    of = f" of {len(value)}" if isinstance(value, (list, tuple)) else ""
    return f"a {type(value).__name__}{of}"


def _relu(x: Tensor) -> Tensor:
    return _core.relu(x)


def _linear(x: Tensor) -> Tensor:
    return x


# None: the cell's own function, tanh.
_ACTIVATIONS: dict[str, Any] = {
    "linear": _linear,
    "relu": _relu,
    "sigmoid": _ops.sigmoid,
    "tanh": None,
}


def _function(call: str, activation: Any) -> Any:
    """The function of an activation's name; a function as it is."""
    if not isinstance(activation, str):
        return activation
    if activation not in _ACTIVATIONS:
        raise ArgumentError(
            f"[{call}] activation is '{activation}', expected {sorted(_ACTIVATIONS)}"
        )
    return _ACTIVATIONS[activation]


class _Compatible(RNNCell):
    """A cell with variables of its own."""

    _config: dict[str, Any]

    def _make_variable_cell(
        self, given: dict[str, Any], dtype: DTypeLike, reuse: bool | None
    ) -> None:
        """Makes the cell of a constructor's arguments, which get_config() gives back."""
        options, config = dict(given), dict(given)
        for key in ("kernel_initializer", "bias_initializer"):
            if key in given:
                options[key] = initializers.get(given[key])
                config[key] = initializers.serialize(given[key])
        if "activation" in given:
            options["activation"] = _function(type(self).__name__, given["activation"])
        self._make_cell(options, dtype, reuse)
        config.pop("name")
        plain = {name: _arguments.plain(value) for name, value in config.items()}
        self._config = {**plain, "reuse": reuse}

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {"name": self.name, "dtype": self.dtype, **self._config}

    @property
    def num_units(self) -> int:
        """U."""
        return _core.cell_num_units(self)

    @property
    def _num_units(self) -> int:
        return _core.cell_num_units(self)


class _OneState(_Compatible):
    """A cell whose state is one tensor."""

    if TYPE_CHECKING:

        def __call__(
            self, inputs: TensorLike, state: Any, scope: Any = None
        ) -> tuple[Tensor, Tensor]: ...


class _LSTM(_Compatible):
    """A cell whose state is (c, h)."""

    if TYPE_CHECKING:

        def __call__(
            self, inputs: TensorLike, state: Any, scope: Any = None
        ) -> "tuple[Tensor, LSTMStateTuple[Tensor]]": ...

    def _structure(self, flat: Any) -> LSTMStateTuple:
        return LSTMStateTuple(next(flat), next(flat))

    def _flat(self, state: Any) -> list[Any]:
        if not isinstance(state, (list, tuple)) or len(state) != 2:
            given = len(state) if isinstance(state, (list, tuple)) else type(state).__name__
            raise ArgumentError(f"[{self.name}] the state is {given}, expected length 2: (c, h)")
        return list(state)
