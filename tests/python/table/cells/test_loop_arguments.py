"""dtype, layout and scope of the loops, as they reach the cells."""

import numpy as np
import openrnn
import pytest
from table.cells.cell_support import CELLS
from table.support import B, I, T, U, array, draw, error_text

DTYPES = ["float16", "bfloat16", "float32", "float64"]
nn = openrnn.nn


@pytest.fixture(params=CELLS, ids=[one.mode for one in CELLS])
def cell_kind(request):
    return request.param


def leaves(state):
    return list(state) if isinstance(state, tuple) else [state]


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtype_of_dynamic_rnn(cell_kind, dtype):
    cell = cell_kind.make(U)
    outputs, state = nn.dynamic_rnn(cell, draw(B, T, I, dtype="float64"), dtype=dtype)
    assert {str(one.dtype) for one in (outputs, *leaves(state), *cell.weights)} == {str(dtype)}
    assert cell.dtype == dtype


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtype_of_dynamic_rnn_from_its_input(cell_kind, dtype):
    cell = cell_kind.make(U)
    zeros = cell.zero_state(B, dtype)
    inputs = openrnn.Tensor(draw(B, T, I, dtype=dtype))
    outputs, state = nn.dynamic_rnn(cell, inputs, initial_state=zeros)
    assert {str(one.dtype) for one in (outputs, *leaves(state), *cell.weights)} == {str(dtype)}


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtype_of_the_stack(cell_kind, dtype):
    forward, backward = [cell_kind.make(U)], [cell_kind.make(U)]
    outputs, fw, bw = nn.stack_bidirectional_dynamic_rnn(
        forward, backward, draw(B, T, I, dtype="float64"), dtype=dtype
    )
    found = [outputs, *leaves(fw[0]), *leaves(bw[0]), *forward[0].weights, *backward[0].weights]
    assert {str(one.dtype) for one in found} == {str(dtype)}


# float64 as NumPy writes it: an array of it leaves a cell float32, an argument does not.
@pytest.mark.parametrize("dtype", [np.float64, np.dtype("float64"), np.float16, np.dtype("float16")])
@pytest.mark.parametrize("loop", ["dynamic_rnn", "static_rnn", "bidirectional", "stack"])
def test_a_dtype_of_numpy_is_one_as_its_name_is(cell_kind, loop, dtype):
    x = draw(B, T, I)

    def run(given):
        with openrnn.Graph().as_default():
            one, other = cell_kind.make(U), cell_kind.make(U)
            if loop == "dynamic_rnn":
                outputs, _ = nn.dynamic_rnn(one, x, dtype=given)
            elif loop == "static_rnn":
                outputs, _ = nn.static_rnn(one, list(x.swapaxes(0, 1)), dtype=given)
            elif loop == "bidirectional":
                outputs, _ = nn.bidirectional_dynamic_rnn(one, other, x, dtype=given)
            else:
                outputs, _, _ = nn.stack_bidirectional_dynamic_rnn([one], [other], x, dtype=given)
            each = outputs if isinstance(outputs, (list, tuple)) else [outputs]
            return [array(one) for one in each]

    name = np.dtype(dtype).name
    for found, wanted in zip(run(dtype), run(name), strict=True):
        assert found.dtype == name
        np.testing.assert_array_equal(found, wanted)


def test_dtype_that_the_cell_was_given_stays(cell_kind):
    cell = cell_kind.make(U, dtype="float32")
    with pytest.raises((ValueError, TypeError)):
        nn.dynamic_rnn(cell, draw(B, T, I), dtype="float64")
    assert cell.dtype == "float32"


def test_a_loop_without_state_and_dtype_is_refused(cell_kind):
    cell, x = cell_kind.make(U), draw(B, T, I)
    assert "dtype" in error_text(ValueError, nn.dynamic_rnn, cell, x)
    text = error_text(ValueError, nn.stack_bidirectional_dynamic_rnn, [cell], [cell_kind.make(U)], x)
    assert "dtype" in text


def test_layouts_of_the_loops(cell_kind):
    x = draw(B, T, I)
    cell, forward, backward = (cell_kind.make(U, name=name) for name in "abc")

    def loops(inputs, **kw):
        one = nn.dynamic_rnn(cell, inputs, dtype="float32", **kw)
        two = nn.stack_bidirectional_dynamic_rnn(
            [forward], [backward], inputs, dtype="float32", **kw
        )
        return array(one[0]), array(two[0])

    for one, two in zip(
        loops(x), loops(np.swapaxes(x, 0, 1).copy(), time_major=True), strict=True
    ):
        np.testing.assert_array_equal(one, np.swapaxes(two, 0, 1))


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtype_of_static_rnn_from_its_first_input(cell_kind, dtype):
    cell = cell_kind.make(U)
    inputs = [openrnn.Tensor(draw(B, I, dtype=dtype)) for _ in range(2)]
    outputs, state = nn.static_rnn(cell, inputs, cell.zero_state(B, dtype))
    assert {str(one.dtype) for one in (*outputs, *leaves(state), *cell.weights)} == {str(dtype)}


# A wrapper makes its core again for a dtype: with all that it was given.
@pytest.mark.parametrize("rates", [{"input_keep_prob": 0.5}, {"output_keep_prob": 0.5},
                                   {"state_keep_prob": 0.5}])  # fmt: skip
def test_a_wrapper_that_takes_a_dtype_keeps_its_rates_and_its_seed(cell_kind, rates):
    def run(dtype):
        with openrnn.Graph().as_default():
            wrapper = nn.rnn_cell.DropoutWrapper(cell_kind.make(U, dtype=dtype), seed=3, **rates)
            x = openrnn.Tensor(np.ones((40, I)), "float64")
            zeros = cell_kind.make(U).zero_state(40, "float64")
            output, state = wrapper(x, zeros)
            return wrapper, [array(one) for one in (output, *leaves(state))]

    taken, found = run(None)
    given, wanted = run("float64")
    assert taken.get_config() == {**given.get_config(), "cell": taken.wrapped_cell}
    assert taken.dtype == given.dtype == "float64"
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


def wrapped(cell, kind):
    rnn_cell = nn.rnn_cell
    if kind == "both":
        return rnn_cell.DropoutWrapper(rnn_cell.MultiRNNCell([cell]), output_keep_prob=0.5, seed=1)
    return rnn_cell.DropoutWrapper(cell) if kind == "dropout" else rnn_cell.MultiRNNCell([cell])


# NumPy's arrays become the dtype of the cell inside, as they do without the wrapper.
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ["dropout", "multi", "both"])
def test_a_wrapper_has_the_dtype_of_its_cell(cell_kind, dtype, kind):
    cell = wrapped(cell_kind.make(U, dtype=dtype), kind)
    x = draw(B, T, I, dtype="float64")
    zeros = cell.zero_state(B, dtype)
    assert cell.dtype == dtype
    output, _ = cell(x[:, 0], zeros)
    outputs, _ = nn.dynamic_rnn(cell, x, initial_state=zeros)
    steps, _ = nn.static_rnn(cell, list(x.swapaxes(0, 1)), zeros)
    assert {str(one.dtype) for one in (output, outputs, *steps, *cell.weights)} == {str(dtype)}


@pytest.mark.parametrize("kind", ["dropout", "multi", "both"])
def test_a_wrapper_sees_the_dtype_that_its_cell_took_before(cell_kind, kind):
    cell = cell_kind.make(U)
    outer, x = wrapped(cell, kind), openrnn.Tensor(draw(B, I, dtype="float64"))
    cell(x, cell.zero_state(B, "float64"))
    output, _ = outer(x, outer.zero_state(B, "float64"))
    assert outer.dtype == output.dtype == "float64"
    assert [v.name for v in outer.weights] == [v.name for v in cell.weights]
