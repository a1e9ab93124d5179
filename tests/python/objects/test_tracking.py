"""Layers and variables in the attributes of a layer are its own: weights, freezing, checkpoints."""

import numpy as np
import openrnn
import pytest
from openrnn.train import Checkpoint

Dense, Layer = openrnn.layers.Dense, openrnn.layers.Layer


class Net(Layer):
    """Two blocks in a list, a head in a dict, a variable in a tuple."""

    def __init__(self, blocks=2):
        super().__init__()
        self.blocks = [Dense(3) for _ in range(blocks)]
        self.heads = {"one": Dense(1, kernel_initializer="ones")}
        self.scales = (openrnn.Variable(np.full(3, 2.0, "float32"), name="scale"), "text", 3)
        self.sizes = [1, 2, 3]

    def build(self, input_shape):
        self.offset = self.add_weight("shift", [input_shape[-1]], initializer="zeros")

    def call(self, inputs):
        inputs = inputs + self.scales[0] + self.offset
        for block in self.blocks:
            inputs = block(inputs)
        return self.heads["one"](inputs)


X = np.arange(6, dtype="float32").reshape(2, 3) - 2


def names(prefix):
    ending = "/.ATTRIBUTES/VARIABLE_VALUE"
    found = [name.removesuffix(ending) for name, _ in openrnn.train.list_variables(prefix)]
    return sorted(name for name in found if not name.startswith("_"))


def test_weights_in_attributes():
    net = Net()
    assert [v.name for v in net.weights] == ["scale"]
    net(X)
    assert len(net.weights) == len(net.trainable_weights) == 8
    assert net.weights[0] is net.offset and net.weights[1] is net.scales[0]
    assert net.count_params() == 3 + 3 + 2 * 12 + 4
    net.blocks.append(Dense(3))  # later, in place
    net(X)
    assert len(net.weights) == 10
    del net.heads
    assert len(net.weights) == 8


def test_training_reaches_what_is_in_attributes():
    net = Net()
    with openrnn.GradientTape() as tape:
        loss = openrnn.reduce_sum(net(X))
    gradients = tape.gradient(loss, net.trainable_weights)
    assert all(gradient is not None for gradient in gradients)


def test_losses_and_updates_of_sublayers():
    class Sums(Layer):
        def build(self, input_shape):
            l2 = openrnn.regularizers.l2(1.0)
            self.w = self.add_weight("w", [2], initializer="ones", regularizer=l2)

        def call(self, inputs):
            self.add_loss(openrnn.reduce_sum(inputs))
            self.add_update(lambda: None)
            return inputs

    class Outer(Layer):
        def __init__(self):
            super().__init__()
            self.parts = {"sums": Sums()}

        def call(self, inputs):
            return self.parts["sums"](inputs)

    outer = Outer()
    outer(X)
    assert sorted(float(loss) for loss in outer.losses) == [1.0, float(X.sum())]
    assert len(outer.updates) == 1
    outer.trainable = False
    assert outer.updates == []


def test_names_in_a_checkpoint(tmp_path):
    net = Net()
    net(X)
    saved = names(Checkpoint(net=net).write(tmp_path / "ck"))
    parts = ["blocks/0/kernel", "blocks/0/bias", "blocks/1/kernel", "blocks/1/bias",
             "heads/one/kernel", "heads/one/bias", "scales/0", "shift"]  # fmt: skip
    assert saved == sorted(f"net/{part}" for part in parts)


def test_a_restore_before_and_after_the_build(tmp_path):
    net = Net()
    wanted = net(X).numpy()
    prefix = Checkpoint(net=net).save(tmp_path / "ck")
    built = Net()
    built(X)
    Checkpoint(net=built).restore(prefix).assert_consumed()
    np.testing.assert_array_equal(built(X), wanted)
    fresh = Net(blocks=1)
    status = Checkpoint(net=fresh).restore(prefix)
    with pytest.raises(ValueError, match="net/blocks/1/kernel"):
        status.assert_consumed()
    fresh.blocks.append(Dense(3))
    np.testing.assert_array_equal(fresh(X), wanted)
    status.assert_consumed().assert_existing_objects_matched()


def test_an_attribute_set_after_the_restore(tmp_path):
    net = Net()
    net(X)
    prefix = Checkpoint(net=net).save(tmp_path / "ck")
    other = Net()
    other(X)
    del other.heads
    status = Checkpoint(net=other).restore(prefix)
    head = Dense(1)
    head.build((None, 3))
    other.heads = {"one": head}
    np.testing.assert_array_equal(head.kernel, net.heads["one"].kernel)
    status.assert_consumed()


def test_a_list_that_grows_after_the_restore(tmp_path):
    net = Net(blocks=3)
    wanted = net(X).numpy()
    prefix = Checkpoint(net=net).save(tmp_path / "ck")
    other = Net(blocks=2)
    other(X)
    Checkpoint(net=other).restore(prefix)
    other.blocks.append(Dense(3))
    np.testing.assert_array_equal(other(X), wanted)


def test_what_one_side_lacks(tmp_path):
    net, longer, shorter = Net(), Net(blocks=3), Net(blocks=1)
    for one in (net, longer, shorter):
        one(X)
    prefix = Checkpoint(net=net).save(tmp_path / "ck")
    status = Checkpoint(net=longer).restore(prefix)
    for call in (status.assert_consumed, status.assert_existing_objects_matched):
        with pytest.raises(ValueError, match="net/blocks/2/kernel"):
            call()
    status = Checkpoint(net=shorter).restore(prefix)
    status.assert_existing_objects_matched()
    with pytest.raises(ValueError, match="net/blocks/1/kernel"):
        status.assert_consumed()


def test_a_layer_that_the_file_lacks_and_that_is_not_built(tmp_path):
    net = Net()
    net(X)
    prefix = Checkpoint(net=net).save(tmp_path / "ck")
    net.extra = Dense(2)
    status = Checkpoint(net=net).restore(prefix)
    for call in (status.assert_consumed, status.assert_existing_objects_matched):
        with pytest.raises(ValueError, match="no value for 1 object: net/extra"):
            call()
    net.other = openrnn.Variable([1.0])
    status = Checkpoint(net=net).restore(prefix)
    with pytest.raises(ValueError, match="no value for 1 variable and 1 object: net/"):
        status.assert_consumed()


def test_nothing_matches(tmp_path):
    net = Net()
    net(X)
    prefix = Checkpoint(net=net).save(tmp_path / "ck")
    with pytest.raises(ValueError, match="it holds net/blocks/0/bias.*expected some of model"):
        Checkpoint(model=Net()).restore(prefix)
    other = Dense(2)
    other.build((None, 3))
    with pytest.raises(ValueError, match="expected some of net/kernel, net/bias"):
        Checkpoint(net=other).restore(prefix)


def test_a_value_that_does_not_fit_fails_every_build(tmp_path):
    x = np.ones((2, 5), "float32")
    dense, other = openrnn.layers.Dense(3), openrnn.layers.Dense(4)
    dense(x)
    Checkpoint(d=other).restore(Checkpoint(d=dense).save(tmp_path / "model"))
    for _ in range(2):  # it never runs with other values in silence
        with pytest.raises(ValueError, match="d/kernel is float32"):
            other(x)
        assert not other.built


def test_restore_of_none_does_nothing(tmp_path):
    net = Net()
    checkpoint = Checkpoint(net=net)
    status = checkpoint.restore(openrnn.train.latest_checkpoint(tmp_path))
    assert status.restored == [] and checkpoint.save_counter == 0
    for call in (status.assert_consumed, status.assert_existing_objects_matched):
        with pytest.raises(ValueError, match="no checkpoint"):
            call()


def test_freezing():
    net = Net()
    net(X)
    everything = len(net.weights)
    net.blocks[0].trainable = False
    frozen = [net.blocks[0].kernel, net.blocks[0].bias]
    assert len(net.trainable_weights) == everything - 2
    assert net.non_trainable_weights == frozen
    assert not any(v is f for v in openrnn.trainable_variables() for f in frozen)
    before = [v.numpy().copy() for v in frozen]
    head = net.heads["one"].kernel.numpy().copy()
    openrnn.train.GradientDescentOptimizer(0.1).minimize(lambda: openrnn.reduce_sum(net(X)))
    for variable, value in zip(frozen, before, strict=True):
        np.testing.assert_array_equal(variable, value)
    assert (net.heads["one"].kernel.numpy() != head).any()
    net.trainable = False
    assert net.trainable_weights == [] == openrnn.trainable_variables()
    assert not net.heads["one"].trainable
    net.late = Dense(2)
    assert not net.late.trainable
    net.heads["one"].trainable = True
    net(X)
    assert net.heads["one"].trainable and len(openrnn.trainable_variables()) == 2
    net.trainable = True
    assert len(net.trainable_weights) == everything


def test_models_see_what_is_frozen():
    x = openrnn.Input(batch_shape=(None, None, 3))
    lstm, dense = openrnn.cudnn_rnn.CudnnLSTM(1, 4), Dense(2)
    model = openrnn.Model(x, dense(lstm(x)[0]))
    assert len(model.trainable_weights) == 3
    lstm.trainable = False
    assert model.trainable_weights == openrnn.trainable_variables() == [dense.kernel, dense.bias]
    model.trainable = False
    assert model.trainable_weights == [] and not dense.trainable
    assert len(model.weights) == 3


def test_a_layer_built_frozen_trains_after():
    dense = Dense(2, trainable=False)
    dense.build((None, 3))
    assert openrnn.trainable_variables() == []
    dense.trainable = True
    assert openrnn.trainable_variables() == dense.trainable_weights == [dense.kernel, dense.bias]


def test_circles_and_shared_parts():
    net = Net()
    net.blocks[0].parent = net
    net.again = net.blocks
    net.itself = [net.blocks]
    net.itself.append(net.itself)
    net(X)
    assert len(net.weights) == 8
    net.trainable = False
    assert net.weights and not net.trainable_weights


def test_a_dictionary_needs_words_as_keys():
    net = Net()
    with pytest.raises(TypeError, match="'table' has the key 1"):
        net.table = {1: Dense(2)}
    net.sizes = {1: 2}


def test_attributes_of_the_package_s_classes_count_too():
    class Gated(openrnn.cudnn_rnn.CudnnGRU):
        def __init__(self, *args):
            super().__init__(*args)
            self.gate = Dense(1)

    gated = Gated(1, 4)
    gated(np.ones((2, 1, 3), "float32"))
    gated.gate(X)
    assert gated.weights == [gated.kernel, gated.gate.kernel, gated.gate.bias]


def test_what_the_file_lacks_keeps_nothing_else_from_its_values(tmp_path):
    saved = openrnn.Variable(np.array([1.0, 2.0, 3.0]), name="saved")
    prefix = Checkpoint(a=saved).save(tmp_path / "c")
    a, b = (openrnn.Variable(np.zeros(3), name=name) for name in "ab")
    status = Checkpoint(a=a, b=b).restore(prefix)
    np.testing.assert_array_equal(a.numpy(), [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(b.numpy(), np.zeros(3))
    with pytest.raises(openrnn.errors.ArgumentError, match="no value for 1 variable"):
        status.assert_existing_objects_matched()
