"""Devices on any machine: names, defaults, errors, and DLPack between programs of the cpu."""

import ctypes
import inspect
import os
import subprocess
import sys

import numpy as np
import pytest

import openrnn
from openrnn.cudnn_rnn import CudnnCompatibleGRUCell, CudnnCompatibleLSTMCell, CudnnGRU, CudnnLSTM
from openrnn.cudnn_rnn import ops

MAKERS = {
    "CudnnLSTM": lambda **k: CudnnLSTM(1, 3, **k),
    "CudnnGRU": lambda **k: CudnnGRU(1, 3, **k),
    "Dense": lambda **k: openrnn.layers.Dense(3, **k),
    "Embedding": lambda **k: openrnn.layers.Embedding(5, 3, **k),
    "Layer": lambda **k: openrnn.layers.Layer(**k),
    "CudnnCompatibleLSTMCell": lambda **k: CudnnCompatibleLSTMCell(3, **k),
    "CudnnCompatibleGRUCell": lambda **k: CudnnCompatibleGRUCell(3, **k),
    "BasicRNNCell": lambda **k: openrnn.nn.rnn_cell.BasicRNNCell(3, **k),
    "ops.CudnnLSTM": lambda **k: ops.CudnnLSTM(1, 3, 2, **k),
    "ops.CudnnGRU": lambda **k: ops.CudnnGRU(1, 3, 2, **k),
    "Variable": lambda **k: openrnn.Variable([1.0, 2.0], **k),
    "constant": lambda **k: openrnn.constant([1.0, 2.0], **k),
    "convert_to_tensor": lambda **k: openrnn.convert_to_tensor([1.0, 2.0], **k),
    "Tensor": lambda **k: openrnn.Tensor([1.0, 2.0], **k),
    "get_variable": lambda **k: openrnn.get_variable("v", (2,), **k),
}


@pytest.fixture(autouse=True)
def own_graph():
    with openrnn.Graph().as_default():
        yield


def test_the_cpu_is_there():
    assert openrnn.list_devices()[0] == "cpu"
    assert openrnn.get_default_device() == os.environ.get("OPENRNN_DEVICE", "cpu")
    openrnn.set_default_device(openrnn.get_default_device())


@pytest.mark.parametrize("name", MAKERS)
def test_a_device_may_be_named(name):
    assert MAKERS[name](device="cpu").device == "cpu"


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("given", ["cuda", "gpu:", "gpu:x", ""])
def test_a_wrong_name_is_an_error(name, given):
    with pytest.raises(ValueError, match=r"\[device\].*'gpu:N'"):
        MAKERS[name](device=given)


@pytest.mark.parametrize("name", MAKERS)
def test_a_device_is_named_by_a_string(name):
    with pytest.raises(TypeError, match="expected a name such as"):
        MAKERS[name](device=3)


def test_device_is_keyword_only_and_last():
    for made in (CudnnLSTM, openrnn.layers.Dense, openrnn.layers.Embedding, ops.CudnnLSTM,
                 CudnnCompatibleGRUCell, openrnn.Variable, openrnn.Tensor, openrnn.constant,
                 openrnn.get_variable):
        named = [item for item in inspect.signature(made).parameters.items()
                 if item[1].kind is not inspect.Parameter.VAR_KEYWORD]
        name, parameter = named[-1]
        assert (name, parameter.default) == ("device", None)
        assert parameter.kind is inspect.Parameter.KEYWORD_ONLY


@pytest.mark.skipif("gpu:0" in openrnn.list_devices(), reason="this machine has a GPU")
def test_a_gpu_that_is_not_there_says_what_is_missing():
    with pytest.raises(openrnn.EngineError, match="gpu:0"):
        openrnn.constant([1.0], device="gpu")
    with pytest.raises(openrnn.EngineError, match="gpu:0"):
        CudnnLSTM(1, 3, device="gpu:0")
    with pytest.raises(openrnn.EngineError, match="gpu:0"):
        openrnn.set_default_device("gpu:0")
    assert openrnn.get_default_device() == "cpu"


def test_a_subclass_may_take_the_name_device():
    class Own(openrnn.layers.Layer):
        device = None

        def __init__(self, device):
            super().__init__()
            self.device = device

        def call(self, inputs):
            return inputs * 2.0

    layer = Own(device=3)
    assert layer.device == 3
    np.testing.assert_array_equal(layer(np.ones(2, "float32")).numpy(), [2, 2])
    with pytest.raises(AttributeError):
        openrnn.layers.Dense(2).device = "cpu"


def test_a_config_keeps_the_device_as_given():
    for make in (CudnnLSTM, lambda *a, **k: openrnn.layers.Dense(3, **k)):
        assert make(1, 3).get_config()["device"] is None
        config = make(1, 3, device="cpu").get_config()
        assert config["device"] == "cpu"
    assert CudnnLSTM.from_config(CudnnLSTM(1, 3, device="cpu").get_config()).device == "cpu"


def test_a_tensor_says_where_it_is():
    x = openrnn.constant([[1.0, 2.0]])
    assert x.device == "cpu" and x.to("cpu") is not None and x.cpu().device == "cpu"
    assert "device" not in repr(x)
    with pytest.raises(TypeError, match="symbolic"):
        openrnn.Input((3,)).device  # noqa: B018 - it raises
    with pytest.raises(TypeError):
        x.to(None)


def run(program, **environment):
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                          env={**os.environ, **environment}, timeout=120, check=False)


def test_the_environment_names_the_default():
    wrong = run("import openrnn; openrnn.constant(1.0)", OPENRNN_DEVICE="tpu")
    assert wrong.returncode and "[device] name is 'tpu'" in wrong.stderr
    # Read at first use, not at import.
    late = run("import openrnn; openrnn.set_default_device('cpu'); openrnn.constant(1.0)",
               OPENRNN_DEVICE="tpu")
    assert late.returncode == 0, late.stderr


class Producer:
    """An array with DLPack alone; `known` are the arguments that it knows."""

    def __init__(self, array, *known):
        self.array, self.known, self.calls = array, known, []

    def __dlpack__(self, **options):
        self.calls.append(options)
        unknown = set(options) - set(self.known)
        if unknown:
            raise TypeError(f"unexpected keyword argument {unknown.pop()!r}")
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def address(array):
    return np.asarray(array).__array_interface__["data"][0]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "int64", "uint8",
                                   "bool"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0, 4), (1, 1, 5)])
def test_from_dlpack_shares_the_memory(dtype, shape):
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    x = openrnn.from_dlpack(array)
    assert (x.dtype, x.shape, x.device) == (dtype, shape, "cpu")
    np.testing.assert_array_equal(x.numpy(), array)
    if array.size:
        assert address(x) == address(array)


def test_from_dlpack_keeps_the_memory_alive():
    array = np.arange(6.0)
    before = sys.getrefcount(array)
    x = openrnn.from_dlpack(array)
    assert sys.getrefcount(array) > before
    del x
    assert sys.getrefcount(array) == before


def test_a_borrowed_array_is_never_written():
    array = np.arange(3, dtype="float32")
    array.flags.writeable = False
    v = openrnn.Variable([9.0, 9.0, 9.0], device="cpu")
    for lender in (array, openrnn.constant(array, device="cpu")):
        v.assign(openrnn.from_dlpack(lender))
        openrnn.train.GradientDescentOptimizer(1.0).apply_gradients([(np.ones(3, "float32"), v)])
        np.testing.assert_array_equal(np.asarray(lender), [0, 1, 2])
        np.testing.assert_array_equal(v.numpy(), [-1, 0, 1])


def test_a_variable_does_not_see_what_the_lender_writes():
    array = np.arange(3, dtype="float32")
    v = openrnn.Variable([9.0, 9.0, 9.0], device="cpu")
    v.assign(openrnn.from_dlpack(array))
    array[:] = 7
    np.testing.assert_array_equal(v.numpy(), [0, 1, 2])


def test_an_array_that_cannot_say_where_it_lies_goes_through_numpy():
    class Broken:
        def __init__(self, answer):
            self.answer = answer

        def __array__(self, dtype=None, copy=None):
            return np.ones(3, "float32")

        def __dlpack__(self, **options):
            raise BufferError("no")

        def __dlpack_device__(self):
            return self.answer()

    def fail():
        raise BufferError("it lies nowhere")

    for answer in (fail, lambda: None, lambda: ("a", "b"), lambda: (1, 2, 3)):
        np.testing.assert_array_equal(openrnn.constant(Broken(answer)).numpy(), np.ones(3))

    def stop():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        openrnn.constant(Broken(stop))


def test_from_dlpack_asks_older_producers_again():
    array = np.arange(6.0, dtype="float32")
    for known in [("max_version",), ()]:
        producer = Producer(array, *known)
        assert address(openrnn.from_dlpack(producer)) == address(array)
        assert producer.calls[0] == {"max_version": (1, 0)}
        assert len(producer.calls) == (1 if known else 2)


def test_from_dlpack_copies_where_it_must():
    array = np.arange(12.0).reshape(3, 4)
    x = openrnn.from_dlpack(array.T)
    np.testing.assert_array_equal(x.numpy(), array.T)
    with pytest.raises(BufferError, match="row-major"):
        openrnn.from_dlpack(array.T, copy=False)
    assert address(openrnn.from_dlpack(array, copy=True)) != address(array)
    assert address(openrnn.from_dlpack(array, copy=False)) == address(array)
    assert openrnn.from_dlpack(array, device="cpu").device == "cpu"


def test_from_dlpack_refuses_other_devices_and_no_capsules():
    class Elsewhere(Producer):
        def __dlpack_device__(self):
            return (10, 0)  # ROCm

    with pytest.raises(TypeError, match=r"\(10, 0\)"):
        openrnn.from_dlpack(Elsewhere(np.zeros(3)))

    class Wrong(Producer):
        def __dlpack__(self, **options):
            return 3

    with pytest.raises(TypeError, match="capsule"):
        openrnn.from_dlpack(Wrong(np.zeros(3)))


def test_a_capsule_is_taken_once():
    class Twice(Producer):
        capsule = None

        def __dlpack__(self, **options):
            self.capsule = self.capsule or self.array.__dlpack__(**options)
            return self.capsule

    producer = Twice(np.zeros(3), "max_version")
    openrnn.from_dlpack(producer)
    with pytest.raises(TypeError, match="nobody has taken"):
        openrnn.from_dlpack(producer)


def test_dlpack_goes_out():
    x = openrnn.constant(np.arange(6.0).reshape(2, 3))
    assert x.__dlpack_device__() == (1, 0)
    back = np.from_dlpack(x)
    assert address(back) == address(x) and not back.flags.writeable
    # A capsule that nobody takes is freed with what it holds.
    del back
    capsule = x.__dlpack__(max_version=(1, 0))
    assert '"dltensor_versioned"' in repr(capsule)
    del capsule
    assert '"dltensor"' in repr(x.__dlpack__())


def test_dlpack_without_a_version_is_a_copy():
    class Old:
        def __dlpack__(self, *, stream=None):
            return x.__dlpack__(stream=stream)

        def __dlpack_device__(self):
            return x.__dlpack_device__()

    x = openrnn.constant([1.0, 2.0])
    assert address(openrnn.from_dlpack(Old())) != address(x)
    with pytest.raises(BufferError, match="max_version"):
        x.__dlpack__(copy=False)
    copied = x.__dlpack__(max_version=(1, 0), copy=True)
    assert '"dltensor_versioned"' in repr(copied)


def test_dlpack_outlives_the_tensor():
    x = openrnn.constant(np.arange(1000.0))
    back = np.from_dlpack(x)
    del x
    np.testing.assert_array_equal(back, np.arange(1000.0, dtype="float32"))


def test_dlpack_checks_what_it_is_asked():
    x = openrnn.constant([1.0])
    with pytest.raises(ValueError, match="stream"):
        x.__dlpack__(stream=1)
    with pytest.raises(ValueError, match="dl_device"):
        x.__dlpack__(dl_device=(10, 0))
    assert x.__dlpack__(dl_device=(1, 0), stream=-1, max_version=(1, 0)) is not None
    with pytest.raises(TypeError):
        x.__dlpack__(1)
    with pytest.raises(TypeError, match="symbolic"):
        openrnn.Input((3,)).__dlpack__()


def test_integers_and_arrays_stay_what_they_were():
    # A layer on a device named is the layer without one.
    x = np.ones((4, 2, 3), "float32")
    named = CudnnGRU(1, 5, seed=1, device="cpu", name="a")
    plain = CudnnGRU(1, 5, seed=1, name="b")
    named.build((None, None, 3))
    plain.build((None, None, 3))
    plain.kernel.assign(named.kernel)
    np.testing.assert_array_equal(named(x)[0].numpy(), plain(x)[0].numpy())


def test_strides_of_dimensions_of_size_1_mean_nothing():
    array = np.arange(20, dtype="float32").reshape(5, 4)[::2][:1]
    assert array.strides == (32, 4)
    assert address(openrnn.from_dlpack(array, copy=False)) == address(array)


class Offset:
    """The last elements of an array, as a producer gives them that tells where they begin."""

    def __init__(self, array, skipped):
        self.array, self.bytes = array, skipped * array.itemsize

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self):
        capsule = self.array.__dlpack__()
        pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
        pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        # data, device, ndim, dtype, shape, strides, byte_offset: eight bytes each, ndim with dtype.
        fields = ctypes.cast(
            pointer_of(capsule, b"dltensor"), ctypes.POINTER(ctypes.c_uint64)
        )
        fields[0] -= self.bytes
        fields[5] += self.bytes
        return capsule


def test_dlpack_from_the_middle_of_memory():
    memory = np.arange(9, dtype="float32")
    tensor = openrnn.from_dlpack(Offset(memory[4:], 4))
    np.testing.assert_array_equal(tensor.numpy(), memory[4:])
