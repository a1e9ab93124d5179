"""TensorFlow's own cells of version 1, its loops and its Saver, in graphs of one network each.

Under Keras 3 `tf.compat.v1.nn.rnn_cell` is empty; the classes are still in TensorFlow itself."""

import warnings

import numpy as np
import tensorflow as tf
from tensorflow.python.keras.layers.legacy_rnn import rnn_cell_impl as rnn_cell

v1 = tf.compat.v1


class LayerNormBasicLSTMCell(rnn_cell.RNNCell):
    """tf.contrib.rnn's, which TensorFlow 2 has no more: its equations in TensorFlow's operations."""

    def __init__(
        self, num_units, forget_bias=1.0, activation=None, layer_norm=True, norm_gain=1.0,
        norm_shift=0.0, epsilon=1e-12, name="layer_norm_basic_lstm_cell",
    ):  # fmt: skip
        super().__init__(name=name)
        self._units, self._forget_bias, self._epsilon = num_units, forget_bias, epsilon
        self._activation = {"relu": tf.nn.relu, None: tf.tanh}.get(activation, activation)
        self._normed, self._gain, self._shift = layer_norm, norm_gain, norm_shift

    state_size = property(lambda self: rnn_cell.LSTMStateTuple(self._units, self._units))
    output_size = property(lambda self: self._units)

    def _norm(self, a, scope):
        if not self._normed:
            return a
        with v1.variable_scope(scope):
            start = v1.constant_initializer
            gamma = v1.get_variable("gamma", [self._units], a.dtype, start(self._gain))
            beta = v1.get_variable("beta", [self._units], a.dtype, start(self._shift))
        mean, variance = tf.nn.moments(a, [1], keepdims=True)
        return tf.nn.batch_normalization(a, mean, variance, beta, gamma, self._epsilon)

    def call(self, inputs, state):
        c, h = state
        joined = tf.concat([inputs, h], 1)
        size = 4 * self._units
        sums = joined @ v1.get_variable("kernel", [joined.shape[-1], size], joined.dtype)
        if not self._normed:
            sums += v1.get_variable("bias", [size], joined.dtype, v1.zeros_initializer())
        i, j, f, o = tf.split(sums, 4, 1)
        i, j = self._norm(i, "input"), self._norm(j, "transform")
        f, o = self._norm(f, "forget"), self._norm(o, "output")
        c = c * tf.sigmoid(f + self._forget_bias) + tf.sigmoid(i) * self._activation(j)
        c = self._norm(c, "state")
        h = self._activation(c) * tf.sigmoid(o)
        return h, rnn_cell.LSTMStateTuple(c, h)


def make(name, *args, **options):
    """A cell of TensorFlow's, without its warning that it is old."""
    if name == "LayerNormBasicLSTMCell":
        return LayerNormBasicLSTMCell(*args, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return getattr(rnn_cell, name)(*args, **options)


def _flat(state):
    return [part for one in state for part in _flat(one)] if isinstance(state, tuple) else [state]


def graph_of(run, x, weight):
    """(outputs and states, gradients by name) of run(x) -> (list of outputs, state)."""
    inputs = tf.constant(x)
    outputs, state = run(inputs)
    found = [*outputs, *_flat(state)]
    loss = tf.add_n([tf.reduce_sum(one * weight(one.shape)) for one in found])
    variables = v1.global_variables()
    gradients = tf.gradients(loss, [inputs, *variables])
    names = ["x", *(variable.op.name for variable in variables)]
    return found, dict(zip(names, gradients, strict=True))


def draw_and_save(run, x, weight, prefix, seed):
    """Random variables: saved, and what they give; and the values that variables start from."""
    rng = np.random.default_rng(seed)
    with v1.Graph().as_default(), v1.Session() as session:
        wanted = graph_of(run, x, weight)
        session.run(v1.global_variables_initializer())
        starts = {v.op.name: session.run(v) for v in v1.global_variables()}
        for variable in v1.global_variables():
            value = rng.uniform(-0.9, 0.9, variable.shape.as_list())
            variable.load(value.astype(variable.dtype.as_numpy_dtype), session)
        v1.train.Saver().save(session, str(prefix), write_meta_graph=False)
        return session.run(wanted), starts


def restore_and_run(run, x, weight, prefix):
    """What the variables of a checkpoint give."""
    with v1.Graph().as_default(), v1.Session() as session:
        wanted = graph_of(run, x, weight)
        v1.train.Saver().restore(session, str(prefix))
        return session.run(wanted)
