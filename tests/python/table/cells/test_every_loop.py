"""Each loop over time against its cells called step by step: orders, lengths, states, dtypes."""

import itertools

import numpy as np
import openrnn
import pytest
from openrnn import nn
from openrnn.nn import rnn_cell

T, B, I = 4, 3, 2
CELLS = {
    "basic": lambda units: rnn_cell.BasicRNNCell(units),
    "lstm": lambda units: rnn_cell.BasicLSTMCell(units),
    "gru": lambda units: rnn_cell.GRUCell(units),
}
LENGTHS = [None, [4, 4, 4], [2, 0, 4]]
OPTIONS = list(itertools.product([True, False], LENGTHS, [True, False]))


@pytest.fixture(autouse=True)
def own_graph():
    with openrnn.Graph().as_default():
        openrnn.set_random_seed(5)
        yield


def drawn(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def state_of(cell, seed):
    """A state with numbers of its own, as the cell has it."""
    zero = cell.zero_state(B, "float32")
    if isinstance(zero, rnn_cell.LSTMStateTuple):
        parts = (drawn(*one.shape, seed=seed + n) for n, one in enumerate(zero))
        return rnn_cell.LSTMStateTuple(*parts)
    return drawn(*zero.shape, seed=seed)


def flat(state):
    return [np.asarray(one) for one in (state if isinstance(state, tuple) else (state,))]


def by_steps(cell, x, lengths, state, backwards=False):
    """(outputs, flat state); a step beyond a row's length shows zeros and keeps its state."""
    lengths = np.full(B, len(x)) if lengths is None else np.asarray(lengths)
    state = cell.zero_state(B, "float32") if state is None else state
    outputs = [None] * len(x)
    for t in reversed(range(len(x))) if backwards else range(len(x)):
        counts = (t < lengths)[:, None]
        output, new = cell(x[t], state)
        outputs[t] = np.where(counts, output.numpy(), 0)
        held = [np.where(counts, a, b) for a, b in zip(flat(new), flat(state), strict=True)]
        state = type(new)(*held) if isinstance(new, tuple) else held[0]
    return np.stack(outputs), flat(state)


def same(found, wanted):
    assert len(found) == len(wanted)
    for one, right in zip(found, wanted, strict=True):
        np.testing.assert_allclose(np.asarray(one), right, rtol=0, atol=1e-6)


def ordered(x, time_major):
    return x if time_major else np.swapaxes(x, 0, 1)


@pytest.mark.parametrize("name", CELLS)
def test_dynamic(name):
    cell, x = CELLS[name](3), drawn(T, B, I)
    for time_major, lengths, given in OPTIONS:
        state = state_of(cell, 7) if given else None
        outputs, last = nn.dynamic_rnn(
            cell, ordered(x, time_major), lengths, state, dtype=None if given else "float32",
            time_major=time_major)  # fmt: skip
        wanted, held = by_steps(cell, x, lengths, state)
        same([ordered(outputs.numpy(), time_major)], [wanted])
        same(flat(last), held)


@pytest.mark.parametrize("name", CELLS)
def test_static(name):
    cell, x = CELLS[name](3), drawn(T, B, I)
    for _, lengths, given in OPTIONS:
        state = state_of(cell, 7) if given else None
        outputs, last = nn.static_rnn(
            cell, list(x), state, dtype=None if given else "float32", sequence_length=lengths
        )
        wanted, held = by_steps(cell, x, lengths, state)
        same(outputs, list(wanted))
        same(flat(last), held)


@pytest.mark.parametrize("states", [(True, True), (True, False), (False, True), (False, False)])
@pytest.mark.parametrize("name", CELLS)
def test_bidirectional(name, states):
    forward, backward, x = CELLS[name](3), CELLS["basic"](2), drawn(T, B, I)
    for time_major, lengths, _ in OPTIONS[::2]:
        fw = state_of(forward, 7) if states[0] else None
        bw = state_of(backward, 9) if states[1] else None
        outputs, last = nn.bidirectional_dynamic_rnn(
            forward, backward, ordered(x, time_major), lengths, fw, bw,
            dtype=None if all(states) else "float32", time_major=time_major)  # fmt: skip
        for n, (cell, state) in enumerate(((forward, fw), (backward, bw))):
            wanted, held = by_steps(cell, x, lengths, state, backwards=n == 1)
            same([ordered(outputs[n].numpy(), time_major)], [wanted])
            same(flat(last[n]), held)


@pytest.mark.parametrize("states", [(True, True), (False, False)])
@pytest.mark.parametrize("name", CELLS)
def test_a_stack_of_both_directions(name, states):
    forward, backward = [CELLS[name](3), CELLS["gru"](2)], [CELLS["gru"](1), CELLS[name](4)]
    x = drawn(T, B, I)
    for time_major, lengths, _ in OPTIONS[::2]:
        fw = [state_of(cell, 7 + n) for n, cell in enumerate(forward)] if states[0] else None
        bw = [state_of(cell, 17 + n) for n, cell in enumerate(backward)] if states[1] else None
        outputs, last_fw, last_bw = openrnn.nn.stack_bidirectional_dynamic_rnn(
            forward, backward, ordered(x, time_major), fw, bw, dtype="float32",
            sequence_length=lengths, time_major=time_major)  # fmt: skip
        entering = x
        for n in range(2):
            sides = []
            for cells, given, last, back in (
                (forward, fw, last_fw, False),
                (backward, bw, last_bw, True),
            ):
                side, held = by_steps(
                    cells[n], entering, lengths, None if given is None else given[n], back
                )
                same(flat(last[n]), held)
                sides.append(side)
            entering = np.concatenate(sides, -1)
        same([ordered(outputs.numpy(), time_major)], [entering])


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_the_dtype_of_a_loop_is_what_it_is_told(dtype):
    """Or that of the state, where only that is given."""
    x = drawn(B, T, I)
    for n, run in enumerate((
        lambda scope: nn.dynamic_rnn(CELLS["basic"](3), x, dtype=dtype, scope=scope)[0],
        lambda scope: nn.static_rnn(CELLS["gru"](3), list(x), dtype=dtype, scope=scope)[0][-1],
        lambda scope: nn.bidirectional_dynamic_rnn(
            CELLS["basic"](3), CELLS["gru"](3), x, dtype=dtype, scope=scope)[0][1],
        lambda scope: nn.stack_bidirectional_dynamic_rnn(
            [CELLS["basic"](3)], [CELLS["gru"](3)], x, dtype=dtype, scope=scope)[0],
    )):  # fmt: skip
        before = len(openrnn.global_variables())
        assert run(f"scope{n}").dtype == dtype
        made = openrnn.global_variables()[before:]
        assert made and all(v.name.startswith(f"scope{n}/") and v.dtype == dtype for v in made)
