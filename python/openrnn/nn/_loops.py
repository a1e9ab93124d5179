"""The loops that run cells over a sequence."""

from collections.abc import Sequence
from typing import Any

from openrnn import _core
from openrnn._core import Tensor
from openrnn._typing import DTypeLike, TensorLike
from openrnn.errors import ArgumentError
from openrnn.nn._cell import RNNCell, _scope_text, dtype_given


def _cell_of(call: str, name: str, cell: Any) -> RNNCell:
    if not isinstance(cell, RNNCell):
        raise TypeError(f"[{call}] {name} is a {type(cell).__name__}, expected an RNN cell")
    return cell


def _wanted(dtype: DTypeLike, inputs: Any) -> Any:
    """The name of a loop's dtype, in whatever form it is given; without one that of its inputs."""
    return dtype_given(inputs) if dtype is None else _core.dtype_name(dtype)


def dynamic_rnn(
    cell: RNNCell,
    inputs: TensorLike,
    sequence_length: TensorLike = None,
    initial_state: Any = None,
    dtype: DTypeLike = None,
    time_major: bool = False,
    scope: Any = None,
) -> tuple[Tensor, Any]:
    """Runs a cell over a sequence: (outputs, final state).

    inputs [B, T, I], or [T, B, I] when time_major; so are the outputs. Past a row's length the
    output is 0 and the state is carried. Without initial_state it starts from zeros, which needs
    `dtype`.

    Examples
    --------
    >>> cell = openrnn.nn.rnn_cell.GRUCell(4)
    >>> x = np.ones((2, 5, 3), "float32")
    >>> outputs, state = openrnn.nn.dynamic_rnn(cell, x, sequence_length=[5, 2], dtype="float32")
    >>> outputs.shape, state.shape, float(abs(outputs.numpy()[1, 2:]).max())
    ((2, 5, 4), (2, 4), 0.0)
    """
    _cell_of("dynamic_rnn", "cell", cell)
    cell._take_dtype(_wanted(dtype, inputs))
    flat = None if initial_state is None else cell._flat_state(initial_state)
    outputs, state = _core.dynamic_rnn(
        cell, inputs, sequence_length, flat, dtype, time_major, _scope_text(scope)
    )
    return outputs, cell._state_of(iter(state))


def bidirectional_dynamic_rnn(
    cell_fw: RNNCell,
    cell_bw: RNNCell,
    inputs: TensorLike,
    sequence_length: TensorLike = None,
    initial_state_fw: Any = None,
    initial_state_bw: Any = None,
    dtype: DTypeLike = None,
    time_major: bool = False,
    scope: Any = None,
) -> tuple[tuple[Tensor, Tensor], tuple[Any, Any]]:
    """A forward and a length-aware backward pass: ((output_fw, output_bw), (state_fw, state_bw)).

    Arguments as those of dynamic_rnn. output_bw stands at the time steps of its inputs.

    Examples
    --------
    >>> forward, backward = openrnn.nn.rnn_cell.GRUCell(4), openrnn.nn.rnn_cell.GRUCell(6)
    >>> outputs, states = openrnn.nn.bidirectional_dynamic_rnn(
    ...     forward, backward, np.ones((2, 5, 3), "float32"), dtype="float32")
    >>> [output.shape for output in outputs], [state.shape for state in states]
    ([(2, 5, 4), (2, 5, 6)], [(2, 4), (2, 6)])
    """
    states = []
    for name, cell, given in (
        ("cell_fw", cell_fw, initial_state_fw),
        ("cell_bw", cell_bw, initial_state_bw),
    ):
        _cell_of("bidirectional_dynamic_rnn", name, cell)
        cell._take_dtype(_wanted(dtype, inputs))
        states.append(None if given is None else cell._flat_state(given))
    outputs, (forward, backward) = _core.bidirectional_dynamic_rnn(
        cell_fw,
        cell_bw,
        inputs,
        sequence_length,
        states[0],
        states[1],
        dtype,
        time_major,
        _scope_text(scope),
    )
    return outputs, (cell_fw._state_of(iter(forward)), cell_bw._state_of(iter(backward)))


def static_rnn(
    cell: RNNCell,
    inputs: Sequence[TensorLike],
    initial_state: Any = None,
    dtype: DTypeLike = None,
    sequence_length: TensorLike = None,
    scope: Any = None,
) -> tuple[list[Tensor], Any]:
    """dynamic_rnn over a list of inputs, one [B, I] a time step: (list of outputs, final state).

    Examples
    --------
    >>> cell = openrnn.nn.rnn_cell.BasicRNNCell(4)
    >>> x = np.ones((2, 3), "float32")
    >>> outputs, state = openrnn.nn.static_rnn(cell, [x] * 5, dtype="float32")
    >>> len(outputs), outputs[0].shape, bool((outputs[-1].numpy() == state.numpy()).all())
    (5, (2, 4), True)
    """
    _cell_of("static_rnn", "cell", cell)
    if not isinstance(inputs, (list, tuple)):
        raise TypeError(f"[static_rnn] inputs is a {type(inputs).__name__}, expected a list")
    cell._take_dtype(_wanted(dtype, inputs[0] if inputs else None))
    flat = None if initial_state is None else cell._flat_state(initial_state)
    outputs, state = _core.static_rnn(
        cell, inputs, flat, dtype, sequence_length, _scope_text(scope)
    )
    return outputs, cell._state_of(iter(state))


def _flat_states(cells: Any, states: Any, name: str) -> Any:
    if states is None:
        return None
    if not isinstance(states, list) or len(states) != len(cells):
        given = f" of {len(states)}" if isinstance(states, (list, tuple)) else ""
        raise ArgumentError(
            f"[stack_bidirectional_dynamic_rnn] {name} is a {type(states).__name__}{given}, "
            f"expected a list of {len(cells)}, one state a layer"
        )
    return [cell._flat_state(state) for cell, state in zip(cells, states, strict=True)]


def stack_bidirectional_dynamic_rnn(
    cells_fw: list[RNNCell],
    cells_bw: list[RNNCell],
    inputs: TensorLike,
    initial_states_fw: Any = None,
    initial_states_bw: Any = None,
    dtype: DTypeLike = None,
    sequence_length: TensorLike = None,
    time_major: bool = False,
    scope: Any = None,
) -> tuple[Tensor, tuple[Any, ...], tuple[Any, ...]]:
    """Each layer: outputs of the forward and the backward direction concatenated, into the next
    layer.

    Returns (outputs, states_fw, states_bw), the states one a layer.

    Examples
    --------
    >>> GRUCell = openrnn.nn.rnn_cell.GRUCell
    >>> cells = [GRUCell(4), GRUCell(4)], [GRUCell(4), GRUCell(4)]
    >>> outputs, states_fw, states_bw = openrnn.nn.stack_bidirectional_dynamic_rnn(
    ...     *cells, np.ones((2, 5, 3), "float32"), dtype="float32")
    >>> outputs.shape, [state.shape for state in states_fw]
    ((2, 5, 8), [(2, 4), (2, 4)])
    """
    for name, cells in (("cells_fw", cells_fw), ("cells_bw", cells_bw)):
        if not isinstance(cells, list) or not cells:
            raise ArgumentError(
                f"[stack_bidirectional_dynamic_rnn] {name} is {cells!r}, expected a list of cells "
                "that is not empty"
            )
        for cell in cells:
            if not isinstance(cell, RNNCell):
                raise TypeError(
                    f"[stack_bidirectional_dynamic_rnn] an element of {name} is a "
                    f"{type(cell).__name__}, expected an RNN cell"
                )
    if len(cells_fw) != len(cells_bw):
        raise ArgumentError(
            f"[stack_bidirectional_dynamic_rnn] {len(cells_fw)} forward and {len(cells_bw)} "
            "backward cells, expected as many"
        )
    for cell in (*cells_fw, *cells_bw):
        cell._take_dtype(_wanted(dtype, inputs))
    outputs, forward, backward = _core.stack_bidirectional_dynamic_rnn(
        cells_fw,
        cells_bw,
        inputs,
        _flat_states(cells_fw, initial_states_fw, "initial_states_fw"),
        _flat_states(cells_bw, initial_states_bw, "initial_states_bw"),
        dtype,
        sequence_length,
        time_major,
        _scope_text(scope),
    )
    states_fw = tuple(c._state_of(iter(s)) for c, s in zip(cells_fw, forward, strict=True))
    states_bw = tuple(c._state_of(iter(s)) for c, s in zip(cells_bw, backward, strict=True))
    return outputs, states_fw, states_bw
