"""Calling a layer: values against NumPy, states, lengths, batch-major data, what comes back."""

import inspect

import ml_dtypes
import numpy as np
import openrnn
import pytest
from table.support import (
    LSTM, B, I, KINDS, L, T, U, array, assert_close, assert_names, draw, error_text, make_layer,
    make_spec, make_states, oracle,
)  # fmt: skip

# (what, L, U, I, T, B): odd sizes, single steps and rows
SHAPES = [
    ("usual", 2, 2, 4, 5, 3),
    ("one layer", 1, 5, 3, 4, 2),
    ("single", 1, 1, 1, 1, 1),
    ("one step", 2, 3, 2, 1, 4),
    ("one row", 3, 3, 5, 6, 1),
    ("wide", 2, 17, 9, 3, 5),
]
LENGTHS = [
    ("full", [5, 5, 5]),
    ("unsorted", [2, 5, 1]),
    ("some zero", [0, 4, 3]),
    ("zero", [0] * 3),
]


def transposed(value):
    return np.ascontiguousarray(np.swapaxes(value, 0, 1))


def check(caller, layer, spec, x, states, lengths=None, **kw):
    """The layer's values are those of NumPy; returns them."""
    if lengths is not None:
        kw["sequence_lengths"] = np.asarray(lengths, np.int32)
    found, found_states = caller(layer, x, initial_state=states, **kw)
    wanted, wanted_states = oracle(spec, array(layer.kernel), x, states, lengths)
    assert_close(found, wanted)
    assert len(found_states) == len(wanted_states)
    for a, b in zip(found_states, wanted_states, strict=True):
        assert_close(a, b)
    return found, found_states


def test_arguments_by_name_and_default(kind):
    found = inspect.signature(kind.layer.call).parameters
    assert list(found)[1:4] == ["inputs", "initial_state", "training"]
    assert found["initial_state"].default is None and found["training"].default is True
    for name, default in [("sequence_lengths", None), ("time_major", True)]:
        assert found[name].kind is found[name].KEYWORD_ONLY and found[name].default is default


@pytest.mark.parametrize("row", SHAPES, ids=[row[0] for row in SHAPES])
@pytest.mark.parametrize("given", [False, True], ids=["zero states", "states"])
def test_values(kind, direction, caller, row, given):
    _, layers, units, inputs, time, batch = row
    sizes = {"num_layers": layers, "num_units": units, "input_size": inputs}
    layer = make_layer(kind, direction, sizes=sizes)
    spec = make_spec(kind, direction, **sizes)
    states = make_states(spec, batch) if given else None
    check(caller, layer, spec, draw(time, batch, inputs), states)


@pytest.mark.parametrize("training", [True, False])
def test_training_does_not_change_values_without_dropout(kind, caller, training):
    layer = make_layer(kind)
    check(caller, layer, make_spec(kind), draw(T, B, I), None, training=training)


@pytest.mark.parametrize("input_mode", ["skip_input", "auto_select"])
def test_skip_input(kind, direction, caller, input_mode):
    layer = make_layer(kind, direction, input_mode=input_mode, sizes={"input_size": U})
    spec = make_spec(kind, direction, input_mode, input_size=U)
    check(caller, layer, spec, draw(T, B, U), make_states(spec))


def test_auto_select_of_another_width_is_linear(kind, direction, caller):
    layer = make_layer(kind, direction, input_mode="auto_select")
    check(caller, layer, make_spec(kind, direction), draw(T, B, I), None)


@pytest.mark.parametrize("lengths", [row[1] for row in LENGTHS], ids=[row[0] for row in LENGTHS])
def test_sequence_lengths(kind, direction, caller, lengths):
    layer, spec = make_layer(kind, direction), make_spec(kind, direction)
    states = make_states(spec)
    found, last = check(caller, layer, spec, draw(T, B, I), states, lengths)
    for row, length in enumerate(lengths):
        assert np.all(found[length:, row] == 0.0)
        if length == 0:
            assert all(
                np.array_equal(a[:, row], b[:, row]) for a, b in zip(last, states, strict=True)
            )


@pytest.mark.parametrize("lengths", [None, [2, 5, 1]], ids=["full", "lengths"])
def test_batch_major(kind, direction, caller, lengths):
    """Data and states, in and out, have the batch first."""
    layer, spec = make_layer(kind, direction), make_spec(kind, direction)
    x, states = draw(T, B, I), make_states(spec)
    kw = {} if lengths is None else {"sequence_lengths": np.asarray(lengths, np.int32)}
    output, last = caller(
        layer, transposed(x), initial_state=tuple(map(transposed, states)), time_major=False, **kw
    )
    wanted, wanted_last = oracle(spec, array(layer.kernel), x, states, lengths)
    assert_close(output, transposed(wanted))
    for a, b in zip(last, wanted_last, strict=True):
        assert_close(a, transposed(b))


def test_batch_major_without_states(kind, direction, caller):
    layer, spec = make_layer(kind, direction), make_spec(kind, direction)
    x = draw(T, B, I)
    output, last = caller(layer, transposed(x), time_major=False)
    wanted, wanted_last = oracle(spec, array(layer.kernel), x)
    assert_close(output, transposed(wanted))
    assert [s.shape for s in last] == [(B, spec.num_pseudo, U)] * kind.num_states
    assert_close(last[0], transposed(wanted_last[0]))


@pytest.mark.parametrize("lengths", [None, [2, 5, 0]], ids=["full", "lengths"])
def test_projection(direction, caller, lengths):
    sizes = {"num_layers": 2, "num_units": 5, "input_size": 3}
    layer = make_layer(LSTM, direction, sizes=sizes, num_proj=3)
    spec = make_spec(LSTM, direction, num_proj=3, **sizes)
    check(caller, layer, spec, draw(T, B, 3), make_states(spec), lengths)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_results_have_the_layers_dtype(kind, caller, dtype):
    layer, spec = make_layer(kind, dtype=dtype), make_spec(kind)
    x, states = draw(T, B, I, dtype=dtype), make_states(spec, dtype=dtype)
    output, last = caller(layer, x, initial_state=states)
    assert {str(v.dtype) for v in (output, *last)} == {dtype}
    wanted, _ = oracle(spec, array(layer.kernel), x, states)
    # About T layers of steps, each rounded once: 20 eps covers values of order one.
    assert_close(output.astype("float64"), wanted, 20 * float(ml_dtypes.finfo(dtype).eps))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_plain_values_are_converted(kind, dtype):
    """Lists and arrays of another dtype become the layer's; a Tensor of another does not."""
    layer = make_layer(kind, dtype=dtype)
    x = draw(T, B, I)
    wanted, _ = layer(x.astype(dtype))
    for given in (x.tolist(), x.astype("float64"), x.astype(dtype)):
        found, states = layer(given)
        assert found.dtype == dtype and states[0].dtype == dtype
        np.testing.assert_allclose(
            array(found), array(wanted), rtol={"float16": 1e-2, "bfloat16": 8e-2}.get(dtype, 1e-6)
        )
    integers, _ = layer(np.ones((T, B, I), "int64"))
    assert integers.dtype == dtype


def test_plain_initial_states_are_converted(kind):
    layer, spec = make_layer(kind), make_spec(kind)
    x, states = draw(T, B, I), make_states(spec)
    wanted, _ = layer(x, initial_state=states)
    found, _ = layer(x, initial_state=tuple(s.tolist() for s in states))
    np.testing.assert_array_equal(array(found), array(wanted))


def test_first_call_with_an_array_builds(kind):
    layer = kind.layer(L, U)
    output, states = layer(draw(T, B, I))
    assert layer.built and layer.input_size == I
    assert output.shape == (T, B, U) and not output.is_symbolic
    assert type(states) is tuple and len(states) == kind.num_states
    assert all(state.shape == (L, B, U) for state in states)


def test_symbolic_call_returns_output_and_states(kind, direction):
    layer = kind.layer(L, U, direction=direction)
    output, states = layer(openrnn.Input(batch_shape=(None, None, I)))
    assert output.is_symbolic and layer.built
    assert output.shape == (None, None, layer.num_dirs * U) and output.dtype == "float32"
    assert type(states) is tuple and len(states) == kind.num_states
    assert all(s.is_symbolic and s.shape == (L * layer.num_dirs, None, U) for s in states)


def test_model_runs_on_any_time_and_batch(kind):
    layer = make_layer(kind)
    x = openrnn.Input(batch_shape=(None, None, I))
    output, states = layer(x)
    model = openrnn.Model(x, [output, *states])
    for time, batch in [(1, 1), (4, 2), (7, 5)]:
        data = draw(time, batch, I)
        found = model(data)
        wanted, wanted_states = oracle(make_spec(kind), array(layer.kernel), data)
        assert_close(found[0], wanted)
        for a, b in zip(found[1:], wanted_states, strict=True):
            assert_close(a, b)


def test_lstm_state_tuple_is_taken_by_name():
    """An LSTMStateTuple is a tuple (c, h), of which the layer takes h and c."""
    layer, spec = make_layer(LSTM), make_spec(LSTM)
    h0, c0 = make_states(spec)
    x = draw(T, B, I)
    named = openrnn.nn.rnn_cell.LSTMStateTuple(c=c0, h=h0)
    assert isinstance(named, tuple)
    output, _ = layer(x, initial_state=named)
    wanted, _ = oracle(spec, array(layer.kernel), x, (h0, c0))
    assert_close(output, wanted)


def test_states_carry_from_call_to_call(kind, caller):
    layer = make_layer(kind)
    x = draw(T, B, I)
    whole, last = caller(layer, x)
    first, middle = caller(layer, x[:2])
    second, end = caller(layer, x[2:], initial_state=middle)
    np.testing.assert_array_equal(np.concatenate([first, second]), whole)
    assert all(np.array_equal(a, b) for a, b in zip(end, last, strict=True))


def test_an_assigned_weight_is_seen_by_the_next_call(kind, caller):
    layer, spec, x = make_layer(kind), make_spec(kind), draw(T, B, I)
    first, _ = caller(layer, x)
    layer.kernel.assign(draw(layer.count_params(), seed=99))
    second, _ = caller(layer, x)
    assert not np.allclose(first, second)
    assert_close(second, oracle(spec, array(layer.kernel), x)[0])


def test_two_layers_alternate(caller):
    """Each object keeps a workspace of its own for every shape."""
    one, two = make_layer(KINDS[0], values=1), make_layer(KINDS[1], values=2, name="other")
    for time, batch in [(2, 3), (5, 1), (2, 3), (4, 4)]:
        x = draw(time, batch, I, seed=time)
        assert_close(caller(one, x)[0], oracle(make_spec(KINDS[0]), array(one.kernel), x)[0])
        assert_close(caller(two, x)[0], oracle(make_spec(KINDS[1]), array(two.kernel), x)[0])


@pytest.mark.parametrize("time, batch", [(0, 2), (3, 0)], ids=["T = 0", "B = 0"])
def test_empty_input(kind, direction, time, batch):
    layer, spec = make_layer(kind, direction), make_spec(kind, direction)
    states = make_states(spec, batch)
    output, last = layer(np.zeros((time, batch, I), "float32"), initial_state=states)
    assert output.shape == (time, batch, layer.num_dirs * U)
    assert all(np.array_equal(array(a), b) for a, b in zip(last, states, strict=True))


def test_call_itself(kind):
    built = make_layer(kind, name="built")
    x, wanted = draw(T, B, I), array(built(draw(T, B, I))[0])
    np.testing.assert_array_equal(array(built.call(openrnn.constant(x))[0]), wanted)
    output, _ = built.call(openrnn.constant(transposed(x)), time_major=False)
    np.testing.assert_array_equal(array(output), transposed(wanted))


def test_return_all(kind, direction):
    layer, spec = make_layer(kind, direction), make_spec(kind, direction)
    x = draw(T, B, I)
    output, states, every = layer(x, return_all=True)
    wanted, _ = oracle(spec, array(layer.kernel), x)
    assert_close(output, wanted)
    width = layer.num_dirs * U
    assert [array(v).shape for v in every.outputs] == [(T, B, width)] * L
    np.testing.assert_array_equal(array(every.outputs[-1]), array(output))
    assert len(every.cells) == (L if kind.mode == "lstm" else 0)
    if kind.mode == "lstm" and direction == "unidirectional":
        for k, cells in enumerate(every.cells):
            np.testing.assert_array_equal(array(cells)[-1], array(states[1])[k])


def test_save_allows_gradients_without_training(kind):
    layer, x = make_layer(kind), openrnn.constant(draw(T, B, I))
    gradients = []
    for kw in ({"training": True}, {"training": False, "save": True}):
        with openrnn.GradientTape() as tape:
            tape.watch(x)
            loss = openrnn.reduce_sum(openrnn.square(layer(x, **kw)[0]))
        gradients.append([array(g) for g in tape.gradient(loss, [x, layer.kernel])])
    for a, b in zip(*gradients, strict=True):
        np.testing.assert_array_equal(a, b)
    with openrnn.GradientTape() as tape:
        loss = openrnn.reduce_sum(layer(x, training=False)[0])
    assert_names(error_text(ValueError, tape.gradient, loss, layer.kernel), "training", "True")


@pytest.mark.parametrize("training", [True, False, None])
def test_prediction_is_without_dropout(training):
    x = openrnn.Input(batch_shape=(None, None, 4))
    lstm = openrnn.cudnn_rnn.CudnnLSTM(2, 5, dropout=0.5, seed=1)
    hidden, _ = lstm(x, training=bool(training))
    more = {} if training is None else {"training": training}
    outputs = openrnn.layers.Dropout(0.5, seed=2)(hidden, **more)
    model = openrnn.Model(x, outputs)
    values = np.random.default_rng(3).uniform(-1, 1, (6, 3, 4)).astype(np.float32)
    plain = lstm(values, training=False)[0].numpy()
    calls = lstm.dropout_calls
    for _ in range(2):
        found = model.predict(values)
        assert isinstance(found, np.ndarray)
        np.testing.assert_array_equal(found, plain)
    assert lstm.dropout_calls == calls
    if training:
        assert not np.array_equal(model(values).numpy(), plain)
