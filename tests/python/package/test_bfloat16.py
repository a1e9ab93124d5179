"""bfloat16: NumPy's through ml_dtypes, DLPack's, and what is done without that package."""

import copy
import pickle
import subprocess
import sys
import tempfile
import textwrap

import ml_dtypes
import numpy as np
import openrnn
import pytest

BF16 = np.dtype(ml_dtypes.bfloat16)


def values(shape=(2, 3), seed=1):
    return np.random.default_rng(seed).uniform(-3, 3, shape).astype(BF16)


def nearest(value):
    """Ties to even, from float64 at once: TensorFlow and ml_dtypes go through float32."""
    bits = np.float32(value).view(np.uint32)
    below = np.uint32(bits & 0xFFFF0000).view(np.float32)
    above = np.uint32((bits & 0xFFFF0000) + 0x10000).view(np.float32)
    low, high = abs(float(value) - float(below)), abs(float(above) - float(value))
    odd = (bits >> 16) & 1
    return float(above if high < low or (high == low and odd) else below)


@pytest.mark.parametrize("given", ["bfloat16", ml_dtypes.bfloat16, BF16, openrnn.bfloat16])
def test_a_dtype_may_be_given_in_many_ways(given):
    assert openrnn.constant([1, 2], given).dtype == "bfloat16"
    assert openrnn.cast(openrnn.constant([1.0]), given).dtype == "bfloat16"


@pytest.mark.parametrize("shape", [(), (1,), (0,), (2, 0, 3), (2, 3), (3, 1, 2)], ids=str)
def test_round_trip(shape):
    array = np.asarray(values(shape), BF16)
    tensor = openrnn.Tensor(array)
    assert tensor.shape == shape and tensor.dtype == "bfloat16"
    for found in (tensor.numpy(), np.asarray(tensor)):
        assert found.dtype == BF16 and found.shape == shape
        assert found.tobytes() == array.tobytes()


def test_every_bit_pattern_comes_back():
    bits = np.arange(65536, dtype=np.uint16)
    tensor = openrnn.Tensor(bits.view(BF16))
    np.testing.assert_array_equal(tensor.numpy().view(np.uint16), bits)
    wide = openrnn.cast(tensor, "float32")
    finite = np.isfinite(bits.view(BF16).astype("f4"))
    np.testing.assert_array_equal(wide.numpy()[finite], bits.view(BF16).astype("f4")[finite])
    back = openrnn.cast(wide, "bfloat16").numpy().view(np.uint16)
    np.testing.assert_array_equal(back[finite], bits[finite])
    assert np.isnan(openrnn.cast(wide, "bfloat16").numpy()[np.isnan(wide.numpy())]).all()


def test_numpy_is_a_read_only_view_that_keeps_the_memory():
    tensor = openrnn.Tensor(values((100, 100)))
    first, second = tensor.numpy(), tensor.numpy()
    assert np.shares_memory(first, second) and not first.flags.writeable
    wanted = first.copy()
    del tensor, second
    others = [openrnn.Tensor(np.zeros((100, 100), BF16)) for _ in range(20)]
    assert first.tobytes() == wanted.tobytes() and len(others) == 20


@pytest.mark.parametrize(
    "array", [values((4, 6))[:, ::2], values((4, 6)).T, np.asfortranarray(values())]
)
def test_arrays_that_are_not_contiguous(array):
    np.testing.assert_array_equal(openrnn.Tensor(array).numpy(), array)


def test_a_tensor_is_a_copy():
    array = values()
    tensor, wanted = openrnn.Tensor(array), array.copy()
    array[:] = 0.0
    np.testing.assert_array_equal(tensor.numpy(), wanted)


def test_plain_values_are_rounded_once():
    just_above = 1.0 + 2.0**-8 + 2.0**-40
    given = [just_above, 1.0 + 2.0**-8, 0.1, -1e-30, 3.3e38, 2.0**-133]
    found = openrnn.constant(given, "bfloat16").numpy().astype("f8")
    np.testing.assert_array_equal(found, [nearest(value) for value in given])
    assert found[0] == 1.0 + 2.0**-7 and found[1] == 1.0
    for dtype in ("float64", "float32", "float16", "int32", "bool"):
        array = np.array([0, 1, 1], dtype)
        assert openrnn.constant(array, "bfloat16").numpy().tolist() == [0.0, 1.0, 1.0]


def test_to_other_dtypes():
    array = np.array([1.0, -2.5, 0.0], BF16)
    for dtype in ("float16", "float32", "float64"):
        assert openrnn.constant(array, dtype).numpy().tolist() == [1.0, -2.5, 0.0]
        assert openrnn.constant(openrnn.Tensor(array)).numpy().tolist() == [1.0, -2.5, 0.0]
    assert openrnn.constant(array[::2], "int32").numpy().tolist() == [1, 0]
    with pytest.raises(ValueError, match="expected whole numbers in its range"):
        openrnn.constant(array, "int32")


def test_scalars_and_text():
    one = openrnn.constant(1.5, "bfloat16")
    assert one.item() == 1.5 and float(one) == 1.5 and openrnn.Tensor(BF16.type(2)).item() == 2.0
    assert "dtype=bfloat16" in repr(one) and "1.5" in repr(one) and "float32" not in repr(one)
    assert "dtype=bfloat16" in repr(openrnn.Variable(values(), name="v"))


def test_copies():
    tensor, variable = openrnn.Tensor(values()), openrnn.Variable(values(), name="v")
    for made in (copy.deepcopy(tensor), pickle.loads(pickle.dumps(tensor))):
        assert made.dtype == "bfloat16"
        np.testing.assert_array_equal(made.numpy(), tensor.numpy())
    assert pickle.loads(pickle.dumps(variable)).numpy().tobytes() == values().tobytes()


def test_the_buffer_protocol_has_no_such_type():
    with pytest.raises(BufferError, match=r"\[Tensor\] the buffer protocol has no bfloat16"):
        memoryview(openrnn.Tensor(values()))


class Foreign:
    """What PyTorch's look like: NumPy cannot read them, but they have DLPack."""

    dtype = "torch.bfloat16"

    def __init__(self, tensor):
        self.tensor = tensor

    def __array__(self, *args, **kwargs):
        raise TypeError("Got unsupported ScalarType BFloat16")

    def __dlpack__(self, **kwargs):
        return self.tensor.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


def test_dlpack_both_ways():
    tensor = openrnn.Tensor(values())
    shared = openrnn.from_dlpack(tensor)
    assert shared.dtype == "bfloat16" and np.shares_memory(shared.numpy(), tensor.numpy())
    for made in (openrnn.Tensor(Foreign(tensor)), openrnn.from_dlpack(Foreign(tensor))):
        assert made.dtype == "bfloat16"
        np.testing.assert_array_equal(made.numpy(), values())
    wide = openrnn.constant(Foreign(tensor), "float32")
    np.testing.assert_array_equal(wide.numpy(), values().astype("f4"))
    assert not np.shares_memory(openrnn.Tensor(Foreign(tensor)).numpy(), tensor.numpy())


def test_tensorflow_tensors():
    tf = pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
    made = openrnn.Tensor(tf.constant(values()))
    assert made.dtype == "bfloat16"
    np.testing.assert_array_equal(made.numpy(), values())
    assert openrnn.constant([1.0], tf.bfloat16).dtype == "bfloat16"
    # Its own DLPack knows the type: the same bytes.
    there = tf.experimental.dlpack.from_dlpack(openrnn.Tensor(values()).__dlpack__())
    assert there.dtype == tf.bfloat16 and there.numpy().tobytes() == values().tobytes()
    back = openrnn.from_dlpack(there) if hasattr(there, "__dlpack__") else made
    np.testing.assert_array_equal(back.numpy(), values())


def test_a_layer_and_a_session():
    layer = openrnn.cudnn_rnn.CudnnLSTM(2, 5, dtype="bfloat16", seed=3)
    x = values((4, 2, 3))
    with openrnn.GradientTape() as tape:
        output, (h, c) = layer(x, training=True)
        loss = openrnn.reduce_sum(output)
    assert {str(t.dtype) for t in (output, h, c)} == {"bfloat16"} and loss.dtype == "float32"
    (gradient,) = tape.gradient(loss, [layer.kernel])
    assert gradient.dtype == "bfloat16" and np.any(gradient.numpy() != 0)
    # Of float32 with the same numbers it is some roundings away.
    wide = openrnn.cudnn_rnn.CudnnLSTM(2, 5)
    wide.build(x.shape)
    wide.set_weights([layer.get_weights()[0].astype("f4")])
    exact = wide(x.astype("f4"), training=False)[0].numpy()
    error = abs(output.numpy().astype("f4") - exact).max()
    assert 0 < error < 0.03
    session = openrnn.InferenceSession(openrnn.PackedModel.from_layer(layer))
    found, _ = session.run(x)
    assert found.dtype == BF16
    np.testing.assert_array_equal(found, layer(x, training=False)[0].numpy())
    np.testing.assert_array_equal(session.run(x.astype("f4").tolist())[0], found)


def test_a_cell_takes_the_dtype_of_its_input():
    cell = openrnn.nn.rnn_cell.BasicLSTMCell(4)
    output, _ = cell(openrnn.constant(values()), cell.zero_state(2, "bfloat16"))
    assert output.dtype == "bfloat16"
    assert {str(v.dtype) for v in openrnn.global_variables()} == {"bfloat16"}


def test_an_initializer_is_told_numpys_name():
    seen = []

    def ones(shape, dtype):
        seen.append(dtype)
        return np.ones(shape, dtype)

    made = openrnn.get_variable("w", [2], dtype="bfloat16", initializer=ones)
    assert seen == ["bfloat16"] and made.numpy().tolist() == [1.0, 1.0]


def test_without_ml_dtypes():
    """Everything but NumPy arrays works, and those say what is missing."""
    program = """
        import sys
        sys.modules["ml_dtypes"] = None
        import numpy as np
        import openrnn
        t = openrnn.constant([1.0, 0.1], openrnn.bfloat16)
        assert t.dtype == "bfloat16" and "0.10009766" in repr(t), repr(t)
        assert openrnn.cast(t, "float32").numpy().tolist() == [1.0, 0.10009765625]
        assert openrnn.from_dlpack(t).dtype == "bfloat16" and t[0].item() == 1.0
        layer = openrnn.cudnn_rnn.CudnnGRU(1, 4, dtype="bfloat16")
        output, _ = layer(openrnn.constant(np.ones((2, 2, 3)), "bfloat16"))
        assert openrnn.cast(output, "float32").numpy().shape == (2, 2, 4)
        openrnn.train.Saver().save(sys.argv[1] + "/ck")
        for call in (t.numpy, lambda: np.asarray(t), layer.get_weights,
                     lambda: openrnn.PackedModel.from_layer(layer)):
            try:
                call()
            except NotImplementedError as error:
                assert "package ml_dtypes, which is not installed" in str(error), error
            else:
                raise AssertionError("no error")
        print("fine")
    """
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(program), folder],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert done.stdout == "fine\n", done.stderr
