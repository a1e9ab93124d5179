"""Arrays of one dtype given where another is asked for: kept as they are, or refused."""

import datetime
import decimal
import fractions

import numpy as np
import openrnn
import pytest


class Doubled(openrnn.layers.Layer):
    """Says at the end of build() what Keras asks for."""

    def build(self, input_shape):
        self.factor = self.add_weight("factor", (input_shape[-1],))
        self.built = True

    def call(self, inputs):
        return openrnn.add(inputs, inputs)


@pytest.mark.parametrize("values", [np.array([2**32 + 1]), np.array([1.7]), [1, 2**40]])
def test_indices_that_do_not_fit_are_refused(values):
    table = openrnn.layers.Embedding(3, 2)
    with pytest.raises(openrnn.ArgumentError, match=r"\[Embedding\] values of .* int32 does not"):
        table(values)
    with pytest.raises(openrnn.ArgumentError, match="int32 does not hold, expected whole"):
        openrnn.Tensor(values, dtype="int32")


def test_whole_numbers_of_other_dtypes_are_taken():
    table = openrnn.layers.Embedding(3, 2)
    expected = table(np.array([2, 0], np.int32)).numpy()
    for values in (np.array([2, 0]), np.array([2.0, 0.0]), [2, 0], np.array([2, 0], np.uint16)):
        np.testing.assert_array_equal(table(values).numpy(), expected)


def test_integers_beyond_int32_stay_what_they_are():
    tensor = openrnn.constant([1, 2**40])
    assert tensor.dtype == "int64" and list(tensor.numpy()) == [1, 2**40]
    assert openrnn.constant([1, -(2**31)]).dtype == "int32"


@pytest.mark.parametrize(
    "values, dtype",
    [(np.array([2**40], np.uint64), "int32"), (np.array([300], np.uint16), "uint8"), ([-1], "uint8")],
)  # fmt: skip
def test_integers_that_a_dtype_does_not_hold(values, dtype):
    with pytest.raises(openrnn.ArgumentError, match=f"{dtype} does not hold, expected whole"):
        openrnn.Tensor(values, dtype=dtype)


def test_no_lengths_of_no_rows():
    layer = openrnn.cudnn_rnn.CudnnGRU(1, 4)
    output, _ = layer(np.ones((2, 0, 3), np.float32), sequence_lengths=[])
    assert output.shape == (2, 0, 4)


def test_a_length_beyond_int32_is_no_short_one():
    layer = openrnn.cudnn_rnn.CudnnGRU(1, 4)
    with pytest.raises(openrnn.ArgumentError, match="length of row 0 is 1099511627776, expected"):
        layer(np.ones((2, 2, 3), np.float32), sequence_lengths=[2**40, 1])


def test_complex_values_are_refused():
    layer = openrnn.cudnn_rnn.CudnnGRU(1, 4)
    with pytest.raises(TypeError, match="an array of complex128, expected float32"):
        layer(np.ones((2, 2, 3), np.complex128))
    with pytest.raises(TypeError, match="an array of complex128, expected float32"):
        openrnn.Variable(1.0).assign(1j)


def test_built_may_be_said_in_build():
    layer = Doubled()
    with pytest.raises(openrnn.ArgumentError, match=r"\[built\] it is set to True, expected build"):
        layer.built = True
    layer(np.ones((2, 3), np.float32))
    layer.built = True
    with pytest.raises(openrnn.ArgumentError, match=r"\[built\] it is set to False, expected"):
        layer.built = False
    assert layer.built and len(layer.weights) == 1


def test_exponents():
    base, two = openrnn.constant(3.0), openrnn.Variable(2.0)
    for exponent in (two, openrnn.constant(2.0), 2, np.float32(2)):
        assert float(base**exponent) == 9.0
    assert float(two**1) == 2.0 and float(2.0**base) == 8.0
    with pytest.raises(TypeError):
        base**"2"


# NumPy makes numbers of some of them.
NO_NUMBERS = {
    "string": "1.5",
    "bytes": b"2",
    "list of strings": ["1", "2"],
    "list of both": [1.0, "2"],
    "array of strings": np.array(["1.5", "2"]),
    "array of bytes": np.array([b"1", b"2"]),
    "objects": np.array([1.0, "2"], dtype=object),
    "object of bytes": np.array([b"2"], dtype=object),
    "date": datetime.date(2001, 2, 3),
    "dates": np.array(["2001-02-03"], dtype="datetime64[D]"),
    "duration": np.array([5], dtype="timedelta64[s]"),
    "complex": np.array([1j]),
}


@pytest.mark.parametrize("value", NO_NUMBERS.values(), ids=NO_NUMBERS.keys())
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_strings_and_dates_are_refused(value, dtype):
    with pytest.raises(TypeError, match=r"^\[\w+\] .*, expected "):
        openrnn.convert_to_tensor(value, dtype=dtype)
    variable = openrnn.Variable(np.zeros(2, dtype))
    with pytest.raises(TypeError, match=r"^\[assign\] .*, expected "):
        variable.assign(value)
    np.testing.assert_array_equal(variable.numpy(), 0)


def test_objects_that_are_numbers():
    values = [decimal.Decimal("1.5"), fractions.Fraction(1, 2), np.float32(2), 3, True]
    made = openrnn.convert_to_tensor(np.array(values, dtype=object), dtype="float32")
    np.testing.assert_array_equal(made.numpy(), np.float32([1.5, 0.5, 2, 3, 1]))
