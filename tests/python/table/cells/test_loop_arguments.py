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
    assert {one.dtype for one in (outputs, *leaves(state), *cell.weights)} == {dtype}
    assert cell.dtype == dtype


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtype_of_dynamic_rnn_from_its_input(cell_kind, dtype):
    cell = cell_kind.make(U)
    zeros = cell.zero_state(B, dtype)
    inputs = openrnn.Tensor(draw(B, T, I, dtype=dtype))
    outputs, state = nn.dynamic_rnn(cell, inputs, initial_state=zeros)
    assert {one.dtype for one in (outputs, *leaves(state), *cell.weights)} == {dtype}


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtype_of_the_stack(cell_kind, dtype):
    forward, backward = [cell_kind.make(U)], [cell_kind.make(U)]
    outputs, fw, bw = nn.stack_bidirectional_dynamic_rnn(
        forward, backward, draw(B, T, I, dtype="float64"), dtype=dtype
    )
    found = [outputs, *leaves(fw[0]), *leaves(bw[0]), *forward[0].weights, *backward[0].weights]
    assert {one.dtype for one in found} == {dtype}


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
