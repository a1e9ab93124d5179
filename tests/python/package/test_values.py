"""Arrays of one dtype given where another is asked for: kept as they are, or refused."""

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


def test_a_tensor_is_no_exponent():
    base, two = openrnn.constant(3.0), openrnn.Variable(2.0)
    for exponent in (two, openrnn.constant(2.0)):
        for one in (base, two):
            with pytest.raises(TypeError, match=r"\[Tensor\] the exponent is '.*', expected a num"):
                one**exponent
    assert float(base ** np.float32(2)) == 9.0 and float(two**1) == 2.0
    with pytest.raises(TypeError, match="exponent is 'str', expected a number"):
        base**"2"
