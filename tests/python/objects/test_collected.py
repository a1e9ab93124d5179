"""Cells, layers and models that nothing holds any more are freed, whatever calls them back."""

import gc
import weakref

import numpy as np
import openrnn
import pytest
from openrnn import layers
from openrnn.nn import rnn_cell

X = np.random.default_rng(1).normal(size=(2, 3)).astype("float32")


class OwnCell(rnn_cell.RNNCell):
    """Everything that a cell may say of itself."""

    @property
    def state_size(self):
        return 4

    @property
    def output_size(self):
        return 4

    def call(self, inputs, state):
        new = openrnn.tanh(openrnn.matmul(inputs, np.ones((3, 4), "float32")) + state)
        return new, new


class OwnCall(rnn_cell.BasicRNNCell):
    def call(self, inputs, state):
        output, state = super().call(inputs, state)
        return output * 2.0, state


class OwnWholeCall(rnn_cell.BasicRNNCell):
    def __call__(self, inputs, state, scope=None):
        output, state = super().__call__(inputs, state, scope)
        return output * 2.0, state


class OwnZeroState(rnn_cell.BasicRNNCell):
    def zero_state(self, batch_size, dtype):
        return super().zero_state(batch_size, dtype) + 1.0


class OwnSizes(rnn_cell.BasicRNNCell):
    @property
    def state_size(self):
        return super().state_size

    @property
    def output_size(self):
        return super().output_size


class OwnBuild(layers.Layer):
    def build(self, input_shape):
        self.w = self.add_weight("w", [input_shape[-1]])

    def call(self, inputs):
        return inputs * self.w


class OwnBuildOfDense(layers.Dense):
    def build(self, input_shape):
        super().build(input_shape)


CELLS = {
    "a cell of its own": OwnCell,
    "a call of its own": lambda: OwnCall(4),
    "a __call__ of its own": lambda: OwnWholeCall(4),
    "a zero_state of its own": lambda: OwnZeroState(4),
    "sizes of its own": lambda: OwnSizes(4),
    "a plain cell": lambda: rnn_cell.BasicRNNCell(4),
    "an LSTM cell": lambda: rnn_cell.BasicLSTMCell(4),
    "a wrapper of one of its own": lambda: rnn_cell.DropoutWrapper(OwnCall(4), 0.5),
    "several": lambda: rnn_cell.MultiRNNCell([OwnCall(4), rnn_cell.BasicRNNCell(4)]),
}
LAYERS = {
    "a build of its own": OwnBuild,
    "a build over Dense's": lambda: OwnBuildOfDense(4),
    "dense": lambda: layers.Dense(4),
    "dropout": lambda: layers.Dropout(0.5),
    "a recurrent layer": lambda: openrnn.cudnn_rnn.CudnnGRU(1, 4),
}


def unused(one):
    pass


def stepped(cell):
    cell(X, cell.zero_state(2, "float32"))


def recorded_steps(cell):
    x = openrnn.Input(batch_shape=(2, 3))
    openrnn.Model(x, cell(x, cell.zero_state(2, "float32"))[0])


def called(layer):
    layer(X if not isinstance(layer, openrnn.cudnn_rnn.CudnnGRU) else X[None])


def recorded(layer):
    x = openrnn.Input(batch_shape=(1, 2, 3))
    openrnn.Model(x, openrnn.square(layer(x)[0]))


def collect():
    for _ in range(3):
        gc.collect()


def is_freed(make, use):
    """Of a cycle a collection clears the weak references before it tries to free anything, but a
    layer also owns its graph, which is in no cycle: it is gone once the layer is."""
    graph = openrnn.Graph()
    with graph.as_default():
        made = make()
        use(made)
    gone = weakref.ref(made), weakref.ref(graph)
    del made, graph
    collect()
    return [one() for one in gone] == [None, None]


@pytest.mark.parametrize("use", [unused, stepped, recorded_steps], ids=lambda one: one.__name__)
@pytest.mark.parametrize("name", CELLS)
def test_a_cell_is_freed(name, use):
    assert is_freed(CELLS[name], use)


@pytest.mark.parametrize("use", [unused, called], ids=lambda one: one.__name__)
@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_is_freed(name, use):
    assert is_freed(LAYERS[name], use)


@pytest.mark.parametrize("name", [one for one in LAYERS if one != "a build of its own"])
def test_a_recorded_layer_whose_class_computes_it_is_freed(name):
    assert is_freed(LAYERS[name], recorded)


def test_what_still_owns_a_cell_keeps_its_object():
    """The wrapper calls the functions of the object back."""
    cell = OwnCall(4)
    wrapper, gone = rnn_cell.DropoutWrapper(cell), weakref.ref(cell)
    state = np.zeros((2, 4), "float32")
    wanted = cell(X, state)[0].numpy()
    del cell
    gc.collect()
    np.testing.assert_array_equal(wrapper(X, state)[0], wanted)
    assert gone() is not None
    del wrapper
    collect()
    assert gone() is None


@pytest.mark.parametrize("name", CELLS)
def test_cells_in_a_cycle_of_attributes_are_freed(name):
    def tied(cell):
        other = CELLS[name]()
        cell.other, other.other = [other], {"first": cell}
        stepped(cell)

    assert is_freed(CELLS[name], tied)
