"""The op-level classes: properties, sizes, calls, canonical weights."""

import inspect

import ml_dtypes
import numpy as np
import openrnn
import pytest
from model import numpy_layout
from table.ops.op_support import EAGER_SYMBOLIC, call_op, make_arguments, make_op
from table.support import (
    GRU, LSTM, RELU, TANH, B, I, KINDS, L, T, U, array, assert_close, draw, make_spec, oracle,
)  # fmt: skip

ARGUMENTS = [
    ("num_layers", inspect.Parameter.empty),
    ("num_units", inspect.Parameter.empty),
    ("input_size", inspect.Parameter.empty),
    ("input_mode", "linear_input"),
    ("direction", "unidirectional"),
    ("dtype", "float32"),
    ("dropout", 0.0),
    ("seed", 0),
]
SIZES = [  # (kind, L, U, I, direction, input_mode, num_proj, parameters)
    (LSTM, 1, 128, 64, "unidirectional", "linear_input", None, 99328),
    (LSTM, 2, 7, 3, "unidirectional", "linear_input", None, 784),
    (LSTM, 2, 7, 3, "bidirectional", "linear_input", None, 1960),
    (LSTM, 4, 200, 200, "bidirectional", "linear_input", None, 3532800),
    (GRU, 1, 100, 50, "unidirectional", "linear_input", None, 45600),
    (GRU, 2, 6, 8, "bidirectional", "linear_input", None, 1296),
    (TANH, 2, 8, 4, "unidirectional", "linear_input", None, 256),
    (RELU, 3, 16, 10, "bidirectional", "linear_input", None, 4096),
    (LSTM, 1, 100, 100, "unidirectional", "skip_input", None, 40800),
    (GRU, 2, 4, 4, "bidirectional", "skip_input", None, 480),
    (GRU, 2, 4, 4, "bidirectional", "auto_select", None, 480),
    (LSTM, 2, 6, 5, "unidirectional", "linear_input", 4, 552),
    (LSTM, 2, 6, 5, "bidirectional", "linear_input", 4, 1296),
    (TANH, 1, 1, 1, "unidirectional", "skip_input", None, 3),
    (RELU, 1, 1, 1, "unidirectional", "auto_select", None, 3),
    (LSTM, 2, 6, 5, "unidirectional", "linear_input", 6, 648),
]
SIZE_IDS = ["-".join(str(getattr(v, "mode", v)) for v in row) for row in SIZES]
DTYPES = ["float16", "bfloat16", "float32", "float64"]


def row_op(row, **kw):
    kind, layers, units, inputs, direction, input_mode, proj, _ = row
    kw.update({} if proj is None else {"num_proj": proj})
    return kind.op(layers, units, inputs, input_mode=input_mode, direction=direction, **kw)


def test_constructor_arguments(kind):
    found = list(inspect.signature(kind.op).parameters.values())
    positional = [p for p in found if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert [p.name for p in positional][:8] == [name for name, _ in ARGUMENTS]
    for parameter, (name, default) in zip(positional, ARGUMENTS, strict=False):
        assert parameter.default == default, name
    names = [p.name for p in found]
    assert ("num_proj" in names) is (kind is LSTM)


@pytest.mark.parametrize("input_mode", ["linear_input", "skip_input", "auto_select"])
def test_properties(kind, direction, input_mode):
    op = kind.op(3, 4, 4, input_mode, direction, "float64", 0.5, 7)
    assert (op.num_layers, op.num_units, op.input_size) == (3, 4, 4)
    assert (op.input_mode, op.direction, op.rnn_mode) == (input_mode, direction, kind.mode)


def test_property_of_the_projection():
    assert LSTM.op(1, 4, 3, num_proj=2).num_proj == 2
    assert LSTM.op(1, 4, 3).num_proj is None


@pytest.mark.parametrize("row", SIZES, ids=SIZE_IDS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_params_size(row, dtype):
    size = row_op(row, dtype=dtype).params_size()
    assert isinstance(size, int) and size == row[-1]


@pytest.mark.parametrize("row", [row for row in SIZES if row[-1] < 5000], ids=str)
def test_canonical_round_trip_is_exact(row):
    kind, layers, units, inputs, direction, input_mode, proj, size = row
    proj = 0 if proj in (None, units) else proj
    op = row_op(row)
    spec = make_spec(
        kind, direction, input_mode,
        num_layers=layers, num_units=units, input_size=inputs, num_proj=proj,
    )  # fmt: skip
    buffer = draw(size, seed=3)
    weights, biases = op.params_to_canonical(buffer)
    wanted = numpy_layout.params_to_canonical(spec, buffer)
    assert type(weights) is list and type(biases) is list
    for found, part in zip((weights, biases), wanted, strict=True):
        assert [array(tensor).shape for tensor in found] == [p.shape for p in part]
        for a, b in zip(found, part, strict=True):
            np.testing.assert_array_equal(array(a), b)
    again = array(op.canonical_to_params(weights, biases))
    assert again.shape == (size,)
    np.testing.assert_array_equal(again, buffer)


def test_canonical_tensors_are_taken_flat(kind, direction):
    op, spec = make_op(kind, direction)
    buffer = draw(op.params_size())
    weights, biases = numpy_layout.params_to_canonical(spec, buffer)
    for reshape in (np.ravel, np.transpose, lambda w: w.reshape(1, -1)):
        found = op.canonical_to_params([reshape(w) for w in weights], [b[None] for b in biases])
        wanted = numpy_layout.canonical_to_params(spec, [reshape(w) for w in weights], biases)
        np.testing.assert_array_equal(array(found), wanted)


def test_skipped_matrices_may_be_of_either_empty_shape(kind):
    op, spec = make_op(kind, input_mode="skip_input", input_size=U)
    buffer = draw(op.params_size())
    weights, biases = numpy_layout.params_to_canonical(spec, buffer)
    assert weights[0].shape == (U, 0)
    flat = [np.zeros(0, "float32") if w.size == 0 else w for w in weights]
    for given in (weights, flat):
        np.testing.assert_array_equal(array(op.canonical_to_params(given, biases)), buffer)


@EAGER_SYMBOLIC
def test_canonical_of_recorded_parameters(kind, symbolic):
    op, spec = make_op(kind)
    buffer = draw(op.params_size())
    flat = lambda p: [t for part in op.params_to_canonical(p) for t in part]  # noqa: E731
    found = call_op(flat, [buffer], symbolic)
    weights, biases = numpy_layout.params_to_canonical(spec, buffer)
    assert len(found) == len(weights) + len(biases)
    assert all(np.array_equal(a, b) for a, b in zip(found, weights + biases, strict=True))


@EAGER_SYMBOLIC
@pytest.mark.parametrize("is_training", [True, False])
def test_call(kind, direction, symbolic, is_training):
    op, spec = make_op(kind, direction)
    arguments = make_arguments(spec)
    found = call_op(op, arguments, symbolic, is_training=is_training)
    output, states = oracle(spec, arguments[-1], arguments[0], arguments[1:-1])
    assert len(found) == 1 + kind.num_states
    for a, b in zip(found, (output, *states), strict=True):
        assert_close(a, b)


def test_is_training_is_the_last_positional(kind):
    """As in r1.4; the newer arguments come by name."""
    op, spec = make_op(kind)
    arguments = make_arguments(spec)
    wanted = op(*arguments, is_training=False)
    np.testing.assert_array_equal(array(op(*arguments, False)[0]), array(wanted[0]))
    with pytest.raises(TypeError):
        op(*arguments, False, None)


@EAGER_SYMBOLIC
@pytest.mark.parametrize("lengths", [[5, 5, 5], [2, 5, 1], [0, 4, 0]], ids=str)
def test_lengths(kind, direction, symbolic, lengths):
    op, spec = make_op(kind, direction)
    arguments = make_arguments(spec)
    found = call_op(op, arguments, symbolic, sequence_lengths=np.asarray(lengths, "int32"))
    output, states = oracle(spec, arguments[-1], arguments[0], arguments[1:-1], lengths)
    for a, b in zip(found, (output, *states), strict=True):
        assert_close(a, b)


@EAGER_SYMBOLIC
@pytest.mark.parametrize("lengths", [None, [2, 5, 1]], ids=str)
def test_batch_major(kind, direction, symbolic, lengths):
    op, spec = make_op(kind, direction)
    arguments = make_arguments(spec)
    swap = lambda v: np.ascontiguousarray(np.swapaxes(v, 0, 1))  # noqa: E731
    kw = {} if lengths is None else {"sequence_lengths": np.asarray(lengths, "int32")}
    given = [*map(swap, arguments[:-1]), arguments[-1]]
    found = call_op(op, given, symbolic, time_major=False, **kw)
    output, states = oracle(spec, arguments[-1], arguments[0], arguments[1:-1], lengths)
    for a, b in zip(found, (output, *states), strict=True):
        assert_close(a, swap(b))


@EAGER_SYMBOLIC
@pytest.mark.parametrize("lengths", [None, [2, 5, 1]], ids=str)
def test_projection(direction, symbolic, lengths):
    op, spec = make_op(LSTM, direction, num_units=5, num_proj=3)
    arguments = make_arguments(spec)
    kw = {} if lengths is None else {"sequence_lengths": np.asarray(lengths, "int32")}
    found = call_op(op, arguments, symbolic, **kw)
    output, states = oracle(spec, arguments[-1], arguments[0], arguments[1:-1], lengths)
    assert found[0].shape == (T, B, 3 * spec.num_dirs)
    for a, b in zip(found, (output, *states), strict=True):
        assert_close(a, b)


def test_a_projection_as_wide_as_the_units_is_none():
    op, spec = make_op(LSTM, num_units=3)
    full = LSTM.op(L, 3, I, num_proj=3)
    assert full.params_size() == op.params_size()
    arguments = make_arguments(spec)
    assert len(full.params_to_canonical(arguments[-1])[0]) == 8 * L
    for a, b in zip(full(*arguments), op(*arguments), strict=True):
        np.testing.assert_array_equal(array(a), array(b))


@EAGER_SYMBOLIC
@pytest.mark.parametrize("input_mode", ["skip_input", "auto_select"])
def test_skip_input(kind, direction, symbolic, input_mode):
    op, spec = make_op(kind, direction, input_mode, input_size=U)
    arguments = make_arguments(spec)
    found = call_op(op, arguments, symbolic)
    output, states = oracle(spec, arguments[-1], arguments[0], arguments[1:-1])
    for a, b in zip(found, (output, *states), strict=True):
        assert_close(a, b)


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtype(kind, dtype):
    op, spec = make_op(kind, dtype=dtype)
    arguments = make_arguments(spec, dtype=dtype)
    found = op(*arguments)
    assert [v.dtype for v in found] == [dtype] * (1 + kind.num_states)
    output, _ = oracle(spec, arguments[-1], arguments[0], arguments[1:-1])
    assert_close(array(found[0]).astype("float64"), output, 20 * float(ml_dtypes.finfo(dtype).eps))


def test_parameters_as_a_variable(kind):
    op, spec = make_op(kind)
    arguments = make_arguments(spec)
    wanted = op(*arguments)
    params = openrnn.Variable(arguments[-1], name="params")
    np.testing.assert_array_equal(array(op(*arguments[:-1], params)[0]), array(wanted[0]))
    params.assign(-arguments[-1])
    changed = array(op(*arguments[:-1], params)[0])
    wanted, _ = oracle(spec, -arguments[-1], arguments[0], arguments[1:-1])
    assert_close(changed, wanted)


def test_a_longer_buffer_works(kind):
    op, spec = make_op(kind)
    arguments = make_arguments(spec)
    wanted = op(*arguments)
    longer = np.concatenate([arguments[-1], draw(7, seed=1)])
    np.testing.assert_array_equal(array(op(*arguments[:-1], longer)[0]), array(wanted[0]))


@pytest.mark.parametrize("kind", KINDS, ids=[kind.mode for kind in KINDS])
def test_workflow_of_the_documentation(kind, tmp_path):
    op, spec = make_op(kind)
    arguments = make_arguments(spec)
    params = openrnn.get_variable("params", (op.params_size(),))
    params.assign(arguments[-1])
    wanted = array(op(*arguments[:-1], params, is_training=False)[0])
    saveable = kind.saveable(params, L, U, I)
    openrnn.add_to_collection(openrnn.GraphKeys.SAVEABLE_OBJECTS, saveable)
    prefix = openrnn.train.Saver([saveable]).save(str(tmp_path / "model"))
    params.assign(np.zeros(op.params_size(), "float32"))
    openrnn.train.Saver([saveable]).restore(prefix)
    assert_close(array(op(*arguments[:-1], params, is_training=False)[0]), wanted, 1e-6)
