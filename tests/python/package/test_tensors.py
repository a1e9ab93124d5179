"""Values in and out: NumPy, DLPack, dtypes, arithmetic, pickles."""

import copy
import io
import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import openrnn
import pytest

DTYPES = ["float16", "float32", "float64", "int32", "int64", "uint8", "bool"]


def values(shape=(2, 3), dtype="float32", seed=1):
    return (np.random.default_rng(seed).uniform(-3, 3, shape)).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (1,), (0,), (2, 0, 3), (2, 3), (3, 1, 2)], ids=str)
def test_round_trip(dtype, shape):
    array = np.asarray(values(shape, dtype))
    tensor = openrnn.Tensor(array)
    assert tensor.shape == shape and tensor.dtype == dtype and tensor.ndim == len(shape)
    assert tensor.numpy().dtype == dtype
    np.testing.assert_array_equal(tensor.numpy(), array)
    np.testing.assert_array_equal(np.asarray(tensor), array)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_buffer_is_for_reading(dtype):
    array = np.asarray(values(dtype=dtype))
    tensor = openrnn.Tensor(array)
    with memoryview(tensor) as view:
        assert view.readonly and view.shape == (2, 3) and view.strides == array.strides
        assert (np.dtype(view.format), view.itemsize, view.nbytes) == (array.dtype, array.itemsize, array.nbytes)
        assert view.tobytes() == array.tobytes()
    with pytest.raises(TypeError):
        io.BytesIO(bytes(array.nbytes)).readinto(tensor)
    np.testing.assert_array_equal(tensor.numpy(), array)


def test_numpy_is_a_read_only_view_that_keeps_the_memory():
    tensor = openrnn.Tensor(values((100, 100)))
    first, second = tensor.numpy(), tensor.numpy()
    assert np.shares_memory(first, second) and not first.flags.writeable
    with pytest.raises(ValueError):
        first[0, 0] = 1.0
    with pytest.raises(ValueError):
        first.flags.writeable = True
    wanted = first.copy()
    del tensor, second
    others = [openrnn.Tensor(np.zeros((100, 100), np.float32)) for _ in range(20)]
    np.testing.assert_array_equal(first, wanted)
    assert len(others) == 20


@pytest.mark.parametrize(
    "array",
    [values((4, 6))[:, ::2], values((4, 6)).T, values((4, 6))[::-1], np.asfortranarray(values())],
    ids=["strided", "transposed", "reversed", "fortran"],
)
def test_arrays_that_are_not_contiguous(array):
    np.testing.assert_array_equal(openrnn.Tensor(array).numpy(), array)


def test_other_byte_order_and_misaligned_memory():
    array = values((5,))
    swapped = array.astype(array.dtype.newbyteorder())
    np.testing.assert_array_equal(openrnn.Tensor(swapped).numpy(), array)
    odd = np.frombuffer(b"x" + array.tobytes(), np.uint8)[1:].view(np.float32)
    np.testing.assert_array_equal(openrnn.Tensor(odd).numpy(), array)


def test_a_tensor_is_a_copy():
    array = values()
    tensor, wanted = openrnn.Tensor(array), array.copy()
    array[:] = 0.0
    np.testing.assert_array_equal(tensor.numpy(), wanted)


@pytest.mark.parametrize(
    "value, dtype",
    [(1.5, "float32"), (2, "int32"), (True, "bool"), ([1.0, 2.0], "float32"), ([[1], [2]], "int32"),
     (np.float64(2.0), "float64"), (np.arange(3), "int64"), ([np.uint8(3)], "int32")],
)  # fmt: skip
def test_dtypes_of_plain_values(value, dtype):
    tensor = openrnn.constant(value)
    assert tensor.dtype == dtype
    np.testing.assert_array_equal(tensor.numpy(), value)


@pytest.mark.parametrize("given", ["float16", np.float16, np.dtype("float16"), openrnn.float16])
def test_a_dtype_may_be_given_in_many_ways(given):
    assert openrnn.constant([1, 2], given).dtype == "float16"
    assert openrnn.cast(openrnn.constant([1.0]), given).dtype == "float16"


@pytest.mark.parametrize("value", [None, "text", object(), [[1.0], [2.0, 3.0]], 1j, {}])
def test_what_is_no_array_of_numbers(value):
    with pytest.raises(TypeError, match=r"^\[.*expected"):
        openrnn.Tensor(value)


def test_dlpack_both_ways():
    array = values((3, 4))

    class OnlyDlpack:
        """What other frameworks look like."""

        def __dlpack__(self, **kwargs):
            return array.__dlpack__(**kwargs)

        def __dlpack_device__(self):
            return array.__dlpack_device__()

    tensor = openrnn.Tensor(OnlyDlpack())
    np.testing.assert_array_equal(tensor.numpy(), array)
    back = np.from_dlpack(tensor)
    np.testing.assert_array_equal(back, array)
    assert not back.flags.writeable and tensor.__dlpack_device__() == (1, 0)


def test_arithmetic():
    a, b = values(seed=2), values(seed=3)
    t, u = openrnn.Tensor(a), openrnn.Tensor(b)
    for found, wanted in [
        (t + u, a + b), (t - u, a - b), (t * u, a * b), (t / u, a / b), (-t, -a), (t**2, a**2),
        (2.0 + t, 2 + a), (t - 1, a - 1), (1 - t, 1 - a), (3 * t, 3 * a), (t / 4, a / 4),
        (1 / t, 1 / a), (t + b, a + b), (a - u, a - b), (t + b[0], a + b[0]), (abs(t), abs(a)),
        (b[0] + t, b[0] + a), (t - b[0], a - b[0]), (b[0] - t, b[0] - a), (u[0] - t, b[0] - a),
        (t[1], a[1]), (t[-1], a[-1]), (t[:1], a[:1]), (t[1, 2], a[1, 2]), (t[:, 1:], a[:, 1:]),
    ]:  # fmt: skip
        np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-6)
        assert found.dtype == "float32" and found.shape == wanted.shape
    np.testing.assert_allclose((t @ u.numpy().T).numpy(), a @ b.T, rtol=1e-5)
    assert [row.shape for row in t] == [(3,), (3,)] and len(t) == 2


def test_one_division_is_one_rounding():
    a = values((1000,))
    np.testing.assert_array_equal((openrnn.Tensor(a) / 3).numpy(), a / np.float32(3))


def test_scalars():
    tensor = openrnn.constant(2.5)
    assert float(tensor) == tensor.item() == 2.5 and int(openrnn.constant(7)) == 7
    with pytest.raises(ValueError, match="expected"):
        openrnn.constant([1.0, 2.0]).item()
    with pytest.raises(IndexError):
        openrnn.constant([1.0])[1]
    assert float(openrnn.constant([2.0]) ** 3) == 8.0


def test_copies_and_pickles():
    tensor = openrnn.constant(values())
    for made in (pickle.loads(pickle.dumps(tensor)), copy.deepcopy(tensor), copy.copy(tensor)):
        assert made.dtype == tensor.dtype
        np.testing.assert_array_equal(made.numpy(), tensor.numpy())
    for error in (openrnn.ArgumentError("[a] b"), openrnn.IoError("[c] d")):
        assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_symbolic_tensors_have_no_value():
    x = openrnn.Input(batch_shape=(None, 2, 3))
    assert x.is_symbolic and x.shape == (None, 2, 3) and x.dtype == "float32"
    for ask in (x.numpy, lambda: np.asarray(x), x.item, lambda: float(x), lambda: bool(x)):
        with pytest.raises((TypeError, BufferError), match="symbolic"):
            ask()


@pytest.mark.parametrize(
    "name, base",
    [("ArgumentError", ValueError), ("StateError", RuntimeError),
     ("NotConnectedError", AttributeError), ("UnsupportedError", NotImplementedError),
     ("FormatError", ValueError), ("EngineError", RuntimeError), ("IoError", OSError)],
)  # fmt: skip
def test_kinds_of_errors(name, base):
    assert issubclass(getattr(openrnn, name), base)


def test_slice_to_the_end():
    data = np.arange(24.0, dtype="float32").reshape(2, 3, 4)
    part = openrnn.slice(openrnn.constant(data), [1, 0, 2], [-1, 2, -1])
    np.testing.assert_array_equal(part.numpy(), data[1:, :2, 2:])


# With a dtype NumPy reads None as NaN; without one it has no number for it either.
@pytest.mark.parametrize("value", [None, [1.0, None], [[None], [2.0]], np.array([None])])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int32", None])
def test_none_is_no_number(value, dtype):
    wanted = dtype or "float16, bfloat16, float32"
    with pytest.raises(TypeError, match=rf"\[Tensor\] an array of object, expected {wanted}"):
        openrnn.Tensor(value, dtype)


@pytest.mark.parametrize("call", [
    lambda none: openrnn.add([1.0], none), lambda none: openrnn.Tensor([1.0]) - none,
    lambda none: openrnn.layers.Dropout(0.5)(none), lambda none: openrnn.layers.Dense(2)(none),
    lambda none: openrnn.layers.Embedding(3, 2)(none), lambda none: openrnn.layers.LSTM(3)(none),
    lambda none: openrnn.nn.rnn_cell.GRUCell(3)(np.ones((2, 4), "float32"), none),
    lambda none: openrnn.nn.rnn_cell.LSTMCell(3)(np.ones((2, 4), "float32"), (none, none)),
    lambda none: openrnn.nn.dynamic_rnn(openrnn.nn.rnn_cell.GRUCell(3), none, dtype="float32"),
])  # fmt: skip
def test_none_in_the_place_of_a_tensor_is_refused_by_its_type(call):
    with pytest.raises(TypeError):
        call(None)


def test_objects_that_are_numbers_become_a_dtype_s_values():
    given = [Fraction(1, 2), Decimal("0.25"), 2**70]
    found = openrnn.Tensor(given, "float64").numpy()
    np.testing.assert_array_equal(found, [0.5, 0.25, 2.0**70])
