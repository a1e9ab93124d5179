"""The handlers of openrnn.keras under JAX, called with call frames made by hand: neither JAX nor Keras
is needed, and whatever is wrong with a frame is an error with its text, never a crash."""

import gc

import numpy as np
import pytest
from frames import Call
from openrnn import _core

BATCH, TIME, INPUT, UNITS = 2, 5, 3, 4
OPTIONS = {"rnn_mode": "lstm", "num_units": UNITS, "input_size": INPUT, "dtype": "float32",
           "single_bias": True}  # fmt: skip
RANDOM = np.random.default_rng(1)
CELLS = {d: _core.KerasCell({**OPTIONS, "direction": d}) for d in ("unidirectional", "bidirectional")}
ALL = {"given": (1 << 5) - 1, "wanted": (1 << 11) - 1}


def drawn(*shape):
    return RANDOM.normal(size=shape).astype(np.float32)


class Parts:
    """A right call, but for `changes` by name."""

    def __init__(self, directions=1, saving=False, masked=False, **changes):
        self.cell = CELLS["bidirectional" if directions == 2 else "unidirectional"]
        self.directions = directions
        room = self.cell.reserve_room(TIME, BATCH) if saving else 0
        self.operands = {"x": drawn(BATCH, TIME, INPUT)}
        self.results = {"y": drawn(BATCH, TIME, directions * UNITS)}
        for d in range(directions):
            self.operands |= {f"h0{d}": drawn(BATCH, UNITS), f"c0{d}": drawn(BATCH, UNITS)}
            self.results |= {f"hn{d}": drawn(BATCH, UNITS), f"cn{d}": drawn(BATCH, UNITS)}
        for d in range(directions):
            self.operands |= {f"kernel{d}": drawn(INPUT, 4 * UNITS),
                              f"recurrent{d}": drawn(UNITS, 4 * UNITS),
                              f"bias{d}": drawn(4 * UNITS)}  # fmt: skip
        if masked:
            self.operands["mask"] = np.array([[1, 0, 1, 1, 0], [0, 1, 1, 0, 1]], bool)
        self.results["reserve"] = np.zeros(room, np.uint8)
        self.attributes = {"network": self.cell.text, "cell": self.cell.number(), "backwards": False,
                           "sequences": True, "zero": False, "masked": masked}  # fmt: skip
        for name, value in changes.items():
            for group in (self.operands, self.results, self.attributes):
                if name in group:
                    group[name] = value

    def call(self):
        return Call(list(self.operands.values()), list(self.results.values()), self.attributes)

    def forward(self):
        return self.call().run("openrnn_keras_forward")

    def wanted(self):
        """The same by the binding for NumPy's arrays, and its saved call."""
        made = [np.empty_like(each) for name, each in self.results.items() if name != "reserve"]
        given = [each for name, each in self.operands.items() if name != "mask"]
        flags = (self.attributes["backwards"], self.attributes["sequences"], self.attributes["zero"])
        saved = self.cell.forward(given, self.operands.get("mask"), flags, True, made)
        return made, saved

    def backward(self, reserve, given, wanted):
        """Gradients of those arrays that `wanted` names, with ones for the outputs of `given`."""
        outputs = [each for name, each in self.results.items() if name != "reserve"]
        ones = [np.ones_like(each) for n, each in enumerate(outputs) if given >> n & 1]
        arrays = [each for name, each in self.operands.items() if name != "mask"]
        made = [np.full_like(each, 7) for n, each in enumerate(arrays) if wanted >> n & 1]
        attributes = {**self.attributes, "given": given, "wanted": wanted}
        call = Call([*ones, *self.operands.values(), reserve], made, attributes)
        assert call.run("openrnn_keras_backward") is None
        return made

    def gradients(self, saved, given):
        """All of them by the binding."""
        outputs = [each for name, each in self.results.items() if name != "reserve"]
        ones = [np.ones_like(each) if given >> n & 1 else None for n, each in enumerate(outputs)]
        made = [np.empty_like(each) for name, each in self.operands.items() if name != "mask"]
        saved.backward(ones, made)
        return made


def same(found, wanted):
    return all(np.array_equal(a, b) for a, b in zip(found, wanted, strict=True))


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("directions", [1, 2])
def test_frames_compute_what_arrays_do(directions, masked):
    parts = Parts(directions, saving=True, masked=masked)
    assert parts.forward() is None
    wanted, saved = parts.wanted()
    assert same([each for name, each in parts.results.items() if name != "reserve"], wanted)
    plain = Parts(directions, masked=masked, **parts.operands)
    assert plain.forward() is None
    assert same([each for name, each in plain.results.items() if name != "reserve"], wanted)
    count = len(parts.operands) - masked
    for given, mask in ((1, (1 << count) - 1), ((1 << (1 + 2 * directions)) - 1, 0b101001), (2, 1)):
        found = parts.backward(parts.results["reserve"], given, mask)
        right = parts.gradients(saved, given)
        assert same(found, [each for n, each in enumerate(right) if mask >> n & 1])


def test_a_reserve_of_another_size_or_none_is_not_used():
    parts = Parts(saving=True)
    parts.forward()
    kept, right = parts.results["reserve"], parts.gradients(parts.wanted()[1], 7)
    spoiled, changed = kept.copy(), kept.copy()
    spoiled[:64] ^= 1
    changed[-900:] = 0
    for reserve in (kept, spoiled, kept[:100], kept[:0]):
        assert same(parts.backward(reserve, 7, 63), right)
    assert not same(parts.backward(changed, 7, 63), right), "the reserve is read where it is the call's"
    room = np.zeros(kept.size + 128, np.uint8)
    start = -room.ctypes.data % 64 + 4
    room[start : start + kept.size] = kept
    assert same(parts.backward(room[start : start + kept.size], 7, 63), right)


def test_what_was_packed_is_used_again():
    cell = CELLS["unidirectional"]
    parts = Parts()
    before = cell.packings
    for _ in range(3):
        assert parts.forward() is None
    assert cell.packings == before + 1
    parts.operands["kernel0"] *= 2
    assert parts.forward() is None
    assert cell.packings == before + 2


def test_a_call_outlives_its_cell():
    """Compiled programs know a number and the network; the cell of that number may be gone."""
    cell = _core.KerasCell(OPTIONS)
    parts = Parts(cell=cell.number())
    wanted = parts.wanted()[0]
    assert parts.forward() is None and cell.packings == 1
    del cell
    gc.collect()
    for number in (parts.attributes["cell"], 10**12, -1, CELLS["bidirectional"].number()):
        parts.results["y"][...] = 0
        parts.attributes["cell"] = number
        assert parts.forward() is None
        assert np.array_equal(parts.results["y"], wanted[0])


WRONG = [
    ({"x": drawn(5, 2)}, "x is float32 [5, 2], expected 3 dimensions"),
    ({"x": drawn(2, 5, 4)}, "x is float32 [2, 5, 4], expected float32 [2, 5, 3]"),
    ({"x": drawn(2, 0, 3)}, "x has 0 steps, expected one or more"),
    ({"h00": drawn(2, 5)}, "a state is float32 [2, 5], expected float32 [2, 4]"),
    ({"c00": np.zeros((2, 4))}, "a cell is float64 [2, 4], expected float32 [2, 4]"),
    ({"kernel0": drawn(16, 3)}, "kernel is float32 [16, 3], expected float32 [3, 16]"),
    ({"recurrent0": drawn(4, 4)}, "recurrent_kernel is float32 [4, 4], expected float32 [4, 16]"),
    ({"bias0": drawn(2, 16)}, "bias is float32 [2, 16], expected float32 [16]"),
    ({"mask": np.ones((5, 2), bool)}, "mask is bool [5, 2], expected bool [2, 5]"),
    ({"mask": np.ones((2, 5), np.uint8)}, "mask is uint8 [2, 5], expected bool [2, 5]"),
    ({"y": drawn(2, 4)}, "y is float32 [2, 4], expected float32 [2, 5, 4]"),
    ({"sequences": False}, "y is float32 [2, 5, 4], expected float32 [2, 4]"),
    ({"reserve": np.zeros(3, np.uint8)}, "reserve is uint8 [3], expected uint8 ["),
    ({"masked": False}, "there are 7 operands and 4 results, expected 6 and 4"),
    ({"zero": 1}, "attribute zero is int64, expected bool"),
    ({"cell": True}, "attribute cell is bool, expected int64"),
    ({"network": '{"leaves": 4}'}, "leaves"),
]


@pytest.mark.parametrize(("changes", "text"), WRONG, ids=[text for _, text in WRONG])
def test_a_wrong_frame_of_keras_is_an_error(changes, text):
    parts = Parts(masked=True, **{k: v for k, v in changes.items() if k != "masked"})
    parts.attributes |= {k: v for k, v in changes.items() if k == "masked"}
    code, found = parts.forward()
    assert code == 3 and text in found and found.startswith("[openrnn."), found


def test_wrong_bits_are_errors():
    parts = Parts(saving=True)
    parts.forward()
    operands = [parts.results["y"], *parts.operands.values(), parts.results["reserve"]]
    for given, wanted, text in ((1, 3, "8 operands and 1 results, expected 8 and 2"),
                                (3, 1, "x is float32 [2, 4], expected 3 dimensions"),
                                (0, 1, "8 operands and 1 results, expected 7 and 1"),
                                (1 << 40, 1, "x is float32 [2, 5, 4], expected float32 [2, 5, 3]")):
        attributes = {**parts.attributes, "given": given, "wanted": wanted}
        made = [np.empty_like(parts.operands["x"])]
        code, found = Call(operands, made, attributes).run("openrnn_keras_backward")
        assert code == 3 and text in found, found
