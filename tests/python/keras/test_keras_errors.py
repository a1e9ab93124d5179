"""What the binding below openrnn.keras says of arrays that do not fit: which, what it is, what is expected."""

import numpy as np
import openrnn
import pytest
from openrnn import _core

BATCH, TIME, INPUT, UNITS = 2, 3, 4, 5
FLAGS = (False, True, False)
SHAPES = {
    "x": (BATCH, TIME, INPUT), "h0": (BATCH, UNITS), "c0": (BATCH, UNITS),
    "kernel": (INPUT, 4 * UNITS), "recurrent_kernel": (UNITS, 4 * UNITS), "bias": (4 * UNITS,),
}  # fmt: skip
OUTPUTS = {"y": (BATCH, TIME, UNITS), "hn": (BATCH, UNITS), "cn": (BATCH, UNITS)}
DIRECTIONS = [1, 2]


def options_of(directions, **more):
    both = {"direction": "bidirectional"} if directions == 2 else {}
    return {"rnn_mode": "lstm", "num_units": UNITS, "input_size": INPUT, "dtype": "float64",
            "single_bias": True, **both, **more}  # fmt: skip


def arrays_of(shapes, directions, change=None):
    """(names, arrays): the sequence, the states of each direction, then the weights of each; `change`
    is (name, direction, array)."""
    sequence, *rest = shapes
    places = [(sequence, 0)]
    for group in (rest[:2], rest[2:]):
        places += [(name, d) for d in range(directions) for name in group]
    made = []
    for name, d in places:
        shape = shapes[name]
        if name == "y":
            shape = (*shape[:-1], directions * shape[-1])
        array = np.random.default_rng(len(made)).normal(size=shape)
        made.append(change[2] if change and change[:2] == (name, d) else array)
    return made


def refused(text, call):
    with pytest.raises(openrnn.ArgumentError) as caught:
        call()
    assert str(caught.value) == f"[KerasCell] {text}"


def shape_text(shape):
    return f"[{', '.join(map(str, shape))}]"


def wrong_of(name, shapes, directions):
    """(array, what is said of it)."""
    shape = shapes[name]
    if name in ("y", "dy"):
        shape = (*shape[:-1], directions * shape[-1])
    other = (*shape[:-1], 9)
    yield np.zeros(other), f"{name} has shape {shape_text(other)}, expected {shape_text(shape)}"
    yield np.zeros(shape, "float32"), f"{name} is float32, expected float64"


KINDS = {
    "int64": np.zeros(SHAPES["h0"], "int64"), "uint16": np.zeros(SHAPES["h0"], "uint16"),
    "bool": np.zeros(SHAPES["h0"], bool), "complex64": np.zeros(SHAPES["h0"], "complex64"),
    "float16": np.zeros(SHAPES["h0"], "float16"),
    "bfloat16": openrnn.constant(np.zeros(SHAPES["h0"]), "bfloat16"),
}  # fmt: skip


@pytest.mark.parametrize("directions", DIRECTIONS)
def test_arrays_of_a_call(directions):
    cell = _core.KerasCell(options_of(directions))
    right, made = arrays_of(SHAPES, directions), arrays_of(OUTPUTS, directions)
    cell.forward(right, None, FLAGS, False, made)
    for name in SHAPES:
        for d in range(directions if name != "x" else 1):
            for array, text in wrong_of(name, SHAPES, directions):
                given = arrays_of(SHAPES, directions, (name, d, array))
                refused(text, lambda: cell.forward(given, None, FLAGS, False, made))  # noqa: B023
    for name in OUTPUTS:
        for d in range(directions if name != "y" else 1):
            for array, text in wrong_of(name, OUTPUTS, directions):
                results = arrays_of(OUTPUTS, directions, (name, d, array))
                refused(text, lambda: cell.forward(right, None, FLAGS, False, results))  # noqa: B023
    last = arrays_of(OUTPUTS, directions)
    refused(f"y has shape {shape_text(last[0].shape)}, expected {shape_text((BATCH, directions * UNITS))}",
            lambda: cell.forward(right, None, (False, False, False), False, last))


@pytest.mark.parametrize("kind", KINDS)
def test_dtypes_have_numpys_names(kind):
    cell = _core.KerasCell(options_of(1))
    given = arrays_of(SHAPES, 1, ("h0", 0, KINDS[kind]))
    refused(f"h0 is {kind}, expected float64", lambda: cell.forward(given, None, FLAGS, False, arrays_of(OUTPUTS, 1)))


@pytest.mark.parametrize("directions", DIRECTIONS)
def test_arrays_of_a_gradient(directions):
    cell = _core.KerasCell(options_of(directions))
    right, made = arrays_of(SHAPES, directions), arrays_of(OUTPUTS, directions)
    saved = cell.forward(right, None, FLAGS, True, made)
    gradients = {f"d{name}": shape for name, shape in OUTPUTS.items()}
    results = {f"d{name}" if name in ("x", "h0", "c0") else name: shape for name, shape in SHAPES.items()}
    room, ones = arrays_of(results, directions), [np.ones_like(each) for each in made]
    saved.backward(ones, room)
    for name in gradients:
        for d in range(directions if name != "dy" else 1):
            for array, text in wrong_of(name, gradients, directions):
                given = [*ones]
                given[0 if name == "dy" else 1 + 2 * d + (name == "dcn")] = array
                refused(text, lambda: saved.backward(given, room))  # noqa: B023
    for name in results:
        for d in range(directions if name != "dx" else 1):
            for array, text in wrong_of(name, results, directions):
                wrong = arrays_of(results, directions, (name, d, array))
                refused(text, lambda: saved.backward(ones, wrong))  # noqa: B023


NO_BIAS = {"use_bias": False, "single_bias": False}
BOTH = "expected a kernel and a recurrent_kernel"
CELL = "expected cn if, and only if, the cell has a second state"
BIAS = "expected a bias if, and only if, the cell has one"


@pytest.mark.parametrize("directions", DIRECTIONS)
def test_arrays_that_must_be_there(directions):
    cell, d = _core.KerasCell(options_of(directions)), directions - 1
    right, made = arrays_of(SHAPES, directions), arrays_of(OUTPUTS, directions)
    rows = [("kernel", f"kernel or recurrent_kernel is None, {BOTH}"),
            ("recurrent_kernel", f"kernel or recurrent_kernel is None, {BOTH}"), ("bias", f"bias is None, {BIAS}")]
    for name, text in rows:
        given = arrays_of(SHAPES, directions, (name, d, None))
        refused(text, lambda: cell.forward(given, None, FLAGS, False, made))  # noqa: B023
    for name, at, text in (("y", 0, "y or hn is None, expected y and hn to be written"),
                           ("hn", d, "y or hn is None, expected y and hn to be written"),
                           ("cn", d, f"cn is None, {CELL}")):
        results = arrays_of(OUTPUTS, directions, (name, at, None))
        refused(text, lambda: cell.forward(right, None, FLAGS, False, results))  # noqa: B023
    plain = _core.KerasCell(options_of(directions, **NO_BIAS))
    refused(f"bias is an array, {BIAS}", lambda: plain.forward(right, None, FLAGS, False, made))
    tanh = _core.KerasCell(options_of(directions, rnn_mode="rnn_tanh"))
    shapes = {**SHAPES, "kernel": (INPUT, UNITS), "recurrent_kernel": (UNITS, UNITS), "bias": (UNITS,)}
    refused(f"cn is an array, {CELL}",
            lambda: tanh.forward(arrays_of(shapes, directions), None, FLAGS, False, made))
    count = 1 + 5 * directions
    refused(f"{count - 1} arrays, expected {count} or None in a place",
            lambda: cell.forward(right[:-1], None, FLAGS, False, made))
    refused(f"{count} arrays, expected {1 + 2 * directions} or None in a place",
            lambda: cell.forward(right, None, FLAGS, False, right))


def test_networks_that_are_refused():
    for more, text in (({"num_layers": 3}, "3 layers, expected one"),
                       ({"dtype": "bfloat16"}, "dtype bfloat16, expected float32 or float64"),
                       ({"dtype": "float16"}, "dtype float16, expected float32 or float64")):
        refused(text, lambda: _core.KerasCell(options_of(1, **more)))  # noqa: B023
    with pytest.raises(TypeError, match=r"^\[KerasCell\] num_units is 'str', expected an integer$"):
        _core.KerasCell(options_of(1, num_units="a"))


def test_states_and_gradients_of_one_direction_alone():
    """A state that is not given is zeros, and what is not asked for leaves the rest as it is."""
    cell = _core.KerasCell(options_of(2))
    right, zeros = arrays_of(SHAPES, 2), np.zeros((BATCH, UNITS))

    def run(states):
        made = arrays_of(OUTPUTS, 2)
        given = [right[0], *states, *right[5:]]
        saved = cell.forward(given, None, FLAGS, True, made)
        gradients, ones = [], [np.ones_like(each) for each in made]
        for wanted in (range(11), [0], [1], [3], [2, 4], [6], [7], [9], [10]):
            room = [np.full_like(each, np.nan) if n in wanted else None for n, each in enumerate(right)]
            saved.backward(ones, room)
            gradients.append(room)
        for first in (ones[1:], [None, None, ones[3], ones[4]], [ones[1], None, None, None]):
            room = [np.full_like(each, np.nan) for each in right]
            saved.backward([None, *first], room)
            gradients.append(room)
        return made, gradients, saved.bytes

    for n in range(1, 5):
        alone = [each if m == n else None for m, each in enumerate(right[:5])][1:]
        filled = [zeros if each is None else each for each in alone]
        (made, gradients, size), (wanted, exact, other) = run(alone), run(filled)
        assert size == other > 0
        for a, b in zip(made, wanted, strict=True):
            np.testing.assert_array_equal(a, b)
        for found, all_of in zip(gradients, exact, strict=True):
            for a, b in zip(found, all_of, strict=True):
                if a is not None:
                    np.testing.assert_array_equal(a, b)
        for found in gradients[1:9]:
            for a, b in zip(found, gradients[0], strict=True):
                if a is not None:
                    np.testing.assert_array_equal(a, b)


def test_packed_weights_of_both_directions_are_never_stale():
    cell = _core.KerasCell(options_of(2))
    arrays = arrays_of(SHAPES, 2)

    def run(cell, saving=False):
        made = arrays_of(OUTPUTS, 2)
        cell.forward(arrays, None, FLAGS, saving, made)
        return np.concatenate([each.ravel() for each in made])

    first = run(cell)
    for count, place in enumerate(range(5, 11), 2):
        arrays[place].flat[-1] += 1
        found = run(cell)
        np.testing.assert_array_equal(found, run(_core.KerasCell(options_of(2))))
        assert (found != first).any() and cell.packings == count
        first = found
    run(cell, saving=True)  # packed for inference before
    assert cell.packings == 8
    run(cell)
    assert cell.packings == 8, "what serves training serves inference"


@pytest.mark.parametrize("units", [15, 16, 17, 33])
def test_weights_of_any_size(units):
    """They are transposed in squares of 16: against the layer with the same weights."""
    options = {"rnn_mode": "rnn_tanh", "num_units": units, "input_size": 18, "dtype": "float64", "single_bias": True}
    random = np.random.default_rng(units)
    kernel, recurrent = random.normal(size=(18, units)), random.normal(size=(units, units)) / 9
    x, bias, h = random.normal(size=(2, 2, 18)), random.normal(size=units), random.normal(size=(2, units))
    y, hn = np.full((2, 2, units), np.nan), np.full((2, units), np.nan)
    cell = _core.KerasCell(options)
    saved = cell.forward([x, h, None, kernel, recurrent, bias], None, FLAGS, True, [y, hn, None])
    first = np.tanh(x[:, 0] @ kernel + h @ recurrent + bias)
    second = np.tanh(x[:, 1] @ kernel + first @ recurrent + bias)
    np.testing.assert_allclose(y, np.stack([first, second], 1), atol=1e-13)
    room = [np.full_like(each, np.nan) for each in (x, h, kernel, recurrent, bias)]
    dy = random.normal(size=y.shape)
    saved.backward([dy, None, None], [room[0], room[1], None, *room[2:]])
    d2 = dy[:, 1] * (1 - second**2)
    d1 = (dy[:, 0] + d2 @ recurrent.T) * (1 - first**2)
    wanted = [np.stack([d1 @ kernel.T, d2 @ kernel.T], 1), d1 @ recurrent.T, x[:, 0].T @ d1 + x[:, 1].T @ d2,
              h.T @ d1 + first.T @ d2, d1.sum(0) + d2.sum(0)]
    for found, exact in zip(room, wanted, strict=True):
        np.testing.assert_allclose(found, exact, atol=1e-12)
