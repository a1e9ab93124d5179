"""Every array of every handler that does not fit is named, with what it is and what is expected; and what
the handlers of openrnn.jax compute from each operand."""

import ctypes as c

import ml_dtypes
import numpy as np
import openrnn
import pytest
from frames import Buffer, Call, Extension, Frame, Metadata, MetadataExtension, P, Version, pointer_to
from openrnn import _core

TIME, BATCH, INPUT, UNITS, PROJ = 5, 2, 3, 4, 2
NETWORK = {"rnn_mode": "lstm", "num_units": UNITS, "input_size": INPUT, "num_proj": PROJ, "dtype": "float32"}
SIZE = openrnn.cudnn_rnn.ops.CudnnLSTM(1, UNITS, INPUT, num_proj=PROJ).params_size()
SHAPES = {"x": (TIME, BATCH, INPUT), "h0": (1, BATCH, PROJ), "c0": (1, BATCH, UNITS), "params": (SIZE,)}
OUTPUTS = {"y": (TIME, BATCH, PROJ), "hn": (1, BATCH, PROJ), "cn": (1, BATCH, UNITS)}


def before(letter, shapes):
    return {letter + name: shape for name, shape in shapes.items()}


# Operands and results by name, of floats; behind those of a call come lengths and a seed.
HANDLERS = {
    "openrnn_forward": (SHAPES, OUTPUTS),
    "openrnn_backward": ({**before("d", OUTPUTS), **SHAPES}, before("d", SHAPES)),
    "openrnn_tangent": ({**before("v", SHAPES), **before("d", OUTPUTS), **SHAPES}, {**OUTPUTS, **SHAPES}),
}


def frame(handler, network=NETWORK, change=None, result=None, rows=False, **attributes):
    """(operands, results, attributes), but for the operand or result that `change` or `result` names."""
    shapes, made = HANDLERS[handler]
    if rows:
        made = {**made, "dparams": (BATCH, SIZE)}
    draw = np.random.default_rng(4).normal
    operands = {name: draw(size=shape).astype(network["dtype"]) for name, shape in shapes.items()}
    operands |= {"sequence_lengths": np.zeros(0, np.int32), "seed": np.zeros(2, np.uint32)}
    results = {name: np.full(shape, np.nan, network["dtype"]) for name, shape in made.items()}
    if handler == "openrnn_forward":
        operands["token"] = np.zeros(2, np.uint32)
        results["reserve"] = np.zeros(0, np.uint8)
    if handler == "openrnn_backward":
        operands["reserve"] = np.zeros(0, np.uint8)
        attributes["rows"] = rows
    operands |= change or {}
    results |= result or {}
    return operands, results, {"network": _core.jax_network(network), "batch_major": False, "training": False,
                               **attributes}  # fmt: skip


def run(handler, parts):
    return Call(list(parts[0].values()), list(parts[1].values()), parts[2]).run(handler)


def text(array):
    return f"{array.dtype} [{', '.join(map(str, array.shape))}]"


@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("handler", HANDLERS)
def test_every_array_is_named(handler, rows):
    if rows and handler != "openrnn_backward":
        return
    parts = frame(handler, rows=rows)
    assert run(handler, parts) is None
    for place, group in (("change", parts[0]), ("result", parts[1])):
        for name, right in group.items():
            if name == "reserve":
                continue
            wrong = [np.zeros((*right.shape[:-1], 9), right.dtype)]
            if name not in ("sequence_lengths", "seed", "token"):
                wrong.append(right.astype("float64"))
            for array in wrong:
                expected = text(np.zeros(BATCH, np.int32) if name == "sequence_lengths" else right)
                found = run(handler, frame(handler, rows=rows, **{place: {name: array}}))
                assert found == (3, f"[openrnn.jax] {name} is {text(array)}, expected {expected}")


@pytest.mark.parametrize("given", ["float16", "bfloat16", "float64", "int32", "int64", "uint8", "uint32", "bool"])
def test_types_have_numpys_names(given):
    array = np.zeros(SHAPES["x"], getattr(ml_dtypes, given, given))
    found = run("openrnn_forward", frame("openrnn_forward", change={"x": array}))
    assert found == (3, f"[openrnn.jax] x is {given} [5, 2, 3], expected float32 [5, 2, 3]")
    if given.endswith(("16", "64")) and given != "int64":
        plain = frame("openrnn_forward")[0]["x"]
        found = run("openrnn_forward", frame("openrnn_forward", {**NETWORK, "dtype": given}, {"x": plain}))
        assert found == (3, f"[openrnn.jax] x is float32 [5, 2, 3], expected {given} [5, 2, 3]")


@pytest.mark.parametrize("handler", HANDLERS)
def test_numbers_of_arrays(handler):
    operands, results, attributes = frame(handler)
    count, made = len(operands), len(results)
    for more, fewer in ((-1, 0), (1, 0), (0, -1), (0, 1)):
        given = (list(operands.values()) + [np.zeros(1)])[: count + more]
        room = (list(results.values()) + [np.zeros(1)])[: made + fewer]
        found = Call(given, room, attributes).run(handler)
        assert found == (3, f"[openrnn.jax] there are {count + more} operands and {made + fewer} results, "
                            f"expected {count} and {made}")  # fmt: skip


def call_of(handler="openrnn_forward", **more):
    operands, results, attributes = frame(handler, **more)
    return Call(list(operands.values()), list(results.values()), attributes)


def test_what_is_no_buffer():
    for place, said in ((0, "x is no buffer, expected 3 dimensions"), (1, "h0 is no buffer, expected one")):
        call = call_of()
        call.frame.operands.types[place] = 2
        assert call.run() == (3, f"[openrnn.jax] {said}")
        call = call_of()
        c.cast(call.frame.operands.values[place], P(Buffer))[0].size = 8
        assert call.run() == (3, f"[openrnn.jax] {said}")
    call = call_of()
    call.frame.results.types[1] = 2
    assert call.run() == (3, "[openrnn.jax] hn is no buffer, expected one")
    flat = call_of(result={"reserve": np.zeros((1, 2), np.uint8)})
    assert flat.run() == (3, "[openrnn.jax] reserve is uint8 [1, 2], expected 1 dimension")
    words = call_of(result={"reserve": np.zeros(2, np.int32)})
    assert words.run() == (3, "[openrnn.jax] reserve is int32 [2], expected uint8 [2]")


def test_frames_of_another_size():
    whole = c.sizeof(Frame)
    for part in (None, "operands", "results", "attributes"):
        call = call_of()
        if part:
            getattr(call.frame, part).size = 8
        else:
            call.frame.size = 24
        assert call.run() == (13, f"[openrnn.jax] XLA's call frame has {whole if part else 24} bytes, expected "
                                  f"{whole} or more: another jaxlib")  # fmt: skip
    call = call_of()
    call.frame.size = whole + 8  # of a later version
    assert call.run() is None


def test_attributes_of_another_kind():
    for changed, said in (({"network": True}, "attribute network is of kind 3, expected 4"),
                          ({"training": "a"}, "attribute training is of kind 4, expected 3"),
                          ({"batch_major": 2}, "attribute batch_major is int64, expected bool")):
        parts = frame("openrnn_forward")
        parts[2].update(changed)
        assert run("openrnn_forward", parts) == (3, f"[openrnn.jax] {said}")
    parts = frame("openrnn_forward")
    parts[2]["network"] += " "
    assert run("openrnn_forward", parts) is None, "JSON with a space"
    parts[2]["network"] += "{}"
    code, said = run("openrnn_forward", parts)
    assert code == 3 and said.startswith("[openrnn.jax] ") and "attribute network" in said


def test_other_extensions_are_left_alone():
    answer = Metadata(c.sizeof(Metadata), Version(c.sizeof(Version), None, 9, 9), 9)
    query = MetadataExtension(Extension(c.sizeof(MetadataExtension), 1, None), c.pointer(answer))
    other = Extension(c.sizeof(Extension), 5, None)
    call = call_of()
    call.frame.ext = pointer_to(other)
    assert call.run() is None and answer.traits == 9
    other.next = c.cast(c.pointer(query), P(Extension))
    assert call.run() is None
    assert (answer.version.major, answer.version.minor, answer.traits) == (0, 3, 0)


DROPOUT = {**NETWORK, "num_proj": 0, "num_layers": 2, "dropout": 0.5, "dtype": "float64"}


@pytest.fixture
def two_layers(monkeypatch):
    """The handlers' shapes of DROPOUT."""
    size = openrnn.cudnn_rnn.ops.CudnnLSTM(2, UNITS, INPUT).params_size()
    shapes = {"x": SHAPES["x"], "h0": (2, BATCH, UNITS), "c0": (2, BATCH, UNITS), "params": (size,)}
    outputs = {"y": (TIME, BATCH, UNITS), "hn": (2, BATCH, UNITS), "cn": (2, BATCH, UNITS)}
    monkeypatch.setitem(HANDLERS, "openrnn_forward", (shapes, outputs))
    monkeypatch.setitem(HANDLERS, "openrnn_backward", ({**before("d", outputs), **shapes}, before("d", shapes)))
    monkeypatch.setitem(
        HANDLERS, "openrnn_tangent",
        ({**before("v", shapes), **before("d", outputs), **shapes}, {**outputs, **{f"c_{n}": s for n, s in shapes.items()}}),
    )  # fmt: skip


def swapped(parts):
    """The same, batch-major."""
    for group in parts[:2]:
        for name, array in group.items():
            if array.ndim == 3:
                group[name] = np.ascontiguousarray(array.swapaxes(0, 1))
    parts[2]["batch_major"] = True


def moved(operands, by):
    return {name: operands[name] + by * operands["v" + name] for name in ("x", "h0", "c0", "params")}


@pytest.mark.parametrize("lengths", [(), (5, 2)])
@pytest.mark.parametrize("batch_major", [False, True])
@pytest.mark.parametrize("training", [False, True])
def test_tangents_are_differences(two_layers, training, batch_major, lengths):
    """moved and curvature against forward and backward at two points nearby, with the same masks."""
    given = {"sequence_lengths": np.array(lengths, np.int32), "seed": np.array([7, 9], np.uint32)}
    parts = frame("openrnn_tangent", DROPOUT, given, training=training)
    if batch_major:
        swapped(parts)
    assert run("openrnn_tangent", parts) is None
    operands, results, attributes = parts
    step, outputs, gradients = 1e-6, [], []
    for by in (step, -step):
        near = {**moved(operands, by), **given}
        forward = frame("openrnn_forward", DROPOUT)
        room = [np.full_like(results[name], np.nan) for name in ("y", "hn", "cn")]
        token = [forward[0]["token"]]
        assert Call([*near.values(), *token], [*room, np.zeros(0, np.uint8)], attributes).run("openrnn_forward") is None
        outputs.append(room)
        upstream = [operands[name] for name in ("dy", "dhn", "dcn")]
        room = [np.full_like(near[name], np.nan) for name in ("x", "h0", "c0", "params")]
        given_back = [*upstream, *near.values(), np.zeros(0, np.uint8)]
        assert Call(given_back, room, {**attributes, "rows": False}).run("openrnn_backward") is None
        gradients.append(room)
    for found, (right, left) in zip(results.values(), [*zip(*outputs), *zip(*gradients)], strict=True):
        slope = (right - left) / (2 * step)
        assert abs(slope).max() > 1e-3
        np.testing.assert_allclose(found, slope, atol=1e-6 * max(1, abs(slope).max()))


def test_both_words_of_a_seed_choose_the_masks(two_layers):
    found = []
    for seed in ((1, 0), (1, 1), (0, 1), (1, 0)):
        parts = frame("openrnn_forward", DROPOUT, {"seed": np.array(seed, np.uint32)}, training=True)
        assert run("openrnn_forward", parts) is None
        found.append(parts[1]["y"])
    np.testing.assert_array_equal(found[0], found[3])
    assert all((found[0] != other).any() for other in found[1:3]) and (found[1] != found[2]).any()


def assert_not_used(reserve, given, network=NETWORK, **attributes):
    """Gradients with a reserve of other operands are those without any."""
    found = []
    for each in (reserve, np.zeros(0, np.uint8)):
        back = frame("openrnn_backward", network, {**given, "reserve": each}, **attributes)
        back[0].pop("token")
        names = [*before("d", OUTPUTS), *SHAPES, "sequence_lengths", "seed", "reserve"]
        operands = [back[0][name] for name in names]
        assert Call(operands, list(back[1].values()), back[2]).run("openrnn_backward") is None
        found.append(list(back[1].values()))
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", ["x", "h0", "c0", "sequence_lengths", "no lengths", "seed"])
def test_a_reserve_of_another_operand_is_not_used(two_layers, name):
    """Of which one value differs, the last one."""
    given = {"sequence_lengths": np.array([5, 4], np.int32), "seed": np.array([7, 9], np.uint32)}
    parts = frame("openrnn_forward", DROPOUT, given, training=True)
    text = parts[2]["network"]
    parts[1]["reserve"] = np.zeros(_core.jax_reserve_bytes(text, TIME, BATCH, True), np.uint8)
    assert parts[1]["reserve"].size and run("openrnn_forward", parts) is None
    if name == "no lengths":
        given["sequence_lengths"] = np.zeros(0, np.int32)
    elif name in given:
        given[name] = given[name] - np.array([0, 1], given[name].dtype)
    else:
        given[name] = parts[0][name].copy()
        given[name].flat[-1] += 1
    assert_not_used(parts[1]["reserve"], {**parts[0], **given}, DROPOUT, training=True)


@pytest.mark.parametrize("name", ["x", "h0", "c0"])
def test_a_reserve_of_another_projected_state_is_not_used(name):
    """Whose cell state is wider than its hidden one, by any of its elements."""
    parts = frame("openrnn_forward")
    parts[1]["reserve"] = np.zeros(_core.jax_reserve_bytes(parts[2]["network"], TIME, BATCH, False), np.uint8)
    assert parts[1]["reserve"].size and run("openrnn_forward", parts) is None
    for place in range(parts[0][name].size):
        given = {**parts[0], name: parts[0][name].copy()}
        given[name].flat[place] += 1
        assert_not_used(parts[1]["reserve"], given)


@pytest.mark.parametrize("handler", ["openrnn_forward", "openrnn_backward"])
def test_what_the_library_does_not_support_is_told_as_that(handler):
    network = {**NETWORK, "weights_dtype": "int8"}
    room = np.zeros(_core.jax_reserve_bytes(_core.jax_network(NETWORK), TIME, BATCH, False), np.uint8)
    more = {"result": {"reserve": room}} if handler == "openrnn_forward" else {}
    assert run(handler, frame(handler, network, **more)) == (
        12, "[pack] weights_dtype is 'int8', which is for inference; expected 'none' in training"
    )  # fmt: skip


def test_a_network_that_no_engine_runs_is_the_library_s_own_error():
    code, said = run("openrnn_forward", frame("openrnn_forward", {**NETWORK, "math": "tf32"}))
    assert code == 13 and said.startswith("[choose_engine] no engine of the cpu can run lstm, 1 layer")


@pytest.mark.parametrize("name", ["h0", "c0", "x", "params"])
@pytest.mark.parametrize("rank", ["lower", "higher"])
def test_arrays_of_another_rank(name, rank):
    """Whose dimensions begin as the right ones do, or end with more."""
    right = SHAPES[name]
    shape = right[:-1] if rank == "lower" else (*right, 1)
    given = np.zeros(shape, "float32")
    expected = "3 dimensions" if name == "x" else f"float32 [{', '.join(map(str, right))}]"
    found = run("openrnn_forward", frame("openrnn_forward", change={name: given}))
    assert found == (3, f"[openrnn.jax] {name} is {text(given)}, expected {expected}")


def test_what_is_held_is_of_one_network():
    """A token beside another network's text is not that network's packing."""
    params = frame("openrnn_forward")[0]["params"]
    token = np.array(_core.jax_hold(_core.jax_network(NETWORK), params.ctypes.data, True), np.uint32)
    clipped = {**NETWORK, "cell_clip": (-0.01, 0.01)}
    found = []
    for given in (token, np.zeros(2, np.uint32)):
        parts = frame("openrnn_forward", clipped, {"params": params, "token": given})
        assert run("openrnn_forward", parts) is None
        found.append(parts[1])
    _core.jax_drop(*map(int, token))
    for name in OUTPUTS:
        np.testing.assert_array_equal(found[0][name], found[1][name])
    assert abs(found[0]["cn"]).max() <= np.float32(0.01)
