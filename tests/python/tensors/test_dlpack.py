"""DLPack on the cpu: versions, flags, copies, and what an error says."""

import ctypes

import numpy as np
import openrnn
import pytest

SHARED, COPIED = 1, 2  # the flags: read-only, and the consumer's own


class Versioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
                ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("data", ctypes.c_void_p)]  # fmt: skip


def inside(capsule):
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return Versioned.from_address(get(capsule, b"dltensor_versioned"))


def name_of(capsule):
    return repr(capsule).split('"')[1]


class Producer:
    def __init__(self, capsule, device=(1, 0)):
        self.capsule, self.device = capsule, device

    def __dlpack__(self, **options):
        return self.capsule() if callable(self.capsule) else self.capsule

    def __dlpack_device__(self):
        return self.device


def refused(error, text, call):
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value) == text


@pytest.mark.parametrize("made", [openrnn.Tensor, openrnn.Variable])
def test_what_is_asked_for_is_given(made):
    x = made(np.array([1.5, 2.5]))
    at = np.asarray(x).ctypes.data
    for version in ((1, 0), (1, 3), (2, 0)):
        capsule = x.__dlpack__(max_version=version)
        shared = inside(capsule)
        assert (shared.major, shared.flags, shared.data) == (1, SHARED, at)
    for asked in ({"copy": True}, {"copy": True, "dl_device": (1, 0)}):
        capsule = x.__dlpack__(max_version=(1, 0), **asked)
        copied = inside(capsule)
        assert (copied.major, copied.flags) == (1, COPIED) and copied.data != at
        assert (ctypes.c_double * 2).from_address(copied.data)[:] == [1.5, 2.5]
    for version in (None, (0, 9), (0, 0)):
        assert name_of(x.__dlpack__(max_version=version)) == "dltensor"
        with pytest.raises(BufferError, match=r"^\[__dlpack__\] copy is False without max_version, but only DLPack 1 "):
            x.__dlpack__(max_version=version, copy=False)
    capsule = x.__dlpack__(max_version=(1, 0), copy=False)
    assert inside(capsule).data == at
    assert x.__dlpack__(max_version=(1, 0), stream=-1) is not None


def test_words():
    x = openrnn.constant([1.0])
    refused(ValueError, "[__dlpack__] dl_device is (10, 3), expected (1, 0), the cpu, or (2, N), a GPU",
            lambda: x.__dlpack__(dl_device=(10, 3)))
    for stream in (1, 2, 0):
        refused(ValueError, "[__dlpack__] a stream for memory of the cpu, expected None",
                lambda: x.__dlpack__(stream=stream))  # noqa: B023
    refused(TypeError, "[from_dlpack] __dlpack__() returned 'int', expected a capsule that nobody has taken",
            lambda: openrnn.from_dlpack(Producer(3)))
    refused(TypeError, "[from_dlpack] an array on DLPack's device (10, 3), expected one of the cpu or of an NVIDIA GPU",
            lambda: openrnn.from_dlpack(Producer(3, (10, 3))))


def test_versions_that_are_to_come():
    x = openrnn.constant([1.5, 2.5])
    for major, minor, known in ((1, 9, True), (2, 7, False)):
        capsule = x.__dlpack__(max_version=(1, 0))
        inside(capsule).major, inside(capsule).minor = major, minor
        if known:
            np.testing.assert_array_equal(openrnn.from_dlpack(Producer(capsule)), [1.5, 2.5])
        else:
            refused(TypeError, "[from_dlpack] DLPack 2.7, expected version 1 or older",
                    lambda: openrnn.from_dlpack(Producer(capsule)))  # noqa: B023
            inside(capsule).major = 1


def test_pinned_memory_is_of_the_cpu():
    array = np.array([1.5, 2.5])
    made = openrnn.from_dlpack(Producer(array.__dlpack__, (3, 0)))
    assert made.device == "cpu"
    np.testing.assert_array_equal(made, array)


def test_what_the_library_has_no_dtype_for():
    array = np.array([1, -2], "int8")
    refused(TypeError, "[from_dlpack] an array of int8, expected float16, bfloat16, float32, float64, int32, int64, "
                       "uint8 or bool", lambda: openrnn.from_dlpack(array))
    refused(BufferError, "[from_dlpack] copy is False for memory that is not row-major or of another dtype, expected None",
            lambda: openrnn.from_dlpack(array, copy=False))


def test_a_copy_is_apart_from_what_it_is_of():
    array = np.array([1.5, 2.5])
    shared, copied = openrnn.from_dlpack(array), openrnn.from_dlpack(array, copy=True)
    crooked = openrnn.from_dlpack(np.arange(6.0).reshape(2, 3).T, copy=True)
    array[:] = 7
    np.testing.assert_array_equal(shared, [7, 7])
    np.testing.assert_array_equal(copied, [1.5, 2.5])
    assert crooked.device == copied.device == "cpu" and crooked.shape == (3, 2)
    for empty in (np.zeros((0, 4)), np.zeros((3, 0), "float32")):
        assert openrnn.from_dlpack(empty).shape == empty.shape
