"""States between calls of the two layouts, with as many rows as layers and directions."""

import copy
import pickle

import numpy as np
import openrnn
import pytest
from openrnn.nn.rnn_cell import LSTMStateTuple
from table.support import GRU, LSTM, B, I, T, U, array, draw, error_text

each_way = pytest.mark.parametrize("time_major", [True, False], ids=["to-time", "to-batch"])
SIZES = [(2, 1, 2), (1, 2, 2), (2, 2, 4), (2, 1, 3)]  # layers, directions, rows
each_size = pytest.mark.parametrize("layers, dirs, rows", SIZES)


def transposed(value):
    return np.ascontiguousarray(np.swapaxes(array(value), 0, 1))


def make(kind, layers=2, dirs=1, **kw):
    made = kind.layer(layers, U, direction=["", "unidirectional", "bidirectional"][dirs], **kw)
    made.build((None, None, I))
    made.set_weights([draw(made.count_params(), seed=8)])
    return made


def inputs(rows, time_major, seed):
    return draw(*((T, rows) if time_major else (rows, T)), I, seed=seed)


def results(call):
    output, states = call
    return [array(output), *map(array, states)]


def assert_equal(found, wanted):
    for one, two in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, two)


@each_size
@each_way
def test_a_returned_state_goes_into_a_call_of_the_other_layout(
    kind, layers, dirs, rows, time_major
):
    layer = make(kind, layers, dirs)
    _, states = layer(inputs(rows, not time_major, 1), time_major=not time_major)
    x = inputs(rows, time_major, 2)
    wanted = results(layer(x, tuple(map(transposed, states)), time_major=time_major))
    assert_equal(results(layer(x, states, time_major=time_major)), wanted)


@each_way
def test_symbolic_calls_do_the_same(kind, time_major):
    layer = make(kind)
    first, second = inputs(2, not time_major, 1), inputs(2, time_major, 2)
    a, b = openrnn.Input(batch_shape=first.shape), openrnn.Input(batch_shape=second.shape)
    _, states = layer(a, time_major=not time_major)
    wanted = results(
        layer(
            second,
            tuple(map(transposed, layer(first, time_major=not time_major)[1])),
            time_major=time_major,
        )
    )
    output, after = layer(b, states, time_major=time_major)
    assert_equal(
        [array(one) for one in openrnn.Model([a, b], [output, *after])([first, second])], wanted
    )
    # A state that a Model gives carries its layout as well.
    given = openrnn.Model(a, list(states))(first)
    assert_equal(results(layer(second, tuple(given), time_major=time_major)), wanted)


WAYS = [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))]


@pytest.mark.parametrize("way", WAYS, ids=["copy", "deepcopy", "pickle"])
@each_way
def test_a_copy_of_a_state_keeps_its_layout(time_major, way):
    layer, x = make(LSTM), inputs(2, time_major, 2)
    _, states = layer(inputs(2, not time_major, 1), time_major=not time_major)
    wanted = results(layer(x, states, time_major=time_major))
    copied = tuple(way(state) for state in states)
    assert_equal(map(array, copied), map(array, states))
    assert_equal(results(layer(x, copied, time_major=time_major)), wanted)


@pytest.mark.parametrize("way", WAYS[1:], ids=["deepcopy", "pickle"])
@each_way
def test_a_copy_of_a_symbolic_state_keeps_its_layout(time_major, way):
    layer = make(LSTM, layers=1)  # the shape of another layout does not fit
    first, second = inputs(2, not time_major, 1), inputs(2, time_major, 2)
    a, b = openrnn.Input(batch_shape=first.shape), openrnn.Input(batch_shape=second.shape)
    _, states = layer(a, time_major=not time_major)
    eager = layer(first, time_major=not time_major)[1]
    wanted = results(layer(second, eager, time_major=time_major))
    a, states = way((a, states))
    output, after = layer(b, states, time_major=time_major)
    found = openrnn.Model([a, b], [output, *after])([first, second])
    assert_equal(map(array, found), wanted)


@each_way
def test_op_level_calls_do_the_same(kind, time_major):
    layer, first, second = make(kind), inputs(2, not time_major, 1), inputs(2, time_major, 2)
    params, zeros = layer.get_weights()[0], [np.zeros((2, 2, U), "float32")] * kind.num_states
    op = kind.op(2, U, I)
    for call in (op, kind.function):
        states = call(first, *zeros, params, time_major=not time_major)[1:]
        bare = [transposed(one) for one in states]
        wanted = [array(one) for one in call(second, *bare, params, time_major=time_major)]
        found = call(second, *states, params, time_major=time_major)
        assert_equal([array(one) for one in found], wanted)
        symbolic = openrnn.Input(batch_shape=second.shape)
        recorded = call(symbolic, *states, params, time_major=time_major)
        assert_equal(
            [array(one) for one in openrnn.Model(symbolic, list(recorded))(second)], wanted
        )


def test_gradients_flow_back_through_both_layouts(kind):
    layer, first, second = make(kind), inputs(2, False, 1), inputs(2, True, 2)
    gradients = []
    for turn in (lambda state: state, openrnn.transpose_leading):
        with openrnn.GradientTape() as tape:
            _, states = layer(first, time_major=False)
            output, _ = layer(second, tuple(map(turn, states)))
        gradients.append(array(tape.gradient(output, [layer.kernel])[0]))
    np.testing.assert_array_equal(*gradients)


@each_way
def test_what_no_call_returned_is_read_as_it_is(kind, time_major):
    layer, x = make(kind), inputs(2, time_major, 2)
    _, states = layer(inputs(2, not time_major, 1), time_major=not time_major)
    bare = tuple(array(one) for one in states)
    wanted = results(layer(x, bare, time_major=time_major))
    for change in (openrnn.Tensor, lambda one: one + 0.0, lambda one: openrnn.concat([one], 0)):
        given = tuple(change(array(one) if change is openrnn.Tensor else one) for one in states)
        assert_equal(results(layer(x, given, time_major=time_major)), wanted)


@each_way
def test_an_array_whose_shape_tells_is_refused(kind, time_major):
    layer, x = make(kind), inputs(B, time_major, 2)
    shape = (B, 2, U) if time_major else (2, B, U)
    wrong = (np.zeros(shape, "float32"),) * kind.num_states
    text = error_text(ValueError, layer, x, wrong, time_major=time_major)
    for part in (list(shape), list(layer.state_shape(B)[0]) if time_major else [B, 2, U]):
        assert str(part) in text
    assert ("time-major" if time_major else "batch-major") in text


@each_way
def test_a_cells_tuple_is_taken_by_name(time_major):
    layer, x = make(LSTM), inputs(2, time_major, 2)
    h, c = draw(2, 2, U, seed=3), draw(2, 2, U, seed=4)
    wanted = results(layer(x, (h, c), time_major=time_major))
    assert_equal(results(layer(x, LSTMStateTuple(c, h), time_major=time_major)), wanted)
    assert_equal(results(layer(x, LSTMStateTuple(h=h, c=c), time_major=time_major)), wanted)
    given = openrnn.Input(batch_shape=h.shape), openrnn.Input(batch_shape=c.shape)
    recorded = layer(x, LSTMStateTuple(h=given[0], c=given[1]), time_major=time_major)
    model = openrnn.Model(list(given), [recorded[0], *recorded[1]])
    assert_equal([array(one) for one in model([h, c])], wanted)
    assert "2" in error_text(ValueError, make(GRU), x, LSTMStateTuple(c, h))
