"""What layers, models, tapes and operations refuse, by all of its words."""

import numpy as np
import openrnn
import pytest
from openrnn import initializers, layers, losses, nn, regularizers
from openrnn.cudnn_rnn import (
    CudnnGRU, CudnnLSTM, CudnnParamsFormatConverter, CudnnRNNTanh, ops,
)  # fmt: skip

X, H = np.ones((5, 2, 3), "float32"), np.ones((1, 2, 4), "float32")
ROWS = np.ones((2, 3), "float32")


def built(kind=CudnnGRU, **kw):
    layer = kind(1, 4, name="rnn", **kw)
    layer.build((None, None, 3))
    return layer


class Nothing(layers.Layer):
    def call(self, inputs):
        return None


class Half(layers.Layer):
    def call(self, inputs):
        return [inputs, None]


class Without(layers.Layer):
    pass


class Early(layers.Layer):
    """It forgets its base."""

    def __init__(self):
        self.units = 3


class Built(layers.Layer):
    def build(self, input_shape):
        self.shape = input_shape


def dense_model(name=None):
    x = openrnn.Input((3,))
    return openrnn.Model(x, layers.Dense(2, name="one")(layers.Dense(2, name="two")(x)), name=name)


def tape_of(call):
    v = openrnn.Variable([1.0, 2.0])
    with openrnn.GradientTape() as tape:
        y = v * v
    return call(tape, y, v)


def recorded(call):
    v = openrnn.Variable([1.0, 2.0])
    with openrnn.GradientTape():
        return call(v * v, v)


CASES = [
    # Layers.
    (lambda: Nothing(name="own")(ROWS), ValueError,
     "[own] call() returned None, expected a Tensor"),
    (lambda: Half(name="own")(ROWS), ValueError, "[own] call() returned None, expected a Tensor"),
    (lambda: Without()(ROWS), NotImplementedError, "[Without] it has no call(), expected one"),
    (lambda: Without().call(ROWS), NotImplementedError, "[Without] it has no call(), expected one"),
    (lambda: Nothing()(None), TypeError, "[Nothing] an input is None, expected a Tensor"),
    (lambda: Nothing()([ROWS, None]), TypeError, "[Nothing] an input is None, expected a Tensor"),
    (lambda: Built().build(None), ValueError,
     "[build] the shape is None: its rank is unknown, expected a tuple of sizes, None for a size "
     "that is not known"),
    (lambda: Early()(ROWS), TypeError,
     "[Early] its __init__() has not called super().__init__(), expected it before any use of the "
     "layer"),
    (lambda: Early().weights, TypeError,
     "[Early] its __init__() has not called super().__init__(), expected it before any use of the "
     "layer"),
    (lambda: Without(name="own").compute_mask(ROWS, ROWS), TypeError,
     "[own] a mask of type 'ndarray', expected None: the layer does not support masking"),
    (lambda: Without(name="own").compute_mask(ROWS, [None, ROWS]), TypeError,
     "[own] a mask of type 'list', expected None: the layer does not support masking"),
    (lambda: Without().add_weight("w", (2,), partitioner=3), NotImplementedError,
     "[add_weight] partitioner is a int, expected None: variables are not partitioned"),
    (lambda: Without().add_variable("w", (2,), partitioner="p"), NotImplementedError,
     "[add_weight] partitioner is a str, expected None: variables are not partitioned"),
    (lambda: layers.Dense(2, 3), TypeError,
     "[Dense] activation is a int, expected a name or a function of a Tensor"),
    (lambda: layers.Dense(2, "elu"), ValueError,
     "[Dense] activation is 'elu', expected linear, relu, tanh or sigmoid"),
    (lambda: CudnnLSTM(1, 4, 3), ValueError,
     "[CudnnLSTM] input_mode is 3, expected 'linear_input', 'skip_input' or 'auto_select'. The "
     "model of (num_layers, num_units, input_size) is openrnn.cudnn_rnn.ops.CudnnLSTM"),
    (lambda: type("Mine", (CudnnRNNTanh,), {})(1, 4, 3), ValueError,
     "[CudnnRNNTanh] input_mode is 3, expected 'linear_input', 'skip_input' or 'auto_select'. The "
     "model of (num_layers, num_units, input_size) is openrnn.cudnn_rnn.ops.CudnnRNNTanh"),
    (lambda: CudnnGRU(1, 4, name="rnn").call(X), RuntimeError,
     "[rnn] call() of an unbuilt layer, expected build() before"),
    (lambda: built()(X, mask=np.ones((5, 2))), TypeError,
     "[rnn] mask is of float64, expected booleans"),
    (lambda: built()(X, reset=[["a", "b"]] * 5), TypeError,
     "[rnn] reset is of <U1, expected booleans"),
    (lambda: built()(X, mask=np.ones((2, 5), bool)), ValueError,
     "[rnn] mask has shape [2, 5], expected [5, 2], as the inputs"),
    (lambda: built()(X, reset=np.ones((5,), bool)), ValueError,
     "[rnn] reset has shape [5], expected [5, 2], as the inputs"),
    (lambda: built().call(X, reset=np.ones((5, 2, 1), "uint8")), ValueError,
     "[rnn] reset has shape [5, 2, 1], expected [5, 2], as the inputs"),
    (lambda: built()(X, time_major=False, mask=np.ones((2, 5), "int64")), ValueError,
     "[rnn] mask has shape [2, 5], expected [5, 2], as the inputs"),
    (lambda: CudnnGRU(1, 4, rnn_mode="lstm"), TypeError,
     "CudnnGRU.__init__() got an unexpected keyword argument 'rnn_mode'"),
    (lambda: CudnnGRU(1, 4, input_size=3), TypeError,
     "CudnnGRU.__init__() got an unexpected keyword argument 'input_size'"),
    (lambda: CudnnGRU(1), TypeError,
     "CudnnGRU.__init__() missing 1 required positional argument: 'num_units'"),
    (lambda: layers.Dense(), TypeError,
     "Dense.__init__() missing 1 required positional argument: 'units'"),
    # The op-level functions and converters.
    (lambda: ops.CudnnRNNTanh(1, 4), TypeError,
     "CudnnRNNTanh.__init__() missing 1 required positional argument: 'input_size'"),
    (lambda: ops.CudnnGRU(1, 4, 3, num_proj=2), TypeError,
     "CudnnGRU.__init__() got an unexpected keyword argument 'num_proj'"),
    (lambda: ops.CudnnLSTM(1, 4, 3, rnn_mode="gru"), TypeError,
     "CudnnLSTM.__init__() got an unexpected keyword argument 'rnn_mode'"),
    (lambda: ops.cudnn_lstm(X, H, H, np.ones(144, "float32"), num_proj=3), ValueError,
     "[cudnn_lstm] num_proj is 3, expected 4, the width of input_h"),
    (lambda: ops.cudnn_rnn_canonical_to_opaque_params("gru", 1, 4, 3, 3, []), TypeError,
     "[cudnn_rnn_canonical_to_opaque_params] weights is 'int', expected a list of matrices"),
    (lambda: CudnnParamsFormatConverter(1, 4, 3).opaque_to_tf_canonical(np.ones(3)), NotImplementedError,
     "[CudnnParamsFormatConverter] expected one of its subclasses"),
    (lambda: CudnnParamsFormatConverter(1, 4, 3).tf_canonical_to_opaque([]), NotImplementedError,
     "[CudnnParamsFormatConverter] expected one of its subclasses"),
    (lambda: CudnnParamsFormatConverter(1, 4, 3, dtype="float64"), TypeError,
     "CudnnParamsFormatConverter.__init__() got an unexpected keyword argument 'dtype'"),
    (lambda: CudnnParamsFormatConverter(1, 4, 3, rnn_mode="gru"), TypeError,
     "CudnnParamsFormatConverter.__init__() got an unexpected keyword argument 'rnn_mode'"),
    # Models.
    (lambda: openrnn.Input(), ValueError, "[Input] expected one of shape and batch_shape"),
    (lambda: openrnn.Input((3,), batch_shape=(None, 3)), ValueError,
     "[Input] expected one of shape and batch_shape"),
    (lambda: openrnn.Input(batch_size=2, batch_shape=(2, 3)), ValueError,
     "[Input] batch_size and batch_shape are given, expected one of them"),
    (lambda: openrnn.Input(3), TypeError, "[Input] shape is 'int', expected a list of sizes"),
    (lambda: openrnn.Input("ab"), TypeError, "[Input] shape is 'str', expected a list of sizes"),
    (lambda: dense_model().get_layer(index=2), ValueError,
     "[get_layer] index is 2, expected -2 to 1"),
    (lambda: dense_model().get_layer(index=-3), ValueError,
     "[get_layer] index is -3, expected -2 to 1"),
    (lambda: dense_model().get_layer(index=0.5), TypeError,
     "[get_layer] index is 'float', expected an integer"),
    (lambda: dense_model().get_layer("three"), ValueError,
     "[get_layer] name is 'three', expected one of ['two', 'one']"),
    (lambda: dense_model().get_layer(), ValueError,
     "[get_layer] name is None, expected one of ['two', 'one']"),
    (lambda: dense_model().predict(ROWS, 0), ValueError,
     "[predict] batch_size is 0, expected 1 or more"),
    (lambda: dense_model().predict(ROWS, "2"), TypeError,
     "[predict] batch_size is 'str', expected an integer"),
    (lambda: dense_model().predict(ROWS, 2, batch_axis=(2, 0)), ValueError,
     "[predict] x has shape (2, 3), expected more than 2 dimensions, as batch_axis is 2"),
    (lambda: dense_model().predict(ROWS, 2, batch_axis=(0, 2)), ValueError,
     "[predict] an output of 2 samples has shape (2, 2), expected them along axis 2 (batch_axis)"),
    (lambda: dense_model().predict(ROWS, 2, batch_axis=(0, 1, 2)), ValueError,
     "[predict] batch_axis has 3 parts, expected one axis, or those of inputs and labels"),
    (lambda: dense_model().predict(ROWS[:0], 2), ValueError,
     "[predict] the data has no samples, expected some"),
    (lambda: dense_model().evaluate((ROWS, ROWS[:, :2]), "mse"), ValueError,
     "[evaluate] loss is 'mse', expected one of ['binary_cross_entropy', 'ctc_loss', "
     "'mean_squared_error', 'sparse_softmax_cross_entropy']"),
    (lambda: dense_model().evaluate((ROWS, ROWS[:, :2]), "mean_squared_error", batch_size=0), ValueError,
     "[evaluate] batch_size is 0, expected 1 or more"),
    (lambda: dense_model().evaluate((ROWS, ROWS), "mean_squared_error", batch_axis=(0, -2)), ValueError,
     "[evaluate] batch_axis is (0, -2), expected 0 or more"),
    (lambda: dense_model().evaluate(iter([]), "mean_squared_error"), ValueError,
     "[evaluate] the data gave 0 batches, expected some"),
    (lambda: dense_model().evaluate((ROWS * np.inf, ROWS[:, :2]), "mean_squared_error"), ValueError,
     "[evaluate] the loss of a batch is nan, expected a finite one (a lower learning rate or "
     "clip_norm may help)"),
    (lambda: dense_model().evaluate((ROWS, ROWS[:, :2]), lambda y, p: 1), TypeError,
     "[evaluate] the loss returned a int, expected a Tensor"),
    (lambda: dense_model().evaluate((ROWS, ROWS[:, :2]), lambda y, p: p), ValueError,
     "[evaluate] the loss has shape (2, 2), expected one number: the mean over the batch"),
    # Tapes and operations.
    (lambda: tape_of(lambda t, y, v: t.gradient([y, y], v, [y])), ValueError,
     "[gradient] 1 output_gradients, expected 2, one a target"),
    (lambda: tape_of(lambda t, y, v: t.gradient(y, v, [y, y])), ValueError,
     "[gradient] 2 output_gradients, expected 1, one a target"),
    (lambda: openrnn.split(ROWS, 2, 1), ValueError,
     "[split] 2 parts of shape (2, 3) along axis 1, expected a number that divides its size"),
    (lambda: openrnn.split(ROWS, 0, 1), ValueError,
     "[split] 0 parts of shape (2, 3) along axis 1, expected a number that divides its size"),
    (lambda: openrnn.split(ROWS, 2, 2), ValueError,
     "[split] axis is 2, expected one of shape (2, 3)"),
    (lambda: openrnn.split(ROWS, np.int64(2), -3), ValueError,
     "[split] axis is -3, expected one of shape (2, 3)"),
    (lambda: openrnn.split(openrnn.Input((3,)), 1, 0), ValueError,
     "[split] 1 parts of shape (None, 3) along axis 0, expected a number that divides its size"),
    (lambda: openrnn.split(ROWS, 2, 0.5), TypeError,
     "[split] axis is 'float', expected an integer"),
    (lambda: openrnn.split(ROWS, "ab"), TypeError,
     "[split] num_or_size_splits is 'str', expected a list of sizes"),
    (lambda: openrnn.slice(ROWS, [0], [1]), ValueError,
     "[slice] begin [0] and size [1] for shape (2, 3), expected one number for each axis"),
    (lambda: openrnn.slice(ROWS, [0, 0, 0], [1, 1]), ValueError,
     "[slice] begin [0, 0, 0] and size [1, 1] for shape (2, 3), expected one number for each axis"),
    (lambda: openrnn.slice(ROWS, 0, [1, 1]), TypeError,
     "[slice] begin is 'int', expected a list of numbers"),
    (lambda: openrnn.slice(ROWS, [0, 0], 1), TypeError,
     "[slice] size is 'int', expected a list of numbers"),
    (lambda: openrnn.slice(ROWS, [0, 0.5], [1, 1]), TypeError,
     "[slice] an element of begin is 'float', expected an integer"),
    (lambda: openrnn.slice(ROWS, [0, 0], [1, "a"]), TypeError,
     "[slice] an element of size is 'str', expected an integer"),
    (lambda: openrnn.zeros((2, -1)), ValueError,
     "[zeros] shape is (2, -1), expected sizes of 0 or above"),
    (lambda: openrnn.ones([-2]), ValueError, "[ones] shape is (-2,), expected sizes of 0 or above"),
    (lambda: openrnn.zeros(1.5), TypeError,
     "[zeros] an element of shape is 'float', expected an integer"),
    (lambda: openrnn.ones("ab"), TypeError,
     "[ones] an element of shape is 'str', expected an integer"),
    (lambda: openrnn.transpose(ROWS, (0, 0.5)), TypeError,
     "[transpose] an element of perm is 'float', expected an integer"),
    (lambda: openrnn.tile(ROWS, ("a", 1)), TypeError,
     "[tile] an element of multiples is 'str', expected an integer"),
    (lambda: openrnn.squeeze(ROWS, "a"), TypeError,
     "[squeeze] an element of axis is 'str', expected an integer"),
    (lambda: nn.dropout(ROWS), ValueError, "[dropout] expected one of keep_prob and rate"),
    (lambda: nn.dropout(ROWS, 0.5, rate=0.5), ValueError,
     "[dropout] expected one of keep_prob and rate"),
    (lambda: nn.dropout(ROWS, "0.5"), TypeError, "[dropout] keep_prob is 'str', expected a number"),
    (lambda: nn.dropout(ROWS, 1.5), ValueError, "[dropout] rate is -0.5, expected 0 to 1"),
    (lambda: initializers.get("ten"), ValueError,
     "[initializers] the class is 'ten', expected one of ['constant', 'glorot_uniform', 'ones', "
     "'random_normal', 'random_uniform', 'zeros']"),
    (lambda: initializers.get({"config": {}}), ValueError,
     "[initializers] the class is None, expected one of ['constant', 'glorot_uniform', 'ones', "
     "'random_normal', 'random_uniform', 'zeros']"),
    (lambda: initializers.glorot_uniform("a"), TypeError,
     "[glorot_uniform] seed is 'str', expected an integer"),
    (lambda: initializers.random_normal(0.0, 1.0, 1.5), TypeError,
     "[random_normal] seed is 'float', expected an integer"),
    (lambda: initializers.random_uniform(0.0, 1.0, "a"), TypeError,
     "[random_uniform] seed is 'str', expected an integer"),
    (lambda: regularizers.l1("a"), TypeError, "[l1] scale is 'str', expected a number"),
    (lambda: regularizers.l2(None), TypeError, "[l2] scale is 'NoneType', expected a number"),
    (lambda: losses.binary_cross_entropy([1.0], [0.5], epsilon=0.6), ValueError,
     "[binary_cross_entropy] epsilon is 0.6, expected 0 to below 0.5"),
    # NumPy's functions drop gradients.
    (lambda: recorded(lambda y, v: np.sum(v)), TypeError,
     "[numpy.sum] a Variable whose gradient is being recorded, which NumPy would drop; expected "
     "an operation of openrnn, or .numpy() for the value without gradient"),
    (lambda: recorded(lambda y, v: np.concatenate([[1.0], y])), TypeError,
     "[numpy.concatenate] a Tensor whose gradient is being recorded, which NumPy would drop; "
     "expected an operation of openrnn, or .numpy() for the value without gradient"),
    (lambda: recorded(lambda y, v: np.exp(y)), TypeError,
     "[numpy.exp] a Tensor whose gradient is being recorded, which NumPy would drop; expected an "
     "operation of openrnn, or .numpy() for the value without gradient"),
    (lambda: recorded(lambda y, v: np.add(y, v, out=np.zeros(2))), TypeError,
     "[numpy.add] a Tensor whose gradient is being recorded, which NumPy would drop; expected an "
     "operation of openrnn, or .numpy() for the value without gradient"),
    (lambda: recorded(lambda y, v: np.add.reduce(y)), TypeError,
     "[numpy.add] a Tensor whose gradient is being recorded, which NumPy would drop; expected an "
     "operation of openrnn, or .numpy() for the value without gradient"),
    (lambda: recorded(lambda y, v: np.add(np.ones(2), 1.0, out=y)), TypeError,
     "[numpy.add] a Tensor whose gradient is being recorded, which NumPy would drop; expected an "
     "operation of openrnn, or .numpy() for the value without gradient"),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:nanobind. attempted to access an uninitialized instance")
@pytest.mark.parametrize(("make", "kind", "text"), CASES)
def test_what_layers_refuse(make, kind, text):
    with pytest.raises(kind) as raised:
        make()
    assert str(raised.value) == text
