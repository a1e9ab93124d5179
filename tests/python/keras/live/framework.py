"""Gradients under each backend of Keras, and what the tests have in common."""

import keras
import numpy as np
import pytest
from openrnn.keras import _loop

BACKEND = keras.backend.backend()
HAS_GRADIENTS = BACKEND != "numpy"
# Keras's products of float64 are float32 under any other backend (its result_type); ours are not.
EXACT = BACKEND == "tensorflow"


def numpy_of(tensor):
    return np.asarray(keras.ops.convert_to_numpy(tensor))


def tensor_of(array):
    return None if array is None else keras.ops.convert_to_tensor(array)


def as_list(outputs):
    return list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]


def weighted(outputs, scales):
    total = 0.0
    for output, scale in zip(outputs, scales, strict=True):
        total = total + keras.ops.sum(output * keras.ops.cast(tensor_of(scale), output.dtype))
    return total


def _torch(layer, inputs, scales, kwargs):
    leaves = [tensor_of(each).clone().requires_grad_() for each in inputs]
    layer.zero_grad()
    weighted(call(layer, leaves, kwargs), scales).backward()
    return [each.grad for each in (*leaves, *(v.value for v in layer.trainable_variables))]


def _tensorflow(layer, inputs, scales, kwargs):
    import tensorflow as tf

    leaves = [tensor_of(each) for each in inputs]
    with tf.GradientTape() as tape:
        tape.watch(leaves)
        loss = weighted(call(layer, leaves, kwargs), scales)
    return tape.gradient(loss, [*leaves, *(v.value for v in layer.trainable_variables)])


def _jax(layer, inputs, scales, kwargs):
    import jax

    def loss(leaves, weights):
        others = [v.value for v in layer.non_trainable_variables]
        x, *states = leaves
        given = {**kwargs, "initial_state": states} if states else kwargs
        outputs, _ = layer.stateless_call(weights, others, x, **given)
        return weighted(as_list(outputs), scales)

    found = jax.grad(loss, argnums=(0, 1))(
        [tensor_of(each) for each in inputs], [v.value for v in layer.trainable_variables]
    )
    return [*found[0], *found[1]]


def call(layer, inputs, kwargs):
    """The outputs of a layer called with x and perhaps initial states."""
    x, *states = inputs
    return as_list(layer(x, **({**kwargs, "initial_state": states} if states else kwargs)))


def gradients(layer, inputs, scales, **kwargs):
    """Of the sum of scaled outputs, with respect to x, initial states and trainable weights."""
    run = {"torch": _torch, "tensorflow": _tensorflow, "jax": _jax}[BACKEND]
    return [numpy_of(each) for each in run(layer, inputs, scales, kwargs)]


def count_calls(monkeypatch):
    """A list that grows by each call that the engine computes, or that is put into a program."""
    calls, backend = [], _loop.engine_backend()
    own = backend.run
    monkeypatch.setattr(backend, "run", lambda *args: calls.append(args[0]) or own(*args))
    return calls


def error_of(function, *args):
    """Class and text of the error of a call."""
    with pytest.raises(Exception) as raised:  # noqa: PT011
        function(*args)
    return type(raised.value), str(raised.value)


def generic(layer, cell, dtype):
    """Keras's loop over a cell, with the options and the weights of a built layer."""
    judge = keras.layers.RNN(
        cell, return_sequences=layer.return_sequences, return_state=layer.return_state,
        go_backwards=layer.go_backwards, zero_output_for_mask=layer.zero_output_for_mask, dtype=dtype,
        unroll=layer.unroll,
    )
    judge.build((None, None, layer.cell.kernel.shape[0]))
    judge.set_weights(layer.get_weights())
    return judge
