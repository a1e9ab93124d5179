"""Sizes that no square of a transposition divides, and packed weights, below openrnn.keras."""

import itertools

import numpy as np
import pytest
from test_keras_both import both_walk, like
from test_keras_cell import STEP, cell_of

NETWORKS = [("lstm", True, True), ("lstm", True, False), ("gru", True, True), ("gru", True, False),
            ("gru", False, True), ("rnn_tanh", True, True)]  # fmt: skip
MASK = np.array([[True, False, True, False], [False, True, True, True], [False] * 4])
NAMES = ("x", "h0", "c0", "h0 back", "c0 back", "kernel", "recurrent", "bias", "kernel back",
         "recurrent back", "bias back")  # fmt: skip


def both_of(mode, reset_after, bias, inputs, units, dtype="float64"):
    """A cell of both directions."""
    sizes = (3, 4, inputs, units)
    return cell_of(mode, sizes, bias, reset_after, dtype, direction="bidirectional")


def drawn(mode, reset_after, bias, inputs, units):
    """x; h and c of each direction; weights of each direction."""
    random = np.random.default_rng(units)
    width = {"lstm": 4, "gru": 3, "rnn_tanh": 1}[mode] * units
    states = [random.normal(size=(3, units)) for _ in range(4)]
    weights = []
    for _ in range(2):
        weights += [random.normal(size=(n, width)) / np.sqrt(n) for n in (inputs, units)]
        two = mode == "gru" and reset_after
        weights.append(random.normal(size=(2, width) if two else width) if bias else None)
    return [random.normal(size=(3, 4, inputs)), *states, *weights]


def without_cells(mode, arrays):
    return [None if mode != "lstm" and n in (2, 4) else one for n, one in enumerate(arrays)]


@pytest.mark.parametrize("inputs, units", [(17, 33), (33, 17), (1, 16), (16, 1), (31, 15)])
@pytest.mark.parametrize("mode, reset_after, bias", NETWORKS)
def test_large_cells_and_a_direction_of_every_array(mode, reset_after, bias, inputs, units):
    cell = both_of(mode, reset_after, bias, inputs, units)
    arrays = drawn(mode, reset_after, bias, inputs, units)
    assert cell.bias_rows == (0 if not bias else 2 if mode == "gru" and reset_after else 1)
    random = np.random.default_rng(5)
    for mask, sequences, zero in itertools.product((None, MASK), (False, True), (False, True)):
        flags = (False, sequences, zero)
        wanted = without_cells(mode, both_walk(mode, arrays, mask, flags, reset_after))
        made = like(wanted)
        saved = cell.forward(without_cells(mode, arrays), mask, flags, True, made)
        for found, right in zip(made, wanted, strict=True):
            if right is not None:
                np.testing.assert_allclose(found, right, rtol=0, atol=1e-12)
        scales = [None if one is None else random.normal(size=one.shape) for one in wanted]
        results = like(without_cells(mode, arrays))
        saved.backward(scales, results)
        for n, gradient in enumerate(results):
            if gradient is None:
                continue
            direction = random.normal(size=gradient.shape)
            moved = [None if one is None else one.astype(complex) for one in arrays]
            moved[n] += 1j * STEP * direction
            out = both_walk(mode, moved, mask, flags, reset_after)
            pairs = zip(scales, out, strict=True)
            slope = sum((s * o).sum().imag for s, o in pairs if s is not None) / STEP
            np.testing.assert_allclose((gradient * direction).sum(), slope, rtol=1e-10, atol=1e-10,
                                       err_msg=f"{NAMES[n]} {flags}")  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_each_array_of_weights_is_looked_at_to_its_ends(dtype):
    """The first and the last number of each, of both directions; what is not a weight is not."""
    cell = both_of("lstm", True, True, 5, 6, dtype)
    arrays = [one.astype(dtype) for one in drawn("lstm", True, True, 5, 6)]
    flags = (False, True, False)

    def outputs(of):
        made = [np.empty((3, 4, 12), dtype), *(np.empty((3, 6), dtype) for _ in range(4))]
        of.forward(arrays, None, flags, False, made)
        return made

    before, count = outputs(cell), 1
    for n in range(11):
        for end in (0, -1):
            arrays[n].flat[end] += 1
            count += n >= 5
            found = outputs(cell)
            assert cell.packings == count, (NAMES[n], end)
            fresh = outputs(both_of("lstm", True, True, 5, 6, dtype))
            assert any((a != b).any() for a, b in zip(found, before, strict=True)), NAMES[n]
            for a, b in zip(found, fresh, strict=True):
                np.testing.assert_array_equal(a, b)
            before = found


def test_what_is_packed_for_a_gradient_serves_calls_without_one():
    cell = both_of("gru", True, True, 5, 6)
    arrays = without_cells("gru", drawn("gru", True, True, 5, 6))
    counts = []
    for saving in (False, False, True, True, False, True):
        made = like([np.zeros((3, 4, 12)), np.zeros((3, 6)), None, np.zeros((3, 6)), None])
        saved = cell.forward(arrays, None, (False, True, False), saving, made)
        assert (saved is not None) == saving
        counts.append(cell.packings)
    assert counts == [1, 1, 2, 2, 2, 2]


def test_a_message_for_every_place():
    cell = both_of("lstm", True, True, 5, 6)
    arrays, flags = drawn("lstm", True, True, 5, 6), (False, True, False)
    names = ["x", "h0", "c0", "h0", "c0", *["kernel", "recurrent_kernel", "bias"] * 2]
    made = [np.zeros((3, 4, 12)), *(np.zeros((3, 6)) for _ in range(4))]

    def refused(given, to, text, mask=None):
        with pytest.raises(ValueError) as caught:
            cell.forward(given, mask, flags, False, to)
        assert str(caught.value) == f"[KerasCell] {text}"

    def text_of(array):
        return "[" + ", ".join(map(str, array.shape)) + "]"

    for n, name in list(enumerate(names))[1:]:
        wide = np.zeros((*arrays[n].shape[:-1], arrays[n].shape[-1] + 1))
        text = f"{name} has shape {text_of(wide)}, expected {text_of(arrays[n])}"
        refused([*arrays[:n], wide, *arrays[n + 1 :]], made, text)
        half = arrays[n].astype("float16")
        refused([*arrays[:n], half, *arrays[n + 1 :]], made, f"{name} is float16, expected float64")
    for n, name in enumerate(["y", "hn", "cn", "hn", "cn"]):
        wide = np.zeros((*made[n].shape[:-1], made[n].shape[-1] + 1))
        text = f"{name} has shape {text_of(wide)}, expected {text_of(made[n])}"
        refused(arrays, [*made[:n], wide, *made[n + 1 :]], text)
        text = "y or hn is None, expected y and hn to be written"
        if name == "cn":
            text = "cn is None, expected cn if, and only if, the cell has a second state"
        refused(arrays, [*made[:n], None, *made[n + 1 :]], text)
    for kind in ("int8", "uint16", "complex64", "float32", "bool"):
        given = [arrays[0].astype(kind), *arrays[1:]]
        refused(given, made, f"x is {kind}, expected float64")
    refused(arrays[:-1], made, "10 arrays, expected 11 or None in a place")
    refused(arrays, made[:-1], "4 arrays, expected 5 or None in a place")
    plain = cell_of("gru", (3, 4, 5, 6), False, True)
    of_gru = without_cells("gru", drawn("gru", True, False, 5, 6))
    given = [*of_gru[:3], *of_gru[5:8]]
    for bias, cn, text in (
        (np.zeros(18), None, "bias is an array, expected a bias if, and only if, the cell has one"),
        (None, np.zeros((3, 6)), "cn is an array, expected cn if, and only if, the cell has a "
                                 "second state"),
    ):  # fmt: skip
        with pytest.raises(ValueError) as caught:
            to = [np.zeros((3, 4, 6)), np.zeros((3, 6)), cn]
            plain.forward([*given[:5], bias], None, flags, False, to)
        assert str(caught.value) == f"[KerasCell] {text}"
