"""The handlers of openrnn.jax, called with call frames made by hand: no JAX is needed, and whatever
is wrong with a frame is an error with its text, never a crash."""

import ctypes as c

import numpy as np
import openrnn
import pytest
from frames import Call, Extension, Metadata, MetadataExtension, Version, pointer_to
from openrnn import _core

NETWORK = {"rnn_mode": "lstm", "num_units": 4, "input_size": 3, "dtype": "float32"}
RANDOM = np.random.default_rng(1)


def drawn(*shape):
    return RANDOM.normal(size=shape).astype(np.float32)


def forward(saving=False, lengths=(), **changes):
    """(operands, results, attributes) of a right call, T 5, B 2, but for `changes` by name."""
    text = _core.jax_network(NETWORK)
    reserve = _core.jax_reserve_bytes(text, 5, 2, False) if saving else 0
    operands = {
        "x": drawn(5, 2, 3), "h0": drawn(1, 2, 4), "c0": drawn(1, 2, 4), "params": drawn(144),
        "lengths": np.array(lengths, np.int32), "seed": np.zeros(2, np.uint32),
        "token": np.zeros(2, np.uint32),
    }  # fmt: skip
    results = {
        "y": drawn(5, 2, 4), "hn": drawn(1, 2, 4), "cn": drawn(1, 2, 4),
        "reserve": np.zeros(reserve, np.uint8),
    }  # fmt: skip
    attributes = {"network": text, "batch_major": False, "training": False}
    for name, value in changes.items():
        for group in (operands, results, attributes):
            if name in group:
                group[name] = value
    return operands, results, attributes


def call_of(parts, **options):
    operands, results, attributes = parts
    return Call(list(operands.values()), list(results.values()), attributes, **options)


def test_a_right_frame_is_computed():
    parts = forward(saving=True)
    assert call_of(parts).run() is None
    operands, results, _ = parts
    model = openrnn.cudnn_rnn.ops.CudnnLSTM(1, 4, 3)
    y, h, cell = model(*(operands[name] for name in ("x", "h0", "c0", "params")))
    assert np.array_equal(y.numpy(), results["y"])
    assert np.array_equal(h.numpy(), results["hn"])
    assert np.array_equal(cell.numpy(), results["cn"])
    again = forward(**{**operands, "lengths": np.array([5, 5], np.int32)})
    assert call_of(again, version=(0, 1)).run() is None
    assert np.array_equal(again[1]["y"], results["y"])


def backward(parts, reserve):
    """The gradients that the handler finds with a reserve of forward's."""
    operands, _, attributes = parts
    gradients = [drawn(5, 2, 3), drawn(1, 2, 4), drawn(1, 2, 4), drawn(144)]
    given = [np.ones((5, 2, 4), np.float32), np.ones((1, 2, 4), np.float32),
             np.ones((1, 2, 4), np.float32), *list(operands.values())[:6], reserve]  # fmt: skip
    assert Call(given, gradients, {**attributes, "rows": False}).run("openrnn_backward") is None
    return gradients


def same(found, wanted):
    return all(np.array_equal(a, b) for a, b in zip(found, wanted, strict=True))


def test_backward_reads_a_reserve_at_any_address():
    parts = forward(saving=True)
    call_of(parts).run()
    kept, found = parts[1]["reserve"], []
    for shift in (0, 4):
        room = np.zeros(kept.size + 128, np.uint8)
        start = -room.ctypes.data % 64 + shift
        room[start : start + kept.size] = kept
        found.append(backward(parts, room[start : start + kept.size]))
    assert same(*found)


def test_a_reserve_of_another_call_is_not_used():
    parts = forward(saving=True)
    call_of(parts).run()
    kept = parts[1]["reserve"]
    wanted = backward(parts, kept)
    spoiled = kept.copy()
    spoiled[:64] ^= 1
    other = forward(saving=True)
    call_of(other).run()
    for reserve in (spoiled, other[1]["reserve"], kept[:100], kept[:0], kept[::-1].copy()):
        assert same(backward(parts, reserve), wanted)
    changed = kept.copy()
    changed[-900:] = 0
    assert not same(backward(parts, changed), wanted), "the reserve is read where it is the call's"


WRONG = [
    ({"x": drawn(5, 2)}, "x is float32 [5, 2], expected 3 dimensions"),
    ({"x": drawn(5, 2, 4)}, "x is float32 [5, 2, 4], expected float32 [5, 2, 3]"),
    ({"x": np.zeros((5, 2, 3))}, "x is float64 [5, 2, 3], expected float32 [5, 2, 3]"),
    ({"h0": drawn(2, 1, 4)}, "h0 is float32 [2, 1, 4], expected float32 [1, 2, 4]"),
    ({"c0": drawn(0)}, "c0 is float32 [0], expected float32 [1, 2, 4]"),
    ({"params": drawn(143)}, "params is float32 [143], expected float32 [144]"),
    ({"lengths": np.array([1], np.int32)}, "sequence_lengths is int32 [1], expected int32 [2]"),
    ({"lengths": np.array([1, 6], np.int32)}, "sequence_lengths[1] is 6, expected 0 to 5"),
    ({"seed": np.zeros(2, np.int32)}, "seed is int32 [2], expected uint32 [2]"),
    ({"seed": np.zeros(2, np.complex64)}, "seed is XLA's type 77 [2], expected uint32 [2]"),
    ({"y": drawn(2, 5, 4)}, "y is float32 [2, 5, 4], expected float32 [5, 2, 4]"),
    ({"reserve": np.zeros(3, np.uint8)}, "reserve is uint8 [3], expected uint8 [1344] or more"),
    ({"training": 1}, "attribute training is int64, expected bool"),
    ({"training": "yes"}, "attribute training is of kind 4, expected 3"),
    ({"network": '{"rnn_mode": "lstm", "num_units": 4'}, "attribute network"),
    ({"network": '{"rnn_mode": "tree", "num_units": 4}'}, "'tree'"),
    ({"network": '{"leaves": 4}'}, "leaves"),
    ({"network": '{"num_units": 0, "input_size": 3}'}, "num_units"),
]


@pytest.mark.parametrize(("changes", "text"), WRONG, ids=[text for _, text in WRONG])
def test_a_wrong_frame_is_an_error(changes, text):
    code, found = call_of(forward(**changes)).run()
    assert code == 3 and text in found and found.startswith("["), found


def test_counts_and_missing_attributes():
    operands, results, attributes = forward()
    _, found = Call(list(operands.values())[:5], list(results.values()), attributes).run()
    assert found == "[openrnn.jax] there are 5 operands and 4 results, expected 7 and 4"
    del attributes["training"]
    _, found = call_of((operands, results, attributes)).run()
    assert found == "[openrnn.jax] attribute training is missing, expected it"


@pytest.mark.parametrize("version", [(1, 0), (0, 0), (7, 3)])
def test_another_version_is_refused_by_name(version):
    code, found = call_of(forward(), version=version).run()
    assert code == 13
    assert found == (
        f"[openrnn.jax] XLA's FFI is version {version[0]}.{version[1]}, expected 0.1 or a later one "
        "with the same first number: another jaxlib"
    )


def test_a_smaller_frame_is_refused():
    call = call_of(forward())
    call.frame.size = 24
    code, found = call.run()
    assert code == 13 and "XLA's call frame has 24 bytes, expected" in found


@pytest.mark.parametrize("stage", [0, 1, 2])
def test_other_stages_do_nothing(stage):
    parts = forward(x=drawn(5, 2))
    before = parts[1]["y"].copy()
    call = call_of(parts)
    call.frame.stage = stage
    assert call.run() is None
    assert np.array_equal(parts[1]["y"], before)


@pytest.mark.parametrize(("version", "told"), [((0, 1), (0, 1)), ((0, 3), (0, 3)), ((2, 5), (0, 1))])
def test_metadata(version, told):
    answer = Metadata(c.sizeof(Metadata), Version(c.sizeof(Version), None, 9, 9), 9)
    query = MetadataExtension(Extension(c.sizeof(MetadataExtension), 1, None), c.pointer(answer))
    call = call_of(forward(x=drawn(1)), version=version)
    call.frame.ext = pointer_to(query)
    assert call.run() is None
    assert (answer.version.major, answer.version.minor, answer.traits) == (*told, 0)
