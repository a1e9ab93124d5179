"""TensorFlow's own cells of version 1, its loops and its Saver, in graphs of one network each.

Under Keras 3 `tf.compat.v1.nn.rnn_cell` is empty; the classes are still in TensorFlow itself."""

import warnings

import numpy as np
import tensorflow as tf
from tensorflow.python.keras.layers.legacy_rnn import rnn_cell_impl as rnn_cell

v1 = tf.compat.v1


def make(name, *args, **options):
    """A cell of TensorFlow's, without its warning that it is old."""
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
