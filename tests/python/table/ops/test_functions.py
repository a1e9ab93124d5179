"""The module-level functions of the op level."""

import inspect

import numpy as np
import openrnn
import pytest
from model import numpy_layout
from table.ops.op_support import EAGER_SYMBOLIC, call_op, make_arguments
from table.support import (
    LSTM, B, I, L, T, U, array, assert_close, assert_names, draw, error_text, make_spec, oracle,
)  # fmt: skip

LINEAR = ("linear_input", "unidirectional")
# (what, the position of the wrong word, the word, what the message names)
WRONG_WORDS = [
    ("rnn_mode", 0, "peephole", ["lstm", "gru", "rnn_tanh", "rnn_relu"]),
    ("input_mode", 4, "linear", ["linear_input", "skip_input", "auto_select"]),
    ("direction", 5, "both", ["unidirectional", "bidirectional"]),
]


CALL = ["inputs", "input_h", "input_c", "params", "is_training", "input_mode", "direction",
        "dropout", "seed", "name"]  # fmt: skip
SIZES = ["rnn_mode", "num_layers", "num_units", "input_size"]
SIGNATURES = [
    ("cudnn_rnn_opaque_params_size",
     [*SIZES, "input_mode", "direction", "dtype", "dropout", "seed", "name"]),
    ("cudnn_rnn_opaque_params_to_canonical", [*SIZES, "params"]),
    ("cudnn_rnn_canonical_to_opaque_params", [*SIZES, "weights", "biases"]),
]  # fmt: skip


def positional(function):
    found = inspect.signature(function).parameters.values()
    return [p.name for p in found if p.kind is p.POSITIONAL_OR_KEYWORD]


def test_arguments_of_a_call(kind):
    """r1.4's arguments keep name and place, the newer ones come by name."""
    wanted = [name for name in CALL if name != "input_c" or kind is LSTM]
    assert positional(kind.function) == wanted
    found = inspect.signature(kind.function).parameters
    assert found["seed"].default == 0
    newer = ["sequence_lengths", "time_major"] + (["num_proj"] if kind is LSTM else [])
    assert all(found[name].kind is inspect.Parameter.KEYWORD_ONLY for name in newer)


@pytest.mark.parametrize("name, wanted", SIGNATURES, ids=[row[0] for row in SIGNATURES])
def test_arguments_of_a_function(name, wanted):
    found = positional(getattr(ops(), name))
    assert found[: len(wanted)] == wanted
    assert {"input_mode", "direction", "dropout", "seed", "name"} <= set(found)


def ops():
    return openrnn.cudnn_rnn.ops


def check(kind, spec, symbolic, given=None, lengths=None, swap=lambda v: v, **kw):
    arguments = make_arguments(spec)
    given = [*(swap(a) for a in arguments[:-1]), arguments[-1]]
    if lengths is not None:
        kw["sequence_lengths"] = np.asarray(lengths, "int32")

    def function(*args):
        return kind.function(*args, True, **kw)

    found = call_op(function, given, symbolic)
    output, states = oracle(spec, arguments[-1], arguments[0], arguments[1:-1], lengths)
    assert len(found) == 1 + kind.num_states
    for a, b in zip(found, (output, *states), strict=True):
        assert_close(a, swap(b))


@EAGER_SYMBOLIC
@pytest.mark.parametrize("lengths", [None, [2, 5, 1]], ids=str)
def test_forward(kind, direction, symbolic, lengths):
    spec = make_spec(kind, direction)
    check(
        kind, spec, symbolic, lengths=lengths,
        input_mode="linear_input", direction=direction, dropout=0.0, seed=0,
    )  # fmt: skip


@EAGER_SYMBOLIC
def test_batch_major(kind, direction, symbolic):
    swap = lambda v: np.ascontiguousarray(np.swapaxes(v, 0, 1))  # noqa: E731
    check(
        kind, make_spec(kind, direction), symbolic, swap=swap,
        input_mode="linear_input", direction=direction, dropout=0.0, time_major=False,
    )  # fmt: skip


@EAGER_SYMBOLIC
def test_projection(direction, symbolic):
    spec = make_spec(LSTM, direction, num_units=5, num_proj=3)
    check(
        LSTM, spec, symbolic,
        input_mode="linear_input", direction=direction, dropout=0.0, num_proj=3,
    )  # fmt: skip


@pytest.mark.parametrize("input_mode", ["skip_input", "auto_select"])
def test_skip_input(kind, direction, input_mode):
    spec = make_spec(kind, direction, input_mode, input_size=U)
    check(kind, spec, False, input_mode=input_mode, direction=direction, dropout=0.0)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_params_size(kind, direction, dtype):
    found = ops().cudnn_rnn_opaque_params_size(
        kind.mode, L, U, I, "linear_input", direction, dtype=dtype, dropout=0.5, seed=3
    )
    assert found == numpy_layout.params_size(make_spec(kind, direction))


def test_params_size_with_projection():
    found = ops().cudnn_rnn_opaque_params_size("lstm", 2, 6, 5, *LINEAR, num_proj=4)
    assert found == 552


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_canonical_and_back(kind, direction, dtype):
    spec = make_spec(kind, direction)
    buffer = draw(numpy_layout.params_size(spec), dtype=dtype)
    sizes = (kind.mode, L, U, I)
    weights, biases = ops().cudnn_rnn_opaque_params_to_canonical(
        *sizes, buffer, "linear_input", direction
    )
    for found, part in zip(
        (weights, biases), numpy_layout.params_to_canonical(spec, buffer), strict=True
    ):
        assert [array(tensor).tolist() for tensor in found] == [p.tolist() for p in part]
        assert {str(tensor.dtype) for tensor in found} == {str(dtype)}
    again = ops().cudnn_rnn_canonical_to_opaque_params(
        *sizes, weights, biases, "linear_input", direction
    )
    assert again.dtype == dtype
    np.testing.assert_array_equal(array(again), buffer)


@pytest.mark.parametrize("row", WRONG_WORDS, ids=[row[0] for row in WRONG_WORDS])
def test_wrong_word(row):
    _, position, word, parts = row
    given = ["lstm", L, U, I, *LINEAR]
    given[position] = word
    size = ops().cudnn_rnn_opaque_params_size
    assert_names(error_text(ValueError, size, *given), word, *parts)
    convert = ops().cudnn_rnn_opaque_params_to_canonical
    buffer = draw(10)
    assert_names(error_text(ValueError, convert, *given[:4], buffer, *given[4:]), word, *parts)
    back = ops().cudnn_rnn_canonical_to_opaque_params
    assert_names(error_text(ValueError, back, *given[:4], [], [], *given[4:]), word, *parts)


@pytest.mark.parametrize("row", WRONG_WORDS[1:], ids=[row[0] for row in WRONG_WORDS[1:]])
def test_wrong_word_in_a_call(kind, row):
    what, _, word, parts = row
    arguments = make_arguments(make_spec(kind))
    kw = {"input_mode": "linear_input", "direction": "unidirectional", "dropout": 0.0, what: word}
    assert_names(error_text(ValueError, kind.function, *arguments, True, **kw), word, *parts)


def test_shapes_come_from_the_data(kind):
    """The number of layers is that of the states' rows, the units are their width."""
    spec = make_spec(kind, num_layers=3, num_units=4, input_size=2)
    arguments = make_arguments(spec, time=T, batch=B)
    output, *states = kind.function(*arguments, False, *LINEAR, 0.0)
    assert output.shape == (T, B, 4) and states[0].shape == (3, B, 4)


def test_num_proj_is_the_width_of_input_h():
    spec = make_spec(LSTM, "unidirectional", num_units=5, num_proj=3)
    inputs = [draw(*shape) for shape in ((T, B, I), (L, B, 3), (L, B, 5))]
    params = draw(numpy_layout.params_size(spec))
    function = ops().cudnn_lstm
    output, h, c = function(*inputs, params, num_proj=3)
    assert (output.shape, h.shape, c.shape) == ((T, B, 3), (L, B, 3), (L, B, 5))
    assert_names(error_text(ValueError, function, *inputs, params, num_proj=4), "4", "3")
