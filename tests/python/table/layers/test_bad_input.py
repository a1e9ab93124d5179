"""Wrong arguments of the layers: which error, what it names, and that nothing has changed."""

import numpy as np
import openrnn
import pytest
from table.support import (
    GRU, LSTM, B, I, KINDS, L, T, U, array, assert_close, assert_names, draw, error_text,
    graph_state, make_layer, make_states, make_spec, nothing_changes, oracle, per_kind,
)  # fmt: skip

DIRECTIONS = ["unidirectional", "bidirectional"]
INPUT_MODES = ["linear_input", "skip_input", "auto_select"]
# (what, changed arguments, error, what the message names)
CONSTRUCTOR = [
    ("direction", {"direction": "sideways"}, ValueError, ["sideways", *DIRECTIONS]),
    ("empty direction", {"direction": ""}, ValueError, DIRECTIONS),
    ("input_mode", {"input_mode": "skip"}, ValueError, ["skip", *INPUT_MODES]),
    ("int dtype", {"dtype": "int32"}, ValueError, ["int32", "float16", "bfloat16", "float32", "float64"]),
    ("NumPy dtype", {"dtype": np.int64}, ValueError, ["int64", "float16", "bfloat16", "float32", "float64"]),
    ("bool dtype", {"dtype": "bool"}, ValueError, ["bool", "float16", "bfloat16", "float32", "float64"]),
    ("no layers", {"num_layers": 0}, ValueError, ["num_layers", "0"]),
    ("negative layers", {"num_layers": -2}, ValueError, ["num_layers", "-2"]),
    ("no units", {"num_units": 0}, ValueError, ["num_units", "0"]),
    ("negative units", {"num_units": -1}, ValueError, ["num_units", "-1"]),
    ("dropout below 0", {"dropout": -0.25}, ValueError, ["dropout", "-0.25", "0", "1"]),
    ("dropout above 1", {"dropout": 1.5}, ValueError, ["dropout", "1.5", "0", "1"]),
    ("dropout not a number", {"dropout": float("nan")}, ValueError, ["dropout", "nan"]),
    ("units as text", {"num_units": "two"}, TypeError, []),
    ("unknown argument", {"units": 3}, TypeError, ["units"]),
]
PROJECTIONS = [
    ("too wide", LSTM, {"num_proj": U + 1}, [str(U + 1), str(U)]),
    ("negative", LSTM, {"num_proj": -1}, ["-1"]),
    ("reset before", GRU, {"num_proj": 1, "reset_after": False}, ["proj", "reset_after"]),
]


def h_c(kind, shape, dtype="float32", seed=3):
    return tuple(draw(*shape, seed=seed + k, dtype=dtype) for k in range(kind.num_states))


@pytest.mark.parametrize("row", CONSTRUCTOR, ids=[row[0] for row in CONSTRUCTOR])
def test_constructor(kind, row):
    _, changed, error, parts = row
    before = graph_state()
    given = {"num_layers": L, "num_units": U, **changed}
    assert_names(error_text(error, lambda: kind.layer(**given)), *parts)
    assert graph_state() == before
    layer = kind.layer(L, U)
    layer.build((None, None, I))
    assert layer.name == kind.snake, "a failed constructor takes no name"


@pytest.mark.parametrize("row", PROJECTIONS, ids=[row[0] for row in PROJECTIONS])
def test_projection(row):
    _, one, changed, parts = row

    def make():
        one.layer(L, U, **changed).build((None, None, I))

    before = graph_state()
    assert_names(error_text((ValueError, NotImplementedError), make), *parts)
    assert graph_state() == before


def test_boundary_rates_are_fine(kind):
    for rate in (0, 1, 0.0, 1.0):
        assert kind.layer(L, U, dropout=rate).get_config()["dropout"] == rate


def calls(kind, dirs):
    """(what, layer input, keywords, error, what the message names) for L layers of U units."""
    rows, good = L * dirs, draw(T, B, I)
    states = lambda *shape, **kw: {"initial_state": h_c(kind, shape, **kw)}  # noqa: E731
    lengths = lambda *n: {"sequence_lengths": np.asarray(n, "int32")}  # noqa: E731
    whole = f"{rows}, *{B}, *{U}"
    return [
        ("rank 2", draw(T, I), {}, ValueError, [f"2|{T}, *{I}", "3"]),
        ("rank 4", draw(1, T, B, I), {}, ValueError, ["4", "3"]),
        ("depth", draw(T, B, I + 1), {}, ValueError, [str(I + 1), str(I)]),
        ("batch of states", good, states(rows, B + 1, U), ValueError, [str(B + 1), whole]),
        ("rows of states", good, states(rows + 1, B, U), ValueError, [str(rows + 1), whole]),
        ("width of states", good, states(rows, B, U + 3), ValueError, [str(U + 3), whole]),
        ("rank of states", good, states(B, U), ValueError, [f"{B}, *{U}", whole]),
        ("too few lengths", good, lengths(*[1] * (B - 1)), ValueError, [str(B - 1), str(B)]),
        ("too many lengths", good, lengths(*[1] * (B + 1)), ValueError, [str(B + 1), str(B)]),
        ("negative length", good, lengths(1, -1, 2), ValueError, ["-1", f"{T}|max_time"]),
        ("length above T", good, lengths(1, T + 1, 2), ValueError, [str(T + 1), f"{T}|max_time"]),
        ("matrix of lengths", good, {"sequence_lengths": np.ones((B, 1), "int32")}, ValueError,
         [f"{B}, *1", str(B)]),
    ]  # fmt: skip


CALLS = [row[0] for row in calls(KINDS[0], 1)]


@pytest.mark.parametrize("index", range(len(CALLS)), ids=CALLS)
def test_call(kind, direction, caller, index):
    layer = make_layer(kind, direction)
    _, x, kw, error, parts = calls(kind, layer.num_dirs)[index]
    good = caller(layer, draw(T, B, I))[0]
    before = graph_state(), layer.get_weights()[0].tobytes(), layer.saveable.name
    assert_names(error_text(error, caller, layer, x, **kw), *parts)
    assert (graph_state(), layer.get_weights()[0].tobytes(), layer.saveable.name) == before
    np.testing.assert_array_equal(caller(layer, draw(T, B, I))[0], good)


@pytest.mark.parametrize("index", range(3, len(CALLS)), ids=CALLS[3:])
def test_a_failed_first_call_leaves_the_layer_unbuilt(kind, index):
    layer = kind.layer(L, U)
    _, x, kw, error, _ = calls(kind, 1)[index]
    with nothing_changes(layer):
        error_text(error, layer, x, **kw)
    assert layer.built is False and openrnn.global_variables() == []
    layer(draw(T, B, I))
    assert [v.name for v in openrnn.global_variables()] == [f"{kind.snake}/opaque_kernel"]


@pytest.mark.parametrize("eager", [True, False], ids=["eager", "symbolic"])
@pytest.mark.parametrize("given", ["list", "array", "dict"])
def test_initial_state_must_be_a_tuple(kind, eager, given):
    layer = make_layer(kind)
    states = list(h_c(kind, (L, B, U)))
    state = {"list": states, "array": states[0], "dict": {"h": states[0]}}[given]
    type_name = {"list": "list", "array": "ndarray", "dict": "dict"}[given]
    x = draw(T, B, I) if eager else openrnn.Input(batch_shape=(T, B, I))
    with nothing_changes(layer):
        message = error_text(ValueError, layer, x, initial_state=state)
        assert_names(message, type_name, "expect(ing|ed) (a )?tuple")


@pytest.mark.parametrize("eager", [True, False], ids=["eager", "symbolic"])
@per_kind(lambda kind: [count for count in range(4) if count != kind.num_states])
def test_arity_of_initial_state(kind, eager, row):
    count = row
    layer = make_layer(kind)
    state = tuple(draw(L, B, U, seed=k) for k in range(count))
    x = draw(T, B, I) if eager else openrnn.Input(batch_shape=(T, B, I))
    with nothing_changes(layer):
        message = error_text(ValueError, layer, x, initial_state=state)
        assert_names(message, str(count), f"{kind.num_states}|each of its states")


@pytest.mark.parametrize("eager", [True, False], ids=["eager", "symbolic"])
@pytest.mark.parametrize("what", ["inputs", "states"])
def test_a_tensor_of_another_dtype(kind, eager, what):
    """Plain values are converted, tensors are not."""

    def tensor(*shape, dtype):
        if eager:
            return openrnn.constant(draw(*shape, dtype=dtype))
        return openrnn.Input(batch_shape=shape, dtype=dtype)

    layer = make_layer(kind)
    x = tensor(T, B, I, dtype="float64" if what == "inputs" else "float32")
    dtype = "float64" if what == "states" else "float32"
    states = tuple(tensor(L, B, U, dtype=dtype) for _ in range(kind.num_states))
    with nothing_changes(layer):
        message = error_text(ValueError, layer, x, initial_state=states)
        assert_names(message, "float64", "float32")


def test_first_call_with_a_tensor_of_another_dtype(kind):
    layer = kind.layer(L, U)
    with nothing_changes(layer):
        message = error_text(ValueError, layer, openrnn.constant(draw(T, B, I, dtype="float64")))
        assert_names(message, "float64", "float32")


@pytest.mark.parametrize(
    "x", [None, "text", object(), {"a": 1}], ids=["None", "text", "object", "dict"]
)
def test_inputs_that_are_no_tensor(kind, x):
    layer = make_layer(kind)
    with nothing_changes(layer):
        error_text((TypeError, ValueError), layer, x)


def test_ragged_inputs(kind):
    layer = make_layer(kind)
    with nothing_changes(layer):
        error_text((TypeError, ValueError), layer, [[[1.0] * I], [[2.0] * (I + 1)]])


@pytest.mark.parametrize("depth", [None, I + 2], ids=["unknown depth", "another depth"])
def test_symbolic_input_of_a_wrong_depth(kind, depth):
    layer = kind.layer(L, U) if depth is None else make_layer(kind)
    with nothing_changes(layer):
        message = error_text(ValueError, layer, openrnn.Input(batch_shape=(T, B, depth)))
        assert_names(
            message, *(["defined|unknown|None"] if depth is None else [str(depth), str(I)])
        )


def test_symbolic_input_of_a_wrong_rank(kind):
    layer = kind.layer(L, U)
    with nothing_changes(layer):
        message = error_text(ValueError, layer, openrnn.Input(batch_shape=(T, I)))
        assert_names(message, "2", "3")


@pytest.mark.parametrize("time_major", [True, False])
def test_states_must_be_as_major_as_the_data(kind, caller, time_major):
    layer, spec = make_layer(kind), make_spec(kind)
    states = make_states(spec)
    given = tuple(np.ascontiguousarray(np.swapaxes(s, 0, 1)) for s in states)
    if not time_major:
        given = states
    x = draw(T, B, I) if time_major else draw(B, T, I)
    before = array(layer.kernel).tobytes()
    message = error_text(ValueError, caller, layer, x, initial_state=given, time_major=time_major)
    assert_names(message, f"{L}, *{B}, *{U}", f"{B}, *{L}, *{U}")
    assert array(layer.kernel).tobytes() == before


@pytest.mark.parametrize("word", ["sequence_length", "masks", "timemajor"])
def test_unknown_keyword(kind, word):
    layer = make_layer(kind)
    with nothing_changes(layer):
        assert_names(error_text(TypeError, layer, draw(T, B, I), **{word: None}), word)


def test_second_saveable(kind, caller):
    layer = kind.layer(L, U)
    caller(layer, draw(T, B, I))
    with nothing_changes(layer):
        assert error_text(RuntimeError, layer._create_saveable).startswith(
            "Cudnn saveable already created"
        )


def test_hooks_of_an_unbuilt_layer(kind):
    layer = kind.layer(L, U)
    with nothing_changes(layer):
        error_text(RuntimeError, layer._canonical_weight_shape, 0)
        error_text(RuntimeError, layer._canonical_to_opaque, [], [])
    layer.build((None, None, I))
    for index in (-1, L):
        with nothing_changes(layer):
            message = error_text(ValueError, layer._canonical_weight_shape, index)
            assert_names(message, str(index), f"0 to {L - 1}|{L}")


def test_set_weights_before_build(kind):
    layer = kind.layer(L, U)
    with nothing_changes(layer):
        error_text(ValueError, layer.set_weights, [draw(3)])
    assert layer.get_weights() == []


def test_state_shape_of_no_number(kind):
    error_text((ValueError, TypeError), kind.layer(L, U).state_shape, "two")


def test_a_buffer_in_place_of_the_kernel_is_too_short(kind):
    """assign checks shapes, so that no later call reads past the end."""
    layer = make_layer(kind)
    size = layer.count_params()
    with nothing_changes(layer):
        message = error_text(ValueError, layer.kernel.assign, draw(size - 1))
        assert_names(message, str(size - 1), str(size))


def test_read_only_members_refuse_writing(kind):
    layer = make_layer(kind)
    with nothing_changes(layer):
        with pytest.raises(ValueError):
            layer.kernel.numpy()[0] = 1.0
        with pytest.raises(AttributeError):
            layer.num_units = 7
        assert layer.num_units == U


def test_abstract_members():
    base = openrnn.layers.Layer()
    error_text((NotImplementedError, TypeError), base, openrnn.constant(draw(T, B, I)))


@pytest.mark.parametrize(
    "lengths",
    [np.array([1.5, 2.0, 3.0]), ["one", "two", "three"], 3],
    ids=["fractions", "text", "a number"],
)
def test_lengths_that_are_no_vector_of_integers(kind, lengths):
    layer = make_layer(kind)
    with nothing_changes(layer):
        error_text((TypeError, ValueError), layer, draw(T, B, I), sequence_lengths=lengths)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_lengths_of_either_integer_dtype(kind, dtype):
    layer = make_layer(kind)
    for given in (np.array([T, 1, 2], dtype), [T, 1, 2]):
        output, _ = layer(draw(T, B, I), sequence_lengths=given)
        wanted, _ = oracle(make_spec(kind), array(layer.kernel), draw(T, B, I), None, [T, 1, 2])
        assert_close(output, wanted)
