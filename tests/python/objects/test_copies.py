"""Deep copies and pickles of layers, cells, variables and optimizers: values of their own."""

import copy
import multiprocessing
import pickle

import numpy as np
import openrnn
import pytest
from openrnn.train import Checkpoint, Saver

Dense, Layer = openrnn.layers.Dense, openrnn.layers.Layer
cells = openrnn.nn.rnn_cell
rng = np.random.default_rng(3)
X = rng.normal(size=(4, 2, 3)).astype("float32")
WAYS = {"deepcopy": copy.deepcopy, "pickle": lambda one: pickle.loads(pickle.dumps(one))}


class Net(Layer):
    def __init__(self):
        super().__init__()
        self.blocks = [Dense(3, activation="tanh"), openrnn.cudnn_rnn.CudnnGRU(1, 4)]
        self.scale = openrnn.Variable(np.full(3, 2.0, "float32"), name="scale")

    def build(self, input_shape):
        l2 = openrnn.regularizers.l2(1.0)
        self.offset = self.add_weight("shift", [3], initializer="ones", regularizer=l2)

    def call(self, inputs):
        first, gru = self.blocks
        return gru(first(inputs + self.scale + self.offset))[0]


def step(cell, x=X[0]):
    size = cell.zero_state(2, "float32")
    return cell(x, size)[0]


def lstm():
    layer = openrnn.cudnn_rnn.CudnnLSTM(2, 4, dropout=0.5, bias_initializer="random_uniform")
    return layer, lambda one: one(X, training=False)[0]


def frozen():
    layer = Dense(2, trainable=False, bias_initializer="random_normal")
    return layer, lambda one: one(X)


MAKERS = {
    "CudnnLSTM": lstm,
    "CudnnRNNTanh": lambda: (openrnn.cudnn_rnn.CudnnRNNTanh(1, 4), lambda one: one(X)[0]),
    "Dense": lambda: (Dense(2, activation="relu", seed=3), lambda one: one(X)),
    "frozen": frozen,
    "Embedding": lambda: (openrnn.layers.Embedding(5, 3), lambda one: one([1, 4])),
    "Dropout": lambda: (openrnn.layers.Dropout(0.5), lambda one: one(X)),
    "LSTMCell": lambda: (openrnn.cudnn_rnn.CudnnCompatibleLSTMCell(4, num_proj=2), step),
    "GRUCell": lambda: (openrnn.cudnn_rnn.CudnnCompatibleGRUCell(4), step),
    "BasicRNNCell": lambda: (cells.BasicRNNCell(4, "relu"), step),
    "Multi": lambda: (cells.MultiRNNCell([cells.BasicRNNCell(4), cells.BasicRNNCell(2)]), step),
    "Wrapped": lambda: (cells.DropoutWrapper(cells.BasicRNNCell(4)), step),
    "own": lambda: (Net(), lambda one: one(X)),
}


@pytest.fixture(params=MAKERS)
def made(request):
    return MAKERS[request.param]()


@pytest.fixture(params=WAYS)
def way(request):
    return WAYS[request.param]


def test_a_copy_has_weights_of_its_own(made, way):
    layer, run = made
    wanted = run(layer).numpy()
    copied = way(layer)
    assert type(copied) is type(layer) and copied is not layer and copied.built
    assert len(copied.weights) == len(layer.weights)
    assert len(copied.trainable_weights) == len(layer.trainable_weights)
    for mine, other in zip(layer.weights, copied.weights, strict=True):
        assert mine is not other and mine.name != other.name
        np.testing.assert_array_equal(mine, other)
    np.testing.assert_array_equal(run(copied), wanted)
    for variable in copied.weights:
        variable.assign(np.zeros(variable.shape))
    np.testing.assert_array_equal(run(layer), wanted)
    if copied.weights:
        assert (run(copied).numpy() != wanted).any()


def test_an_unbuilt_layer_copies(made, way):
    layer, run = made
    copied = way(layer)
    run(copied)
    assert copied.built and not layer.built


def test_the_names_of_a_copy(way):
    stack = cells.MultiRNNCell([cells.BasicRNNCell(4), cells.BasicRNNCell(2)])
    step(stack)
    copied = way(stack)
    assert copied.name == copied.scope_name == "multi_rnn_cell_1"
    assert [v.name for v in copied.weights] == [
        v.name.replace("multi_rnn_cell", "multi_rnn_cell_1") for v in stack.weights
    ]
    net = Net()
    net(X)
    again = way(net)
    assert again.offset.name == "net_1/shift" and again.scale.name == "scale_1"
    assert again.blocks[0].kernel.name == "net_1/dense/kernel"
    assert len({v.name for v in openrnn.global_variables()}) == len(openrnn.global_variables())


def test_a_copy_is_saved_trained_and_restored_alone(tmp_path, way):
    net = Net()
    wanted = net(X).numpy()
    copied = way(net)
    assert [float(loss) for loss in copied.losses] == [1.5] == [float(one) for one in net.losses]
    openrnn.train.GradientDescentOptimizer(0.5).minimize(
        lambda: openrnn.reduce_sum(copied(X)), var_list=copied.trainable_weights
    )
    np.testing.assert_array_equal(net(X), wanted)
    trained = copied(X).numpy()
    assert (trained != wanted).any()
    prefix = Checkpoint(net=copied).save(tmp_path / "copy")
    Checkpoint(net=net).restore(prefix).assert_consumed()
    np.testing.assert_array_equal(net(X), trained)
    Saver().save(tmp_path / "all")


def test_shared_parts_stay_shared(way):
    net = Net()
    net(X)
    net.tied = net.blocks[0].kernel
    held = way({"net": net, "kernel": net.blocks[0].kernel, "offset": net.offset})
    again = held["net"]
    assert again.tied is again.blocks[0].kernel is held["kernel"]
    assert again.offset is held["offset"]
    assert len(again.weights) == len(net.weights)


def test_masks_go_on(way):
    layer = openrnn.cudnn_rnn.CudnnLSTM(2, 4, dropout=0.5)
    layer(X)
    copied = way(layer)
    assert copied.dropout_calls == 1
    np.testing.assert_array_equal(copied(X)[0], layer(X)[0])


@pytest.mark.parametrize("first", ["net", "optimizer"])
def test_an_optimizer_goes_on_with_the_copied_model(way, first):
    def train(one, optimizer):
        optimizer.minimize(lambda: openrnn.reduce_sum(one(X)), var_list=one.trainable_weights)

    net, adam = Net(), openrnn.train.AdamOptimizer(0.01, beta1=0.8)
    net(X)
    train(net, adam)
    adam.learning_rate = 0.02
    both = {"net": net, "optimizer": adam}
    copied = way(dict(sorted(both.items(), reverse=first == "optimizer")))
    train(net, adam)
    train(copied["net"], copied["optimizer"])
    assert copied["optimizer"].learning_rate == 0.02
    slot = copied["optimizer"].get_slot(copied["net"].offset, "m")
    np.testing.assert_array_equal(slot, adam.get_slot(net.offset, "m"))
    for mine, other in zip(net.weights, copied["net"].weights, strict=True):
        assert mine is not other
        np.testing.assert_array_equal(mine, other)


def test_variables(way):
    variable = openrnn.Variable([1.0, 2.0], name="v", trainable=False)
    copied = way(variable)
    assert copied is not variable and copied.name == "v_1" and not copied.trainable
    copied.assign_add([1.0, 1.0])
    np.testing.assert_array_equal(variable, [1.0, 2.0])
    one, other = way([variable, variable])
    assert one is other
    with openrnn.variable_scope("inner"):
        assert way(variable).name == "v_3"
    assert copy.copy(variable) is variable


class OwnCell(cells.RNNCell):
    @property
    def state_size(self):
        return 3

    output_size = state_size

    def build(self, input_shape):
        self.kernel = self.add_weight("kernel", [input_shape[-1], 3])

    def call(self, inputs, state):
        made = openrnn.tanh(openrnn.matmul(inputs, self.kernel) + state)
        return made, made


SHALLOW = {name: maker for name, maker in MAKERS.items() if name != "Dropout"}
SHALLOW["own cell"] = lambda: (OwnCell(), step)


@pytest.mark.parametrize("name", SHALLOW)
def test_a_shallow_copy_is_as_the_layer(name):
    layer, run = SHALLOW[name]()
    wanted = run(layer).numpy()
    for trainable in (True, False):
        layer.trainable = trainable
        assert copy.copy(layer).trainable == trainable
    layer.stateful = True
    shallow = copy.copy(layer)
    assert type(shallow) is type(layer) and shallow is not layer
    assert shallow.built and shallow.stateful
    assert shallow.weights == layer.weights and shallow.trainable_weights == []
    np.testing.assert_array_equal(run(shallow), wanted)


def test_a_shallow_copy_shares_the_weights():
    net = Net()
    net(X)
    shallow = copy.copy(net)
    assert shallow.weights == net.weights and shallow.blocks is net.blocks
    stack = cells.MultiRNNCell([cells.BasicRNNCell(4)])
    step(stack)
    again = copy.copy(stack)
    assert again.weights == stack.weights
    np.testing.assert_array_equal(step(again), step(stack))


def test_a_shallow_copy_of_a_wrapper_takes_a_dtype_of_its_own():
    """A cell takes the dtype of its first input; that of a copy is not the original's."""
    wrappers = (
        cells.DropoutWrapper(cells.BasicRNNCell(4), input_keep_prob=0.5),
        cells.MultiRNNCell([cells.BasicRNNCell(4)]),
    )
    for wrapper in wrappers:
        for cell, dtype in ((copy.copy(wrapper), "float16"), (wrapper, "float32")):
            output, _ = cell(openrnn.constant(X[0].astype(dtype)), cell.zero_state(2, dtype))
            inner = cell.wrapped_cell if wrapper is wrappers[0] else cell.cells[0]
            assert output.dtype == inner.dtype == dtype


def test_a_copy_of_a_shallow_copy_is_around_its_own_cells(way):
    for wrapper in (
        cells.DropoutWrapper(cells.BasicRNNCell(4), input_keep_prob=0.5),
        cells.MultiRNNCell([cells.BasicRNNCell(4)]),
    ):
        again = way(copy.copy(wrapper))
        step(again)
        inner = again.cells[0] if isinstance(wrapper, cells.MultiRNNCell) else again.wrapped_cell
        assert inner.built and inner.weights == again.weights


def test_initializers_and_regularizers(way):
    normal = openrnn.initializers.random_normal(1.0, 2.0, seed=5)
    assert way(normal).get_config() == normal.get_config()
    layer = openrnn.cudnn_rnn.CudnnGRU(1, 2, activity_regularizer=openrnn.regularizers.l2(0.5))
    assert way(layer).activity_regularizer.scale == 0.5


class SecondIsRegularized(Layer):
    def build(self, input_shape):
        self.free = self.add_weight("free", [2], initializer="ones")
        l2 = openrnn.regularizers.l2(1.0)
        self.held = self.add_weight("held", [3], initializer="ones", regularizer=l2)

    def call(self, inputs):
        return inputs


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_regularizer_stays_with_its_weight(way):
    layer = SecondIsRegularized()
    layer(X)
    again = way(layer)
    again.free.assign(np.full(2, 5.0, "f4"))
    assert [float(loss) for loss in again.losses] == [1.5]
    again.held.assign(np.full(3, 2.0, "f4"))
    assert [float(loss) for loss in again.losses] == [6.0]


def in_another_process(payload):
    net = pickle.loads(payload)
    return [v.name for v in net.weights], net(X).numpy()


def test_spawn():
    net = Net()
    wanted = net(X).numpy()
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        names, found = pool.apply(in_another_process, (pickle.dumps(net),))
        assert names == [v.name for v in net.weights]
        np.testing.assert_array_equal(found, wanted)
        again = pool.apply(same, (net,))  # pickled by multiprocessing, both ways
    np.testing.assert_array_equal(again(X), wanted)
    assert again.blocks[0].kernel is not net.blocks[0].kernel


def same(net):
    return net
