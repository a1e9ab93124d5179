"""cuDNN's LSTM and GRU as loops of another framework's operations, one layer in one direction, and a
second derivative of them: that of a penalty of gradients."""

import numpy as np
import openrnn
from openrnn import cudnn_rnn

T, B, I, U = 4, 2, 3, 2
LAYERS = {"lstm": cudnn_rnn.CudnnLSTM, "gru": cudnn_rnn.CudnnGRU}
GATES = {"lstm": 4, "gru": 3}


def data(mode):
    """x, the opaque parameters, and weights of the outputs and of the parameters' gradient."""
    random = np.random.default_rng(len(mode))
    draw = lambda *shape: random.uniform(-0.9, 1.0, shape)
    size = GATES[mode] * U * (I + U + 2)
    return draw(T, B, I), draw(size), draw(T, B, U), draw(size)


def run(mode, x, params, ops):
    """The outputs of all steps, stacked; `ops` has split(row, n), sigmoid, tanh, reshape and stack."""
    gates = GATES[mode]
    sizes = [gates * U * I, gates * U * U, gates * U, gates * U]
    ends = np.cumsum(sizes)
    w, r, b_w, b_r = (params[end - size : end] for size, end in zip(sizes, ends, strict=True))
    w, r = ops.reshape(w, (gates * U, I)), ops.reshape(r, (gates * U, U))
    h, c, outputs = 0.0 * x[0][:, :1] * ops.reshape(b_w, (1, -1))[:, :U], 0.0, []
    for t in range(T):
        left = ops.split(x[t] @ ops.transpose(w) + b_w, gates)
        right = ops.split(h @ ops.transpose(r) + b_r, gates)
        if mode == "lstm":
            i, f, g, o = (a + b for a, b in zip(left, right, strict=True))
            c = ops.sigmoid(f) * c + ops.sigmoid(i) * ops.tanh(g)
            h = ops.sigmoid(o) * ops.tanh(c)
        else:
            reset, z = ops.sigmoid(left[0] + right[0]), ops.sigmoid(left[1] + right[1])
            h = (1.0 - z) * ops.tanh(left[2] + reset * right[2]) + z * h
        outputs.append(h)
    return ops.stack(outputs)


def ours(mode):
    """The outputs, both gradients of a sum of squares, and both of a penalty of those."""
    x, params, weights, slopes = data(mode)
    openrnn.reset_default_graph()
    layer = LAYERS[mode](1, U, dtype="float64")
    layer.build((T, B, I))
    layer.kernel.assign(params)
    x = openrnn.constant(x)
    with openrnn.GradientTape() as outer:
        outer.watch(x)
        with openrnn.GradientTape() as inner:
            y, _ = layer(x)
            loss = openrnn.reduce_sum(openrnn.square(y) * weights)
        first = inner.gradient(loss, [x, layer.kernel])
        penalty = openrnn.reduce_sum(openrnn.square(first[0]))
        penalty = penalty + openrnn.reduce_sum(first[1] * slopes)
    second = outer.gradient(penalty, [x, layer.kernel])
    return [found.numpy() for found in (y, *first, *second)]


def assert_same(mode, theirs):
    for found, expected in zip(ours(mode), theirs, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)
