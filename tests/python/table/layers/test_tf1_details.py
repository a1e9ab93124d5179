"""What programs of TensorFlow 1 write besides: forms of arguments, names, arrays of one's own."""

import inspect

import numpy as np
import openrnn
import pytest
from table.support import B, I, L, T, U, array, assert_names, draw, error_text

ON = [True, np.bool_(True), 1, np.int64(1), np.array(True), np.array(1.0)]
OFF = [False, np.bool_(False), 0, np.int32(0), np.array(False), np.float32(0.0)]
NEITHER = ["yes", 2, 0.5, None, [True], np.array([True]), np.array(2)]


def ids(values):
    return [f"{type(value).__name__}-{value}" for value in values]


def tensors(flag):
    return [openrnn.constant(np.array(flag)), openrnn.constant(int(flag)),
            openrnn.Variable(np.array(int(flag), "int32"), trainable=False)]  # fmt: skip


def dropped(layer, training):
    ones = np.ones((T, B, I), np.float32)
    return not np.array_equal(layer(ones, training=training)[0], layer(ones, training=False)[0])


@pytest.mark.parametrize("index", range(9))
@pytest.mark.parametrize("flag", [True, False])
def test_training_of_a_layer(index, flag):
    layer = openrnn.cudnn_rnn.CudnnGRU(2, 8, dropout=0.5, seed=1)
    value = [*(ON if flag else OFF), *tensors(flag)][index]
    assert dropped(layer, value) is flag


@pytest.mark.parametrize("index", range(9))
@pytest.mark.parametrize("flag", [True, False])
def test_training_of_other_calls(index, flag):
    value = [*(ON if flag else OFF), *tensors(flag)][index]
    ones = np.ones((40, I), np.float32)
    assert (openrnn.layers.Dropout(0.5)(ones, value).numpy() == 0).any() == flag
    x = openrnn.Input(batch_shape=(None, I))
    model = openrnn.Model(x, openrnn.layers.Dropout(0.5)(x, not flag))
    assert (model(ones, training=value).numpy() == 0).any() == flag


@pytest.mark.parametrize("index", range(9))
def test_is_training_at_the_op_level(index):
    ops = openrnn.cudnn_rnn.ops
    model = ops.CudnnGRU(1, U, I)
    params, h = np.ones(model.params_size(), np.float32), np.zeros((1, B, U), np.float32)
    x = openrnn.Variable(draw(T, B, I))
    for flag in (True, False):
        value = [*(ON if flag else OFF), *tensors(flag)][index]
        for call in (model, ops.cudnn_gru):
            with openrnn.GradientTape() as tape:
                y = openrnn.reduce_sum(call(x, h, params, is_training=value)[0])
            if flag:
                assert tape.gradient(y, x) is not None
            else:
                error_text(ValueError, tape.gradient, y, x)


@pytest.mark.parametrize("value", NEITHER, ids=ids(NEITHER))
def test_anything_else_is_no_flag(value):
    ops = openrnn.cudnn_rnn.ops
    layer, x = openrnn.cudnn_rnn.CudnnGRU(1, U, name="rnn"), draw(T, B, I)
    model = ops.CudnnGRU(1, U, I)
    params, h = np.ones(model.params_size(), np.float32), np.zeros((1, B, U), np.float32)
    for name, call in {
        r"^\[rnn\] training": lambda: layer(x, training=value),
        r"^\[cudnn_rnn\] is_training": lambda: model(x, h, params, is_training=value),
        r"^\[cudnn_gru\] is_training": lambda: ops.cudnn_gru(x, h, params, is_training=value),
        r"^\[dropout\] training": lambda: openrnn.layers.Dropout(0.5)(x, training=value),
    }.items():
        assert_names(error_text(TypeError, call), name, f"{type(value).__name__}'", "True or False")
    assert not layer.built


class Twice(openrnn.layers.Layer):
    def build(self, input_shape):
        self.first = self.add_weight("w", (2,), regularizer=openrnn.regularizers.l2(1.0))
        self.second = self.add_variable("w", (2,), use_resource=True, partitioner=None)

    def call(self, x):
        return x + self.first


def test_a_weight_of_an_existing_name_is_returned():
    layer = Twice()
    layer(draw(B, 2))
    assert layer.second is layer.first and layer.weights == [layer.first]
    assert layer.add_weight("w", [2]) is layer.first and len(layer.losses) == 1
    assert openrnn.global_variables() == [layer.first]
    error_text(ValueError, layer.add_weight, "w", (3,))
    error_text(ValueError, layer.add_weight, "w", (2,), "float64")
    other = layer.add_weight("v", (2,))
    assert other.name == "twice/v" and layer.weights == [layer.first, other]


def test_the_opaque_kernel_by_its_name(kind):
    layer = kind.layer(L, U)
    layer.build((None, None, I))
    assert layer.add_weight("opaque_kernel", layer.kernel.shape) is layer.kernel


def test_partitioners_are_refused():
    message = error_text(NotImplementedError, openrnn.layers.Dense(1).add_weight, "w", (1,),
                         partitioner=lambda: None)  # fmt: skip
    assert_names(message, "partitioner", "None")
    for name in ("add_weight", "add_variable"):
        names = list(inspect.signature(getattr(openrnn.layers.Layer, name)).parameters)
        assert names[1:] == ["name", "shape", "dtype", "initializer", "regularizer", "trainable",
                             "constraint", "use_resource", "partitioner"]  # fmt: skip


def test_restore_by_the_names_of_its_arguments(kind):
    layer = kind.layer(L, U)
    layer.build((None, None, I))
    before = array(layer.kernel)
    values = [array(spec.tensor) for spec in layer.saveable.specs]
    layer.set_weights([np.zeros_like(before)])
    layer.saveable.restore(restored_tensors=values, restored_shapes=None)
    np.testing.assert_allclose(layer.kernel, before, atol=1e-7)


def test_the_base_of_the_saveables_has_tensorflows_name(kind):
    layer = kind.layer(L, U)
    layer.build((None, None, I))
    base = openrnn.cudnn_rnn.CudnnOpaqueParamsSaveable
    assert base.__name__ == "CudnnOpaqueParamsSaveable" and isinstance(layer.saveable, base)


def test_arrays_of_get_weights_are_the_callers(kind):
    layer = kind.layer(L, U)
    layer.build((None, None, I))
    before = array(layer.kernel).copy()
    (values,) = layer.get_weights()
    assert values.flags.writeable and values.flags.owndata
    values += 1
    np.testing.assert_array_equal(layer.kernel, before)
    layer.set_weights([values])
    np.testing.assert_array_equal(layer.kernel, before + 1)


def test_op_level_sizes_given_to_a_layer(kind):
    message = error_text(ValueError, kind.layer, 2, 200, 200)
    assert_names(message, rf"openrnn\.cudnn_rnn\.ops\.{kind.layer.__name__}", "input_mode is 200")
