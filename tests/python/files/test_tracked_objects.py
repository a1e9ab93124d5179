"""Layers in attributes, lists and dicts: tf.Module of the same structure reads them, and the reverse."""

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

import openrnn

X = np.random.default_rng(5).normal(size=(2, 3)).astype("float32")


@pytest.fixture(autouse=True)
def empty_graph():
    openrnn.reset_default_graph()


class Net(openrnn.layers.Layer):
    def __init__(self):
        super().__init__()
        self.blocks = [openrnn.layers.Dense(4), openrnn.layers.Dense(4)]
        self.heads = {"one": {"deep": (openrnn.layers.Dense(1),)}}
        self.cell = openrnn.cudnn_rnn.CudnnCompatibleLSTMCell(5)

    def build(self, input_shape):
        self.scale = self.add_weight("inner_name", [3])
        self.count = openrnn.Variable(np.int64(7), trainable=False)

    def call(self, x):
        x = x + self.scale
        for block in self.blocks:
            x = block(x)
        return self.heads["one"]["deep"][0](self.cell(x, self.cell.zero_state(2, "float32"))[0])


class TfDense(tf.Module):
    def __init__(self, inputs, units):
        self.kernel = tf.Variable(tf.random.normal([inputs, units]))
        self.bias = tf.Variable(tf.random.normal([units]))

    def __call__(self, x):
        return x @ self.kernel + self.bias


class TfNet(tf.Module):
    def __init__(self):
        self.blocks = [TfDense(3, 4), TfDense(4, 4)]
        self.heads = {"one": {"deep": (TfDense(5, 1),)}}
        self.cell = TfDense(4 + 5, 20)
        self.scale = tf.Variable(tf.random.normal([3]))
        self.count = tf.Variable(np.int64(8))

    def __call__(self, x):
        x = x + self.scale
        for block in self.blocks:
            x = block(x)
        i, c, f, o = tf.split(self.cell(tf.concat([x, tf.zeros([2, 5])], 1)), 4, 1)
        h = tf.sigmoid(o) * tf.tanh(tf.sigmoid(i) * tf.tanh(c))
        return self.heads["one"]["deep"][0](h)


def test_tensorflow_reads_ours(tmp_path):
    net = Net()
    wanted = net(X).numpy()
    prefix = openrnn.train.Checkpoint(net=net).save(tmp_path / "ck")
    other = TfNet()
    status = tf.train.Checkpoint(net=other).restore(prefix)
    status.assert_consumed()
    assert int(other.count) == 7
    np.testing.assert_allclose(other(X), wanted, atol=1e-5)


@pytest.mark.parametrize("built", [True, False])
def test_ours_reads_tensorflow_s(tmp_path, built):
    other = TfNet()
    prefix = tf.train.Checkpoint(net=other).save(str(tmp_path / "ck"))
    net = Net()
    if built:
        net(X)
    status = openrnn.train.Checkpoint(net=net).restore(prefix)
    np.testing.assert_allclose(net(X), other(X), atol=1e-5)
    status.assert_consumed().assert_existing_objects_matched()
    assert int(net.count) == 8


def test_both_refuse_what_the_other_lacks(tmp_path):
    """What TensorFlow says of a file of ours, we say of one of TensorFlow's."""

    def fails(call):
        try:
            call()
        except (AssertionError, ValueError):
            return True
        return False

    net, other = Net(), TfNet()
    net(X)
    ours = openrnn.train.Checkpoint(net=net).save(tmp_path / "ours")
    theirs = tf.train.Checkpoint(net=other).save(str(tmp_path / "theirs"))
    net.more, other.more = openrnn.layers.Dense(2), TfDense(3, 2)
    net.more(X)
    for added in (True, False):  # more in the program, then more in the file
        if not added:
            ours = openrnn.train.Checkpoint(net=net).save(tmp_path / "ours")
            theirs = tf.train.Checkpoint(net=other).save(str(tmp_path / "theirs"))
            del net.more, other.more
        mine = openrnn.train.Checkpoint(net=net).restore(theirs)
        tensorflow = tf.train.Checkpoint(net=other).restore(ours)
        for name in ("assert_consumed", "assert_existing_objects_matched"):
            wanted = name == "assert_consumed" or added
            assert fails(getattr(mine, name)) == fails(getattr(tensorflow, name)) == wanted, name
