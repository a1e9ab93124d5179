"""The class of a layer whose Python object is gone: that of its kind, with what it computes."""

import gc

import numpy as np
import openrnn
import pytest
from openrnn import _core, cudnn_rnn, layers
from openrnn.nn import rnn_cell

CELLS = {
    "LSTMCell": lambda: rnn_cell.LSTMCell(3),
    "GRUCell": lambda: rnn_cell.GRUCell(3),
    "BasicLSTMCell": lambda: rnn_cell.BasicLSTMCell(3),
    "BasicRNNCell": lambda: rnn_cell.BasicRNNCell(3),
    "LayerNormBasicLSTMCell": lambda: rnn_cell.LayerNormBasicLSTMCell(3),
    "CudnnCompatibleLSTMCell": lambda: cudnn_rnn.CudnnCompatibleLSTMCell(3),
    "CudnnCompatibleGRUCell": lambda: cudnn_rnn.CudnnCompatibleGRUCell(3),
}
WRAPPERS = {
    "MultiRNNCell": lambda: rnn_cell.MultiRNNCell([rnn_cell.BasicRNNCell(3)]),
    "DropoutWrapper": lambda: rnn_cell.DropoutWrapper(rnn_cell.BasicRNNCell(3), 0.5),
}
ALL_CELLS = {**CELLS, **WRAPPERS}
LAYERS = {
    "Dense": lambda: layers.Dense(3),
    "Dropout": lambda: layers.Dropout(0.5),
    "LSTM": lambda: layers.LSTM(3),
    "GRU": lambda: layers.GRU(3),
    "RNN": lambda: layers.RNN(3),
    "CudnnLSTM": lambda: cudnn_rnn.CudnnLSTM(1, 3),
    "CudnnGRU": lambda: cudnn_rnn.CudnnGRU(1, 3),
    "CudnnRNNTanh": lambda: cudnn_rnn.CudnnRNNTanh(1, 3),
    "CudnnRNNRelu": lambda: cudnn_rnn.CudnnRNNRelu(1, 3),
}


def bare(layer):
    """The same layer without an object of its class, as one that C++ alone holds."""
    return _core.LayerBase(*layer._made)


def stepped(cell):
    x = openrnn.Input(batch_shape=(2, 3))
    return _core.cell_step(cell, x, _core.cell_zero_state(cell, 2, "float32"), "")


def called(layer, name):
    x = openrnn.Input(batch_shape=(4, 2, 3))
    if name in ("Dense", "Dropout"):
        return _core.simple_call(layer, x, False)
    return _core.rnn_call(layer, x, None, False, None, True, True, False, None, None)


@pytest.mark.parametrize("name", ALL_CELLS)
def test_a_cell_of_each_kind(name):
    whole = ALL_CELLS[name]()
    cell = bare(whole)
    kept = stepped(cell)  # outputs keep the layer
    (node,) = cell.inbound_nodes
    assert node.outbound_layer is cell
    wanted = cell.name
    del cell
    gc.collect()
    again = node.outbound_layer
    assert kept and again.name == wanted and node.outbound_layer is again
    # A wrapper's class keeps its cells, which are not known any more.
    assert type(again) is (type(whole) if name in CELLS else _core.LayerBase)


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_of_each_kind(name):
    whole = LAYERS[name]()
    layer = bare(whole)
    kept = called(layer, name)
    (node,) = layer.inbound_nodes
    wanted = layer.name, [v.name for v in layer.weights]
    del layer
    gc.collect()
    again = node.outbound_layer
    assert kept is not None and type(again) is type(whole) and type(again).__name__ == name
    assert (again.name, [v.name for v in again.weights]) == wanted


@pytest.mark.parametrize("name", ALL_CELLS)
def test_a_cell_inside_of_others_outlives_its_object(name):
    """A model holds the outermost cell, whose class holds the others."""
    make = ALL_CELLS[name]
    if name == "DropoutWrapper":
        make = lambda: rnn_cell.DropoutWrapper(rnn_cell.BasicRNNCell(3))  # noqa: E731
    for wrap in (rnn_cell.DropoutWrapper, lambda cell: rnn_cell.MultiRNNCell([cell])):
        cell = wrap(make())
        x = openrnn.Input(batch_shape=(2, 3))
        model = openrnn.Model(x, cell(x, cell.zero_state(2, "float32"))[0])
        values, kind = np.ones((2, 3), "float32"), type(cell)
        wanted, weights = model(values).numpy(), [v.name for v in model.weights]
        del cell
        gc.collect()
        (again,) = model.layers
        assert type(again) is kind
        inner = again._cell if kind is rnn_cell.DropoutWrapper else again._cells[0]
        assert type(inner).__name__ == name
        assert [v.name for v in again.weights] == weights
        np.testing.assert_array_equal(model(values), wanted)
        found = again(openrnn.constant(values), again.zero_state(2, "float32"))[0]
        np.testing.assert_array_equal(found, wanted)
