"""Deep copies and pickles of recorded models: the calls again, over weights of their own."""

import copy
import multiprocessing
import pickle
import threading
from typing import NamedTuple

import numpy as np
import openrnn
import pytest
from openrnn.train import AdamOptimizer

nn, rnn, layers = openrnn.nn, openrnn.cudnn_rnn, openrnn.layers
Dense, Input, Model = layers.Dense, openrnn.Input, openrnn.Model
rng = np.random.default_rng(3)
X = rng.normal(size=(4, 2, 3)).astype("float32")
LENGTHS = np.array([2, 4], "int32")
WAYS = {"deepcopy": copy.deepcopy, "pickle": lambda one: pickle.loads(pickle.dumps(one))}


def sequence(name=None):
    return Input(batch_shape=(None, None, 3), name=name)


def operations():
    x = Input(batch_shape=(4, 2, 3))
    row = openrnn.Variable(np.full(4, 2.0, "float32"), name="row")
    matrix = openrnn.Variable(rng.normal(size=(4, 5)).astype("float32"), name="matrix")
    y = Dense(4, activation="tanh", name="first")(x) * 2 - row
    flat = openrnn.reshape(y, [8, 4])
    z = nn.softmax(openrnn.matmul(flat, matrix) + np.arange(5, dtype="float32"))
    first, rest = openrnn.split(z, [2, 3], axis=1)
    both = openrnn.concat([1.0 - first, rest[:, 1:], openrnn.exp(-openrnn.square(first))], 1)
    mean = openrnn.reduce_mean(openrnn.abs(both))
    return Model(x, [Dense(2)(both) / (1.0 + nn.sigmoid(Dense(2)(both))), 2.0 / mean]), [X]


def losses():
    x, labels = sequence(), Input(batch_shape=(None, None), dtype="int32")
    logits = Dense(5)(openrnn.cast(openrnn.transpose_leading(x), "float32"))
    rows = nn.sparse_softmax_cross_entropy_with_logits(openrnn.constant([[1] * 4] * 2), logits)
    hot = openrnn.one_hot(labels, 5)
    total = openrnn.reduce_sum(rows) + nn.l2_loss(hot)
    found = nn.embedding_lookup(X[0], labels)
    return Model([x, labels], [total, found, openrnn.stack([hot, hot])]), [X, [[1, 0], [1, 1]]]


def shared():
    x = sequence()
    tied = Dense(3, bias_initializer="random_normal")
    return Model(x, tied(openrnn.tanh(tied(x)))), [X]


def lengths():
    x, given = sequence(), Input(batch_shape=(None,), dtype="int32")
    lstm = rnn.CudnnLSTM(2, 4, bias_initializer="random_normal")
    gru = rnn.CudnnGRU(1, 4, bias_initializer="random_normal")
    y, (h, c) = lstm(x, training=False, sequence_lengths=given)
    z, _ = gru(y, initial_state=(h[:1],), sequence_lengths=LENGTHS)
    return Model([x, given], (z, [c])), [X, LENGTHS]


def batch_major():
    x = sequence()
    first, second = rnn.CudnnRNNTanh(1, 3, direction="bidirectional"), rnn.CudnnRNNRelu(2, 3)
    y, state = first(x, time_major=False)
    z, _ = second(openrnn.transpose_leading(x), initial_state=state)
    return Model(x, [y, z]), [X]


def cells():
    x, given = sequence(), Input(batch_shape=(None,), dtype="int32")
    basic = nn.rnn_cell.BasicRNNCell(4, "relu")
    stack = nn.rnn_cell.MultiRNNCell([basic, nn.rnn_cell.DropoutWrapper(Own(4), 1.0)])
    y, _ = nn.dynamic_rnn(stack, x, given, dtype="float32")
    fw, bw = rnn.CudnnCompatibleGRUCell(2), rnn.CudnnCompatibleGRUCell(2)
    z, _, _ = nn.stack_bidirectional_dynamic_rnn(
        [fw], [bw], y, dtype="float32", sequence_length=given
    )
    first = openrnn.slice(x, [0, 0, 0], [1, -1, -1])
    step, _ = rnn.CudnnCompatibleLSTMCell(3)(openrnn.reshape(first, [4, 3]), (np.zeros((4, 3), "f4"), np.ones((4, 3), "f4")))
    return Model([x, given], (z, step)), [X.swapaxes(0, 1), LENGTHS]


def embedded():
    x = Input(batch_shape=(None, None), dtype="int32")
    y = layers.Dropout(0.5, seed=3)(layers.Embedding(9, 4)(x), training=True)
    return Model(x, nn.dropout(y, 0.8)), [[[1, 2], [8, 0]]]


def op_level():
    x = sequence()
    model = rnn.ops.CudnnLSTM(1, 4, 3)
    size = int(model.params_size())
    params, given = openrnn.Variable(np.linspace(-1, 1, size)), Input(batch_shape=(size,))
    state = np.zeros((1, 2, 4), "float32")
    y, h, c = model(x, state, state, openrnn.cast(params.read_value(), "float32") + given)
    z, _ = rnn.ops.cudnn_gru(y, h, np.linspace(-1, 1, 120).astype("float32"))
    weights, biases = model.params_to_canonical(given * 2)
    return Model([x, given], [z, c, *weights, *biases]), [X, rng.normal(size=size).astype("f4")]


def nested():
    inner, _ = shared()
    x = sequence()
    outer = Model(x, Scaled(x, inner(x) + inner(x * 2))(x))
    return outer, [X]


def own():
    x, other = sequence(), sequence()
    net = Net()
    return Model([x, other], net(net(x), extra=[other], training=False)), [X, 2 * X]


class Pair(NamedTuple):
    y: object
    state: object


def structures():
    a, b = sequence("a"), sequence("b")
    y, state = rnn.CudnnLSTM(1, 3)(a + b)
    return Model((a, b), Pair(y, [*state, (y * 2,)])), [X, X + 1]


class Own(nn.rnn_cell.RNNCell):
    state_size = output_size = property(lambda self: self._units)

    def __init__(self, units):
        super().__init__()
        self._units = units

    def build(self, input_shape):
        self.kernel = self.add_weight("kernel", [int(input_shape[-1]), self._units])

    def call(self, inputs, state):
        new = openrnn.tanh(openrnn.matmul(inputs, self.kernel) + state)
        return new, new


class Net(layers.Layer):
    def __init__(self):
        super().__init__()
        self.blocks = [Dense(3, activation="tanh"), rnn.CudnnGRU(1, 3)]

    def build(self, input_shape):
        self.offset = self.add_weight("offset", [3], initializer="ones")

    def call(self, inputs, extra=(), training=True):
        first, gru = self.blocks
        self.last = first(inputs + self.offset + sum(extra))
        self.add_loss(openrnn.reduce_sum(self.last), inputs=inputs)
        return gru(self.last)[0] * (2.0 if training else 1.0)


class Scaled(Model):
    """A model with weights and a call() of its own."""

    def __init__(self, inputs, outputs):
        super().__init__(inputs, outputs)
        self.factor = self.add_weight("factor", [3], initializer="ones")

    def call(self, inputs, training=None):
        return super().call(inputs, training) * 3.0 + self.factor


MAKERS = {
    maker.__name__: maker
    for maker in (
        operations, losses, shared, lengths, batch_major, cells, embedded, op_level, nested, own,
        structures,
    )
}  # fmt: skip


def arrays(outputs):
    if isinstance(outputs, (list, tuple)):
        return [array for one in outputs for array in arrays(one)]
    return [outputs.numpy()]


def run(model, values):
    single = len(values) == 1 and not isinstance(model._inputs, (list, tuple))
    return model(values[0] if single else values)


def assert_equal(found, wanted):
    for mine, other in zip(arrays(found), arrays(wanted), strict=True):
        np.testing.assert_array_equal(mine, other)


@pytest.fixture(params=MAKERS)
def made(request):
    openrnn.set_random_seed(4)
    return MAKERS[request.param]()


@pytest.fixture(params=WAYS)
def way(request):
    return WAYS[request.param]


def test_a_copy_computes_the_same_with_weights_of_its_own(made, way):
    model, values = made
    copied = way(model)
    wanted = run(model, values)  # after the copy, so that both draw the same masks
    again = run(copied, values)
    assert type(copied) is type(model) and copied is not model and type(again) is type(wanted)
    assert_equal(again, wanted)
    mine, others = model.layers, copied.layers
    assert [type(one) for one in others] == [type(one) for one in mine]
    assert not {id(one) for one in others} & {id(one) for one in mine}
    assert len(copied.weights) == len(model.weights)
    assert len(copied.trainable_weights) == len(model.trainable_weights)
    for mine, other in zip(model.weights, copied.weights, strict=True):
        assert mine is not other and mine.name != other.name
        other.assign(np.zeros(other.shape))
    if not any("dropout" in one.name for one in model.layers):
        assert_equal(run(model, values), wanted)
    for one in others:
        if [each.name for each in others].count(one.name) > 1:
            continue  # cells of one name in different scopes
        assert copied.get_layer(one.name) is one
    shapes = [one.shape for one in [*model.inputs, *model.outputs]]
    assert [one.shape for one in [*copied.inputs, *copied.outputs]] == shapes


def test_a_copy_trains_alone(way):
    model, values = operations()
    wanted = arrays(run(model, values))
    copied = way(model)
    with openrnn.GradientTape() as tape:
        loss = openrnn.reduce_sum(openrnn.square(copied(X)[0]))
    gradients = tape.gradient(loss, copied.trainable_weights)
    assert len(gradients) == 8 and all(one is not None for one in gradients)
    AdamOptimizer(0.1).minimize(
        lambda: openrnn.reduce_sum(copied(X)[0]), var_list=copied.trainable_weights
    )
    assert (copied(X)[0].numpy() != wanted[0]).any()
    for found, mine in zip(model(X), wanted, strict=True):
        np.testing.assert_array_equal(found, mine)


@pytest.mark.parametrize("first", ["model", "optimizer"])
def test_an_optimizer_goes_on_with_the_copy(way, first):
    def train(one, optimizer):
        optimizer.minimize(lambda: openrnn.reduce_sum(one(X)), var_list=one.trainable_weights)

    (model, _), adam = shared(), AdamOptimizer(0.01)
    train(model, adam)
    both = {"model": model, "optimizer": adam}
    copied = way(dict(sorted(both.items(), reverse=first == "optimizer")))
    train(model, adam)
    train(copied["model"], copied["optimizer"])
    for mine, other in zip(model.weights, copied["model"].weights, strict=True):
        assert mine is not other
        np.testing.assert_array_equal(mine, other)
        slot = copied["optimizer"].get_slot(other, "m")
        np.testing.assert_array_equal(slot, adam.get_slot(mine, "m"))


def test_what_is_shared_stays_shared(way):
    x = sequence()
    body = Dense(3, name="body")
    h = body(x)
    net = Net()
    net.inner = Model(x, h)
    held = way({"first": net.inner, "second": Model(x, Dense(2)(h)), "body": body, "net": net})
    assert held["first"].layers == [held["body"]] == held["second"].layers[:1]
    assert held["net"].inner is held["first"]
    assert held["first"].inputs[0] is held["second"].inputs[0]
    assert held["body"].kernel in held["net"].weights and len(body.inbound_nodes) == 1
    assert held["body"].output is held["first"].outputs[0]
    assert held["body"].name == "body" and held["first"].get_layer("body") is held["body"]


class Holding(layers.Layer):
    """Its last output leads to the call that made it, and so back to the layer."""

    def call(self, inputs):
        self.last = inputs * 2.0
        return self.last


def test_a_layer_that_holds_its_own_output(way):
    body = Holding()
    body.last = body(sequence())
    (node,) = body.inbound_nodes
    orders = [[body, node, body.last]]
    if way is copy.deepcopy:
        orders += [[body.last, node, body], [node, body.last, body]]
    for held in orders:
        found = {type(one): one for one in way(held)}
        copied = found[Holding]
        assert copied is not body and copied.inbound_nodes == [found[type(node)]]
        assert copied.last is found[openrnn.Tensor] is copied.inbound_nodes[0].output_tensors[0]


def test_masks_of_an_op_level_model_go_on(way):
    x = Input(batch_shape=(4, 2, 3))
    model = rnn.ops.CudnnLSTM(2, 3, 3, dropout=0.5, seed=3)
    params = openrnn.Variable(rng.normal(size=model.params_size()).astype("float32"), name="buffer")
    zeros = np.zeros((2, 2, 3), "float32")
    net = Model(x, model(x, zeros, zeros, params, is_training=True)[0])
    first = net(X, training=True).numpy()
    copied = way(net)
    second = net(X, training=True).numpy()
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(copied(X, training=True), second)


def test_names(way):
    model, _ = operations()
    copied = way(model)
    assert [one.name for one in copied.layers] == ["first", "dense_2", "dense_3"]
    assert [v.name for v in copied.weights] == [
        "first_1/kernel", "first_1/bias", "row_1", "matrix_1", "dense_2/kernel",
        "dense_2/bias", "dense_3/kernel", "dense_3/bias",
    ]  # fmt: skip
    assert (model.name, copied.name) == ("model", "model_1")
    openrnn.reset_default_graph()
    again = pickle.loads(pickle.dumps(model))
    assert [v.name for v in again.weights] == [v.name for v in model.weights]
    assert again.name == "model"


def test_losses_and_circles(way):
    x = sequence()
    net = Net()
    head = Dense(2)
    model = Model(x, head(net(x)))
    net.owner, model.note = model, {"net": net}
    copied = way(model)
    assert copied.layers[0].owner is copied and copied.note["net"] is copied.layers[0]
    assert len(model.losses) == len(copied.losses) == 1
    model(X), copied(X)
    np.testing.assert_array_equal(model.losses[0], copied.losses[0])
    copied.layers[0].offset.assign([5.0, 5.0, 5.0])
    copied(X)
    assert (copied.losses[0].numpy() != model.losses[0].numpy()).all()
    assert len(way(copied).losses) == 1


def test_a_copy_counts_each_loss_once(way):
    """One that a call adds comes from the call, one that was added outside from the model."""
    x = sequence()
    net = Net()
    y = net(x)
    net.add_loss(openrnn.reduce_mean(openrnn.square(y)), inputs=x)
    model = Model(x, y)
    model(X)
    wanted = sorted(float(loss) for loss in model.losses)
    assert len(set(wanted)) == 2
    for copied in (way(model), way(way(model))):
        assert len(copied.losses) == 2
        for _ in range(2):
            copied(X)
            assert sorted(float(loss) for loss in copied.losses) == wanted


def test_masks_and_training_go_on(way):
    x = sequence()
    lstm = rnn.CudnnLSTM(2, 4, dropout=0.5)
    model = Model(x, lstm(x)[0])
    model(X)
    copied = way(model)
    assert_equal(copied(X), model(X))
    assert_equal(copied(X, training=False), model(X, training=False))
    ops = rnn.ops.CudnnGRU(2, 4, 3, dropout=0.5)
    zeros = np.zeros((2, 2, 4), "float32")
    params = rng.normal(size=ops.params_size()).astype("float32")
    model = Model(x, [ops(x * k, zeros, params)[0] for k in (1.0, 2.0)])
    model(X)
    copied = way(model)
    assert_equal(copied(X), model(X))
    assert_equal(copied(X), model(X))


def test_a_long_graph_copies_without_recursion(way):
    x = y = sequence()
    for _ in range(3000):
        y = y + 1.0
    assert_equal(way(Model(x, y))(X), Model(x, y)(X))


def test_the_graph_of_a_copy():
    graph = openrnn.Graph()
    with graph.as_default():
        model, _ = shared()
    copied = copy.deepcopy(model)
    assert copied.graph is graph and copied.layers[0].graph is graph
    assert not openrnn.global_variables()
    other = pickle.loads(pickle.dumps(model))
    assert other.graph is openrnn.get_default_graph() and len(openrnn.global_variables()) == 2


def test_a_copy_outlives_the_model(way):
    model, values = own()
    wanted = run(model, values)
    copied = way(model)
    del model
    assert_equal(run(copied, values), wanted)
    assert_equal(run(way(copied), values), wanted)


def test_a_layer_whose_object_is_gone_keeps_its_arguments():
    class Wide(Dense):
        note = "wide"

    x = sequence()
    wrapped = nn.rnn_cell.DropoutWrapper(nn.rnn_cell.BasicRNNCell(2, "relu"), 0.5, seed=3)
    y, _ = nn.dynamic_rnn(wrapped, Wide(3, activation="tanh", seed=1)(x), dtype="float32")
    config = wrapped.get_config()["cell"].get_config()
    del wrapped
    model = Model(x, y)
    for one in (model, copy.deepcopy(model)):
        wide, cell = one.layers
        assert (type(wide), wide.units, wide.note) == (Wide, 3, "wide")
        assert wide.get_config()["seed"] == 1 and wide.activation == "tanh"
        assert cell.get_config()["input_keep_prob"] == 0.5
        assert cell.wrapped_cell.get_config()["activation"] == config["activation"] == "relu"


def test_symbolic_tensors_copy(way):
    x = sequence()
    again, output = way([x, Dense(2)(x)])
    assert Model(again, output)(X).shape == (4, 2, 2)


class Locked(layers.Layer):
    def __init__(self):
        super().__init__()
        self.inner = Dense(3)
        self.lock = threading.Lock()

    def call(self, inputs):
        return self.inner(inputs)


def test_what_does_not_copy_is_named_and_changes_nothing():
    class Local(layers.Layer):
        def call(self, inputs):
            return inputs * 2

    x = sequence()
    local = Model(x, Local()(x))
    with pytest.raises((AttributeError, pickle.PicklingError), match="Local"):
        pickle.dumps(local)
    assert_equal(copy.deepcopy(local)(X), local(X))
    model = Model(x, Dense(2, activation=lambda y: y * 2)(Locked()(x)))
    before = [v.name for v in openrnn.global_variables()]
    for way in WAYS.values():
        with pytest.raises(TypeError, match="lock"):
            way(model)
    assert [v.name for v in openrnn.global_variables()] == before
    assert Dense(1)(X).shape == (4, 2, 1) and Model(x, x * 2).name == "model_3"


class Scoped(nn.rnn_cell.RNNCell):
    state_size = output_size = 3

    def __call__(self, inputs, state, scope=None):
        w = openrnn.get_variable("w", [3, 3])
        return openrnn.matmul(inputs, w), state


def test_a_loop_whose_variables_belong_to_a_scope_says_so(way):
    x = sequence()
    model = Model(x, nn.dynamic_rnn(Scoped(), x, dtype="float32")[0])
    with pytest.raises(TypeError, match="recorded call of 'scoped'.*__call__"):
        way(model)


def in_another_process(payload):
    model, values = pickle.loads(payload)
    return [v.name for v in model.weights], arrays(run(model, values))


def test_spawn():
    wanted = []
    payloads = []
    for maker in MAKERS.values():
        openrnn.reset_default_graph()
        model, values = maker()
        payloads.append(pickle.dumps((model, values)))
        wanted.append(([v.name for v in model.weights], arrays(run(model, values))))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        for payload, (names, outputs) in zip(payloads, wanted, strict=True):
            found_names, found = pool.apply(in_another_process, (payload,))
            assert len(found_names) == len(names)
            for mine, other in zip(outputs, found, strict=True):
                np.testing.assert_array_equal(mine, other)
