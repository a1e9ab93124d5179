"""TensorFlow 1's own cells, which TensorFlow still has inside, over time by its own loops."""

import numpy as np
import tensorflow as tf
from tensorflow.python.keras.layers.legacy_rnn import rnn_cell_impl

from files.tf_rnn_cells import LayerNormBasicLSTMCell

v1 = tf.compat.v1
FUNCTIONS = {
    None: None, "relu": tf.nn.relu, "elu": tf.nn.elu, "softsign": tf.nn.softsign,
    "softplus": tf.nn.softplus, "linear": tf.identity, "tanh": tf.tanh,
    "leaky_relu(0.25)": lambda a: tf.nn.leaky_relu(a, 0.25),  # its alpha is a float32
}  # fmt: skip
NAMES = {"lstm": "cudnn_compatible_lstm_cell", "gru": "gru_cell"}


def cell_name(spec):
    form = (spec.layer_norm, spec.layer_norm_cell)
    if form == ("gates", "carried") and spec.layer_norm_epsilon == 1e-12:
        return "layer_norm_basic_lstm_cell"
    if spec.layer_norm:
        cell = f"{spec.layer_norm_cell}_" if spec.layer_norm_cell else ""
        return f"layer_norm_{cell}lstm_cell"
    return NAMES.get(spec.mode, "basic_rnn_cell")


def make_cell(spec, basic=False):
    """One layer's cell. TensorFlow's LSTM has one activation where ours has two, equal here."""
    how = {"activation": FUNCTIONS[spec.activation], "name": cell_name(spec)}
    if spec.mode == "gru":
        return rnn_cell_impl.GRUCell(spec.num_units, **how)
    if spec.mode != "lstm":
        how["activation"] = how["activation"] or {"rnn_relu": tf.nn.relu}.get(spec.mode)
        return rnn_cell_impl.BasicRNNCell(spec.num_units, **how)
    assert spec.activation == spec.output_activation
    how["forget_bias"] = spec.forget_bias
    if spec.layer_norm:
        return LayerNormBasicLSTMCell(spec.num_units, epsilon=spec.layer_norm_epsilon, **how)
    if basic:
        return rnn_cell_impl.BasicLSTMCell(spec.num_units, **how)
    one = lambda clip: clip and clip[1]
    return rnn_cell_impl.LSTMCell(
        spec.num_units, spec.use_peepholes, one(spec.cell_clip), num_proj=spec.num_proj or None,
        proj_clip=one(spec.proj_clip), **how,
    )  # fmt: skip


def tensors(spec, parts):
    """{name without the cell's scope: tensor} of one pseudo-layer, from `cell_spec.split`."""
    matrices, biases, peepholes, gains, cell = parts
    gates = spec.num_gates
    both = spec.biases_per_gate == 2
    bias = lambda k: biases[k] + biases[gates + k] if both else biases[k]
    joined = lambda k: np.vstack([matrices[k].T, matrices[gates + k].T])
    kernel = lambda order: np.hstack([joined(k) for k in order])
    groups = {"": (0, 2, 1, 3) if spec.mode == "lstm" else (0,)}
    if spec.mode == "gru":
        groups = {"gates/": (0, 1), "candidate/": (2,)}
    found = {}
    if spec.layer_norm == "gates":
        for k, scope in enumerate(["input", "forget", "transform", "output"]):
            found[scope + "/gamma"] = gains[k]
            if biases:
                found[scope + "/beta"] = bias(k)
    elif spec.layer_norm:
        order = (0, 2, 1, 3) if spec.mode == "lstm" else (0, 1, 2)
        for n, side in enumerate(["kernel_norm", "recurrent_norm"]):
            found[side + "/gamma"] = np.concatenate([gains[n * gates + k] for k in order])
    if cell:
        state = "state" if spec.layer_norm == "gates" else "state_norm"
        found[state + "/gamma"], found[state + "/beta"] = cell
    for prefix, order in groups.items():
        found[prefix + "kernel"] = kernel(order)
        if biases and spec.layer_norm != "gates":
            found[prefix + "bias"] = np.concatenate([bias(k) for k in order])
    if spec.num_proj:
        found["projection/kernel"] = matrices[-1].T
    found.update(zip(["w_i_diag", "w_f_diag", "w_o_diag"], peepholes))
    return found


def scopes(spec):
    """The scope of each pseudo-layer's cell."""
    if spec.num_dirs == 1:
        return [f"rnn/multi_rnn_cell/cell_{n}/{cell_name(spec)}" for n in range(spec.num_layers)]
    return [
        f"stack_bidirectional_rnn/cell_{n}/bidirectional_rnn/{side}/{cell_name(spec)}"
        for n in range(spec.num_layers)
        for side in ("fw", "bw")
    ]


def _state(spec, h, c):
    return rnn_cell_impl.LSTMStateTuple(c, h) if spec.mode == "lstm" else h


def network(spec, x, h0, c0, lengths, basic=False):
    """(y, [state of each pseudo-layer]) in the current graph, with the scopes above."""
    states = [_state(spec, h, c) for h, c in zip(tf.unstack(h0), tf.unstack(c0))]
    if spec.num_dirs == 1:
        stack = rnn_cell_impl.MultiRNNCell([make_cell(spec, basic) for _ in states])
        y, last = v1.nn.dynamic_rnn(stack, x, lengths, tuple(states), time_major=True)
        return y, list(last)
    every = []
    with v1.variable_scope("stack_bidirectional_rnn"):
        for layer in range(spec.num_layers):
            with v1.variable_scope(f"cell_{layer}"):
                sides, last = v1.nn.bidirectional_dynamic_rnn(
                    make_cell(spec, basic), make_cell(spec, basic), x, lengths,
                    states[2 * layer], states[2 * layer + 1], time_major=True,
                )  # fmt: skip
            x = tf.concat(sides, 2)
            every += last
    return x, every


def run(spec, problem, source, basic=False):
    """dict of y h (c), and dx dh0 (dc0) and each variable's gradient by name. `source`: a dict of
    variables, or the prefix of a checkpoint."""
    with v1.Graph().as_default(), v1.Session() as session:
        x, h0, c0 = (tf.constant(np.nan_to_num(a)) for a in (problem.x, problem.h0, problem.c0))
        y, last = network(spec, x, h0, c0, problem.lengths, basic)
        results = {"y": y, "h": tf.stack([s.h if spec.mode == "lstm" else s for s in last])}
        if spec.mode == "lstm":
            results["c"] = tf.stack([s.c for s in last])
        variables = {v.op.name: v for v in v1.global_variables()}
        upstream = [np.nan_to_num(a) for a in (problem.dy, problem.dh, problem.dc)][: len(results)]
        names = ["dx", "dh0", "dc0"][: len(results)] + list(variables)
        inputs = [x, h0, c0][: len(results)] + list(variables.values())
        # Before the session runs anything, which would fix the loops that gradients extend.
        slopes = tf.gradients(list(results.values()), inputs, upstream)
        saver = v1.train.Saver()
        if isinstance(source, dict):
            assert variables.keys() == source.keys()
            for name, value in source.items():
                variables[name].load(value, session)
        else:
            saver.restore(session, str(source))
        return session.run(results | dict(zip(names, slopes)))
