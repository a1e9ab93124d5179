"""The memory of a session's and a pool's arrays: its size, what is written, what is in it."""

import numpy as np
import openrnn
import pytest
from openrnn import cudnn_rnn
from table.support import error_text

T, B, I, U, P = 5, 3, 2, 7, 4
DTYPES = ["float32", "float64", "float16"]
KINDS = {
    "projected": lambda dtype: cudnn_rnn.CudnnLSTM(2, U, num_proj=P, dtype=dtype, seed=1),
    "both directions": lambda dtype: cudnn_rnn.CudnnLSTM(
        1, U, direction="bidirectional", dtype=dtype, seed=1),
    "gru": lambda dtype: cudnn_rnn.CudnnGRU(2, U, dtype=dtype, seed=1),
}  # fmt: skip


def model_of(name, dtype="float32"):
    layer = KINDS[name](dtype)
    layer.build((None, None, I))
    return layer, openrnn.PackedModel.from_layer(layer)


def sizes_of(name, batch):
    """Numbers of each array of a run."""
    hidden = P if name == "projected" else U
    width = 2 * U if name == "both directions" else hidden
    h, c = 2 * batch * hidden, 0 if name == "gru" else 2 * batch * U
    return {"x": T * batch * I, "y": T * batch * width, "h0": h, "c0": c, "hn": h, "cn": c}


def arrays_of(name, dtype, batch=B):
    random = np.random.default_rng(3)
    found = {k: random.normal(size=n).astype(dtype) for k, n in sizes_of(name, batch).items()}
    if name == "gru":
        found["c0"] = found["cn"] = None
    return found


def refused(text, call, *given):
    assert error_text(openrnn.ArgumentError, call, *given) == text


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", KINDS)
def test_every_array_of_a_run_has_its_size(name, dtype):
    _, model = model_of(name, dtype)
    session, element = openrnn.InferenceSession(model), np.dtype(dtype).itemsize
    arrays = arrays_of(name, dtype)
    for key, size in sizes_of(name, B).items():
        if arrays[key] is None:
            continue
        for wrong in (size - 1, size + 1, 0):
            text = f"[run] an array of {wrong * element} bytes, expected {size * element}"
            given = {**arrays, key: np.zeros(wrong, dtype)}
            refused(text, session.run_core, given, None, T, B, True)
    for count in (B - 1, B + 1):
        text = f"[run] an array of {count * 4} bytes, expected {B * 4}"
        lengths = np.zeros(count, "int32")
        refused(text, session.run_core, arrays, lengths, T, B, True)
    session.run_core(arrays, np.array([5, 2, 0], "int32"), T, B, True)


@pytest.mark.parametrize("name", KINDS)
def test_what_is_written_is_writable_and_what_is_read_need_not_be(name):
    _, model = model_of(name)
    session = openrnn.InferenceSession(model)
    for key, array in arrays_of(name, "float32").items():
        if array is None:
            continue
        arrays = arrays_of(name, "float32")
        arrays[key].flags.writeable = False
        if key in ("y", "hn", "cn"):
            with pytest.raises((BufferError, ValueError)):
                session.run_core(arrays, None, T, B, True)
        else:
            before = arrays[key].copy()
            session.run_core(arrays, None, T, B, True)
            np.testing.assert_array_equal(arrays[key], before)
        strided = {**arrays_of(name, "float32"), key: np.zeros(2 * array.size, "float32")[::2]}
        with pytest.raises((BufferError, ValueError)):
            session.run_core(strided, None, T, B, True)


@pytest.mark.parametrize("time_major", [True, False])
@pytest.mark.parametrize("lengths", [None, [5, 0, 2]])
@pytest.mark.parametrize("left_out", ["", "h0", "c0", "hn", "cn", "h0 c0 hn cn"])
@pytest.mark.parametrize("name", KINDS)
def test_what_is_left_out_is_zeros_or_not_written(name, left_out, lengths, time_major):
    layer, model = model_of(name)
    arrays = arrays_of(name, "float32")
    arrays.update(dict.fromkeys(left_out.split()))
    given = None if lengths is None else np.array(lengths, "int32")
    openrnn.InferenceSession(model).run_core(arrays, given, T, B, time_major)
    hidden = P if name == "projected" else U
    shapes = {"h": (2, B, hidden), "c": (2, B, U)}

    def ordered(flat, shape):
        if time_major:
            return flat.reshape(shape)
        return flat.reshape(shape[1], shape[0], shape[2]).swapaxes(0, 1)

    states = []
    for key in "h" if name == "gru" else "hc":
        values = arrays[f"{key}0"]
        shape = shapes[key]
        states.append(np.zeros(shape, "float32") if values is None else ordered(values, shape))
    x = ordered(arrays["x"], (T, B, I))
    wanted, last = layer(x, tuple(states), sequence_lengths=lengths, training=False)
    y = arrays["y"]
    np.testing.assert_array_equal(ordered(y, (T, B, y.size // T // B)), wanted)
    for key, right in zip("hc", last, strict=False):
        if arrays[f"{key}n"] is not None:
            np.testing.assert_array_equal(ordered(arrays[f"{key}n"], shapes[key]), right)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", KINDS)
def test_states_of_streams_have_their_sizes(name, dtype):
    if name == "both directions":
        pytest.skip("a stream has one direction")
    _, model = model_of(name, dtype)
    pool, element = openrnn.StreamPool(model, streams=2, batch=2, time=T), np.dtype(dtype).itemsize
    arrays = arrays_of(name, dtype, 1)
    h, c = arrays["h0"], arrays["c0"]
    one = pool.join_core(h, c)
    calls = {
        "join": pool.join_core,
        "reset": lambda h, c: pool.reset_core(one, h, c),
        "read": lambda h, c: pool.read_core(one, h, c),
    }
    for call, run in calls.items():
        text = f"[{call}] an array of {(h.size + 1) * element} bytes, expected {h.size * element}"
        refused(text, run, np.zeros(h.size + 1, dtype), c)
        size = 0 if c is None else c.size
        text = f"[{call}] an array of {(size + 1) * element} bytes, expected {size * element}"
        refused(text, run, h.copy(), np.zeros(size + 1, dtype))
    assert len(pool) == 1 and one in pool and one + 1 not in pool
    found = np.zeros_like(h), None if c is None else np.zeros_like(c)
    pool.read_core(one, *found)
    np.testing.assert_array_equal(found[0], h)
    if c is not None:
        np.testing.assert_array_equal(found[1], c)
    pool.reset_core(one, None, None)
    pool.read_core(one, *found)
    assert not found[0].any() and (c is None or not found[1].any())
    for key in ("h", "c")[: 1 if c is None else 2]:
        locked = {"h": h.copy(), "c": c}
        locked[key] = np.zeros_like(locked[key])
        locked[key].flags.writeable = False
        with pytest.raises((BufferError, ValueError)):
            pool.read_core(one, locked["h"], locked["c"])


@pytest.mark.parametrize("time_major", [True, False])
def test_arrays_of_a_step_of_streams(time_major):
    layer, model = model_of("projected")
    pool = openrnn.StreamPool(model, streams=3, batch=3, time=T)
    ids = [pool.join_core(None, None) for _ in range(3)]
    x = np.random.default_rng(2).normal(size=(T, 2, I)).astype("float32")
    y = np.zeros((T, 2, P), "float32")

    def stepped(x, y, lengths=None):
        pool.step_core([ids[2], ids[0]], x, y, lengths, T, time_major)

    for wrong in (x[:-1], np.concatenate([x, x])):
        text = f"[step] an array of {wrong.nbytes} bytes, expected {x.nbytes}"
        refused(text, stepped, wrong, y)
    text = f"[step] an array of {y.nbytes - 4 * 2 * P} bytes, expected {y.nbytes}"
    refused(text, stepped, x, y[1:].copy())
    lengths = np.array([5, 3, 1], "int32")
    text = "[step] an array of 12 bytes, expected 8"
    refused(text, stepped, x, y, lengths)
    given = x if time_major else np.ascontiguousarray(x.swapaxes(0, 1))
    made = np.full(y.shape if time_major else (2, T, P), np.nan, "float32")
    stepped(given, made, np.array([5, 3], "int32"))
    wanted = layer(x, sequence_lengths=[5, 3], training=False)[0].numpy()
    np.testing.assert_array_equal(made if time_major else made.swapaxes(0, 1), wanted)
