"""Memory that Python lends and takes back, what collections hold, and what dies with whom."""

import array
import contextlib
import gc
import io
import weakref

import numpy as np
import openrnn
import pytest
from openrnn import _core

KEYS = openrnn.GraphKeys
DTYPES = {"f": "float32", "d": "float64", "i": "int32", "q": "int64", "B": "uint8", "l": "int64"}
READ_ONLY = "^buffer source array is read-only$"


class Holder:
    """What a user keeps in a collection, with the graph that the collection is of."""

    def __init__(self, graph):
        self.graph = graph


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("key", ["first", "second"])
def test_a_cycle_through_any_value_of_a_collection_is_collected(key, place):
    graph = openrnn.Graph()
    graph.add_to_collection("first", "before")
    for n in range(3):
        graph.add_to_collection(key, Holder(graph) if n == place else n)
    graph.add_to_collection("second", "after")
    gone = weakref.ref(graph)
    del graph
    gc.collect()
    assert gone() is None


def test_a_symbolic_tensor_keeps_its_graph():
    with openrnn.Graph().as_default() as graph:
        x = openrnn.Input((2,))
        doubled = x * 2.0
    kept = weakref.ref(graph)
    del graph, x
    gc.collect()
    assert kept() is not None
    with kept().as_default():
        np.testing.assert_array_equal(
            openrnn.Model(again_input(doubled), doubled)([[1.0, 2.0]]), [[2.0, 4.0]]
        )
    gc.collect()
    assert kept() is not None
    del doubled
    gc.collect()
    assert kept() is None


def again_input(tensor):
    """What a tensor was computed from."""
    return tensor.__reduce__()[1][0].input_tensors[0]


@pytest.mark.parametrize("made", ["tensor", "function", "variable"])
def test_gradients_of_a_regularization_loss(made):
    w = openrnn.Variable([1.0, -3.0])
    with openrnn.GradientTape() as tape:
        loss = openrnn.reduce_sum(w * w)
        given = {"tensor": loss, "function": lambda: openrnn.reduce_sum(w * w), "variable": w}[made]
        openrnn.add_to_collection(KEYS.REGULARIZATION_LOSSES, given)
        (found,) = openrnn.get_collection(KEYS.REGULARIZATION_LOSSES)
    wanted = [1.0, 1.0] if made == "variable" else [2.0, -6.0]
    np.testing.assert_array_equal(tape.gradient(found, w), wanted)


def test_collections_of_the_library():
    v = openrnn.Variable(1.0)
    fixed = openrnn.get_variable("fixed", [2], trainable=False)
    done = []
    update = lambda: done.append(1)  # noqa: E731
    openrnn.add_to_collection(KEYS.UPDATE_OPS, update)
    openrnn.add_to_collection(KEYS.UPDATE_OPS, 3)
    layer = openrnn.cudnn_rnn.CudnnGRU(1, 2)
    layer.build((None, None, 2))
    openrnn.add_to_collection("own", v)
    openrnn.add_to_collection("own", "word")
    assert openrnn.get_collection(KEYS.GLOBAL_VARIABLES) == [v, fixed, layer.kernel]
    assert openrnn.global_variables() == [v, fixed, layer.kernel]
    assert openrnn.trainable_variables() == [v, layer.kernel]
    assert openrnn.get_collection(KEYS.TRAINABLE_VARIABLES) == [v, layer.kernel]
    assert openrnn.get_collection(KEYS.UPDATE_OPS) == [update, 3] and done == []
    assert openrnn.get_collection(KEYS.SAVEABLE_OBJECTS) == [layer.saveable]
    assert openrnn.get_collection("own") == [v, "word"] and openrnn.get_collection("none") == []
    again = openrnn.Graph()
    again.add_saveable(layer.saveable)
    assert again.saveables() == [layer.saveable] and again.variables() == []


TAKERS = {
    "tensor": openrnn.constant,
    "variable": openrnn.Variable,
    "reshaped": lambda x: openrnn.reshape(x, (3, 1)),
    "operand": lambda x: openrnn.constant(1, dtype="float32") + openrnn.cast(x, "float32"),
    "converted": lambda x: openrnn.Tensor(x, dtype="float64"),
}


@pytest.mark.parametrize("code", DTYPES)
@pytest.mark.parametrize("taker", TAKERS)
def test_lent_memory_is_given_back(code, taker):
    lent = array.array(code, [1, 2, 3])
    made = TAKERS[taker](lent)
    lent.append(4)  # refused while anybody holds the memory
    if taker in ("tensor", "variable"):
        assert made.dtype == DTYPES[code] and made.numpy().tolist() == [1, 2, 3]


def test_memory_that_a_layer_s_call_borrows_is_given_back():
    layer = openrnn.cudnn_rnn.CudnnGRU(1, 2)
    raw = bytearray(np.arange(8, dtype="float32").tobytes())
    op = openrnn.cudnn_rnn.ops.CudnnGRU(1, 2, 2)
    params, h = np.ones(op.params_size(), "float32"), np.zeros((1, 2, 2), "float32")
    for call in (
        lambda x: layer(x),
        lambda x: layer(x, training=False),
        lambda x: op(x, h, params),
    ):
        kept = call(memoryview(raw).cast("f", (2, 2, 2)))
        raw.extend(b"1234")  # a call's results hold nothing of it
        del raw[-4:]
        del kept


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (2, 0, 4), (2, 3, 4)])
@pytest.mark.parametrize(
    "dtype", ["float16", "float32", "float64", "int32", "int64", "uint8", "bool"]
)
def test_a_tensor_lends_its_memory(shape, dtype):
    x = np.arange(int(np.prod(shape)), dtype="int64").reshape(shape).astype(dtype)
    view = memoryview(openrnn.Tensor(x))
    ours = memoryview(np.asarray(openrnn.Tensor(x)))
    assert (
        view.shape,
        view.strides,
        view.itemsize,
        view.nbytes,
        view.ndim,
        view.readonly,
        view.c_contiguous,
    ) == (shape, ours.strides if x.size else view.strides, x.itemsize, x.nbytes, x.ndim, True, True)
    codes = {
        "float16": "e",
        "float32": "f",
        "float64": "d",
        "int32": "i",
        "int64": "q",
        "uint8": "B",
        "bool": "?",
    }
    assert view.format == codes[dtype] and view.tobytes() == x.tobytes()


def test_what_a_tensor_does_not_lend():
    one = openrnn.constant([1.0])
    with pytest.raises(BufferError) as raised:
        memoryview(openrnn.Tensor([1.0], dtype="bfloat16"))
    assert (
        str(raised.value)
        == "[Tensor] the buffer protocol has no bfloat16, expected numpy() or DLPack"
    )
    with pytest.raises(TypeError):
        memoryview(one)[0] = 2.0
    with pytest.raises(TypeError):
        io.BytesIO(b"1234").readinto(one)
    assert one.numpy().tolist() == [1.0]


def arrays(**changes):
    x = {
        "x": np.ones((3, 2, 3), "float32"),
        "y": np.empty((3, 2, 4), "float32"),
        "h0": np.zeros((1, 2, 4), "float32"),
        "c0": np.zeros((1, 2, 4), "float32"),
        "hn": np.empty((1, 2, 4), "float32"),
        "cn": np.empty((1, 2, 4), "float32"),
    }
    return {**x, **changes}


def lstm_session():
    layer = openrnn.cudnn_rnn.CudnnLSTM(1, 4)
    layer.build((None, None, 3))
    model = openrnn.PackedModel.from_layer(layer)
    return openrnn.InferenceSession(model), openrnn.StreamPool(model, streams=2, time=3)


def fixed(shape):
    made = np.zeros(shape, "float32")
    made.flags.writeable = False
    return made


def test_what_a_run_writes_and_what_it_reads():
    session, _ = lstm_session()
    for name in ("y", "hn", "cn"):
        given = arrays()
        given[name] = fixed(given[name].shape)
        with pytest.raises(ValueError, match=READ_ONLY):
            session.run_core(given, None, 3, 2, True)
        assert not given[name].any()
    given = arrays()
    for name in ("x", "h0", "c0"):
        given[name] = fixed(given[name].shape)
    session.run_core(given, None, 3, 2, True)
    for name, one in arrays().items():
        short = np.zeros(5, "float32")
        with pytest.raises(openrnn.ArgumentError) as raised:
            session.run_core(arrays(**{name: short}), None, 3, 2, True)
        assert str(raised.value) == f"[run] an array of 20 bytes, expected {one.nbytes}"
    with pytest.raises(openrnn.ArgumentError, match=r"^\[run\] an array of 4 bytes, expected 8$"):
        session.run_core(arrays(), np.zeros(1, "int32"), 3, 2, True)


@pytest.mark.parametrize("name", ["x", "y", "h0", "c0", "hn", "cn"])
@pytest.mark.parametrize("fits", [True, False])
def test_a_run_gives_its_arrays_back(name, fits):
    session, _ = lstm_session()
    lent = array.array("f", bytes(arrays()[name].nbytes if fits else 4))
    with contextlib.nullcontext() if fits else pytest.raises(openrnn.ArgumentError):
        session.run_core(arrays(**{name: lent}), None, 3, 2, True)
    lent.append(1.0)


def test_what_a_pool_writes_and_what_it_reads():
    _, pool = lstm_session()
    h, c = np.full((1, 4), 0.5, "float32"), np.full((1, 4), -0.5, "float32")
    for one in (h, c):
        one.flags.writeable = False
    stream = pool.join_core(h, c)
    pool.reset_core(stream, h, c)
    for given in ((h, np.zeros((1, 4), "float32")), (np.zeros((1, 4), "float32"), c)):
        with pytest.raises(ValueError, match=READ_ONLY):
            pool.read_core(stream, *given)
    x = np.ones((3, 1, 3), "float32")
    with pytest.raises(ValueError, match=READ_ONLY):
        pool.step_core([stream], x, fixed((3, 1, 4)), None, 3, True)
    assert all(np.array_equal(a, b) for a, b in zip(pool.read(stream), (h, c), strict=True))
    for call, text in (
        (lambda: pool.join_core(x, c), "[join] an array of 36 bytes, expected 16"),
        (lambda: pool.join_core(h, x), "[join] an array of 36 bytes, expected 16"),
        (lambda: pool.reset_core(stream, x, c), "[reset] an array of 36 bytes, expected 16"),
        (lambda: pool.reset_core(stream, h, x), "[reset] an array of 36 bytes, expected 16"),
        (lambda: pool.read_core(stream, x, c), "[read] an array of 36 bytes, expected 16"),
        (lambda: pool.read_core(stream, h.copy(), x), "[read] an array of 36 bytes, expected 16"),
        (
            lambda: pool.step_core([stream], h, x, None, 3, True),
            "[step] an array of 16 bytes, expected 36",
        ),
        (
            lambda: pool.step_core([stream], x, x, None, 3, True),
            "[step] an array of 36 bytes, expected 48",
        ),
        (
            lambda: pool.step_core([stream], x, x, np.zeros(3, "int32"), 3, True),
            "[step] an array of 12 bytes, expected 4",
        ),
    ):
        with pytest.raises(openrnn.ArgumentError) as raised:
            call()
        assert str(raised.value) == text


def test_a_step_of_a_pool_is_no_longer_than_its_limit():
    _, pool = lstm_session()
    stream = pool.join()
    pool.step([stream], np.ones((3, 1, 3), "float32"))
    before = pool.read(stream)
    with pytest.raises(openrnn.ArgumentError):
        pool.step([stream], np.ones((4, 1, 3), "float32"))
    assert all(np.array_equal(a, b) for a, b in zip(pool.read(stream), before, strict=True))
    pool.join()
    with pytest.raises(openrnn.StateError):
        pool.join()
    assert len(pool) == 2


def test_dtypes_of_the_core_s_names():
    for name in ("float16", "float32", "float64", "int32", "int64", "uint8", "bool", "bfloat16"):
        assert _core.dtype_name(name) == _core.dtype_name(_core.numpy_dtype(name)) == name
