"""What becomes a tensor, in which dtype, and what is refused: buffers, NumPy's arrays, Python's values."""

import array
import ctypes

import ml_dtypes
import numpy as np
import openrnn
import pytest

BF16 = np.dtype(ml_dtypes.bfloat16)


class Shown:
    """What has NumPy's protocol alone, or a dtype of its own beside it."""

    def __init__(self, value):
        self.value = value

    def __array__(self, dtype=None, copy=None):
        return np.array(self.value, dtype)


class Table(Shown):
    dtype = "its own"


class Lent:
    """What has DLPack alone, and a dtype."""

    def __init__(self, value):
        self.value, self.dtype = value, value.dtype

    def __dlpack__(self, **options):
        return self.value.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.value.__dlpack_device__()


# (given, dtype, values)
TAKEN = {
    "a C array of doubles": (array.array("d", [1.5, -2.0]), "float64", [1.5, -2.0]),
    "a C array of ints": (array.array("i", [3, -4]), "int32", [3, -4]),
    "a C array of longs": (array.array("l", [3, -4]), "int64", [3, -4]),
    "a C array of long longs": (array.array("q", [2**40, -4]), "int64", [2**40, -4]),
    "a C array of unsigned bytes": (array.array("B", [3, 250]), "uint8", [3, 250]),
    "floats of ctypes": ((ctypes.c_float * 2)(1.5, -2.0), "float32", [1.5, -2.0]),  # format '<f'
    "ints of ctypes": ((ctypes.c_int * 2)(3, -4), "int32", [3, -4]),
    "bytes that change": (bytearray(b"\x03\xfa"), "uint8", [3, 250]),
    "a view of float16": (memoryview(np.array([1.5, 2.0], "float16")), "float16", [1.5, 2.0]),
    "a view of truth values": (memoryview(np.array([True, False])), "bool", [True, False]),
    "a view with a native mark": (memoryview(bytearray(8)).cast("@i"), "int32", [0, 0]),
    "a view of every second": (memoryview(np.arange(4.0))[::2], "float64", [0.0, 2.0]),
    "an int": (2**40, "int64", 2**40),
    "a small int": (7, "int32", 7),
    "floats": ([1.5, 2], "float32", [1.5, 2.0]),
    "truth values": ([True, False], "bool", [True, False]),
    "unsigned integers in a list": ([np.uint16(5)], "int32", [5]),
    "large unsigned integers in a list": ([np.uint64(2**40)], "int64", [2**40]),
    "doubles by __array__": (Shown(np.array([1.5, 2.0])), "float64", [1.5, 2.0]),
    "doubles by __array__ beside a dtype": (Table(np.array([1.5, 2.0])), "float64", [1.5, 2.0]),
    "doubles by DLPack beside a dtype": (Lent(np.array([1.5, 2.0])), "float64", [1.5, 2.0]),
    "a swapped byte order": (np.array([1.5, 2.0], ">f4"), "float32", [1.5, 2.0]),
    "swapped integers": (np.array([1, 2], ">i8"), "int64", [1, 2]),
    "a scalar": (np.float64(1.5), "float64", 1.5),
    "strided": (np.arange(6, dtype="float32").reshape(2, 3).T, "float32", [[0, 3], [1, 4], [2, 5]]),
    "bfloat16": (np.array([1.5, 2.0], BF16), "bfloat16", [1.5, 2.0]),
}  # fmt: skip


@pytest.mark.parametrize("name", TAKEN)
def test_what_is_taken(name):
    given, dtype, values = TAKEN[name]
    made = openrnn.constant(given)
    assert made.dtype == dtype and made.shape == np.shape(values)
    np.testing.assert_array_equal(np.asarray(made.numpy(), "float64"), values)


# (given, dtype that is wanted, values)
CONVERTED = {
    "whole floats": ([1.0, -2.0], "int64", [1, -2]),
    "small integers": (np.array([3, 250]), "uint8", [3, 250]),
    "unsigned integers": (np.array([3, 4], "uint32"), "int32", [3, 4]),
    "truth values": (np.array([True, False]), "float64", [1.0, 0.0]),
    "integers as truth values": (np.array([3, 0]), "bool", [True, False]),
    "objects that are numbers": (np.array([3, 1.5], object), "float32", [3.0, 1.5]),
    "bfloat16": (np.array([1.5, 2.0], BF16), "float32", [1.5, 2.0]),
    "bfloat16 that is whole": (np.array([1.0, 2.0], BF16), "int32", [1, 2]),
    "into bfloat16": (np.array([1.0, 3.140625]), "bfloat16", [1.0, 3.140625]),
    "rounded once": (np.array([1.001953126862645]), "bfloat16", [1.0]),
    "past a half": (np.array([1.0 + 2**-8 + 2**-30]), "bfloat16", [1.0078125]),
    "bfloat16 as it is": (np.array([1.5, np.inf], BF16), "bfloat16", [1.5, np.inf]),
    "a list of int8": ([np.int8(-3)], "int64", [-3]),
}  # fmt: skip


@pytest.mark.parametrize("name", CONVERTED)
def test_what_is_converted(name):
    given, dtype, values = CONVERTED[name]
    made = openrnn.constant(given, dtype)
    assert made.dtype == dtype
    np.testing.assert_array_equal(np.asarray(made.numpy(), "float64"), values)


def held(given, dtype):
    return f"values of {given} that {dtype} does not hold, expected whole numbers in its range"


DTYPES = "expected float16, bfloat16, float32, float64, int32, int64, uint8 or bool"
# (given, dtype that is wanted, what the error says)
REFUSED = {
    "a half": (np.array([1.5]), "int64", held("float64", "int64")),
    "a half as a byte": (np.array([1.5], "float32"), "uint8", held("float32", "uint8")),
    "a large integer": (np.array([2**40]), "int32", held("int64", "int32")),
    "more than a byte": (np.array([300], "int32"), "uint8", held("int32", "uint8")),
    "less than a byte": (np.array([-1], "int8"), "uint8", held("int8", "uint8")),
    "a large unsigned integer": (np.array([2**63], "uint64"), "int64", held("uint64", "int64")),
    "a half of bfloat16": (np.array([1.5], BF16), "int32", held("bfloat16", "int32")),
    "None": (np.array([None]), "float32", "an array of object, expected float32"),
    "bytes": (np.array([b"1"], object), "float64", "an array of object, expected float64"),
    "text among objects": (np.array(["1"], object), "float32", "an array of object, expected float32"),
    "complex": (np.array([1j]), "float32", "an array of complex128, expected float32"),
    "durations": (np.array([1], "m8[s]"), "int64", "an array of timedelta64[s], expected int64"),
    "text": (np.array(["1"]), "int32", "an array of <U1, expected int32"),
    "bytes as a value": (b"12", None, f"an array of |S2, {DTYPES}"),
    "uint16": (np.zeros(2, "uint16"), None, f"an array of uint16, {DTYPES}"),
    "a dict": ({"a": 1}, None, f"an array of object, {DTYPES}"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name):
    given, dtype, text = REFUSED[name]
    with pytest.raises((TypeError, ValueError)) as caught:
        openrnn.constant(given, dtype)
    assert str(caught.value) == f"[Tensor] {text}"


def test_a_list_that_numpy_refuses_is_quoted():
    with pytest.raises(TypeError, match=r"^\[Tensor\] 'list' is given \(setting an array element .*\), "
                                        "expected an array of numbers$"):
        openrnn.constant([[1], [2, 3]])


def test_an_error_of_an_array_of_ones_own_is_passed_on():
    class Broken:
        def __init__(self, error):
            self.error = error

        def __array__(self, dtype=None, copy=None):
            raise self.error

    with pytest.raises(KeyError):
        openrnn.constant(Broken(KeyError("a")))
    for error in (ValueError("its own"), TypeError("its own")):
        with pytest.raises(TypeError, match=r"^\[Tensor\] 'Broken' is given \(its own\), expected an array of numbers$"):
            openrnn.constant(Broken(error))


def test_a_tensor_is_a_copy_of_what_it_is_made_of():
    class Holds:
        def __init__(self, value):
            self.value = value

        def __array__(self, dtype=None, copy=None):
            return self.value

    for make in (np.array, Holds, Lent):
        memory = np.array([1.5, 2.0])
        made = openrnn.constant(memory if make is np.array else make(memory))
        memory[:] = 7
        np.testing.assert_array_equal(made, [1.5, 2.0])


def test_a_tensor_of_another_dtype_is_converted():
    given = openrnn.constant([1.5, 2.0])
    for made in (openrnn.constant(given, "float64"), openrnn.Tensor(given, "float64"), openrnn.Variable(given, dtype="float64")):
        assert made.dtype == "float64" and made.numpy().tolist() == [1.5, 2.0]


def test_memory_that_is_not_aligned_is_copied():
    memory = np.zeros(33, "uint8")
    crooked = memory[1:].view("float32")
    crooked[:] = np.arange(8)
    assert not crooked.flags.aligned
    layer = openrnn.cudnn_rnn.CudnnGRU(1, 3, seed=1)
    x = crooked.reshape(2, 1, 4)
    np.testing.assert_array_equal(layer(x, training=False)[0], layer(x.copy(), training=False)[0])


def test_a_buffer_of_nothing_and_without_a_format():
    empty = openrnn.constant(np.zeros((0, 3), "float64"))
    with memoryview(empty) as view:
        assert view.shape == (0, 3) and view.strides == (24, 8) and view.nbytes == 0
    plain = openrnn.constant(np.array([1.5, 2.0]))
    flags = 0x0018  # PyBUF_STRIDES, no format
    get, release = ctypes.pythonapi.PyObject_GetBuffer, ctypes.pythonapi.PyBuffer_Release
    view = (ctypes.c_size_t * 16)()
    get.argtypes, release.argtypes = [ctypes.py_object, ctypes.c_void_p, ctypes.c_int], [ctypes.c_void_p]
    for tensor in (plain, empty):
        assert get(tensor, view, flags) == 0
        data, _, length, size, kind = view[0], view[1], view[2], view[3], view[4]
        assert data and (length, size) == (8 * tensor.size, 8)
        assert kind & 0xFFFFFFFF == 1 and view[5] == 0  # read-only, no format
        release(view)


def test_a_buffer_says_why_there_is_none():
    whole = openrnn.constant([1.0, 2.0], "bfloat16")
    with pytest.raises(BufferError, match=r"^\[Tensor\] the buffer protocol has no bfloat16, expected numpy\(\) or DLPack$"):
        memoryview(whole)
    with pytest.raises(BufferError, match=r"^\[Tensor\] it is symbolic, expected one with a value$"):
        memoryview(openrnn.Input((3,)))


@pytest.mark.parametrize("made", [openrnn.Tensor, openrnn.Variable])
def test_numpys_protocol(made):
    given = made(np.array([1.5, 2.5]))
    plain = given.__array__()
    assert np.shares_memory(given.__array__(copy=False), plain)
    assert np.shares_memory(given.__array__("float64"), plain)
    for copied in (given.__array__(copy=True), given.__array__("float64", copy=True)):
        assert copied.dtype == "float64" and copied.flags.writeable
        assert not np.shares_memory(copied, plain)
    wide = given.__array__("float32")
    assert wide.dtype == "float32" and wide.tolist() == [1.5, 2.5]


class HasValue:
    def __init__(self, value):
        self.value = value


class HasList:
    def __init__(self, sizes):
        self.sizes = sizes

    def as_list(self):
        return self.sizes


class HasDtype:
    as_numpy_dtype = np.float64


def test_shapes_and_dtypes_of_tensorflow():
    x = np.arange(6.0)
    for shape in ((2, 3), [2, 3], HasList([2, 3]), (HasValue(2), HasValue(3)), HasList([HasValue(2), 3]), np.array([2, 3])):
        assert openrnn.reshape(x, shape).shape == (2, 3)
    assert openrnn.reshape(x.reshape(2, 3), 6).shape == (6,)
    assert openrnn.Tensor(x).reshape(HasList([3, 2])).shape == (3, 2)
    assert openrnn.Tensor(x).reshape(6).shape == openrnn.Tensor(x).reshape((6,)).shape == (6,)
    assert openrnn.Input(batch_shape=HasList([None, HasValue(None), 3])).shape == (None, None, 3)
    assert openrnn.constant([1, 2], HasDtype()).dtype == "float64"
    assert openrnn.constant([1, 2], float).dtype == "float64"


def test_flags_of_any_kind():
    drop = openrnn.layers.Dropout(0.5, seed=1)
    x = np.ones((4, 50), "float32")
    for yes in (True, 1, np.True_, np.array(1), openrnn.constant(True), openrnn.Variable(1.0)):
        assert (drop(x, training=yes).numpy() == 0).any(), yes
    for no in (False, 0, np.False_, np.array(0), openrnn.constant(0), openrnn.Variable(0.0)):
        np.testing.assert_array_equal(drop(x, training=no), x)


def test_a_gradient_of_one_kept_step():
    layer, x = openrnn.cudnn_rnn.CudnnGRU(1, 3, seed=1), np.ones((3, 2, 4), "float32")
    found = []
    for save in (True, 1, "inputs"):
        with openrnn.GradientTape() as tape:
            loss = openrnn.reduce_sum(layer(x, training=False, save=save)[0])
        found.append(tape.gradient(loss, layer.kernel).numpy())
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_weights_are_of_the_layers_dtype_and_are_set_in_their_own():
    layer = openrnn.layers.Layer(dtype="float64")
    wide = layer.add_weight("wide", (2,), initializer="zeros")
    whole = layer.add_weight("whole", (2,), dtype="int64", trainable=False)
    half = layer.add_weight("half", (2,), dtype="float16", trainable=False)
    assert (wide.dtype, whole.dtype, half.dtype) == ("float64", "int64", "float16")
    layer.set_weights([[0.1, 0.2], [2**40, 3], [1.5, 2.0]])
    assert wide.numpy().tolist() == [0.1, 0.2] and whole.numpy().tolist() == [2**40, 3]
    assert half.numpy().tolist() == [1.5, 2.0]


def test_lengths_of_no_rows():
    layer = openrnn.cudnn_rnn.CudnnGRU(1, 3)
    assert layer(np.zeros((2, 0, 4), "float32"), sequence_lengths=[])[0].shape == (2, 0, 3)
    x = np.ones((2, 2, 4), "float32")
    whole, wide = (layer(x, sequence_lengths=np.array([1, 2], dtype))[0] for dtype in ("int32", "int64"))
    np.testing.assert_array_equal(whole, wide)
    assert not whole.numpy()[1, 0].any()
