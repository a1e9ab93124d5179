"""Losses, updates, activity regularizers and added weights of a layer."""

import gc

import numpy as np
import openrnn
import pytest
from openrnn import initializers
from table.support import (
    GRU, B, I, L, T, U, array, assert_names, draw, error_text, make_layer, nothing_changes,
)  # fmt: skip


def collection(name):
    return openrnn.get_collection(getattr(openrnn.GraphKeys, name))


def value(loss):
    return float(array(loss() if callable(loss) else loss))


def test_empty_at_first(kind, caller):
    layer = kind.layer(L, U)
    assert list(layer.losses) == [] and list(layer.updates) == []
    caller(layer, draw(T, B, I))
    assert list(layer.losses) == [] and list(layer.updates) == []
    assert layer.get_losses_for(None) == [] and layer.get_updates_for(None) == []


def test_add_loss(kind):
    layer = make_layer(kind)
    layer.add_loss(openrnn.constant(2.5))
    layer.add_loss([openrnn.constant(1.0), openrnn.constant(0.25)])
    assert [value(loss) for loss in layer.losses] == [2.5, 1.0, 0.25]
    assert [value(loss) for loss in collection("REGULARIZATION_LOSSES")] == [2.5, 1.0, 0.25]
    assert [value(loss) for loss in layer.get_losses_for(None)] == [2.5, 1.0, 0.25]


def test_loss_of_inputs_is_conditional(kind):
    layer = make_layer(kind)
    x, other = (openrnn.Input(batch_shape=(T, B, I)) for _ in range(2))
    output, _ = layer(x)
    conditional = openrnn.reduce_sum(openrnn.square(output))
    layer.add_loss(conditional, inputs=[x])
    layer.add_loss(openrnn.constant(3.0))
    assert len(layer.losses) == 2
    assert [value(loss) for loss in layer.get_losses_for(None)] == [3.0]
    assert len(layer.get_losses_for(x)) == 1 and len(layer.get_losses_for([x])) == 1
    assert layer.get_losses_for(x)[0] is conditional
    assert layer.get_losses_for(other) == []


def test_a_loss_of_values_is_of_the_latest_call(kind):
    layer = make_layer(kind)
    x = openrnn.constant(draw(T, B, I))
    layer(x)
    layer.add_loss(openrnn.constant(2.0), inputs=[x])
    layer.add_loss(openrnn.constant(3.0))
    found = lambda losses: sorted(value(loss) for loss in losses)
    assert found(layer.losses) == found(collection("REGULARIZATION_LOSSES")) == [2.0, 3.0]
    assert found(layer.get_losses_for(x)) == [2.0] and found(layer.get_losses_for(None)) == [3.0]
    layer(x)
    assert found(layer.losses) == found(collection("REGULARIZATION_LOSSES")) == [3.0]
    assert layer.get_losses_for(x) == []


def test_update_of_inputs_is_conditional(kind):
    layer = make_layer(kind)
    x, other = (openrnn.Input(batch_shape=(T, B, I)) for _ in range(2))
    output, _ = layer(x)
    conditional, free = openrnn.reduce_mean(output), openrnn.constant(1.0)
    layer.add_update(conditional, inputs=[x])
    layer.add_update([free])
    assert len(layer.updates) == 2
    assert len(layer.get_updates_for(None)) == 1 and len(layer.get_updates_for(x)) == 1
    assert layer.get_updates_for(other) == []


def test_updates_reach_the_collection_with_each_call(kind, caller):
    layer = make_layer(kind)
    layer.add_update(openrnn.constant(1.0))
    assert len(layer.updates) == 1
    assert collection("UPDATE_OPS") == []
    for _ in range(2):
        caller(layer, draw(T, B, I))
        assert len(collection("UPDATE_OPS")) == 1
        assert len(layer.updates) == 1


def test_updates_of_a_layer_that_is_gone_leave_the_collection(held):
    layer = openrnn.layers.Dense(U)
    layer.add_update(lambda: None)
    layer(draw(B, I))
    assert len(collection("UPDATE_OPS")) == 1
    del layer
    held.clear()
    gc.collect()
    assert collection("UPDATE_OPS") == []


def test_updates_of_a_frozen_layer_are_empty(kind, caller):
    layer = make_layer(kind)
    layer.add_update(openrnn.constant(1.0))
    layer.trainable = False
    caller(layer, draw(T, B, I))
    assert list(layer.updates) == layer.get_updates_for(None) == collection("UPDATE_OPS") == []
    layer.stateful = True  # its state goes on all the same
    caller(layer, draw(T, B, I))
    assert len(layer.updates) == len(layer.get_updates_for(None)) == len(collection("UPDATE_OPS")) == 1
    layer.trainable, layer.stateful = True, False
    assert len(layer.updates) == 1


def test_updates_of_a_frozen_layer_inside_are_left_out():
    class Outer(openrnn.layers.Layer):
        def __init__(self):
            super().__init__()
            self.inner = openrnn.layers.Dense(U)

        def call(self, inputs):
            return self.inner(inputs)

    outer = Outer()
    x = openrnn.Input(batch_shape=(B, I))
    outer(x)
    outer.inner.add_update(openrnn.constant(1.0))
    outer.inner.add_update(openrnn.constant(2.0), inputs=[x])
    for trainable, stateful, count in ((True, False, 1), (False, False, 0), (False, True, 1)):
        outer.inner.trainable, outer.inner.stateful = trainable, stateful
        assert len(outer.updates) == 2 * count
        assert len(outer.get_updates_for(None)) == count
        assert len(outer.get_updates_for(x)) == count


def test_activity_regularizer(kind, caller):
    layer = make_layer(kind)
    assert layer.activity_regularizer is None
    regularizer = openrnn.regularizers.l2(0.5)
    layer.activity_regularizer = regularizer
    assert layer.activity_regularizer is regularizer
    caller(layer, draw(T, B, I))
    assert len(layer.losses) >= 1
    assert len(collection("REGULARIZATION_LOSSES")) == len(layer.losses)


def test_activity_loss_has_the_value_of_the_output():
    layer = openrnn.cudnn_rnn.CudnnGRU(L, U, activity_regularizer=lambda y: openrnn.reduce_sum(y))
    output, states = layer(draw(T, B, I))
    every = [float(array(v).sum()) for v in (output, *states)]
    found = [value(loss) for loss in layer.losses]
    assert np.isclose(found[0], every[0], rtol=1e-5)
    assert len(found) in (1, len(every))


def test_activity_regularizer_of_a_recorded_call_runs_in_the_model():
    layer = make_layer(GRU)
    layer.activity_regularizer = lambda y: openrnn.reduce_sum(openrnn.square(y))
    x = openrnn.Input(batch_shape=(None, None, I))
    output, _ = layer(x)
    model = openrnn.Model(x, [output, layer.losses[0]])
    data = draw(T, B, I)
    found, loss = model(data)
    np.testing.assert_allclose(float(array(loss)), np.sum(array(found) ** 2), rtol=1e-5)
    assert len(model.losses) == len(layer.losses)


@pytest.mark.parametrize("method", ["add_weight", "add_variable"])
def test_add_weight(kind, method):
    layer = make_layer(kind)
    added = getattr(layer, method)("scale", [2, 3])
    assert added.name == f"{kind.snake}/scale"
    assert (added.shape, added.dtype, added.trainable) == ((2, 3), "float32", True)
    limit = np.sqrt(6.0 / 5.0)
    assert 0.0 < np.abs(array(added)).max() <= limit
    assert [v.name for v in layer.trainable_weights] == [layer.kernel.name, added.name]
    assert layer.count_params() == array(layer.kernel).size + 6
    assert added.name in [v.name for v in openrnn.trainable_variables()]


@pytest.mark.parametrize("method", ["add_weight", "add_variable"])
def test_add_weight_not_trainable(kind, method):
    layer = make_layer(kind)
    ones = openrnn.initializers.ones()
    added = getattr(layer, method)("mean", (3,), dtype="float64", initializer=ones, trainable=False)
    assert added.dtype == "float64" and np.all(array(added) == 1.0)
    assert [v.name for v in layer.non_trainable_weights] == [added.name]
    assert added.name not in [v.name for v in openrnn.trainable_variables()]


@pytest.mark.parametrize("method", ["add_weight", "add_variable"])
def test_add_weight_with_regularizer(kind, method):
    layer = make_layer(kind)
    added = getattr(layer, method)(
        "w", (2,), initializer=openrnn.initializers.constant(3.0),
        regularizer=openrnn.regularizers.l1(0.5),
    )  # fmt: skip
    assert [value(loss) for loss in layer.losses] == [3.0]
    assert len(collection("REGULARIZATION_LOSSES")) == 1
    added.assign(np.array([1.0, -4.0], "float32"))
    assert [value(loss) for loss in layer.losses] == [2.5]


def test_add_weight_with_any_callable_as_regularizer(kind):
    layer = make_layer(kind)
    ones = openrnn.initializers.constant(3.0)
    squares = lambda w: openrnn.reduce_sum(openrnn.square(w))  # noqa: E731
    layer.add_weight("w", (2,), initializer=ones, regularizer=squares)
    assert [value(loss) for loss in layer.get_losses_for(None)] == [18.0]


@pytest.mark.parametrize("method", ["add_weight", "add_variable"])
def test_add_weight_with_constraint(kind, method):
    layer = make_layer(kind)
    added = getattr(layer, method)(
        "w", (3,), initializer=openrnn.initializers.constant(1.0), constraint=openrnn.nn.relu
    )
    optimizer = openrnn.train.GradientDescentOptimizer(1.0)
    slopes = openrnn.constant(np.array([0.5, 2.0, 3.0], "float32"))
    optimizer.minimize(lambda: openrnn.reduce_sum(added * slopes), var_list=[added])
    np.testing.assert_array_equal(array(added), [0.5, 0.0, 0.0])


def test_add_weight_of_an_integer_dtype_starts_at_zero(kind):
    layer = make_layer(kind)
    added = layer.add_weight("count", (2,), dtype="int32", trainable=False)
    assert added.dtype == "int32" and np.all(array(added) == 0)


@pytest.mark.parametrize("dtype, value", [("int32", 1), ("int64", -7), ("uint8", 255), ("bool", 1)])
def test_add_weight_takes_constants_of_integers(kind, dtype, value):
    layer = make_layer(kind)
    initializer = "ones" if value == 1 else initializers.constant(value)
    added = layer.add_weight("count", (2,), dtype, initializer=initializer, trainable=False)
    assert added.dtype == dtype and array(added).tolist() == [value] * 2
    with nothing_changes(layer), pytest.raises(openrnn.ArgumentError, match="0.5 is given for " + dtype):
        layer.add_weight("half", (2,), dtype, initializer=initializers.constant(0.5), trainable=False)
    with nothing_changes(layer), pytest.raises(openrnn.ArgumentError, match=f"the values are {dtype}, expected"):
        layer.add_weight("drawn", (2,), dtype, initializer="glorot_uniform", trainable=False)


def test_add_weight_without_default_initializer(kind):
    layer = make_layer(kind)
    with nothing_changes(layer):
        message = error_text(ValueError, layer.add_weight, "names", (2,), dtype="string")
        assert_names(message, "string|dtype|initializer")


@pytest.mark.parametrize("nest", [tuple, list])
def test_what_depends_on_inputs_in_a_nest(nest):
    layer = openrnn.layers.Layer()
    x, y, z = (openrnn.Input(batch_shape=(None, 2)) for _ in range(3))
    layer.add_loss(openrnn.reduce_sum(x), inputs=nest([x, nest([y, None])]))
    layer.add_update(print, inputs=nest([x, y]))
    for given in (x, nest([y]), nest([z, nest([x])])):
        assert len(layer.get_losses_for(given)) == len(layer.get_updates_for(given)) == 1
    for given in (None, z, nest([z]), nest([])):
        assert layer.get_losses_for(given) == layer.get_updates_for(given) == []
