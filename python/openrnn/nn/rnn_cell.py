"""Cells, one step of a recurrent network each, and their wrappers."""

import copy
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from openrnn import _arguments, _core, _ops
from openrnn._core import Tensor, Variable
from openrnn._layer import Layer
from openrnn._typing import DTypeLike, Initializer, TensorLike
from openrnn.errors import ArgumentError, UnsupportedError
from openrnn.nn._cell import LSTMStateTuple, RNNCell, _LSTM, _OneState

__all__ = [
    "BasicLSTMCell",
    "BasicRNNCell",
    "DropoutWrapper",
    "GRUCell",
    "LSTMCell",
    "LSTMStateTuple",
    "LayerNormBasicLSTMCell",
    "MultiRNNCell",
    "RNNCell",
]

_Activation = Callable[[Tensor], Any] | str | None


class BasicRNNCell(_OneState):
    """activation([x, h] kernel + bias): kernel [I + U, U], bias [U]; state and output are one.

    Examples
    --------
    >>> cell = openrnn.nn.rnn_cell.BasicRNNCell(1, "relu", kernel_initializer="ones")
    >>> output, state = cell([[1.0, 2.0]], np.array([[10.0]], "float32"))
    >>> state.numpy()
    array([[13.]], dtype=float32)
    """

    _kind = "basic_cell"

    def __init__(
        self,
        num_units: int,
        activation: _Activation = "tanh",
        reuse: bool | None = None,
        name: str | None = None,
        *,
        dtype: DTypeLike = None,
        kernel_initializer: Initializer = None,
        device: str | None = None,
    ) -> None:
        self._make_variable_cell(
            {
                "num_units": num_units,
                "activation": activation,
                "name": name,
                "kernel_initializer": kernel_initializer,
                "device": device,
            },
            dtype,
            reuse,
        )


class _TupleOrOne(_LSTM):
    """An LSTM whose state is (c, h), or both in one tensor [B, U + O]."""

    _state_is_tuple = True

    if TYPE_CHECKING:  # the new state is of the kind of the given one

        @overload
        def __call__(
            self, inputs: TensorLike, state: tuple[TensorLike, TensorLike], scope: Any = None
        ) -> tuple[Tensor, LSTMStateTuple[Tensor]]: ...
        @overload
        def __call__(
            self, inputs: TensorLike, state: Tensor | Variable | NDArray[Any], scope: Any = None
        ) -> tuple[Tensor, Tensor]: ...
        def __call__(self, inputs: TensorLike, state: Any, scope: Any = None) -> Any: ...

    def _structure(self, flat: Any) -> Any:
        c, h = next(flat), next(flat)
        if self._state_is_tuple:
            return LSTMStateTuple(c, h)
        return c + h if isinstance(c, int) else _ops.concat([c, h], 1)

    def _flat(self, state: Any) -> list[Any]:
        if self._state_is_tuple:
            return super()._flat(state)
        if isinstance(state, (list, tuple)):
            raise ArgumentError(
                f"[{self.name}] the state is a {type(state).__name__} of {len(state)}, expected "
                "one tensor as state_is_tuple is False"
            )
        sizes = _core.cell_state_size(self)
        if isinstance(state, Variable):
            state = _core.convert(state, None)  # a gradient may be asked for
        elif not isinstance(state, Tensor):
            state = np.asarray(state)
        if len(state.shape) != 2 or state.shape[1] != sum(sizes):
            raise ArgumentError(
                f"[{self.name}] the state has shape {tuple(state.shape)}, expected "
                f"[batch, {sum(sizes)}]"
            )
        if isinstance(state, Tensor):
            return list(_ops.split(state, sizes, 1))
        return [state[:, : sizes[0]], state[:, sizes[0] :]]


class BasicLSTMCell(_TupleOrOne):
    """An LSTMCell without its other options: kernel [I + U, 4U] and bias [4U], blocks i, j, f, o.

    State LSTMStateTuple(c, h), each [B, U]; with state_is_tuple=False both in one [B, 2U].

    Examples
    --------
    >>> cell = openrnn.nn.rnn_cell.BasicLSTMCell(4)
    >>> output, state = cell(np.ones((2, 3), "float32"), cell.zero_state(2, "float32"))
    >>> output.shape, cell.state_size
    ((2, 4), LSTMStateTuple(c=4, h=4))
    """

    _kind = "basic_lstm_cell"

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: _Activation = None,
        reuse: bool | None = None,
        name: str | None = None,
        dtype: DTypeLike = None,
        *,
        kernel_initializer: Initializer = None,
        device: str | None = None,
    ) -> None:
        self._state_is_tuple = bool(state_is_tuple)
        self._make_variable_cell(
            {
                "num_units": num_units,
                "forget_bias": forget_bias,
                "activation": activation,
                "kernel_initializer": kernel_initializer,
                "name": name,
                "device": device,
            },
            dtype,
            reuse,
        )
        self._config["state_is_tuple"] = self._state_is_tuple


class LSTMCell(_TupleOrOne):
    """Long short-term memory with peepholes, clips and a projection, as tf.nn.rnn_cell.LSTMCell.

    kernel [I + O, 4U] and bias [4U], column blocks i, j, f, o; with use_peepholes w_f_diag,
    w_i_diag, w_o_diag [U]; with num_proj projection/kernel [U, P]. O = P with num_proj, else U.
    A clip is a bound on both sides of 0, proj_clip where num_proj is. State LSTMStateTuple(c [B, U],
    h [B, O]); with state_is_tuple=False both in one tensor.

    Examples
    --------
    >>> cell = openrnn.nn.rnn_cell.LSTMCell(4, use_peepholes=True, num_proj=3)
    >>> output, (c, h) = cell(np.ones((2, 5), "float32"), cell.zero_state(2, "float32"))
    >>> c.shape, h.shape
    ((2, 4), (2, 3))
    """

    _kind = "tf_lstm_cell"

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        cell_clip: float | None = None,
        initializer: Initializer = None,
        num_proj: int | None = None,
        proj_clip: float | None = None,
        num_unit_shards: None = None,
        num_proj_shards: None = None,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: _Activation = None,
        reuse: bool | None = None,
        name: str | None = None,
        dtype: DTypeLike = None,
        *,
        device: str | None = None,
    ) -> None:
        shards = {"num_unit_shards": num_unit_shards, "num_proj_shards": num_proj_shards}
        for key, value in shards.items():
            if value is not None:
                raise UnsupportedError(
                    f"[LSTMCell] {key} is {value!r}, expected None: variables are not partitioned"
                )
        self._state_is_tuple = bool(state_is_tuple)
        self._make_variable_cell(
            {
                "num_units": num_units,
                "use_peepholes": use_peepholes,
                "cell_clip": cell_clip,
                "kernel_initializer": initializer,
                "num_proj": num_proj,
                "proj_clip": proj_clip,
                "forget_bias": forget_bias,
                "activation": activation,
                "name": name,
                "device": device,
            },
            dtype,
            reuse,
        )
        self._config["initializer"] = self._config.pop("kernel_initializer")
        self._config["state_is_tuple"] = self._state_is_tuple


class GRUCell(_OneState):
    """Gated recurrent unit with the reset gate before the product, as tf.nn.rnn_cell.GRUCell.

    gates/{kernel [I + U, 2U], bias [2U]}, column blocks reset and update, bias 1 at first;
    candidate/{kernel [I + U, U], bias [U]}. State and output are one, [B, U].

    Examples
    --------
    >>> cell = openrnn.nn.rnn_cell.GRUCell(4)
    >>> output, state = cell(np.ones((2, 3), "float32"), cell.zero_state(2, "float32"))
    >>> output.shape, [tuple(weight.shape) for weight in cell.weights]
    ((2, 4), [(7, 8), (8,), (7, 4), (4,)])
    """

    _kind = "tf_gru_cell"

    def __init__(
        self,
        num_units: int,
        activation: _Activation = None,
        reuse: bool | None = None,
        kernel_initializer: Initializer = None,
        bias_initializer: Initializer = None,
        name: str | None = None,
        dtype: DTypeLike = None,
        *,
        device: str | None = None,
    ) -> None:
        self._make_variable_cell(
            {
                "num_units": num_units,
                "activation": activation,
                "kernel_initializer": kernel_initializer,
                "bias_initializer": bias_initializer,
                "name": name,
                "device": device,
            },
            dtype,
            reuse,
        )


class LayerNormBasicLSTMCell(_LSTM):
    """LSTM with layer normalization and recurrent dropout, as tf.contrib.rnn's of that name.

    i, j, f, o = LN of the blocks of [x, h] kernel; c = LN(c' * sigmoid(f + forget_bias) +
    sigmoid(i) * activation(j)), h = sigmoid(o) * activation(c), where LN divides by
    sqrt(variance + 1e-12), 1e-3 for float16. kernel [I + U, 4U], blocks i, j, f, o; gamma and beta
    [U] under input, transform, forget, output and state, norm_gain and norm_shift at first; with
    layer_norm=False bias [4U] in their place. dropout_keep_prob keeps elements of activation(j), at
    every call. State LSTMStateTuple(c, h), each [B, U].

    Examples
    --------
    >>> cell = openrnn.nn.rnn_cell.LayerNormBasicLSTMCell(4, dropout_keep_prob=0.9)
    >>> output, (c, h) = cell(np.ones((2, 3), "float32"), cell.zero_state(2, "float32"))
    >>> c.shape, h.shape
    ((2, 4), (2, 4))
    """

    _kind = "layer_norm_lstm_cell"

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        input_size: None = None,
        activation: _Activation = "tanh",
        layer_norm: bool = True,
        norm_gain: float = 1.0,
        norm_shift: float = 0.0,
        dropout_keep_prob: float = 1.0,
        dropout_prob_seed: int | None = None,
        reuse: bool | None = None,
        *,
        name: str | None = None,
        dtype: DTypeLike = None,
        kernel_initializer: Initializer = None,
        device: str | None = None,
    ) -> None:
        if input_size is not None:
            raise UnsupportedError(
                f"[LayerNormBasicLSTMCell] input_size is {input_size!r}, expected None: the first "
                "input tells it"
            )
        numbers = {
            "forget_bias": forget_bias,
            "norm_gain": norm_gain,
            "norm_shift": norm_shift,
            "dropout_keep_prob": dropout_keep_prob,
        }
        as_number = _arguments.as_number
        self._make_variable_cell(
            {
                "num_units": num_units,
                **{key: as_number(type(self).__name__, key, numbers[key]) for key in numbers},
                "activation": activation,
                "layer_norm": layer_norm,
                "dropout_prob_seed": dropout_prob_seed,
                "kernel_initializer": kernel_initializer,
                "name": name,
                "device": device,
            },
            dtype,
            reuse,
        )


class MultiRNNCell(RNNCell):
    """Each cell's output is the next one's input; variables under multi_rnn_cell/cell_{i}/.

    Examples
    --------
    >>> GRUCell = openrnn.nn.rnn_cell.GRUCell
    >>> cell = openrnn.nn.rnn_cell.MultiRNNCell([GRUCell(4), GRUCell(6)])
    >>> output, states = cell(np.ones((2, 3), "float32"), cell.zero_state(2, "float32"))
    >>> output.shape, [state.shape for state in states]
    ((2, 6), [(2, 4), (2, 6)])
    """

    _kind = "multi_cell"
    _untracked = Layer._untracked | {"_cells"}

    def __init__(self, cells: Sequence[RNNCell], state_is_tuple: bool = True) -> None:
        if not isinstance(cells, (list, tuple)):
            raise TypeError(
                f"[MultiRNNCell] cells is a {type(cells).__name__}, expected a list or tuple"
            )
        if not cells:
            raise ArgumentError("[MultiRNNCell] no cells, expected at least one")
        if not state_is_tuple:
            raise ArgumentError("[MultiRNNCell] state_is_tuple is False, expected True")
        self._cells = list(cells)
        self._make(self._kind, {"cells": self._cells})

    def _take_dtype(self, dtype: Any) -> bool:
        taken = [cell._take_dtype(dtype) for cell in self._cells]
        # Or a cell has taken another one by itself before.
        changed = any(taken) or self._cells[0].dtype != self.dtype
        if changed:
            self._remake({"cells": self._cells})
        return changed

    @property
    def cells(self) -> list[RNNCell]:
        """The cells, in order."""
        return list(self._cells)

    def _structure(self, flat: Any) -> tuple[Any, ...]:
        return tuple(cell._state_of(flat) for cell in self._cells)

    def _flat(self, state: Any) -> list[Any]:
        if not isinstance(state, tuple) or len(state) != len(self._cells):
            given = f"a {type(state).__name__}"
            if isinstance(state, (list, tuple)):
                given += f" of {len(state)}"
            raise ArgumentError(
                f"[MultiRNNCell] the state is {given}, expected a tuple of {len(self._cells)}"
            )
        parts = zip(self._cells, state, strict=True)
        return [tensor for cell, part in parts for tensor in cell._flat_state(part)]

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {"cells": self.cells}

    def __copy__(self) -> Any:
        cells = [copy.copy(cell) for cell in self._cells]
        made = ("multi_cell", {"cells": cells})
        return self._around(made, _cells=cells)


class DropoutWrapper(RNNCell):
    """Dropout around a cell, at every call; adds no scope. The c of an LSTM is never dropped.

    Examples
    --------
    >>> cell = openrnn.nn.rnn_cell.DropoutWrapper(
    ...     openrnn.nn.rnn_cell.GRUCell(4), output_keep_prob=0.5, seed=1)
    >>> output, state = cell(np.ones((2, 3), "float32"), cell.zero_state(2, "float32"))
    >>> output.shape, cell.wrapped_cell.num_units
    ((2, 4), 4)
    """

    _kind = "dropout_cell"
    _untracked = Layer._untracked | {"_cell"}

    def __init__(
        self,
        cell: RNNCell,
        input_keep_prob: float = 1.0,
        output_keep_prob: float = 1.0,
        state_keep_prob: float = 1.0,
        seed: int | None = None,
    ) -> None:
        rates = {
            "input_keep_prob": input_keep_prob,
            "output_keep_prob": output_keep_prob,
            "state_keep_prob": state_keep_prob,
        }
        self._options: dict[str, Any] = {
            **{name: _arguments.as_number("DropoutWrapper", name, rates[name]) for name in rates},
            "seed": seed,
        }
        self._cell = cell
        self._make(self._kind, {"cell": cell, **self._options})

    def _take_dtype(self, dtype: Any) -> bool:
        self._cell._take_dtype(dtype)
        changed = bool(self._cell.dtype != self.dtype)
        if changed:
            self._remake({"cell": self._cell, **self._options})
        return changed

    @property
    def wrapped_cell(self) -> RNNCell:
        """The cell inside."""
        return self._cell

    def _structure(self, flat: Any) -> Any:
        return self._cell._state_of(flat)

    def _flat(self, state: Any) -> list[Any]:
        return self._cell._flat_state(state)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {"cell": self._cell, **self._options}

    def __copy__(self) -> Any:
        cell = copy.copy(self._cell)
        return self._around(("dropout_cell", {"cell": cell, **self._options}), _cell=cell)


_core.set_layer_classes(
    {
        "basic_cell": BasicRNNCell,
        "basic_lstm_cell": BasicLSTMCell,
        "tf_lstm_cell": LSTMCell,
        "tf_gru_cell": GRUCell,
        "layer_norm_lstm_cell": LayerNormBasicLSTMCell,
    }
)
