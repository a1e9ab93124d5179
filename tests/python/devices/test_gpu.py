"""The same programs on gpu:0: a GPU, or the libraries that stand in for one."""

import copy
import ctypes
import pickle

import numpy as np
import pytest

import openrnn
from openrnn.cudnn_rnn import CudnnCompatibleLSTMCell, CudnnGRU, CudnnLSTM

pytestmark = pytest.mark.skipif(
    "gpu:0" not in openrnn.list_devices(), reason="openrnn.list_devices() has no gpu:0"
)

GPU = "gpu:0"
T, B, I, U = 5, 3, 4, 7


@pytest.fixture(autouse=True)
def own_graph():
    with openrnn.Graph().as_default():
        yield


def varied(*shape, seed=0, dtype="float32"):
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(dtype)


def close(a, b, tolerance=1e-5):
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=tolerance, atol=tolerance)


def test_a_tensor_goes_there_and_back():
    x = varied(2, 3)
    there = openrnn.constant(x, device=GPU)
    assert there.device == GPU and "device=gpu:0" in repr(there)
    np.testing.assert_array_equal(there.numpy(), x)
    np.testing.assert_array_equal(np.asarray(there), x)
    assert not there.numpy().flags.writeable
    assert there.cpu().device == "cpu" and there.cpu().to("gpu").device == GPU
    with pytest.raises(BufferError, match="GPU"):
        memoryview(there)


def test_host_data_goes_where_it_is_used():
    there = openrnn.constant(varied(2, 3), device=GPU)
    listed = [[1.0] * 3] * 2
    for result in (there + varied(2, 3), 2.0 * there, there @ varied(3, 4), listed - there):
        assert result.device == GPU
    placed = openrnn.constant(varied(2, 3), device="cpu")
    with pytest.raises(ValueError, match=r"gpu:0.*cpu|cpu.*gpu:0"):
        there + placed


def test_gradients_come_back():
    x = openrnn.Variable(varied(3))
    with openrnn.GradientTape() as tape:
        loss = openrnn.reduce_sum(openrnn.square(x.read_value().to(GPU)))
    assert loss.device == GPU
    close(tape.gradient(loss, x), 2 * x.numpy())


def test_default_device():
    before = openrnn.get_default_device()
    openrnn.set_default_device(GPU)
    try:
        assert openrnn.Variable([1.0]).device == GPU
        assert openrnn.constant([1.0]).device == GPU
        assert openrnn.constant([1]).device == "cpu"  # integers, until they are used
        assert openrnn.layers.Dense(2).device == GPU
    finally:
        openrnn.set_default_device(before)
    assert openrnn.Variable([1.0]).device == before


def test_variables_take_values_of_any_device():
    v = openrnn.Variable(varied(2, 3), device=GPU)
    assert v.device == GPU
    v.assign(openrnn.constant(varied(2, 3, seed=1), device="cpu"))
    assert v.device == v.read_value().device == GPU
    v.assign_add(np.ones((2, 3), "float32"))
    close(v, varied(2, 3, seed=1) + 1)


def programs():
    """Pairs of a name and a function of a device that returns arrays."""

    def layer(device, kind=CudnnLSTM, **options):
        made = kind(2, U, seed=3, device=device, **options)
        state = None
        if kind is CudnnLSTM:
            states = 2 * made.num_dirs
            state = (varied(states, B, U, seed=8), varied(states, B, U, seed=9))
        with openrnn.GradientTape() as tape:
            x = openrnn.constant(varied(T, B, I))
            tape.watch(x)
            output, states = made(x, state, sequence_lengths=[5, 2, 0])
            loss = openrnn.reduce_sum(openrnn.square(output))
        assert output.device == states[0].device == device
        assert made.device == made.kernel.device == device
        dx, dw = tape.gradient(loss, [x, made.kernel])
        assert dw.device == device
        return [output, *states, dx, dw]

    def train(device, optimizer=openrnn.train.AdamOptimizer):
        embedding = openrnn.layers.Embedding(11, 6, seed=1, device=device)
        rnn = CudnnGRU(1, U, seed=2, device=device)
        dense = openrnn.layers.Dense(11, seed=3, device=device)
        labels = np.arange(T * B).reshape(T, B) % 11
        step = optimizer(0.01)
        losses = []
        for _ in range(3):
            with openrnn.GradientTape() as tape:
                logits = dense(rnn(embedding(labels))[0])
                loss = openrnn.losses.sparse_softmax_cross_entropy(labels[::-1].copy(), logits)
            variables = openrnn.trainable_variables()
            gradients = tape.gradient(loss, variables)
            gradients, _ = openrnn.clip_by_global_norm(gradients, 1.0)
            step.apply_gradients(list(zip(gradients, variables, strict=True)))
            losses.append(float(loss))
        assert all(v.device == device for v in variables)
        return [np.array(losses), *variables]

    def cells(device):
        cell = CudnnCompatibleLSTMCell(U, device=device)
        output, state = openrnn.nn.dynamic_rnn(
            cell, varied(B, T, I), dtype="float32", sequence_length=[5, 2, 0])
        assert output.device == device
        return [output, state.c, state.h]

    def model(device):
        x = openrnn.Input(batch_shape=(None, None, I))
        output, _ = CudnnGRU(1, U, seed=2, device=device)(x)
        y = openrnn.layers.Dense(2, seed=3, device=device)(output)
        made = openrnn.Model(x, y)
        result = made(varied(T, B, I))
        assert result.device == device
        return [result]

    return {
        "lstm": layer,
        "gru": lambda device: layer(device, CudnnGRU),
        "bidirectional": lambda device: layer(device, direction="bidirectional"),
        "train": train,
        "momentum": lambda device: train(
            device, lambda rate: openrnn.train.MomentumOptimizer(rate, 0.9)),
        "cells": cells,
        "model": model,
    }


@pytest.mark.parametrize("name", programs())
def test_programs_give_the_same(name):
    results = []
    for device in ("cpu", GPU):
        with openrnn.Graph().as_default():
            results.append(programs()[name](device))
    for here, there in zip(*results, strict=True):
        close(here, there, 2e-4)


def test_a_checkpoint_says_nothing_of_the_device(tmp_path):
    x = varied(T, B, I)
    outputs = []
    for device in ("cpu", GPU, "cpu"):
        with openrnn.Graph().as_default():
            layer = CudnnLSTM(1, U, seed=len(outputs), device=device)
            layer.build((None, None, I))
            saver = openrnn.train.Saver()
            if outputs:
                saver.restore(tmp_path / "model")
            outputs.append(layer(x)[0].numpy())
            saver.save(tmp_path / "model")
    for output in outputs[1:]:
        close(output, outputs[0])


def test_labels_and_lengths_may_lie_there():
    layer = CudnnGRU(1, U, device=GPU)
    lengths = openrnn.constant(np.array([5, 2, 0], "int32"), device=GPU)
    a = layer(varied(T, B, I), sequence_lengths=lengths)[0]
    b = layer(varied(T, B, I), sequence_lengths=[5, 2, 0])[0]
    np.testing.assert_array_equal(a.numpy(), b.numpy())
    table = openrnn.layers.Embedding(5, 2, device=GPU)
    at = np.array([[4, 0]], "int64")
    np.testing.assert_array_equal(
        table(openrnn.constant(at, "int32", device=GPU)).numpy(), table(at).numpy())
    with pytest.raises(ValueError, match="5"):
        table(openrnn.constant([5], device=GPU))


def address(tensor):
    """Where a tensor lies, as DLPack says it."""
    capsule = tensor.__dlpack__(stream=-1, max_version=(1, 0))
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    managed = pointer(capsule, b"dltensor_versioned")
    before_tensor = 32  # version, context, deleter, flags
    return ctypes.c_void_p.from_address(managed + before_tensor).value


def test_a_borrowed_array_is_never_written():
    x = openrnn.constant(varied(3), device=GPU)
    v = openrnn.Variable(np.zeros(3, "float32"), device=GPU)
    v.assign(openrnn.from_dlpack(x))
    openrnn.train.GradientDescentOptimizer(0.5).apply_gradients([(np.ones(3, "float32"), v)])
    np.testing.assert_array_equal(x.numpy(), varied(3))
    close(v, varied(3) - 0.5)


def test_host_memory_stays_where_it_is():
    array = varied(2, 3)
    before = openrnn.get_default_device()
    openrnn.set_default_device(GPU)
    try:
        for x in (openrnn.from_dlpack(array), openrnn.from_dlpack(array, copy=False)):
            assert x.device == "cpu" and np.shares_memory(x.numpy(), array)
            assert (x + openrnn.constant(array, device=GPU)).device == GPU
        for x in (openrnn.from_dlpack(array, copy=True), openrnn.from_dlpack(array.T)):
            assert x.device == "cpu" and not np.shares_memory(x.numpy(), array)
        assert openrnn.from_dlpack(array, device=GPU).device == GPU
    finally:
        openrnn.set_default_device(before)


def test_a_copy_stays_on_the_device():
    x = openrnn.constant(varied(2, 3), device=GPU)
    for made in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x), copy.copy(x)):
        assert made.device == GPU
        np.testing.assert_array_equal(made.numpy(), x.numpy())
        with pytest.raises(ValueError, match="gpu:0"):
            made + x.cpu()
    before = openrnn.get_default_device()
    openrnn.set_default_device(GPU)
    try:
        assert copy.deepcopy(x.cpu()).device == "cpu"
    finally:
        openrnn.set_default_device(before)
    free = copy.deepcopy(openrnn.constant(varied(2, 3)))
    assert (free + x).device == GPU


def test_a_model_refuses_what_was_placed_elsewhere():
    model = openrnn.cudnn_rnn.ops.CudnnGRU(1, U, I, device=GPU)
    x, h, p = varied(T, B, I), varied(1, B, U), varied(model.params_size())
    assert model(x, h, p)[0].device == GPU
    placed = [openrnn.constant(value, device="cpu") for value in (x, h, p)]
    for given in (placed, [x, h, placed[2]]):
        with pytest.raises(ValueError, match=r"cpu, expected gpu:0"):
            model(*given)


def test_dlpack_shares_the_memory():
    x = openrnn.constant(varied(2, 3), device=GPU)
    assert x.__dlpack_device__() == (2, 0)
    again = openrnn.from_dlpack(x)
    assert again.device == GPU
    assert address(again) == address(x) != address(openrnn.from_dlpack(x, copy=True))
    np.testing.assert_array_equal(again.numpy(), x.numpy())
    del x
    np.testing.assert_array_equal((again + 0.0).numpy(), varied(2, 3))


@pytest.mark.parametrize("stream", [None, -1, 1, 2])
def test_dlpack_streams(stream):
    x = openrnn.constant(varied(2, 3), device=GPU)
    assert '"dltensor_versioned"' in repr(x.__dlpack__(stream=stream, max_version=(1, 0)))
    assert '"dltensor"' in repr(x.__dlpack__(stream=stream))


def test_dlpack_checks_what_it_is_asked():
    x = openrnn.constant(varied(2, 3), device=GPU)
    for stream in (0, -2):
        with pytest.raises(ValueError, match="stream"):
            x.__dlpack__(stream=stream)
    with pytest.raises(BufferError, match="device"):
        x.__dlpack__(dl_device=(1, 0), copy=False, max_version=(1, 0))
    host = np.from_dlpack(x, device="cpu") if np.lib.NumpyVersion(np.__version__) >= "2.1.0" else x
    np.testing.assert_array_equal(np.asarray(host), varied(2, 3))


class Array:
    """As arrays of other libraries: DLPack and nothing else."""

    def __init__(self, tensor):
        self.tensor, self.streams = tensor, []

    def __dlpack__(self, *, stream=None, **options):
        self.streams.append(stream)
        return self.tensor.__dlpack__(stream=stream, **options)

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


def test_an_array_of_a_gpu_is_an_argument():
    x = Array(openrnn.constant(varied(T, B, I), device=GPU))
    layer = CudnnGRU(1, U, device=GPU)
    expected = layer(varied(T, B, I), training=False)[0].numpy()
    np.testing.assert_array_equal(layer(x, training=False)[0].numpy(), expected)
    np.testing.assert_array_equal(layer(x)[0].numpy(), expected)
    assert all(stream > 2 for stream in x.streams)  # ours: it waits for the producer's
    half = CudnnGRU(1, U, dtype="float16", device=GPU)(x)[0]
    assert half.dtype == "float16"
    indices = Array(openrnn.constant(np.array([1, 0], "int64"), device=GPU))
    assert openrnn.layers.Embedding(3, 2, device=GPU)(indices).shape == (2, 2)
    with pytest.raises(ValueError, match="one device"):
        CudnnGRU(1, U, device="cpu", name="other")(x)


FLOATS = ["float16", "bfloat16", "float32", "float64"]


@pytest.mark.parametrize("dtype", [*FLOATS, "int32", "int64", "uint8", "bool"])
def test_a_tensor_of_an_array_of_a_gpu_has_memory_of_its_own(dtype):
    values = np.array([[1.5, 0.0, 3.0], [7.0, 2.0, 1.0]]).astype(dtype)
    given = openrnn.constant(values, dtype, device=GPU)
    for made in (openrnn.constant(Array(given)), openrnn.constant(Array(given), dtype)):
        assert made.device == GPU and made.dtype == dtype and made.shape == (2, 3)
        assert address(made) != address(given)
        np.testing.assert_array_equal(made.numpy(), values)
    v = openrnn.Variable(Array(given), device=GPU) if dtype in FLOATS else None
    if v is not None:
        v.assign(given.numpy() * 0)
        np.testing.assert_array_equal(given.numpy(), values)
    wide_floats = ["float16", "float32", "float64"]  # a GPU converts no bfloat16
    for other in [one for one in wide_floats if dtype in wide_floats and one != dtype]:
        wide = openrnn.constant(Array(given), other)
        assert wide.dtype == other and wide.device == GPU
        np.testing.assert_array_equal(wide.numpy(), values.astype(other))
    if dtype in ("int32", "int64"):
        changed = openrnn.constant(Array(given), "int64" if dtype == "int32" else "int32")
        np.testing.assert_array_equal(changed.numpy(), values)
        assert changed.dtype == ("int64" if dtype == "int32" else "int32")


@pytest.mark.parametrize("library", ["cupy", "torch", "jax"])
def test_arrays_of_other_libraries(library):
    module = pytest.importorskip(library)
    if library == "torch":
        if not module.cuda.is_available():
            pytest.skip("this PyTorch has no GPU")
        array = module.arange(6.0, device="cuda").reshape(2, 3)
        back, host = module.from_dlpack, lambda a: a.cpu().numpy()
    elif library == "cupy":
        try:
            array = module.arange(6, dtype="float32").reshape(2, 3)
        except Exception as error:  # noqa: BLE001 - whatever it lacks
            pytest.skip(f"CuPy has no GPU: {error}")
        back, host = module.from_dlpack, lambda a: a.get()
    else:
        if module.default_backend() != "gpu":
            pytest.skip("this JAX has no GPU")
        array = module.numpy.arange(6, dtype="float32").reshape(2, 3)
        back, host = module.dlpack.from_dlpack, np.asarray
    x = openrnn.from_dlpack(array)
    assert x.device == GPU
    y = x + 1.0
    np.testing.assert_array_equal(y.numpy(), np.arange(1.0, 7.0).reshape(2, 3))
    np.testing.assert_array_equal(host(back(y)), np.arange(1.0, 7.0).reshape(2, 3))


def test_a_step_that_is_refused_is_told_one_step_late(tmp_path):
    w = openrnn.Variable([1.0, 2.0], device=GPU)
    step = openrnn.train.get_or_create_global_step()
    optimizer = openrnn.train.AdamOptimizer(0.25)

    def take(factor):
        optimizer.minimize(lambda: openrnn.reduce_sum(w * factor), global_step=step, clip_norm=1.0)

    said = r"gradients with a global norm of inf at step 1, expected finite ones"
    take(1.0)
    before = w.numpy().copy()
    for tells in (
        lambda: take(1.0),
        optimizer.finish,
        lambda: openrnn.train.Saver().save(tmp_path / "m"),
    ):
        take(float("inf"))
        with pytest.raises(openrnn.ArgumentError, match=said):
            tells()
        np.testing.assert_array_equal(w.numpy(), before)
        assert int(step) == 1 and optimizer.finish() is None
    openrnn.train.Saver().save(tmp_path / "m")
    assert openrnn.train.load_variable(tmp_path / "m", "global_step") == 1
    assert openrnn.train.load_variable(tmp_path / "m", "beta1_power") == np.float32(0.9) ** 2
