"""What a call keeps of its arrays, which objects come back, and what is freed with its object."""

import gc
import pickle
import weakref

import numpy as np
import openrnn
import pytest
from openrnn import cudnn_rnn, layers
from openrnn.nn import dynamic_rnn, rnn_cell

SEQUENCE = np.random.default_rng(1).normal(size=(4, 2, 3)).astype("float32")
STATE = np.random.default_rng(2).normal(size=(1, 2, 5)).astype("float32")


def gru(**kw):
    layer = cudnn_rnn.CudnnGRU(1, 5, **kw)
    layer.build((None, None, 3))
    return layer


def op_and_params():
    op = cudnn_rnn.ops.CudnnGRU(1, 5, 3)
    params = np.random.default_rng(3).normal(size=op.params_size()).astype("float32")
    return op, params


def gradients(call, sources, spoil):
    """Of a sum of squares, whose arrays are spoilt before they are asked for."""
    with openrnn.GradientTape() as tape:
        output = call()[0]
        loss = openrnn.reduce_sum(output * output)
    for array in spoil:
        array[:] = 9.0
    return [np.asarray(one) for one in tape.gradient(loss, sources)]


@pytest.mark.parametrize("spoilt", [False, True])
def test_a_tape_keeps_the_values_of_a_layer_s_arrays(spoilt):
    layer, x, h = gru(), SEQUENCE.copy(), STATE.copy()
    found = gradients(lambda: layer(x, (h,)), [layer.kernel], [x, h] if spoilt else [])
    wanted = gradients(
        lambda: layer(openrnn.constant(SEQUENCE), (openrnn.constant(STATE),)), [layer.kernel], []
    )
    np.testing.assert_array_equal(found[0], wanted[0])


def test_a_tape_keeps_the_values_of_an_operation_s_arrays():
    op, params = op_and_params()
    w = openrnn.Variable(params)
    x, h = SEQUENCE.copy(), STATE.copy()
    found = gradients(lambda: op(x, h, w), [w], [x, h])
    np.testing.assert_array_equal(found[0], gradients(lambda: op(SEQUENCE, STATE, w), [w], [])[0])
    given = openrnn.Variable(STATE)
    by_state = gradients(lambda: op(SEQUENCE.copy(), given, params.copy()), [given], [])
    p = params.copy()
    np.testing.assert_array_equal(
        gradients(lambda: op(SEQUENCE, given, p), [given], [p])[0], by_state[0]
    )


@pytest.mark.parametrize("symbolic", ["inputs", "state", "lengths"])
@pytest.mark.parametrize("of", ["layer", "op"])
def test_a_record_keeps_the_values_of_arrays(symbolic, of):
    layer, (op, params) = gru(), op_and_params()
    x, h, w = SEQUENCE.copy(), STATE.copy(), params.copy()
    lengths = np.array([4, 3], "int32")
    values = {"inputs": SEQUENCE, "state": STATE, "lengths": lengths}
    spec = values[symbolic]
    given = openrnn.Input(batch_shape=spec.shape, dtype=str(spec.dtype))
    n = lengths.copy()
    arrays = {"inputs": x, "state": h, "lengths": n, symbolic: given}

    def call(inputs, state, lengths):
        if of == "layer":
            return layer(inputs, (state,), training=False, sequence_lengths=lengths)[0]
        return op(inputs, state, w, is_training=False, sequence_lengths=lengths)[0]

    model = openrnn.Model(given, call(**arrays))
    wanted = np.asarray(call(**values))
    for array in (x, h, w):
        array[:] = 9.0
    n[:] = 1
    np.testing.assert_array_equal(model(spec), wanted)


def test_a_layer_with_a_regularizer_of_its_output_keeps_it():
    layer = gru(activity_regularizer=lambda y: openrnn.reduce_sum(y * y))
    x = SEQUENCE.copy()
    output, (h,) = layer(x, training=False)
    x[:] = 9.0
    wanted = [float((np.asarray(one) ** 2).sum()) for one in (output, h)]
    np.testing.assert_allclose([float(one) for one in layer.losses], wanted, rtol=1e-5)


def test_gradients_come_in_the_places_of_their_sources():
    w, other, unused = (
        openrnn.Variable([1.0, 2.0]),
        openrnn.Variable([3.0, 4.0]),
        openrnn.Variable(1.0),
    )
    plain, x = openrnn.constant([5.0, 6.0]), openrnn.constant([7.0, 8.0])
    with openrnn.GradientTape() as tape:
        tape.watch([x, w])
        rows = w * 2.0 + other * x
        loss = openrnn.reduce_sum(rows)
    found = tape.gradient(loss, [plain, w, unused, x, other])
    assert [None if one is None else one.numpy().tolist() for one in found] == [
        None,
        [2.0, 2.0],
        None,
        [3.0, 4.0],
        [7.0, 8.0],
    ]
    each = tape.per_sample_gradients(rows, [plain, other, unused, w])
    assert [None if one is None else one.numpy().tolist() for one in each] == [
        None,
        [[7.0, 0.0], [0.0, 8.0]],
        None,
        [[2.0, 0.0], [0.0, 2.0]],
    ]
    norms = tape.per_sample_norms(rows, [plain, w, unused, other])
    np.testing.assert_allclose(norms, np.sqrt([4 + 49, 4 + 64]), rtol=1e-6)
    assert norms.dtype == "float64"
    assert tape.gradient(plain, [w, plain]) == [None, None] and tape.gradient(plain, w) is None


def test_a_tape_is_closed_by_an_error():
    w, tape = openrnn.Variable([1.0, 2.0]), openrnn.GradientTape()
    with pytest.raises(KeyError), tape:
        inside = w * 3.0
        raise KeyError("mine")
    after = w * 5.0
    np.testing.assert_array_equal(tape.gradient(inside, w), [3.0, 3.0])
    assert tape.gradient(after, w) is None
    with tape:
        again = w * 7.0
    np.testing.assert_array_equal(tape.gradient(again, w), [7.0, 7.0])


def test_output_gradients_stay_with_their_targets():
    w = openrnn.Variable([1.0, 2.0])
    plain = openrnn.constant([5.0, 6.0])
    with openrnn.GradientTape() as tape:
        first, second = w * 3.0, w * w
    starts = [np.array([100.0, 100.0]), np.array([1.0, 2.0]), np.array([10.0, 20.0])]
    found = tape.gradient([plain, first, second], w, starts)
    np.testing.assert_array_equal(found, [3.0 + 2 * 10.0, 6.0 + 4 * 20.0])
    np.testing.assert_array_equal(
        tape.gradient([plain, first, second], w, [None, None, starts[2]]),
        [3.0 + 2 * 10.0, 3.0 + 4 * 20.0],
    )


class Own(layers.Layer):
    def build(self, input_shape):
        self.w = self.add_weight("w", input_shape[-1:], initializer="ones")

    def call(self, inputs):
        return inputs * self.w


class OwnCell(rnn_cell.RNNCell):
    state_size = output_size = 3

    def call(self, inputs, state):
        return inputs + state, inputs + state


class OwnGru(rnn_cell.GRUCell):
    def call(self, inputs, state):
        output, state = super().call(inputs, state)
        return 2.0 * output, state

    def zero_state(self, batch_size, dtype):
        return super().zero_state(batch_size, dtype)


X = np.ones((2, 4, 3), "float32")
STEP = np.ones((2, 3), "float32")
OBJECTS = {
    "layer": (Own, lambda made: made(STEP)),
    "cell": (OwnCell, lambda made: made(STEP, STEP)),
    "cell in a loop": (OwnCell, lambda made: dynamic_rnn(made, X, dtype="float32")),
    "gru": (lambda: OwnGru(3), lambda made: dynamic_rnn(made, X, dtype="float32")),
    "gru of another dtype": (lambda: OwnGru(3), lambda made: dynamic_rnn(made, X, dtype="float64")),
    "wrapped": (
        lambda: rnn_cell.DropoutWrapper(OwnCell()),
        lambda made: dynamic_rnn(made, X, dtype="float32"),
    ),
    "several": (
        lambda: rnn_cell.MultiRNNCell([OwnCell(), OwnGru(3)]),
        lambda made: dynamic_rnn(made, X, dtype="float32"),
    ),
    "dense": (lambda: layers.Dense(2), lambda made: made(STEP)),
    "recurrent": (lambda: cudnn_rnn.CudnnGRU(1, 2), lambda made: made(X)),
}


@pytest.mark.parametrize("used", [False, True])
def test_objects_are_freed(used):
    """Also those that the library calls back, which are cycles."""
    gone = {}
    for name, (make, use) in OBJECTS.items():
        with openrnn.Graph().as_default():
            made = make()
            if used:
                use(made)
        gone[name] = [weakref.ref(made), *(weakref.ref(one) for one in getattr(made, "cells", []))]
        del made
    gc.collect()
    assert {name: [ref() for ref in refs] for name, refs in gone.items()} == {
        name: [None] * len(refs) for name, refs in gone.items()
    }


# A layer of each class, and whether it is recurrent.
LAYERS = [
    (lambda: layers.LSTM(3, forget_bias=0.5), True),
    (lambda: layers.GRU(3, reset_after=False), True),
    (lambda: layers.RNN(3, activation="elu"), True),
    (lambda: cudnn_rnn.CudnnLSTM(1, 3), True),
    (lambda: cudnn_rnn.CudnnGRU(1, 3), True),
    (lambda: cudnn_rnn.CudnnRNNTanh(1, 3), True),
    (lambda: cudnn_rnn.CudnnRNNRelu(1, 3), True),
    (lambda: layers.Dense(3, "relu"), False),
    (lambda: layers.Dropout(0.25, seed=3), False),
    (lambda: layers.Embedding(7, 3), False),
]


@pytest.mark.parametrize("make, recurrent", LAYERS)
def test_a_model_s_layer_is_of_its_class_when_its_object_is_gone(make, recurrent):
    layer = make()
    layer.note = "mine"
    dtype = "int32" if isinstance(layer, layers.Embedding) else "float32"
    x = openrnn.Input(batch_shape=(4, 2, 3), dtype=dtype)
    output = layer(x)
    model = openrnn.Model(x, output[0] if recurrent else output)
    assert model.layers[0] is layer
    kind, config = type(layer), layer.get_config()
    del layer, output
    gc.collect()
    (again,) = model.layers
    assert type(again) is kind and again.note == "mine" and model.layers[0] is again
    for key in ("kernel_initializer", "bias_initializer", "embeddings_initializer"):
        config.pop(key, None)
    assert {name: again.get_config()[name] for name in config} == config


CELLS = [
    lambda: rnn_cell.BasicRNNCell(3),
    lambda: rnn_cell.BasicLSTMCell(3, forget_bias=0.5),
    lambda: rnn_cell.LSTMCell(3, use_peepholes=True),
    lambda: rnn_cell.GRUCell(3),
    lambda: rnn_cell.LayerNormBasicLSTMCell(3),
    lambda: cudnn_rnn.CudnnCompatibleLSTMCell(3),
    lambda: cudnn_rnn.CudnnCompatibleGRUCell(3),
    lambda: rnn_cell.DropoutWrapper(rnn_cell.GRUCell(3)),
    lambda: rnn_cell.MultiRNNCell([rnn_cell.GRUCell(3), rnn_cell.LSTMCell(3)]),
    OwnCell,
]


@pytest.mark.parametrize("make", CELLS)
def test_a_cell_that_took_a_dtype_is_the_same_object(make):
    cell = make()
    inner = list(getattr(cell, "cells", [])) + [getattr(cell, "wrapped_cell", cell)]
    outputs, _ = dynamic_rnn(cell, X.astype("float64"), dtype="float64")
    assert (cell.dtype, str(outputs.dtype)) == ("float64", "float64")
    assert [one.dtype for one in inner] == ["float64"] * len(inner)
    assert list(getattr(cell, "cells", [])) + [getattr(cell, "wrapped_cell", cell)] == inner
    again, _ = dynamic_rnn(cell, X.astype("float64"), dtype="float64")
    if not isinstance(cell, rnn_cell.DropoutWrapper):
        np.testing.assert_array_equal(again, outputs)
    copied = pickle.loads(pickle.dumps(cell))
    assert type(copied) is type(cell) and copied.dtype == "float64"


def test_one_object_a_variable_and_a_symbolic_tensor():
    w = openrnn.Variable(1.0)
    x = openrnn.Input((2,))
    y = layers.Dense(2)(x)
    model = openrnn.Model(x, y)
    assert openrnn.global_variables()[0] is w and model.inputs[0] is x and model.outputs[0] is y


def test_seeded_initializers():
    """Each tensor gets numbers of its own; one made again begins again."""
    makers = {
        "uniform": lambda: openrnn.initializers.random_uniform(-2.0, 3.0, seed=5),
        "normal": lambda: openrnn.initializers.random_normal(4.0, 0.5, seed=5),
        "glorot": lambda: openrnn.initializers.glorot_uniform(seed=5),
    }
    for name, make in makers.items():
        one, other = make(), make()
        first, second = (
            np.asarray(openrnn.get_variable(f"{name}{n}", (50, 40), initializer=one))
            for n in range(2)
        )
        assert (first != second).any()
        np.testing.assert_array_equal(
            openrnn.get_variable(f"{name}2", (50, 40), initializer=other), first
        )
        low, high, mean, std = {
            "uniform": (-2.0, 3.0, 0.5, 5 / 12**0.5),
            "normal": (-9.0, 9.0, 4.0, 0.5),
            "glorot": (-((6 / 90) ** 0.5), (6 / 90) ** 0.5, 0.0, (2 / 90) ** 0.5),
        }[name]
        assert low <= first.min() and first.max() <= high
        assert abs(first.mean() - mean) < 0.1 * std and abs(first.std() - std) < 0.05 * std
    half = openrnn.initializers.constant(0.5)
    assert openrnn.get_variable("half", (2,), initializer=half).numpy().tolist() == [0.5, 0.5]
