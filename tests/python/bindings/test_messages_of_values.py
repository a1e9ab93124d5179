"""What a value that does not fit is called, and what was expected: whole messages."""

import numpy as np
import openrnn
import pytest
from openrnn import cudnn_rnn, layers, nn, train

X = np.arange(12, dtype="float32").reshape(3, 4)
x = openrnn.constant(X)
with openrnn.Graph().as_default():
    S = openrnn.Input(batch_shape=(None, 4), name="s")
    W = openrnn.Variable([1.0, 2.0], name="w")
KINDS = "a Variable, layer, optimizer, saveable, list or dict"
tape = openrnn.GradientTape()


def step_of(value):
    w = openrnn.Variable(1.0)
    train.GradientDescentOptimizer(0.1).minimize(lambda: w * w, value, [w])


CALLS = [
    (
        lambda: tape.gradient(x, [3.0]),
        TypeError,
        "[gradient] a source is 'float', expected a Variable or a Tensor",
    ),
    (lambda: tape.watch(3.0), TypeError, "[watch] 'float', expected a Tensor"),
    (
        lambda: x[True],
        openrnn.UnsupportedError,
        "[Tensor] the index is True or False, expected an integer or an array",
    ),
    (lambda: x[1.5], TypeError, "[Tensor] 'float', expected an integer"),
    (
        lambda: x[np.float32(1)],
        TypeError,
        "[Tensor] the index is a float32, expected an integer or an array",
    ),
    (
        lambda: x[openrnn.constant(1.0)],
        TypeError,
        "[Tensor] the index is a float32, expected an integer or an array",
    ),
    (
        lambda: x[openrnn.constant(True)],
        TypeError,
        "[Tensor] the index is a bool, expected an integer or an array",
    ),
    (
        lambda: x[np.array([0.5])],
        TypeError,
        "[Tensor] the index is an array of float64, expected integers or truth values",
    ),
    (lambda: x[..., ...], IndexError, "[Tensor] two ellipses, expected at most one"),
    (lambda: x[0, 0, 0], IndexError, "[Tensor] 3 indices for shape [3, 4], expected fewer"),
    (lambda: x[3], IndexError, "[Tensor] the index is 3, expected -3 to 2"),
    (lambda: x[-4], IndexError, "[Tensor] the index is -4, expected -3 to 2"),
    (lambda: x[0, 4], IndexError, "[Tensor] the index is 4, expected -4 to 3"),
    (lambda: x[[0, 3]], IndexError, "[Tensor] the index is 3, expected -3 to 2"),
    (lambda: x[:, [0, -5]], IndexError, "[Tensor] the index is -5, expected -4 to 3"),
    (
        lambda: S[openrnn.Input(batch_shape=(3,), dtype="bool")],
        openrnn.UnsupportedError,
        "[Tensor] the index is a symbolic mask, expected one with values",
    ),
    (
        lambda: x[np.array([True, False])],
        IndexError,
        "[Tensor] the mask has shape [2], expected [3]",
    ),
    (
        lambda: x[[0, 1], [0, 1, 2]],
        IndexError,
        "[Tensor] an index of shape [3], expected one that broadcasts with [2]",
    ),
    (
        lambda: S[[0, 1], [0, 1]],
        openrnn.UnsupportedError,
        "[Tensor] several arrays as indices of a symbolic tensor, expected one",
    ),
    (
        lambda: openrnn.reshape(x, (3, 2, 2))[[0, 1], :, [0, 1]],
        openrnn.UnsupportedError,
        "[Tensor] arrays as indices with a slice between them, expected them side by side",
    ),
    (
        lambda: x[np.array([True, False, True]), [0, 1]],
        openrnn.UnsupportedError,
        "[Tensor] a mask beside other arrays, expected it as the only one",
    ),
    (lambda: step_of(3), TypeError, "[minimize] global_step is 'int', expected a Variable"),
    (
        lambda: train.Saver([3]),
        TypeError,
        "[Saver] an item is 'int', expected a Variable or a saveable",
    ),
    (
        lambda: train.Saver(3),
        TypeError,
        "[Saver] var_list is 'int', expected a list, a dict or None",
    ),
    (
        lambda: openrnn.get_variable("a", None),
        openrnn.ArgumentError,
        "[get_variable] the shape is None: its rank is unknown, expected a tuple of "
        "sizes, None for a size that is not known",
    ),
    (
        lambda: openrnn.get_variable("a", "12"),
        TypeError,
        "[get_variable] 'str' as a shape, expected a tuple",
    ),
    (
        lambda: openrnn.get_variable("a", 2.5),
        TypeError,
        "[get_variable] 'float' as a shape, expected a tuple",
    ),
    (
        lambda: openrnn.get_variable("a", (2, 2.5)),
        TypeError,
        "[get_variable] 'float', expected an integer",
    ),
    (
        lambda: openrnn.cast(x, object()),
        TypeError,
        "[dtype] 'object' is given, expected a dtype such as 'float32'",
    ),
    (
        lambda: openrnn.cast(x, type("T", (), {"as_numpy_dtype": None})()),
        TypeError,
        "[dtype] None is given, expected a dtype",
    ),
    (
        lambda: openrnn.cast(x, "float8"),
        openrnn.ArgumentError,
        "[parse_dtype] dtype is 'float8', expected one of float16, bfloat16, float32, "
        "float64, int32, int64, uint8, bool",
    ),
    (
        lambda: openrnn.Variable(1.0, device=3),
        TypeError,
        "[device] 'int' is given, expected a name such as 'cpu' or 'gpu:0', or None",
    ),
    (
        lambda: openrnn.Variable(1.0, device="tpu"),
        openrnn.ArgumentError,
        "[device] name is 'tpu', expected 'cpu', 'gpu' or 'gpu:N', N from 0",
    ),
    (
        lambda: openrnn.set_default_device(3),
        TypeError,
        "[device] 'int' is given, expected a name such as 'cpu' or 'gpu:0', or None",
    ),
    (
        lambda: train.Adam().prepare(W),
        TypeError,
        "[prepare] 'Variable' is given, expected a list of Variables",
    ),
    (lambda: train.Adam().prepare([3]), TypeError, "[prepare] 'int' is given, expected a Variable"),
    (
        lambda: openrnn.get_variable("b", (1,), regularizer=3),
        TypeError,
        "[get_variable] 'int', expected a function of a Tensor",
    ),
    (
        lambda: openrnn.get_variable("b", (1,), constraint=3),
        TypeError,
        "[get_variable] 'int', expected a function of a Tensor",
    ),
    (
        lambda: openrnn.get_variable("b", (1,), initializer=3),
        TypeError,
        "[initializer] 'int' is given, expected a function of (shape, dtype)",
    ),
    (
        lambda: openrnn.get_variable(
            "b", (1,), initializer=lambda shape, dtype: np.zeros(2, "float32")
        ),
        openrnn.ArgumentError,
        "[initializer] it returned float32 of shape [2], expected float32 of shape [1]",
    ),
    (
        lambda: openrnn.get_variable(
            "b", (1,), initializer=lambda shape, dtype: openrnn.constant([1])
        ),
        openrnn.ArgumentError,
        "[initializer] it returned int32 of shape [1], expected float32 of shape [1]",
    ),
    (
        lambda: openrnn.constant("word"),
        TypeError,
        "[Tensor] an array of <U4, expected float16, bfloat16, float32, float64, int32, "
        "int64, uint8 or bool",
    ),
    (
        lambda: openrnn.constant([None]),
        TypeError,
        "[Tensor] an array of object, expected float16, bfloat16, float32, float64, "
        "int32, int64, uint8 or bool",
    ),
    (
        lambda: openrnn.constant([1j]),
        TypeError,
        "[Tensor] an array of complex128, expected float16, bfloat16, float32, float64, "
        "int32, int64, uint8 or bool",
    ),
    (
        lambda: openrnn.constant(np.ones(2, "int16")),
        TypeError,
        "[Tensor] an array of int16, expected float16, bfloat16, float32, float64, "
        "int32, int64, uint8 or bool",
    ),
    (
        lambda: layers.Embedding(3, 2)([0.5]),
        openrnn.ArgumentError,
        "[Embedding] values of float64 that int32 does not hold, expected whole numbers "
        "in its range",
    ),
    (
        lambda: openrnn.Variable([1], dtype="int32").assign(np.array([2**40])),
        openrnn.ArgumentError,
        "[assign] values of int64 that int32 does not hold, expected whole numbers in its range",
    ),
    (
        lambda: openrnn.concat(x, 0),
        TypeError,
        "[concat] 'Tensor' is given, expected a list or a tuple",
    ),
    (
        lambda: openrnn.constant(object()),
        TypeError,
        "[Tensor] an array of object, expected float16, bfloat16, float32, float64, "
        "int32, int64, uint8 or bool",
    ),
    (
        lambda: train.Checkpoint(a=3),
        TypeError,
        "[Checkpoint] an object is 'int', expected a Variable, layer, optimizer, "
        "saveable, list or dict",
    ),
]


@pytest.mark.parametrize("call, error, text", CALLS, ids=[one[2] for one in CALLS])
def test_whole_messages(call, error, text):
    with pytest.raises(error) as raised:
        call()
    assert type(raised.value) is error and str(raised.value) == text


with openrnn.Graph().as_default():
    lstm = layers.LSTM(2, name="lstm")
    lstm.build((None, None, 3))
seq, h = np.ones((3, 2, 3), "float32"), np.zeros((1, 2, 2), "float32")
op = cudnn_rnn.ops.CudnnLSTM(1, 2, 3)
params = np.zeros(op.params_size(), "float32")
one = openrnn.constant([1.0, 2.0])
ANY = "float16, bfloat16, float32, float64, int32, int64, uint8 or bool"
# What is asked for a value, by the name of the call and the dtype that it expects.
VALUES = [
    ("concat", ANY, lambda: openrnn.concat([None], 0)),
    ("add_n", ANY, lambda: openrnn.add_n([one, None])),
    ("relu", ANY, lambda: nn.relu(None)),
    ("ctc_loss", ANY, lambda: nn.ctc_loss(None, None)),
    ("Tensor", ANY, lambda: openrnn.constant(None)),
    ("Tensor", ANY, lambda: openrnn.Variable(None)),
    ("Tensor", ANY, lambda: one[[None]]),
    ("Tensor", "float32", lambda: openrnn.maximum(one, None)),
    ("Tensor", "float32", lambda: openrnn.maximum(None, one)),
    ("Tensor", "float32", lambda: openrnn.where([True, False], one, None)),
    ("Tensor", "float32", lambda: openrnn.clip_by_value(one, None, 1.0)),
    ("assign", "float32", lambda: openrnn.Variable(1.0).assign(None)),
    ("lstm", "float32", lambda: lstm(None)),
    ("lstm", "float32", lambda: lstm(seq, (None, None))),
    ("lstm", "float32", lambda: lstm(seq, (h, None))),
    ("cudnn_rnn", "float32", lambda: op(None, h, h, params)),
    ("cudnn_rnn", "float32", lambda: op(seq, None, h, params)),
    ("cudnn_rnn", "float32", lambda: op(seq, h, None, params)),
    ("cudnn_rnn", "float32", lambda: op(seq, h, h, None)),
    ("params_to_canonical", "float32", lambda: op.params_to_canonical(None)),
    ("set_weights", "float32", lambda: lstm.set_weights([None])),
    ("restore", "float32", lambda: lstm.saveable.restore([None, None])),
    ("own", "float32", lambda: layers.Dense(1, name="own")(None)),
    ("own", "float32", lambda: layers.Dropout(name="own")(None)),
    ("Embedding", "int32", lambda: layers.Embedding(3, 2)(None)),
    ("own", "float32", lambda: nn.rnn_cell.GRUCell(2, name="own")(None, h[0])),
    ("own", "float32", lambda: nn.rnn_cell.GRUCell(2, name="own")(h[0], None)),
]


@pytest.mark.parametrize("call, dtype, run", VALUES)
def test_none_is_no_value(call, dtype, run):
    with pytest.raises(TypeError) as raised:
        run()
    assert str(raised.value) == f"[{call}] an array of object, expected {dtype}"


OBJECTS = [
    (
        lambda: tape.gradient(one, [None]),
        "[gradient] a source is {}, expected a Variable or a Tensor",
    ),
    (lambda: tape.watch(None), "[watch] {}, expected a Tensor"),
    (lambda: nn.rnn_cell.MultiRNNCell([None]), "[MultiRNNCell] {} is given, expected an RNN cell"),
    (
        lambda: nn.rnn_cell.DropoutWrapper(None),
        "[DropoutWrapper] {} is given, expected an RNN cell",
    ),
    (lambda: train.Saver([None]), "[Saver] an item is {}, expected a Variable or a saveable"),
    (lambda: train.Saver({"a": None}), "[Saver] an item is {}, expected a Variable or a saveable"),
    (lambda: train.Checkpoint(a=None), "[Checkpoint] an object is {}, expected " + KINDS),
    (lambda: train.Checkpoint(a=[None]), "[Checkpoint] an object is {}, expected " + KINDS),
    (lambda: train.Checkpoint(a={"b": None}), "[Checkpoint] an object is {}, expected " + KINDS),
    (lambda: train.Adam().prepare([None]), "[prepare] {} is given, expected a Variable"),
    (lambda: train.Adam().prepare(None), "[prepare] {} is given, expected a list of Variables"),
    (
        lambda: train.Adam().apply_gradients([(1.0, None)]),
        "[apply_gradients] {} is given, expected a Variable",
    ),
    (lambda: openrnn.concat(None, 0), "[concat] {} is given, expected a list or a tuple"),
    (lambda: lstm.set_weights(None), "[set_weights] {}, expected a list of arrays"),
    (lambda: lstm.saveable.restore(None), "[restore] {} is given, expected a list or a tuple"),
    (
        lambda: lstm._canonical_to_opaque(None, None),
        "[canonical_to_opaque] {} is given, expected a list or a tuple",
    ),
    (
        lambda: op.canonical_to_params(None, None),
        "[canonical_to_params] {} is given, expected a list or a tuple",
    ),
    (
        lambda: openrnn.InferenceSession(None),
        "[InferenceSession] model is {}, expected PackedModel",
    ),
    (lambda: openrnn.StreamPool(None), "[StreamPool] model is {}, expected PackedModel"),
    (lambda: openrnn.cast(one, None), "[dtype] None is given, expected a dtype"),
    (lambda: one.astype(None), "[dtype] None is given, expected a dtype"),
    (lambda: openrnn.Input((3,), dtype=None), "[dtype] None is given, expected a dtype"),
]


@pytest.mark.parametrize("run, text", OBJECTS)
def test_none_is_no_object(run, text):
    with pytest.raises(TypeError) as raised:
        run()
    assert str(raised.value) == text.format("'NoneType'")
