"""What layers, cells, networks and files refuse: whole messages."""

import numpy as np
import openrnn
import pytest
from openrnn import _core, cudnn_rnn, layers, nn
from openrnn.nn import rnn_cell

with openrnn.Graph().as_default():
    lstm = cudnn_rnn.CudnnLSTM(1, 2, name="lstm")
    lstm.build((None, None, 3))
seq = np.ones((3, 2, 3), "float32")


def holder():
    class Holder(layers.Layer):
        def call(self, inputs):
            return inputs

    made = Holder(name="h")
    made.parts = {3: layers.Dense(1)}


def loop(**kw):
    cell = rnn_cell.GRUCell(2)
    return nn.dynamic_rnn(cell, seq.swapaxes(0, 1), dtype="float32", **kw)


CALLS = [
    (
        lambda: lstm(seq, [np.zeros((1, 2, 2))] * 2),
        openrnn.ArgumentError,
        "[lstm] initial_state is 'list', expecting tuple",
    ),
    (
        lambda: lstm(seq, ()),
        openrnn.ArgumentError,
        "[lstm] an initial_state of 0 tensors, expected one tensor for each of its states",
    ),
    (
        holder,
        TypeError,
        "[Layer] the dictionary 'parts' has the key 3 for a layer or a variable, expected a string",
    ),
    (
        lambda: layers.Layer(name="plain").add_weight("u", (1,), "uint8"),
        openrnn.ArgumentError,
        "[add_weight] there is no default initializer for uint8, expected one",
    ),
    (
        lambda: lstm.set_weights(np.zeros(3)),
        TypeError,
        "[set_weights] 'numpy.ndarray', expected a list of arrays",
    ),
    (
        lambda: setattr(lstm, "built", False),
        openrnn.ArgumentError,
        "[built] it is set to False, expected build() or a call to change it",
    ),
    (
        lambda: setattr(layers.Dense(1), "built", True),
        openrnn.ArgumentError,
        "[built] it is set to True, expected build() or a call to change it",
    ),
    (
        lambda: _core.rnn_kernel(layers.Dense(1)),
        openrnn.NotConnectedError,
        "[Layer] it is no recurrent layer, expected a CudnnLSTM",
    ),
    (
        lambda: _core.cell_output_size(lstm),
        TypeError,
        "[Layer] it is no cell, expected an RNN cell",
    ),
    (lambda: _core.model_inputs(lstm), TypeError, "[Model] the layer is of another class"),
    (
        lambda: cudnn_rnn.CudnnLSTMSaveable(lstm.kernel, 1, 2, 3, scope=3),
        TypeError,
        "[Saveable] scope is 'int', expected a string or a variable scope",
    ),
    (
        lambda: lstm(seq, sequence_lengths=[1.0, 2.0]),
        openrnn.ArgumentError,
        "[lstm] sequence lengths are float32 of shape [2], expected one integer for each "
        "row: shape [batch]",
    ),
    (
        lambda: lstm(seq, sequence_lengths=[[1, 2]]),
        openrnn.ArgumentError,
        "[lstm] sequence lengths are int32 of shape [1, 2], expected one integer for "
        "each row: shape [batch]",
    ),
    (
        lambda: loop(sequence_length=[1, -1]),
        openrnn.ArgumentError,
        "[dynamic_rnn] the length of row 1 is -1, expected 0 to max_time",
    ),
    (
        lambda: loop(sequence_length=np.array([1, 2**31])),
        openrnn.ArgumentError,
        "[dynamic_rnn] the length of row 1 is 2147483648, expected 0 to max_time",
    ),
    (
        lambda: lstm(seq, save="outputs"),
        openrnn.ArgumentError,
        "[lstm] save is 'outputs', expected False, True, 'inputs' or a number of time steps",
    ),
    (
        lambda: lstm(seq, save=0),
        openrnn.ArgumentError,
        "[lstm] save is 0, expected False, True, 'inputs' or a number of time steps",
    ),
    (lambda: lstm(seq, training=2), TypeError, "[lstm] training is 'int', expected True or False"),
    (
        lambda: lstm(seq, training=[True]),
        TypeError,
        "[lstm] training is 'list', expected True or False",
    ),
    (
        lambda: lstm(seq, training=None),
        TypeError,
        "[lstm] training is 'NoneType', expected True or False",
    ),
    (
        lambda: setattr(lstm, "activity_regularizer", 3),
        TypeError,
        "[activity_regularizer] 'int', expected a function of a Tensor",
    ),
    (lambda: layers.Dense("3"), TypeError, "[arguments] units is 'str', expected an integer"),
    (
        lambda: layers.Dense(3, use_bias="yes"),
        TypeError,
        "[arguments] use_bias is 'str', expected True or False",
    ),
    (
        lambda: layers.Dense(3, "selu"),
        openrnn.ArgumentError,
        "[Dense] activation is 'selu', expected linear, relu, tanh or sigmoid",
    ),
    (lambda: layers.Dropout("1"), TypeError, "[arguments] rate is 'str', expected a number"),
    (
        lambda: layers.Dropout(0.5, name=3),
        TypeError,
        "[arguments] name is 'int', expected a string",
    ),
    (
        lambda: layers.Dropout(0.5, seed="a"),
        TypeError,
        "[arguments] seed is 'str', expected an integer",
    ),
    (
        lambda: cudnn_rnn.CudnnLSTM("1", 2),
        TypeError,
        "[arguments] num_layers is 'str', expected an integer",
    ),
    (
        lambda: cudnn_rnn.CudnnLSTM(1, 2, dropout="x"),
        TypeError,
        "[arguments] dropout is 'str', expected a number",
    ),
    (
        lambda: cudnn_rnn.CudnnLSTM(1, 2, direction=3),
        TypeError,
        "[arguments] direction is 'int', expected a string",
    ),
    (
        lambda: cudnn_rnn.CudnnLSTM(1, 2, cell_clip="x"),
        TypeError,
        "[arguments] cell_clip is 'str', expected two numbers, or one for both sides of 0",
    ),
    (
        lambda: cudnn_rnn.CudnnLSTM(1, 2, use_peepholes=3),
        TypeError,
        "[arguments] use_peepholes is 'int', expected True or False",
    ),
    (
        lambda: cudnn_rnn.CudnnLSTM(1, 2, activation=3),
        TypeError,
        "[arguments] activation is 'int', expected the name of an activation",
    ),
    (
        lambda: cudnn_rnn.CudnnLSTM(1, 2, units=3),
        TypeError,
        "CudnnLSTM.__init__() got an unexpected keyword argument 'units'",
    ),
    (
        lambda: cudnn_rnn.CudnnLSTM(1, 2, rnn_mode="gru"),
        TypeError,
        "CudnnLSTM.__init__() got an unexpected keyword argument 'rnn_mode'",
    ),
    (
        lambda: rnn_cell.MultiRNNCell([rnn_cell.GRUCell(2), layers.Dense(1)]),
        TypeError,
        "[Layer] it is no cell, expected an RNN cell",
    ),
    (
        lambda: rnn_cell.DropoutWrapper(3),
        TypeError,
        "[DropoutWrapper] 'int' is given, expected an RNN cell",
    ),
    (
        lambda: rnn_cell.GRUCell("3"),
        TypeError,
        "[arguments] num_units is 'str', expected an integer",
    ),
    (
        lambda: rnn_cell.GRUCell(3, activation="relu9"),
        openrnn.ArgumentError,
        "[GRUCell] activation is 'relu9', expected ['linear', 'relu', 'sigmoid', 'tanh']",
    ),
    (
        lambda: rnn_cell.GRUCell(3, activation=3),
        TypeError,
        "[GRUCell] 'int', expected a function of a Tensor",
    ),
    (
        lambda: openrnn.save("a.openrnn", {"n": lstm}, values={"big": 2**70}),
        openrnn.ArgumentError,
        "[save] the value 'big' has an integer beyond 64 bits, expected a smaller one",
    ),
    (
        lambda: openrnn.save("a.openrnn", {"n": lstm}, values={"big": [1, 2**70]}),
        openrnn.ArgumentError,
        "[save] the value 'big' has an integer beyond 64 bits, expected a smaller one",
    ),
    (
        lambda: openrnn.save("a.openrnn", {"n": lstm}, values={"odd": {1}}),
        TypeError,
        "[save] the value 'odd' is 'set', expected None, a bool, a number, a string or a "
        "list of one kind",
    ),
    (
        lambda: openrnn.StreamPool(openrnn.PackedModel.from_layer(lstm), streams=2, time=3).step(
            [1], np.ones((4, 1, 3))
        ),
        openrnn.ArgumentError,
        "[step] ids has 1 streams and max_time is 4, expected at most 2 and 3, the pool's limits",
    ),
    (
        lambda: _core.KerasCell(
            {"rnn_mode": "lstm", "num_units": 2, "input_size": 3, "num_layers": 2}
        ),
        openrnn.ArgumentError,
        "[KerasCell] 2 layers, expected one",
    ),
    (
        lambda: _core.KerasCell(
            {"rnn_mode": "lstm", "num_units": 2, "input_size": 3, "dtype": "float16"}
        ),
        openrnn.ArgumentError,
        "[KerasCell] dtype float16, expected float32 or float64",
    ),
]


@pytest.mark.parametrize("call, error, text", CALLS, ids=[one[2] for one in CALLS])
def test_whole_messages(call, error, text):
    with pytest.raises(error) as raised:
        call()
    assert type(raised.value) is error and str(raised.value) == text
