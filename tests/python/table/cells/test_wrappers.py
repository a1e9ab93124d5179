"""MultiRNNCell, DropoutWrapper, dynamic_rnn, stack_bidirectional_dynamic_rnn."""

import numpy as np
import openrnn
import pytest
from table.cells.cell_support import CELLS, buffer_of, fill_variables, flat_state, rnn_cell
from table.support import (
    B, I, L, T, U, array, assert_close, assert_names, draw, error_text, oracle,
)  # fmt: skip

BY_CELL = pytest.mark.parametrize("cell_kind", CELLS, ids=[cell.mode for cell in CELLS])
BY_CALL = pytest.mark.parametrize("symbolic", [False, True], ids=["eager", "symbolic"])
LENGTHS = pytest.mark.parametrize("lengths", [None, [5, 2, 0]], ids=["full", "lengths"])


def multi(cell_kind, layers=L):
    return rnn_cell().MultiRNNCell([cell_kind.make(U) for _ in range(layers)])


def states_of(cell_kind, rows, seed=9):
    """A tuple of cell states, and the same as the layer's [rows, B, U] arrays (h, c)."""
    h = draw(rows, B, U, seed=seed)
    if cell_kind.mode != "lstm":
        return tuple(h), [h]
    c = draw(rows, B, U, seed=seed + 1)
    pairs = zip(c, h, strict=True)
    return tuple(rnn_cell().LSTMStateTuple(c=ci, h=hi) for ci, hi in pairs), [h, c]


def stacked(states):
    """[h, (c)] as [rows, B, U] of a list of cell states."""
    return [np.stack(part) for part in zip(*(flat_state(s) for s in states), strict=True)]


def run(function, x, symbolic):
    """function(x), recorded and run when symbolic; the result holds arrays in the same nest."""
    if not symbolic:
        return function(x)
    source = openrnn.Input(batch_shape=x.shape)
    nest = function(source)
    flat = []

    def take(value):
        if isinstance(value, (list, tuple)):
            for one in value:
                take(one)
        else:
            flat.append(value)

    def put(value, values):
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*[put(one, values) for one in value])
        if isinstance(value, (list, tuple)):
            return type(value)(put(one, values) for one in value)
        return next(values)

    take(nest)
    assert flat[0].is_symbolic
    return put(nest, iter(openrnn.Model(source, flat)(x)))


def lengths_kw(lengths):
    return {} if lengths is None else {"sequence_length": np.asarray(lengths, "int32")}


@BY_CELL
def test_multi_rnn_cell_sizes(cell_kind):
    cell = rnn_cell().MultiRNNCell([cell_kind.make(U), cell_kind.make(U + 2)])
    assert cell.output_size == U + 2
    sizes = [one.h if cell_kind.mode == "lstm" else one for one in cell.state_size]
    assert type(cell.state_size) is tuple and sizes == [U, U + 2]
    state = cell.zero_state(B, "float32")
    assert type(state) is tuple and [flat_state(s)[0].shape for s in state] == [(B, U), (B, U + 2)]


@BY_CELL
@BY_CALL
def test_multi_rnn_cell_step(cell_kind, symbolic):
    cell, x = multi(cell_kind), draw(B, I)
    states, arrays = states_of(cell_kind, L)
    cell(x, states)
    names = fill_variables()
    wanted_names = {f"multi_rnn_cell/cell_{k}/{cell_kind.name}" for k in range(L)}
    assert {name.split(cell_kind.name)[0] + cell_kind.name for name in names} == wanted_names
    output, new = run(lambda value: cell(value, states), x, symbolic)
    spec, params = buffer_of(cell_kind, {f"rnn/{n}": v for n, v in names.items()})
    wanted, last = oracle(spec, params, x[None], arrays)
    assert_close(output, wanted[0])
    assert type(new) is tuple and len(new) == L
    for a, b in zip(stacked(new), last, strict=True):
        assert_close(a, b)


@BY_CELL
@BY_CALL
@LENGTHS
@pytest.mark.parametrize("time_major", [True, False])
def test_dynamic_rnn(cell_kind, symbolic, lengths, time_major):
    cell, x = multi(cell_kind), draw(T, B, I)
    states, arrays = states_of(cell_kind, L)
    data = x if time_major else np.ascontiguousarray(np.swapaxes(x, 0, 1))
    kw = {"time_major": True} if time_major else {}

    def call(value):
        return openrnn.nn.dynamic_rnn(
            cell, value, initial_state=states, **kw, **lengths_kw(lengths)
        )

    call(data)
    values = fill_variables()
    outputs, last = run(call, data, symbolic)
    spec, params = buffer_of(cell_kind, values)
    wanted, wanted_last = oracle(spec, params, x, arrays, lengths)
    assert_close(outputs, wanted if time_major else np.swapaxes(wanted, 0, 1))
    for a, b in zip(stacked(last), wanted_last, strict=True):
        assert_close(a, b)


@BY_CELL
def test_dynamic_rnn_without_state_needs_a_dtype(cell_kind):
    cell, x = multi(cell_kind), draw(T, B, I)
    call = lambda **kw: openrnn.nn.dynamic_rnn(cell, x, time_major=True, **kw)  # noqa: E731
    assert_names(error_text(ValueError, call), "dtype")
    assert openrnn.global_variables() == []
    outputs, _ = call(dtype="float32")
    spec, params = buffer_of(cell_kind, fill_variables())
    outputs, _ = call(dtype="float32")
    assert_close(outputs, oracle(spec, params, x)[0])


@BY_CELL
def test_names_of_dynamic_rnn(cell_kind):
    with openrnn.variable_scope("m1"):
        openrnn.nn.dynamic_rnn(multi(cell_kind), draw(T, B, I), dtype="float32", time_major=True)
    names = {v.name.split(cell_kind.name)[0] for v in openrnn.global_variables()}
    assert names == {f"m1/rnn/multi_rnn_cell/cell_{k}/" for k in range(L)}


@pytest.mark.parametrize("name, base", [
    ("BasicLSTMCell", "basic_lstm_cell"), ("LSTMCell", "lstm_cell"),
    ("BasicRNNCell", "basic_rnn_cell"), ("GRUCell", "gru_cell"),
])  # fmt: skip
def test_default_names_are_tensorflows(name, base):
    openrnn.nn.dynamic_rnn(getattr(rnn_cell(), name)(U), draw(B, T, I), dtype="float32")
    assert {v.name[: len(f"rnn/{base}/")] for v in openrnn.global_variables()} == {f"rnn/{base}/"}


@BY_CELL
def test_scope_of_dynamic_rnn(cell_kind):
    openrnn.nn.dynamic_rnn(
        cell_kind.make(U), draw(T, B, I), dtype="float32", time_major=True, scope="enc"
    )
    names = {v.name for v in openrnn.global_variables()}
    assert names == {f"enc/{cell_kind.name}/{suffix}" for suffix, _ in cell_kind.variables}


@BY_CELL
@BY_CALL
@LENGTHS
@pytest.mark.parametrize("time_major", [True, False])
def test_stack_bidirectional(cell_kind, symbolic, lengths, time_major):
    x = draw(T, B, I)
    forward, backward = ([cell_kind.make(U) for _ in range(L)] for _ in range(2))
    fw, fw_arrays = states_of(cell_kind, L, seed=9)
    bw, bw_arrays = states_of(cell_kind, L, seed=15)
    data = x if time_major else np.ascontiguousarray(np.swapaxes(x, 0, 1))

    def call(value):
        return openrnn.nn.stack_bidirectional_dynamic_rnn(
            forward, backward, value, initial_states_fw=list(fw), initial_states_bw=list(bw),
            time_major=time_major, **lengths_kw(lengths),
        )  # fmt: skip

    call(data)
    spec, params = buffer_of(cell_kind, fill_variables(), "bidirectional")
    outputs, last_fw, last_bw = run(call, data, symbolic)
    pairs = zip(fw_arrays, bw_arrays, strict=True)
    given = [np.stack([a, b], axis=1).reshape(2 * L, B, U) for a, b in pairs]
    wanted, last = oracle(spec, params, x, given, lengths)
    assert_close(outputs, wanted if time_major else np.swapaxes(wanted, 0, 1))
    assert type(last_fw) is tuple and type(last_bw) is tuple and len(last_fw) == L
    for a, b, both in zip(stacked(last_fw), stacked(last_bw), last, strict=True):
        assert_close(a, both[0::2])
        assert_close(b, both[1::2])


@BY_CELL
def test_names_of_stack_bidirectional(cell_kind):
    forward, backward = ([cell_kind.make(U) for _ in range(L)] for _ in range(2))
    with openrnn.variable_scope("m1"):
        openrnn.nn.stack_bidirectional_dynamic_rnn(
            forward, backward, draw(T, B, I), dtype="float32", time_major=True
        )
    names = {v.name.split(cell_kind.name)[0] for v in openrnn.global_variables()}
    stem = "m1/stack_bidirectional_rnn/cell_"
    assert names == {
        f"{stem}{k}/bidirectional_rnn/{side}/" for k in range(L) for side in ("fw", "bw")
    }


def test_dropout_wrapper_keeps_everything_at_one():
    cell_kind = CELLS[0]
    cell, x = cell_kind.make(U), draw(B, I)
    wrapped = rnn_cell().DropoutWrapper(cell)
    assert wrapped.output_size == U and wrapped.state_size == cell.state_size
    state = states_of(cell_kind, 1)[0][0]
    a, b = cell(x, state)[0], wrapped(x, state)[0]
    np.testing.assert_array_equal(array(a), array(b))
    assert len(openrnn.global_variables()) == 2


@BY_CELL
def test_dropout_wrapper_scales_the_output(cell_kind):
    cell, x = cell_kind.make(40), draw(50, I)
    state = cell.zero_state(50, "float32")
    plain = array(cell(x, state)[0])
    wrapped = rnn_cell().DropoutWrapper(cell, output_keep_prob=0.5, seed=3)
    output = array(wrapped(x, state)[0])
    kept = output != 0.0
    np.testing.assert_allclose(output[kept], 2.0 * plain[kept], rtol=1e-6)
    # 2000 elements, those that relu left at zero aside: five deviations of a fair coin.
    live = plain != 0.0
    assert abs(kept[live].mean() - 0.5) < 2.5 / np.sqrt(live.sum())
    assert not np.array_equal(array(wrapped(x, state)[0]), output)


def test_dropout_wrapper_drops_the_input():
    cell_kind = CELLS[2]
    cell = cell_kind.make(U)
    wrapped = rnn_cell().DropoutWrapper(cell, input_keep_prob=1e-9, seed=3)
    state = cell.zero_state(B, "float32")
    output = wrapped(draw(B, I), state)[0]
    np.testing.assert_array_equal(array(output), array(cell(np.zeros((B, I), "float32"), state)[0]))


@pytest.mark.parametrize("name", ["input_keep_prob", "output_keep_prob", "state_keep_prob"])
@pytest.mark.parametrize("rate", [-0.5, 1.5])
def test_dropout_wrapper_rate(name, rate):
    make = lambda: rnn_cell().DropoutWrapper(CELLS[0].make(U), **{name: rate})  # noqa: E731
    assert_names(error_text(ValueError, make), name, str(rate))


# (what, cells, error)
LISTS = [
    ("no cells", lambda: [], ValueError),
    ("a cell", lambda: CELLS[0].make(U), TypeError),
    ("a dict", lambda: {"a": CELLS[0].make(U)}, TypeError),
]


@pytest.mark.parametrize("row", LISTS, ids=[row[0] for row in LISTS])
def test_cells_of_multi_rnn_cell(row):
    _, cells, error = row
    error_text(error, lambda: rnn_cell().MultiRNNCell(cells()))


@BY_CELL
def test_state_of_multi_rnn_cell(cell_kind):
    cell, x = multi(cell_kind), draw(B, I)
    states, _ = states_of(cell_kind, L)
    wrong = [(states[:-1], "1"), (states + states[:1], "3"), (list(states), "list"), ((), "0")]
    for given, part in wrong:
        message = error_text(ValueError, lambda given=given: cell(x, given))
        assert_names(message, part, "2|tuple")
    assert openrnn.global_variables() == []


# (what, keywords that replace good ones, what the message names)
STACKS = [
    ("no cells", {"cells_fw": []}, []),
    ("no backward cells", {"cells_bw": []}, []),
    ("cells in a tuple", {"cells_fw": tuple}, []),
    ("fewer backward cells", {"cells_bw": 1}, ["2|1"]),
    ("states in a tuple", {"initial_states_fw": tuple}, []),
    ("too few states", {"initial_states_bw": 1}, ["2|1"]),
    ("too many states", {"initial_states_fw": 3}, ["3|2"]),
]


@pytest.mark.parametrize("row", STACKS, ids=[row[0] for row in STACKS])
def test_stack_bidirectional_refuses(row):
    _, changed, parts = row
    cell_kind = CELLS[1]
    good = {
        "cells_fw": [cell_kind.make(U) for _ in range(L)],
        "cells_bw": [cell_kind.make(U) for _ in range(L)],
        "initial_states_fw": [draw(B, U, seed=k) for k in range(3)][:L],
        "initial_states_bw": [draw(B, U, seed=k) for k in range(3)][:L],
    }
    for key, change in changed.items():
        if change is tuple:
            good[key] = tuple(good[key])
        elif isinstance(change, int):
            good[key] = (good[key] * 2)[:change]
        else:
            good[key] = change
    call = openrnn.nn.stack_bidirectional_dynamic_rnn
    message = error_text(
        openrnn.ArgumentError, lambda: call(inputs=draw(T, B, I), time_major=True, dtype="float32", **good)
    )
    assert_names(message, *parts)
    assert openrnn.global_variables() == []


# (what, inputs, keywords, what the message names)
DYNAMIC = [
    ("rank 2", draw(T, I), {}, [f"2|{T}, *{I}", "3"]),
    ("too few lengths", draw(T, B, I), lengths_kw([1] * (B - 1)), [str(B - 1), str(B)]),
    ("length above T", draw(T, B, I), lengths_kw([1, 2, T + 1]), [str(T + 1), str(T)]),
    ("negative length", draw(T, B, I), lengths_kw([1, -2, 1]), ["-2"]),
    ("batch of states", draw(T, B, I), {"initial_state": draw(B + 1, U)}, [str(B + 1), str(B)]),
]  # fmt: skip


@pytest.mark.parametrize("row", DYNAMIC, ids=[row[0] for row in DYNAMIC])
def test_dynamic_rnn_refuses(row):
    _, x, kw, parts = row
    cell = CELLS[1].make(U)
    call = lambda: openrnn.nn.dynamic_rnn(cell, x, dtype="float32", time_major=True, **kw)  # noqa
    assert_names(error_text(ValueError, call), *parts)


def test_every_cell_inside_takes_the_dtype_of_the_loop():
    cell = multi(CELLS[0])
    outputs, state = openrnn.nn.dynamic_rnn(cell, draw(B, T, I), dtype="float16")
    assert outputs.dtype == "float16" and [one.dtype for one in cell.cells] == ["float16"] * L
    assert {part.dtype.name for one in state for part in flat_state(one)} == {"float16"}
    assert {str(one.dtype) for one in openrnn.global_variables()} == {"float16"}
