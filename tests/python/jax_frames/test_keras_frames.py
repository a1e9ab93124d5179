"""The handlers of openrnn.keras under JAX, called with call frames made by hand: neither JAX nor Keras
is needed, and whatever is wrong with a frame is an error with its text, never a crash."""

import functools
import gc

import numpy as np
import pytest
from frames import Call
from openrnn import _core

BATCH, TIME, INPUT, UNITS = 2, 5, 3, 4
GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1}
RANDOM = np.random.default_rng(1)


def drawn(*shape):
    return RANDOM.normal(size=shape).astype(np.float32)


def options_of(mode="lstm", bias=True, dtype="float32"):
    options = {"rnn_mode": mode, "num_units": UNITS, "input_size": INPUT, "dtype": dtype,
               "use_bias": bias}  # fmt: skip
    return options if mode == "gru" or not bias else {**options, "single_bias": True}


@functools.cache
def cell_of(directions, *network):
    both = {"direction": "bidirectional"} if directions == 2 else {}
    return _core.KerasCell({**options_of(*network), **both})


class Parts:
    """A right call, but for `changes` by name; `of` is mode, bias and dtype of another network, and
    `last` leaves the outputs of the last steps alone."""

    def __init__(self, directions=1, saving=False, masked=False, of=(), last=False, **changes):
        self.cell, self.directions = cell_of(directions, *of), directions
        options = options_of(*of)
        mode, dtype = options["rnn_mode"], options["dtype"]
        width = GATES[mode] * UNITS
        room = self.cell.reserve_room(TIME, BATCH) if saving else 0
        self.operands = {"x": drawn(BATCH, TIME, INPUT)}
        steps = () if last else (TIME,)
        self.results = {"y": drawn(BATCH, *steps, directions * UNITS)}
        for d in range(directions):
            for state in "hc" if mode == "lstm" else "h":
                self.operands[f"{state}0{d}"] = drawn(BATCH, UNITS)
                self.results[f"{state}n{d}"] = drawn(BATCH, UNITS)
        for d in range(directions):
            self.operands[f"kernel{d}"] = drawn(INPUT, width)
            self.operands[f"recurrent{d}"] = drawn(UNITS, width)
            if options["use_bias"]:
                self.operands[f"bias{d}"] = drawn(*(2, width) if mode == "gru" else (width,))
        for group in (self.operands, self.results):
            group |= {name: each.astype(dtype) for name, each in group.items()}
        self.outputs = list(self.results)
        self.arrays = list(self.operands)
        if masked:
            self.operands["mask"] = np.array([[1, 0, 1, 1, 0], [0, 1, 1, 0, 1]], bool)
        self.results["reserve"] = np.zeros(room, np.uint8)
        self.attributes = {"network": self.cell.text, "cell": self.cell.number(), "backwards": False,
                           "sequences": not last, "zero": False, "masked": masked}  # fmt: skip
        for name, value in changes.items():
            for group in (self.operands, self.results, self.attributes):
                if name in group:
                    group[name] = value

    def call(self):
        return Call(list(self.operands.values()), list(self.results.values()), self.attributes)

    def forward(self):
        return self.call().run("openrnn_keras_forward")

    def made(self):
        """The outputs."""
        return [self.results[name] for name in self.outputs]

    def slots(self, arrays, *names):
        """Arrays by name in the places of a list of the binding, which has None in the others."""
        of_all = [f"{name}{d}" for d in range(self.directions) for name in names[1:3]]
        of_all += [f"{name}{d}" for d in range(self.directions) for name in names[3:]]
        return [arrays.get(name) for name in (names[0], *of_all)]

    def of_outputs(self, arrays):
        return self.slots(arrays, "y", "hn", "cn")

    def of_arrays(self, arrays):
        return self.slots(arrays, "x", "h0", "c0", "kernel", "recurrent", "bias")

    def wanted(self):
        """The same by the binding for NumPy's arrays, and its saved call."""
        made = {name: np.empty_like(self.results[name]) for name in self.outputs}
        flags = (self.attributes["backwards"], self.attributes["sequences"], self.attributes["zero"])
        saved = self.cell.forward(
            self.of_arrays(self.operands), self.operands.get("mask"), flags, True,
            self.of_outputs(made),
        )  # fmt: skip
        return list(made.values()), saved

    def ones(self, given):
        """Gradients of the outputs that `given` names."""
        return {name: np.ones_like(self.results[name])
                for n, name in enumerate(self.outputs) if given >> n & 1}  # fmt: skip

    def backward(self, reserve, given, wanted):
        """Gradients of those arrays that `wanted` names, with ones for the outputs of `given`."""
        made = [np.full_like(self.operands[name], 7)
                for n, name in enumerate(self.arrays) if wanted >> n & 1]  # fmt: skip
        attributes = {**self.attributes, "given": given, "wanted": wanted}
        operands = [*self.ones(given).values(), *self.operands.values(), reserve]
        assert Call(operands, made, attributes).run("openrnn_keras_backward") is None
        return made

    def gradients(self, saved, given):
        """All of them by the binding."""
        made = {name: np.empty_like(self.operands[name]) for name in self.arrays}
        saved.backward(self.of_outputs(self.ones(given)), self.of_arrays(made))
        return list(made.values())


def same(found, wanted):
    return all(np.array_equal(a, b) for a, b in zip(found, wanted, strict=True))


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize(("directions", "backwards"), [(1, False), (1, True), (2, False)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("mode", GATES)
def test_frames_compute_what_arrays_do(mode, bias, dtype, directions, backwards, last, masked):
    network = (mode, bias, dtype)
    parts = Parts(directions, True, masked, network, last, backwards=backwards)
    assert parts.forward() is None
    wanted, saved = parts.wanted()
    assert same(parts.made(), wanted)
    plain = Parts(directions, False, masked, network, last, backwards=backwards, **parts.operands)
    assert plain.forward() is None
    assert same(plain.made(), wanted)
    arrays, outputs = (1 << len(parts.arrays)) - 1, (1 << len(parts.outputs)) - 1
    for given, mask in ((1, arrays), (outputs, 0b101001 & arrays), (2, 1)):
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


@pytest.mark.parametrize("name", ["x", "h00", "c00", "h01", "c01", "mask"])
def test_a_reserve_of_another_call_is_not_used(name):
    """A function of jax.vjp is a tree whose leaves may be replaced."""
    parts = Parts(directions=2, saving=True, masked=True)
    parts.forward()
    kept = parts.results["reserve"].copy()
    other = parts.operands[name]
    parts.operands[name] = ~other if name == "mask" else drawn(*other.shape)
    right = parts.gradients(parts.wanted()[1], 31)
    assert same(parts.backward(kept, 31, (1 << 11) - 1), right)


def test_what_was_packed_is_used_again():
    cell = cell_of(1)
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
    cell = _core.KerasCell(options_of())
    parts = Parts(cell=cell.number())
    wanted = parts.wanted()[0]
    assert parts.forward() is None and cell.packings == 1
    del cell
    gc.collect()
    for number in (parts.attributes["cell"], 10**12, -1, cell_of(2).number()):
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
    assert code == 3 and text in found and found.startswith("[openrnn.keras] "), found


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


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("mode", ["lstm", "gru"])
def test_zeros_for_masked_steps_and_no_reserve(mode, directions, last):
    """The output where a step does not count; and gradients that run forward again."""
    network = (mode, True, "float64")
    parts = Parts(directions, True, True, network, last, zero=True)
    assert parts.forward() is None
    wanted, saved = parts.wanted()
    assert same(parts.made(), wanted)
    held = Parts(directions, False, True, network, last, **parts.operands)
    assert held.forward() is None
    assert (held.results["y"] != parts.results["y"]).any()
    arrays, outputs = (1 << len(parts.arrays)) - 1, (1 << len(parts.outputs)) - 1
    for reserve in (parts.results["reserve"], np.zeros(0, np.uint8)):
        assert same(parts.backward(reserve, outputs, arrays), parts.gradients(saved, outputs))


NAMES = {"h": "a state", "c": "a cell", "kernel": "kernel", "recurrent": "recurrent_kernel", "bias": "bias"}


def said_of(name):
    """What an error calls an array of Parts."""
    bare = name.rstrip("0123456789").removesuffix("n") if name[0] in "hc" else name.rstrip("0123456789")
    return NAMES.get(bare, bare)


def text_of(array):
    return f"{array.dtype} [{', '.join(map(str, array.shape))}]"


def wrong_of(array):
    yield np.zeros((*array.shape[:-1], 9), array.dtype)
    if array.dtype != bool:
        yield array.astype("float64")


@pytest.mark.parametrize("directions", [1, 2])
def test_every_array_of_keras_is_named(directions):
    right = Parts(directions, masked=True)
    for name, array in {**right.operands, **right.results}.items():
        if name == "reserve":
            continue
        for wrong in wrong_of(array):
            found = Parts(directions, masked=True, **{name: wrong}).forward()
            assert found == (3, f"[openrnn.keras] {said_of(name)} is {text_of(wrong)}, expected {text_of(array)}")


@pytest.mark.parametrize("directions", [1, 2])
def test_every_array_of_a_gradient_of_keras_is_named(directions):
    parts = Parts(directions, masked=True)
    given, wanted = (1 << len(parts.outputs)) - 1, (1 << len(parts.arrays)) - 1
    attributes = {**parts.attributes, "given": given, "wanted": wanted}
    reserve = np.zeros(0, np.uint8)

    def run(gradients, operands, made):
        given = [*gradients.values(), *operands.values(), reserve]
        return Call(given, list(made.values()), attributes).run("openrnn_keras_backward")

    gradients, made = parts.ones(given), {name: parts.operands[name].copy() for name in parts.arrays}
    assert run(gradients, parts.operands, made) is None
    of = lambda name: said_of(name) if said_of(name).startswith("a ") else f"d{said_of(name)}"
    for group, name_of in ((gradients, of), (parts.operands, said_of), (made, of)):
        for name, array in list(group.items()):
            for wrong in wrong_of(array):
                group[name] = wrong
                found = run(gradients, parts.operands, made)
                assert found == (3, f"[openrnn.keras] {name_of(name)} is {text_of(wrong)}, expected {text_of(array)}")
            group[name] = array
