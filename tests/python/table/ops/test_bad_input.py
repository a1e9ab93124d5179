"""Wrong arguments of the op-level classes and functions: which error and what it names."""

import numpy as np
import openrnn
import pytest
from model import numpy_layout
from table.ops.op_support import make_arguments, make_op
from table.support import (
    GRU, LSTM, B, I, L, T, U, array, assert_names, draw, error_text, graph_state, make_spec,
    per_kind,
)  # fmt: skip

DIRECTIONS = ["unidirectional", "bidirectional"]
MODES = ["linear_input", "skip_input", "auto_select"]
# (what, changed arguments, what the message names): at the latest at first use
WORDS = [
    ("direction", {"direction": "sideways"}, ["sideways", *DIRECTIONS]),
    ("input_mode", {"input_mode": "skip"}, ["skip", *MODES]),
    ("dtype", {"dtype": "int32"}, ["int32", "float16", "bfloat16", "float32", "float64"]),
    ("layers", {"num_layers": 0}, ["num_layers", "0"]),
    ("units", {"num_units": -3}, ["num_units", "-3"]),
    ("depth", {"input_size": -1}, ["input_size", "-1"]),
    ("dropout", {"dropout": 1.5}, ["dropout", "1.5"]),
    ("negative dropout", {"dropout": -0.5}, ["dropout", "-0.5"]),
    (
        "skip of another width",
        {"input_mode": "skip_input", "input_size": U + 1},
        [str(U + 1), str(U)],
    ),
]


def params_size(kind, **changed):
    given = {"num_layers": L, "num_units": U, "input_size": I, **changed}
    return kind.op(**given).params_size()


@pytest.mark.parametrize("row", WORDS, ids=[row[0] for row in WORDS])
def test_constructor_or_first_use(kind, row):
    _, changed, parts = row
    assert_names(error_text(ValueError, params_size, kind, **changed), *parts)


@pytest.mark.parametrize("proj", [U + 1, -2], ids=["too wide", "negative"])
def test_projection(proj):
    message = error_text(ValueError, params_size, LSTM, num_proj=proj)
    assert_names(message, str(proj), *([str(U)] if proj > 0 else []))


def test_only_lstm_has_a_projection():
    error_text(TypeError, params_size, GRU, num_proj=1)


@pytest.mark.parametrize("name", ["num_layers", "num_units", "input_size"])
@pytest.mark.parametrize("size", [[2], "two", 2.5, None], ids=str)
def test_sizes_are_integers(kind, name, size):
    error_text((TypeError, ValueError), params_size, kind, **{name: size})


def test_sizes_that_overflow(kind):
    """A wrong number is no answer; the exact one is."""
    huge = 2**33
    try:
        found = params_size(kind, num_layers=1, num_units=huge, input_size=huge)
    except (ValueError, OverflowError, MemoryError, TypeError):
        return
    assert found == kind.gates * huge * (2 * huge + 2)


def changed_arguments(kind, spec):
    """(what, position of the changed argument, its new value, keywords, what the message names)."""
    rows, size = spec.num_pseudo, numpy_layout.params_size(spec)
    state, last = f"{rows}, *{B}, *{U}", 1 + kind.num_states
    lengths = lambda *n: {"sequence_lengths": np.asarray(n, "int32")}  # noqa: E731
    found = [
        ("input rank 2", 0, draw(T, I), {}, [f"2|{T}, *{I}", "3"]),
        ("input rank 4", 0, draw(1, T, B, I), {}, ["4", "3"]),
        ("input depth", 0, draw(T, B, I + 3), {}, [str(I + 3)]),
        ("state rank", 1, draw(B, U), {}, [f"2|{B}, *{U}", "3"]),
        ("state batch", 1, draw(rows, B + 2, U), {}, [f"{rows}, *{B + 2}, *{U}", state]),
        ("state rows", 1, draw(rows + 1, B, U), {}, [f"{rows + 1}, *{B}, *{U}", state]),
        ("state width", 1, draw(rows, B, U + 1), {}, [f"{rows}, *{B}, *{U + 1}", state]),
        ("buffer too short", last, draw(size - 1), {}, [str(size - 1), str(size)]),
        ("empty buffer", last, draw(0), {}, ["0", str(size)]),
        ("buffer of rank 2", last, draw(1, size), {}, ["2|1, ", "1"]),
        ("too few lengths", 0, None, lengths(*[1] * (B - 1)), [str(B - 1), str(B)]),
        ("too many lengths", 0, None, lengths(*[1] * (B + 1)), [str(B + 1), str(B)]),
        ("negative length", 0, None, lengths(1, 2, -4), ["-4", f"{T}|max_time"]),
        ("length above T", 0, None, lengths(1, 2, T + 4), [str(T + 4), f"{T}|max_time"]),
    ]
    if kind is LSTM:
        found.append(
            ("cell width", 2, draw(rows, B, U + 1), {}, [f"{rows}, *{B}, *{U + 1}", state])
        )
        found.append(
            ("cell batch", 2, draw(rows, B + 1, U), {}, [f"{rows}, *{B + 1}, *{U}", state])
        )
    return found


def case_names(kind):
    return [row[0] for row in changed_arguments(kind, make_spec(kind))]


def named_case(kind, spec, name):
    return next(row for row in changed_arguments(kind, spec) if row[0] == name)


# Sizes come from the data in a function call, so that these describe another network there.
OF_SIZES = ("input depth", "state rows", "state width", "cell width")


@pytest.mark.parametrize("symbolic", [False, True], ids=["eager", "symbolic"])
@per_kind(case_names)
def test_call(kind, direction, symbolic, row):
    op, spec = make_op(kind, direction)
    arguments = make_arguments(spec)
    _, position, value, kw, parts = named_case(kind, spec, row)
    if value is not None:
        arguments[position] = value

    def call():
        if not symbolic:
            return op(*arguments, **kw)
        inputs = [openrnn.Input(batch_shape=a.shape, dtype="float32") for a in arguments]
        return openrnn.Model(inputs, list(op(*inputs, **kw)))(arguments)

    before = graph_state()
    assert_names(error_text(ValueError, call), *parts)
    assert graph_state() == before


@per_kind(lambda kind: [name for name in case_names(kind) if name not in OF_SIZES])
def test_function(kind, row):
    """The same through the function."""
    spec = make_spec(kind)
    _, position, value, kw, parts = named_case(kind, spec, row)
    arguments = make_arguments(spec)
    if value is not None:
        arguments[position] = value
    call = lambda: kind.function(*arguments, True, *MODES[:1], *DIRECTIONS[:1], 0.0, **kw)  # noqa
    assert_names(error_text(ValueError, call), *parts)


def test_function_with_a_buffer_of_another_depth(kind):
    """Wider data need a longer buffer than the one given."""
    spec = make_spec(kind)
    arguments = make_arguments(spec)
    arguments[0] = draw(T, B, I + 5)
    wanted = numpy_layout.params_size(make_spec(kind, input_size=I + 5))
    call = lambda: kind.function(*arguments, True, *MODES[:1], *DIRECTIONS[:1], 0.0)  # noqa: E731
    message = error_text(ValueError, call)
    assert_names(message, str(wanted), str(arguments[-1].size))


def test_function_with_odd_rows_of_a_bidirectional_state(kind):
    arguments = make_arguments(make_spec(kind, num_layers=3))
    call = lambda: kind.function(*arguments, True, MODES[0], "bidirectional", 0.0)  # noqa: E731
    assert_names(error_text(ValueError, call), "3")


@per_kind(lambda kind: range(2 + kind.num_states))
def test_tensor_of_another_dtype(kind, row):
    op, spec = make_op(kind)
    arguments = [openrnn.constant(a) for a in make_arguments(spec)]
    arguments[row] = openrnn.constant(array(arguments[row]).astype("float64"))
    message = error_text(ValueError, lambda: op(*arguments))
    assert_names(message, "float64", "float32")


@pytest.mark.parametrize("missing", [True, False], ids=["missing", "surplus"])
def test_number_of_arguments(kind, missing):
    op, spec = make_op(kind)
    arguments = make_arguments(spec)
    given = arguments[:-1] if missing else [*arguments, True, None]
    error_text(TypeError, lambda: op(*given))


def canonical(kind, change, direction="bidirectional"):
    """(op, weights, biases) of which one tensor was changed."""
    op, spec = make_op(kind, direction)
    lists = numpy_layout.params_to_canonical(spec, draw(op.params_size()))
    return op, spec, *change(*lists)


def size_or_shape(value):
    """Either says what the tensor is."""
    return rf"{value.size}|{', *'.join(map(str, value.shape))}"


# (what, change of (weights, biases), what the message names given the unchanged lists)
CANONICAL = [
    ("one weight fewer", lambda w, b: (w[:-1], b), lambda w, b: [len(w) - 1, len(w)]),
    ("one weight more", lambda w, b: ([*w, w[0]], b), lambda w, b: [len(w) + 1, len(w)]),
    ("one bias fewer", lambda w, b: (w, b[1:]), lambda w, b: [len(b) - 1, len(b)]),
    ("no bias", lambda w, b: (w, []), lambda w, b: [0, len(b)]),
    ("a small weight", lambda w, b: ([w[0], w[1][:1], *w[2:]], b),
     lambda w, b: [1, size_or_shape(w[1][:1]), size_or_shape(w[1])]),
    ("a large weight", lambda w, b: ([*w[:-1], draw(U, 9)], b),
     lambda w, b: [len(w) - 1, size_or_shape(draw(U, 9)), size_or_shape(w[-1])]),
    ("a long bias", lambda w, b: (w, [b[0], draw(U + 1), *b[2:]]), lambda w, b: [1, U + 1, U]),
    ("an empty bias", lambda w, b: (w, [*b[:-1], draw(0)]), lambda w, b: [len(b) - 1, 0, U]),
]  # fmt: skip


@pytest.mark.parametrize("row", CANONICAL, ids=[row[0] for row in CANONICAL])
def test_canonical_to_params(kind, row):
    """The index, the actual and the expected size or number."""
    _, change, parts = row
    op, spec, weights, biases = canonical(kind, change)
    unchanged = numpy_layout.params_to_canonical(spec, draw(op.params_size()))
    named = [rf"\b(?:{number})\b" for number in parts(*unchanged)]
    assert_names(error_text(ValueError, op.canonical_to_params, weights, biases), *named)
    back = openrnn.cudnn_rnn.ops.cudnn_rnn_canonical_to_opaque_params
    message = error_text(
        ValueError, back, kind.mode, L, U, I, weights, biases, MODES[0], "bidirectional"
    )
    assert_names(message, *named)


@pytest.mark.parametrize("off", [-1, -3, None], ids=["short", "shorter", "rank 2"])
def test_params_to_canonical(kind, off):
    op, _ = make_op(kind)
    size = op.params_size()
    given = draw(1, size) if off is None else draw(size + off)
    parts = ["2|1, ", "1"] if off is None else [str(size + off), str(size)]
    assert_names(error_text(ValueError, op.params_to_canonical, given), *parts)
    convert = openrnn.cudnn_rnn.ops.cudnn_rnn_opaque_params_to_canonical
    message = error_text(ValueError, convert, kind.mode, L, U, I, given, MODES[0], DIRECTIONS[0])
    assert_names(message, *parts)


def test_odd_weights_with_projection():
    op, spec = make_op(LSTM, num_units=4, num_proj=2)
    weights, biases = numpy_layout.params_to_canonical(spec, draw(op.params_size()))
    assert len(weights) == 9 * L
    message = error_text(ValueError, op.canonical_to_params, weights[:-1], biases)
    assert_names(message, str(9 * L - 1), str(9 * L))


def test_skipped_matrix_of_any_other_size(kind):
    op, spec = make_op(kind, input_mode="skip_input", input_size=U)
    weights, biases = numpy_layout.params_to_canonical(spec, draw(op.params_size()))
    weights[0] = np.eye(U, dtype="float32")
    message = error_text(ValueError, op.canonical_to_params, weights, biases)
    assert_names(message, r"\b0\b", size_or_shape(weights[0]))
