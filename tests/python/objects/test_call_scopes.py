"""A user's layer that asks for variables in call(): in the scope of the layer, as in TensorFlow 1."""

import copy
import pickle

import numpy as np
import openrnn
import pytest
from openrnn.train import GradientDescentOptimizer

Dense, Layer = openrnn.layers.Dense, openrnn.layers.Layer
X = np.ones((2, 3), "float32")


class Scaled(Layer):
    def call(self, inputs, fail=False):
        w = openrnn.get_variable("w", [3], initializer=openrnn.initializers.ones())
        if fail:
            raise RuntimeError("on purpose")
        with openrnn.variable_scope("inner"):
            b = openrnn.get_variable("b", [3], initializer=openrnn.initializers.zeros())
        return inputs * openrnn.stack([w, w]) + b


class Net(Layer):
    def __init__(self):
        super().__init__()
        self.first, self.second = Dense(3), Dense(3)

    def call(self, inputs, both=False):
        y = self.first(inputs)
        return self.second(y) if both else y


def names():
    return [v.name for v in openrnn.global_variables()]


def test_twice_called_has_one_variable():
    layer = Scaled()
    first = layer(X)
    np.testing.assert_array_equal(layer(X), first)
    assert names() == ["scaled/w", "scaled/inner/b"] == [v.name for v in layer.weights]
    layer.weights[0].assign([2.0, 3.0, 4.0])
    np.testing.assert_array_equal(layer(X)[0], [2.0, 3.0, 4.0])
    other = Scaled()
    other(X)
    assert [v.name for v in other.weights] == ["scaled_1/w", "scaled_1/inner/b"]
    with openrnn.variable_scope("outer"):
        named = Scaled(name="mine")
        named(X)
        named(X)
    named(X)
    assert [v.name for v in named.weights] == ["outer/mine/w", "outer/mine/inner/b"]


def test_they_are_weights_of_the_layer():
    layer = Scaled()
    GradientDescentOptimizer(1.0).minimize(lambda: openrnn.reduce_sum(layer(X)))
    assert len(layer.trainable_weights) == 2
    np.testing.assert_array_equal(layer.weights[0], [-1.0, -1.0, -1.0])
    layer.trainable = False
    assert layer.trainable_weights == [] == openrnn.trainable_variables()


def test_a_recorded_call_and_its_copies():
    x = openrnn.Input(batch_shape=(2, 3))
    layer = Scaled()
    model = openrnn.Model(x, layer(layer(x)))
    assert names() == ["scaled/w", "scaled/inner/b"]
    layer.weights[0].assign([2.0, 2.0, 2.0])
    with openrnn.Graph().as_default():  # the variables are those of the layer's graph
        np.testing.assert_array_equal(model(X)[0], [4.0, 4.0, 4.0])
        assert openrnn.global_variables() == []
    for copied in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(copied(X), model(X))
        copied.weights[0].assign([1.0, 1.0, 1.0])
        np.testing.assert_array_equal(copied(X), X)
        assert len(copied.weights) == 2
    np.testing.assert_array_equal(model(X)[0], [4.0, 4.0, 4.0])
    assert names()[2:] == [f"scaled_{n}/{v}" for n in (1, 2) for v in ("w", "inner/b")]


def test_layers_inside_are_named_by_the_scope():
    net = Net()
    net(X)
    net(X, both=True)  # a layer that is first called later is another one
    assert names() == [
        "net/dense/kernel", "net/dense/bias", "net/dense_1/kernel", "net/dense_1/bias",
    ]  # fmt: skip
    assert len(net.weights) == 4


def test_a_call_that_fails_can_be_made_again():
    layer = Scaled()
    with pytest.raises(RuntimeError, match="on purpose"):
        layer(X, fail=True)
    layer(X)
    assert names() == ["scaled/w", "scaled/inner/b"] == [v.name for v in layer.weights]
    layer.trainable = False
    assert layer.trainable_weights == []


def test_a_variable_of_somebody_else_is_not_taken():
    with openrnn.variable_scope("scaled"):
        held = openrnn.get_variable("w", [3])
    with pytest.raises(ValueError, match="'scaled/w' exists already"):
        Scaled()(X, scope="scaled")
    assert held.name == "scaled/w"


def test_reuse_takes_what_exists():
    layer = Scaled(name="mine")
    layer(X)
    again = Scaled(name="mine", _reuse=True)
    assert [v.name for v in again.weights] == []
    again(X)
    assert again.weights == layer.weights and len(names()) == 2


class Shifted(Dense):
    def call(self, inputs):
        shift = openrnn.get_variable("shift", [self.units])
        return super().call(inputs) + shift


def test_a_subclass_of_a_layer():
    layer = Shifted(2)
    layer(X)
    layer(X)
    assert names() == ["dense/kernel", "dense/bias", "dense/shift"]
    assert len(layer.weights) == 3


class Kept(Dense):
    """Keeps what Dense gave, which is a part of its own call, and loses it too."""

    def call(self, inputs):
        self.hidden = super().call(inputs)
        self.add_loss(openrnn.reduce_sum(self.hidden), inputs=inputs)
        return self.hidden * 2.0


def test_a_part_of_a_call_is_no_call_of_the_layer():
    x, layer = openrnn.Input(batch_shape=(None, 3)), Kept(4)
    y = layer(x)
    assert [len(layer.inbound_nodes), len(layer.outbound_nodes)] == [1, 0]
    assert layer.output is y
    model = openrnn.Model(x, layer.hidden)
    assert model.layers == [] and len(model.outputs) == 1
    with pytest.raises(ValueError, match="expected one of \\[\\]"):
        model.get_layer("kept")
    layer.weights[1].assign([1.0, 2.0, 3.0, 4.0])
    np.testing.assert_allclose(model(X), X @ layer.weights[0].numpy() + [1, 2, 3, 4], rtol=1e-6)
    last = Dense(2)
    both = openrnn.Model(x, last(layer.hidden))
    assert both.layers == [last] and last.inbound_nodes[0].inbound_layers == []
    assert layer.outbound_nodes == []
    whole = openrnn.Model(x, Dense(2)(y))
    assert whole.layers[0] is layer and len(whole.layers) == 2
    assert len(layer.outbound_nodes) == 1


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_record_a_part_as_a_part(copied):
    x, layer = openrnn.Input(batch_shape=(None, 3)), Kept(4)
    model = openrnn.Model(x, Dense(2)(layer(x)))
    made = copied(model)
    (twin, last) = made.layers
    assert [len(one.inbound_nodes) for one in (twin, last, layer)] == [1, 1, 1]
    assert [len(one.outbound_nodes) for one in (twin, last, layer)] == [1, 0, 1]
    assert len(twin.weights) == 2 and len(made.weights) == 4
    np.testing.assert_array_equal(made(X), model(X))
    assert len(made.losses) == 1 == len(model.losses)
    assert float(made.losses[0]) == float(model.losses[0])
