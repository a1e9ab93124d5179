"""A graph holds its variables weakly: running a cell of a notebook again piles nothing up."""

import contextlib
import gc
import weakref

import numpy as np
import openrnn
import pytest
from openrnn import cudnn_rnn, initializers, layers, regularizers, train

X = np.random.default_rng(1).normal(size=(4, 2, 3)).astype("float32")


@pytest.fixture(params=["default", "explicit"])
def graph(request):
    """The thread's default graph, new, and one that is made and opened."""
    if request.param == "explicit":
        with openrnn.Graph().as_default() as made:
            yield made
        return
    openrnn.reset_default_graph()
    yield openrnn.get_default_graph()
    openrnn.reset_default_graph()


def names():
    gc.collect()
    return [variable.name for variable in openrnn.global_variables()]


def cell(scope):
    """What a cell of a notebook binds again and again."""
    lstm = cudnn_rnn.CudnnLSTM(1, 4)
    dense = layers.Dense(2, kernel_initializer="ones")
    optimizer = train.AdamOptimizer(0.01)
    optimizer.minimize(lambda: openrnn.reduce_mean(dense(lstm(X)[0])))
    scope.update(lstm=lstm, dense=dense, optimizer=optimizer)


def test_a_cell_twice(graph):
    scope, sizes = {}, []
    for _ in range(5):
        cell(scope)
        sizes.append(len(names()))
        assert len(openrnn.trainable_variables()) == 3
        assert len(openrnn.get_collection("saveable_objects")) == 1
    assert sizes == [11] * 5
    assert scope["lstm"].kernel.name == "cudnn_lstm_4/opaque_kernel"  # TensorFlow's numbers stay
    kernel = weakref.ref(scope["lstm"])
    scope.clear()
    assert names() == [] and kernel() is None
    assert openrnn.get_collection("saveable_objects") == []


def test_symbolic_models_too(graph):
    for _ in range(3):
        x = openrnn.Input(batch_shape=(None, None, 3))
        model = openrnn.Model(x, layers.Dense(2)(cudnn_rnn.CudnnGRU(1, 4)(x)[0]))
        model.predict(X)
    assert len(names()) == 3
    # The model holds its layers, whose names are gone, and its variables.
    assert model.weights[0].name in names()
    del model, x
    assert names() == []


def test_losses_and_updates_go_with_their_layers(graph):
    def make():
        lstm = cudnn_rnn.CudnnLSTM(1, 4, activity_regularizer=regularizers.l2(0.1))
        lstm(X)
        dense = layers.Layer()
        w = dense.add_weight("w", (3,), regularizer=regularizers.l1(0.5), initializer="ones")
        dense.add_loss(lambda: openrnn.reduce_sum(w))
        return lstm, dense

    kept = make()
    found = openrnn.get_collection("regularization_losses")
    assert [float(one) for one in found[-2:]] == [1.5, 3.0] and len(found) > 2
    kept = make()
    gc.collect()
    assert len(openrnn.get_collection("regularization_losses")) == len(found)
    del kept
    assert names() == [] and openrnn.get_collection("regularization_losses") == []


def test_a_default_saver_sees_those_alive(graph, tmp_path):
    saver = train.Saver()
    first = openrnn.Variable(np.arange(3.0), name="first")
    second = openrnn.Variable(np.arange(2.0), name="second")
    prefix = saver.save(tmp_path / "both")
    assert train.list_variables(prefix) == [("first", [3]), ("second", [2])]
    del first
    assert train.list_variables(saver.save(tmp_path / "one")) == [("second", [2])]
    second.assign(np.zeros(2, "float32"))
    saver.restore(prefix)
    assert second.numpy().tolist() == [0.0, 1.0]
    del second
    with pytest.raises(ValueError, match="the graph has no variables, expected some that somebody"):
        saver.save(tmp_path / "none")


def test_a_name_is_free_again(graph):
    one = openrnn.Variable(1.0, name="w")
    with pytest.raises(ValueError, match="'w' exists already"):
        openrnn.get_variable("w", ())
    del one
    other = openrnn.get_variable("w", (2,))
    assert other.name == "w" and names() == ["w"]


def test_reuse_while_somebody_holds_them(graph):
    with openrnn.variable_scope("a"):
        first = openrnn.get_variable("w", (2,), initializer=initializers.ones())
    with openrnn.variable_scope("a", reuse=True):
        again = openrnn.get_variable("w", (2,))
    again.assign([2.0, 3.0])
    assert first.numpy().tolist() == [2.0, 3.0]
    del first
    with openrnn.variable_scope("a", reuse=True):
        assert openrnn.get_variable("w", (2,)).numpy().tolist() == [2.0, 3.0]
    del again
    with openrnn.variable_scope("a", reuse=True), pytest.raises(ValueError, match="does not exist"):
        openrnn.get_variable("w", (2,))


def test_a_layer_holds_what_its_call_makes(graph):
    class Own(layers.Layer):
        def call(self, inputs):
            return inputs * openrnn.get_variable("w", X.shape, initializer=initializers.ones())

    layer = Own()
    layer(X)
    assert names() == ["own/w"]
    layer.weights[0].assign(X)
    np.testing.assert_array_equal(layer(X).numpy(), X * X)
    del layer
    assert names() == []


def test_the_global_step_stays(graph):
    train.get_or_create_global_step().assign_add(3)
    gc.collect()
    assert int(train.get_or_create_global_step()) == 3 and names() == ["global_step"]


def test_many_variables_in_constant_memory(graph):
    for _ in range(3000):
        openrnn.Variable(np.zeros(1), name="w")
    assert names() == []


def test_a_failed_build_leaves_nothing(graph):
    kept = []

    class Broken(layers.Layer):
        def build(self, input_shape):
            kept.append(self.add_weight("w", (2,)))
            raise RuntimeError("no")

    before = openrnn.Variable(0.0, name="before")
    with contextlib.suppress(RuntimeError):
        Broken()(X)
    assert names() == ["before"] and len(kept) == 1 and before is not None
