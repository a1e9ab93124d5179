"""The compatible cells: variables, initial values, one step against NumPy, inherited members."""

import inspect

import numpy as np
import openrnn
import pytest
from table.cells.cell_support import CELLS, buffer_of, fill_variables, flat_state, rnn_cell
from table.support import (
    B, I, T, U, array, assert_close, assert_names, draw, error_text, graph_state, oracle,
)  # fmt: skip

BY_CELL = pytest.mark.parametrize("cell_kind", CELLS, ids=[cell.mode for cell in CELLS])
BY_CALL = pytest.mark.parametrize("symbolic", [False, True], ids=["eager", "symbolic"])
ONE = {"num_layers": 1, "num_units": U, "input_size": I}
SIGNATURES = [
    ("CudnnCompatibleLSTMCell", [("num_units", inspect.Parameter.empty), ("reuse", None)]),
    ("CudnnCompatibleGRUCell", [("num_units", inspect.Parameter.empty), ("reuse", None),
                                ("kernel_initializer", None)]),
]  # fmt: skip


def random_state(cell_kind, batch=B, units=U, seed=5, dtype="float32"):
    h = draw(batch, units, seed=seed, dtype=dtype)
    if cell_kind.mode != "lstm":
        return h
    return rnn_cell().LSTMStateTuple(c=draw(batch, units, seed=seed + 1, dtype=dtype), h=h)


def call_cell(cell, x, state, symbolic):
    """(output, state) with arrays in them."""
    if not symbolic:
        return cell(x, state)
    values = [x, *(state if isinstance(state, tuple) else [state])]
    inputs = [openrnn.Input(batch_shape=v.shape, dtype=str(v.dtype)) for v in values]
    given = type(state)(*inputs[1:]) if isinstance(state, tuple) else inputs[1]
    output, new = cell(inputs[0], given)
    assert output.is_symbolic
    parts = list(new) if isinstance(new, tuple) else [new]
    found = openrnn.Model(inputs, [output, *parts])(values)
    return found[0], type(new)(*found[1:]) if isinstance(new, tuple) else found[1]


@pytest.mark.parametrize("name, wanted", SIGNATURES, ids=[row[0] for row in SIGNATURES])
def test_signature(name, wanted):
    found = inspect.signature(getattr(openrnn.cudnn_rnn, name)).parameters
    assert [(p.name, p.default) for p in found.values()][: len(wanted)] == wanted


@BY_CELL
def test_sizes(cell_kind):
    cell = cell_kind.make(U)
    assert cell.output_size == U
    if cell_kind.mode == "lstm":
        assert isinstance(cell.state_size, rnn_cell().LSTMStateTuple)
        assert (cell.state_size.c, cell.state_size.h) == (U, U)
    else:
        assert cell.state_size == U


@BY_CELL
@BY_CALL
def test_variables(cell_kind, symbolic):
    cell = cell_kind.make(U)
    call_cell(cell, draw(B, I), random_state(cell_kind), symbolic)
    found = {v.name: v.shape for v in openrnn.global_variables()}
    shapes = cell_kind.shapes(I, U)
    assert found == {f"{cell_kind.name}/{suffix}": shape for suffix, shape in shapes.items()}
    assert {v.name for v in cell.trainable_weights} == set(found)
    assert cell.count_params() == sum(int(np.prod(shape)) for shape in shapes.values())


@BY_CELL
def test_initial_values(cell_kind):
    cell = cell_kind.make(9)
    cell(draw(B, 7), random_state(cell_kind, units=9))
    for variable in openrnn.global_variables():
        value = array(variable)
        if variable.name.endswith("bias"):
            wanted = 1.0 if variable.name.endswith("gates/bias") else 0.0
            assert np.all(value == wanted), variable.name
        else:
            limit = np.sqrt(6.0 / sum(value.shape))
            # At least 63 uniform numbers.
            assert 0.8 * limit < np.abs(value).max() <= limit, variable.name


def test_gru_kernel_initializer():
    cell = CELLS[1].make(U, kernel_initializer=openrnn.initializers.constant(0.5))
    cell(draw(B, I), random_state(CELLS[1]))
    for variable in openrnn.global_variables():
        if variable.name.endswith("kernel"):
            assert np.all(array(variable) == 0.5), variable.name
        else:
            assert np.all(array(variable) == (1.0 if "gates" in variable.name else 0.0))


@BY_CELL
@BY_CALL
def test_one_step(cell_kind, symbolic):
    cell = cell_kind.make(U)
    x, state = draw(B, I), random_state(cell_kind)
    cell(x, state)
    values = fill_variables()
    output, new = call_cell(cell, x, state, symbolic)
    values = {f"rnn/multi_rnn_cell/cell_0/{name}": v for name, v in values.items()}
    spec, params = buffer_of(cell_kind, values, **ONE)
    wanted, last = oracle(spec, params, x[None], [s[None] for s in flat_state(state)])
    assert_close(output, wanted[0])
    for a, b in zip(flat_state(new), last, strict=True):
        assert_close(a, b[0])
    if cell_kind.mode == "lstm":
        assert isinstance(new, rnn_cell().LSTMStateTuple)
        np.testing.assert_array_equal(array(new.h), array(output))
    else:
        np.testing.assert_array_equal(array(new), array(output))


@BY_CELL
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("batch", [1, 4])
def test_zero_state(cell_kind, dtype, batch):
    cell = cell_kind.make(U)
    state = cell.zero_state(batch, dtype)
    assert (type(state) is rnn_cell().LSTMStateTuple) is (cell_kind.mode == "lstm")
    parts = list(state) if isinstance(state, tuple) else [state]
    assert len(parts) == (2 if cell_kind.mode == "lstm" else 1)
    for part in parts:
        assert array(part).shape == (batch, U) and array(part).dtype == dtype
        assert not array(part).any()


@BY_CELL
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_16_bits(cell_kind, dtype):
    cell = cell_kind.make(U)
    x = openrnn.constant(draw(B, I, dtype=dtype))
    output, _ = cell(x, cell.zero_state(B, dtype))
    assert output.dtype == dtype
    assert {str(v.dtype) for v in openrnn.global_variables()} == {dtype}


@BY_CELL
@pytest.mark.parametrize("loop", [False, True], ids=["step", "dynamic_rnn"])
def test_an_array_of_numpys_default_dtype_leaves_float32(cell_kind, loop):
    cell, other = cell_kind.make(U), cell_kind.make(U, name="other")
    x = draw(T, B, I).astype("float64")

    def run(cell, x):
        state = random_state(cell_kind)
        if not loop:
            return cell(x[0], state)[0]
        return openrnn.nn.dynamic_rnn(cell, x, initial_state=state, time_major=True)[0]

    assert run(cell, x).dtype == cell.dtype == "float32"
    # A tensor was made float64 on purpose.
    assert run(other, openrnn.constant(x)).dtype == other.dtype == "float64"


@BY_CELL
@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_a_cell_with_weights_keeps_its_dtype(cell_kind, dtype):
    cell = cell_kind.make(U)
    first, _ = cell(draw(B, I), random_state(cell_kind))
    kept = cell.get_weights()
    output, _ = cell(draw(B, I).astype(dtype), random_state(cell_kind))
    assert cell.built and (cell.dtype, output.dtype) == ("float32", "float32")
    assert all(np.array_equal(a, b) for a, b in zip(cell.get_weights(), kept, strict=True))
    if dtype == "float64":  # which holds the same numbers
        np.testing.assert_array_equal(array(output), array(first))


@BY_CELL
def test_inherited_members(cell_kind):
    cell = cell_kind.make(U)
    assert (cell.name, cell.built) == (cell_kind.name, False)
    assert isinstance(cell, openrnn.layers.Layer)
    assert_names(error_text(ValueError, lambda: cell.scope_name), cell_kind.name)
    with openrnn.variable_scope("outer"):
        cell(draw(B, I), random_state(cell_kind))
    assert cell.built and cell.dtype == "float32"
    assert cell.scope_name == f"outer/{cell_kind.name}"
    assert cell.losses == [] and cell.updates == [] and cell.activity_regularizer is None
    values = [draw(*w.shape, seed=8) for w in cell.get_weights()]
    cell.set_weights(values)
    assert all(np.array_equal(a, b) for a, b in zip(cell.get_weights(), values, strict=True))
    cell.trainable = False
    assert cell.trainable_weights == [] and len(cell.non_trainable_weights) == len(values)
    assert cell.get_config()["name"] == cell_kind.name


@BY_CELL
def test_eager_cells_have_no_node(cell_kind):
    cell = cell_kind.make(U)
    cell(draw(B, I), random_state(cell_kind))
    assert cell.inbound_nodes == []
    assert not hasattr(cell, "input")
    error_text(RuntimeError, cell.get_input_at, 0)


@BY_CELL
def test_symbolic_cells_have_a_node(cell_kind):
    cell = cell_kind.make(U)
    call_cell(cell, draw(B, I), random_state(cell_kind), True)
    assert len(cell.inbound_nodes) == 1


@BY_CELL
def test_scope_argument(cell_kind):
    cell = cell_kind.make(U)
    cell(draw(B, I), random_state(cell_kind), scope="given")
    cell(draw(B, I), random_state(cell_kind), scope="later")
    assert {v.name.split("/")[0] for v in openrnn.global_variables()} == {"given"}


@BY_CELL
def test_reuse(cell_kind):
    x, state = draw(B, I), random_state(cell_kind)
    with openrnn.variable_scope("s"):
        first, _ = cell_kind.make(U)(x, state)
    count = len(openrnn.global_variables())
    with openrnn.variable_scope("s", reuse=True):
        second, _ = cell_kind.make(U)(x, state)
    assert len(openrnn.global_variables()) == count
    np.testing.assert_array_equal(array(first), array(second))


@pytest.mark.parametrize("cell_kind", CELLS[:2], ids=["lstm", "gru"])
def test_reuse_argument(cell_kind):
    x, state = draw(B, I), random_state(cell_kind)
    with openrnn.variable_scope("s"):
        first, _ = cell_kind.make(U)(x, state)
        second, _ = cell_kind.make(U, reuse=True)(x, state, scope=cell_kind.name)
    np.testing.assert_array_equal(array(first), array(second))
    assert len(openrnn.global_variables()) == len(cell_kind.variables)


@BY_CELL
@pytest.mark.parametrize("name", [None, "mine"])
def test_reuse_takes_the_base_name(cell_kind, name):
    x, state = draw(B, I), random_state(cell_kind)
    first, _ = cell_kind.make(U, name=name)(x, state)
    second, _ = cell_kind.make(U, name=name, reuse=True)(x, state)
    np.testing.assert_array_equal(array(first), array(second))
    assert len(openrnn.global_variables()) == len(cell_kind.variables)
    with pytest.raises(ValueError, match="does not exist"):
        cell_kind.make(U, name="other", reuse=True)(x, state)


@BY_CELL
def test_gradient(cell_kind):
    """All weights and the input have one; it is that of central differences."""
    cell = cell_kind.make(U)
    x, state = draw(B, I), random_state(cell_kind)
    cell(x, state)
    source = openrnn.constant(x)
    with openrnn.GradientTape() as tape:
        tape.watch(source)
        loss = openrnn.reduce_sum(openrnn.square(cell(source, state)[0]))
    found = tape.gradient(loss, [source, *cell.trainable_weights])
    assert all(g is not None for g in found)
    for index in [(0, 0), (B - 1, I - 1)]:
        moved = [x.copy(), x.copy()]
        moved[0][index] += 0.01
        moved[1][index] -= 0.01
        high, low = (np.sum(array(cell(m, state)[0]).astype("f8") ** 2) for m in moved)
        assert abs((high - low) / 0.02 - array(found[0])[index]) < 1e-3


# (what, input, state of the right kind, what the message names)
WRONG = [
    ("rank 3", draw(1, B, I), {}, ["3", "2"]),
    ("rank 1", draw(I), {}, [rf"\b1\b|\[{I}\]", "2"]),
    ("width of state", draw(B, I), {"units": U + 2}, [str(U + 2), str(U)]),
    ("batch of state", draw(B, I), {"batch": B + 1}, [str(B + 1), str(B)]),
]


@BY_CELL
@pytest.mark.parametrize("row", WRONG, ids=[row[0] for row in WRONG])
def test_wrong_input(cell_kind, row):
    _, x, changed, parts = row
    cell = cell_kind.make(U)
    cell(draw(B, I), random_state(cell_kind))
    before = graph_state()
    assert_names(
        error_text(ValueError, lambda: cell(x, random_state(cell_kind, **changed))), *parts
    )
    assert graph_state() == before


@BY_CELL
def test_depth_is_fixed_by_the_first_call(cell_kind):
    cell = cell_kind.make(U)
    cell(draw(B, I), random_state(cell_kind))
    message = error_text(ValueError, lambda: cell(draw(B, I + 1), random_state(cell_kind)))
    assert_names(message, str(I + 1), str(I))


@BY_CELL
def test_unknown_depth(cell_kind):
    cell = cell_kind.make(U)
    x = openrnn.Input(batch_shape=(B, None))
    message = error_text(ValueError, lambda: cell(x, random_state(cell_kind)))
    assert_names(message, "depth|dimension|defined|unknown|None")
    assert cell.built is False and openrnn.global_variables() == []


@pytest.mark.parametrize("count", [0, 1, 3])
def test_lstm_state_of_another_length(count):
    cell = CELLS[0].make(U)
    state = tuple(draw(B, U) for _ in range(count))
    assert_names(error_text(ValueError, lambda: cell(draw(B, I), state)), str(count), "2")
    assert cell.built is False


@BY_CELL
@pytest.mark.parametrize("units", [0, -1])
def test_wrong_number_of_units(cell_kind, units):
    assert_names(error_text(ValueError, cell_kind.make, units), str(units))


def test_unknown_activation():
    error_text(
        (ValueError, TypeError), lambda: rnn_cell().BasicRNNCell(U, activation="no such thing")
    )


@BY_CELL
@pytest.mark.parametrize("units", ["two", None, [3], 2.5], ids=str)
def test_constructor_of_wrong_types(cell_kind, units):
    error_text((TypeError, ValueError), cell_kind.make, units)
