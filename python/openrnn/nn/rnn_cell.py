"""Cells, one step of a recurrent network each, and their wrappers."""

import copy
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

from openrnn import _core, initializers
from openrnn._core import Tensor
from openrnn._typing import DTypeLike, Initializer, TensorLike
from openrnn.errors import ArgumentError
from openrnn.layers import Layer


class LSTMStateTuple(NamedTuple):
    """State of an LSTM cell: (c, h), where the layers have (h, c)."""

    c: Any
    h: Any


def _scope_text(scope: Any) -> str:
    return "" if scope is None else str(getattr(scope, "name", scope))


class RNNCell(Layer):
    """What the cells share. B batch, I input depth."""

    @property
    def state_size(self) -> Any:
        """Widths in the structure of the state."""
        return self._structure(iter(self.cell_state_size()))

    @property
    def output_size(self) -> int:
        """Width of the output."""
        return self.cell_output_size()

    def zero_state(self, batch_size: int, dtype: DTypeLike) -> Any:
        """Zeros [batch_size, size] in the structure of the state."""
        return self._structure(iter(self.cell_zero_state(int(batch_size), dtype)))

    def __call__(self, inputs: TensorLike, state: Any, scope: Any = None) -> tuple[Tensor, Any]:
        """One step on inputs [B, I]: (output [B, output_size], new state)."""
        self._take_dtype(getattr(inputs, "dtype", None))
        output, new_state = self.cell_step(
            inputs, self._flat(state), _scope_text(scope), self._reuses
        )
        return output, self._structure(iter(new_state))

    def call(self, inputs: TensorLike, *args: Any, **kwargs: Any) -> Any:
        """The same as calling the cell."""
        return self(inputs, *args, **kwargs)

    @property
    def _reuses(self) -> bool:
        return False

    def _take_dtype(self, dtype: Any) -> bool:
        """Takes the dtype of the first input where none was given; whether something changed."""
        return False

    def _structure(self, flat: Any) -> Any:
        """One state out of an iterator over flat values."""
        return next(flat)

    def _flat(self, state: Any) -> list[Any]:
        """The inverse; raises where the structure is another one."""
        if isinstance(state, (list, tuple)):
            raise ArgumentError(
                f"[{self.name}] the state is a {type(state).__name__} of {len(state)}, expected "
                "one tensor"
            )
        return [state]


class _Compatible(RNNCell):
    """A cell with variables of its own."""

    @property
    def num_units(self) -> int:
        """U."""
        return self.cell_num_units()

    _kind: ClassVar[str] = ""

    def _make_cell(
        self, options: dict[str, Any], dtype: DTypeLike, reuse: bool | None
    ) -> None:
        self._options = {**options, "dtype": dtype or "float32"}
        self._dtype_given = dtype is not None
        self._reuse = reuse
        self._make(self._kind, self._options)

    @property
    def _reuses(self) -> bool:
        return bool(self._reuse)

    def _take_dtype(self, dtype: Any) -> bool:
        name = str(getattr(dtype, "name", dtype))
        # float64 is what NumPy makes of anything: an array of it does not ask for such a cell.
        wanted = name == "float16" or (name == "float64" and isinstance(dtype, str))
        if self._dtype_given or self.built or not wanted or name == self.dtype:
            return False
        self._options["dtype"] = name
        self.cell_remake(self._kind, self._options)
        return True

    @property
    def _num_units(self) -> int:
        return self.cell_num_units()


class _LSTM(_Compatible):
    """A cell whose state is (c, h)."""

    def _structure(self, flat: Any) -> LSTMStateTuple:
        return LSTMStateTuple(next(flat), next(flat))

    def _flat(self, state: Any) -> list[Any]:
        if not isinstance(state, (list, tuple)) or len(state) != 2:
            given = len(state) if isinstance(state, (list, tuple)) else type(state).__name__
            raise ArgumentError(f"[{self.name}] the state is {given}, expected length 2: (c, h)")
        return list(state)


class BasicRNNCell(_Compatible):
    """activation([x, h] kernel + bias): kernel [I + U, U], bias [U]; state and output are one."""

    _kind = "basic_cell"

    def __init__(
        self,
        num_units: int,
        activation: Callable[[Tensor], Any] | str | None = "tanh",
        reuse: bool | None = None,
        name: str | None = None,
        *,
        dtype: DTypeLike = None,
        kernel_initializer: Initializer = None,
        device: str | None = None,
    ) -> None:
        function = activation
        if isinstance(activation, str):
            named = {"tanh": None, "relu": _core.relu, "sigmoid": _core.sigmoid}
            if activation not in named:
                raise ArgumentError(
                    f"[BasicRNNCell] activation is '{activation}', expected {sorted(named)}"
                )
            function = named[activation]
        self._make_cell(
            {
                "num_units": num_units,
                "activation": function,
                "name": name,
                "kernel_initializer": initializers.get(kernel_initializer),
                "device": device,
            },
            dtype,
            reuse,
        )
        self._config = {
            "num_units": num_units,
            "activation": activation,
            "reuse": reuse,
            "kernel_initializer": initializers.serialize(kernel_initializer),
            "device": device,
        }

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {"name": self.name, "dtype": self.dtype, **self._config}


class MultiRNNCell(RNNCell):
    """Each cell's output is the next one's input; variables under multi_rnn_cell/cell_{i}/."""

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
        self._make("multi_cell", {"cells": self._cells})

    def _take_dtype(self, dtype: Any) -> bool:
        changed = [cell._take_dtype(dtype) for cell in self._cells]
        if any(changed):
            self.cell_remake("multi_cell", {"cells": self._cells})
        return any(changed)

    @property
    def cells(self) -> list[RNNCell]:
        """The cells, in order."""
        return list(self._cells)

    def _structure(self, flat: Any) -> tuple[Any, ...]:
        return tuple(cell._structure(flat) for cell in self._cells)

    def _flat(self, state: Any) -> list[Any]:
        if not isinstance(state, tuple) or len(state) != len(self._cells):
            given = f"a {type(state).__name__}"
            if isinstance(state, (list, tuple)):
                given += f" of {len(state)}"
            raise ArgumentError(
                f"[MultiRNNCell] the state is {given}, expected a tuple of {len(self._cells)}"
            )
        parts = zip(self._cells, state, strict=True)
        return [tensor for cell, part in parts for tensor in cell._flat(part)]

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {"cells": self.cells}

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        made = type(self)(copy.deepcopy(self._cells, memo))
        memo[id(self)] = made
        return made


class DropoutWrapper(RNNCell):
    """Dropout around a cell, at every call; adds no scope. The c of an LSTM is never dropped."""

    def __init__(
        self,
        cell: RNNCell,
        input_keep_prob: float = 1.0,
        output_keep_prob: float = 1.0,
        state_keep_prob: float = 1.0,
        seed: int | None = None,
    ) -> None:
        self._options = {
            "input_keep_prob": float(input_keep_prob),
            "output_keep_prob": float(output_keep_prob),
            "state_keep_prob": float(state_keep_prob),
            "seed": seed,
        }
        self._make("dropout_cell", {"cell": cell, **self._options})
        self._cell = cell

    def _take_dtype(self, dtype: Any) -> bool:
        changed = self._cell._take_dtype(dtype)
        if changed:
            self.cell_remake("dropout_cell", {"cell": self._cell, **self._options})
        return changed

    @property
    def wrapped_cell(self) -> RNNCell:
        """The cell inside."""
        return self._cell

    def _structure(self, flat: Any) -> Any:
        return self._cell._structure(flat)

    def _flat(self, state: Any) -> list[Any]:
        return self._cell._flat(state)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {"cell": self._cell, **self._options}

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        made = type(self)(copy.deepcopy(self._cell, memo), **self._options)  # type: ignore[arg-type]
        memo[id(self)] = made
        return made
