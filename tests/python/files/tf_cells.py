"""TensorFlow 1 graphs of the platform-independent cells, with the variables and scopes that its
documentation names, and its own Saver around them.

Today's TensorFlow has lost `tf.nn.rnn_cell` and `dynamic_rnn` to Keras, so the steps are written out
here in TensorFlow's operations."""

import tensorflow as tf

v1 = tf.compat.v1


def _dense(x, name, width, bias_at=0.0):
    """x @ NAME/kernel + NAME/bias of the current scope."""
    prefix = f"{name}/" if name else ""
    with v1.variable_scope(v1.get_variable_scope(), reuse=v1.AUTO_REUSE):
        kernel = v1.get_variable(f"{prefix}kernel", [x.shape[-1], width], x.dtype)
        start = v1.constant_initializer(bias_at)
        bias = v1.get_variable(f"{prefix}bias", [width], x.dtype, start)
    return tf.matmul(x, kernel) + bias


def _lstm(x, c, h, units):
    i, new, f, o = tf.split(_dense(tf.concat([x, h], 1), "", 4 * units), 4, axis=1)
    c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(new)
    return c, tf.sigmoid(o) * tf.tanh(c)


def _gru(x, h, units):
    gates = tf.sigmoid(_dense(tf.concat([x, h], 1), "gates", 2 * units, 1.0))
    reset, update = tf.split(gates, 2, axis=1)
    from_x = _dense(x, "candidate/input_projection", units)
    from_h = _dense(h, "candidate/hidden_projection", units)
    fresh = tf.tanh(from_x + reset * from_h)
    return (1 - update) * fresh + update * h


def _run_cell(spec, cell, x, h, c, lengths, backward):
    """Outputs [T, B, U] and the last states; a row ends, or begins backward, at its length."""
    outputs = [None] * x.shape[0]
    for t in reversed(range(x.shape[0])) if backward else range(x.shape[0]):
        valid = tf.constant(t < lengths)[:, None]
        with v1.variable_scope(cell):
            if spec.mode == "lstm":
                new_c, new_h = _lstm(x[t], c, h, spec.num_units)
            elif spec.mode == "gru":
                new_c, new_h = c, _gru(x[t], h, spec.num_units)
            else:
                act = tf.tanh if spec.mode == "rnn_tanh" else tf.nn.relu
                new_c, new_h = c, act(_dense(tf.concat([x[t], h], 1), "", spec.num_units))
        outputs[t] = tf.where(valid, new_h, tf.zeros_like(new_h))
        h, c = tf.where(valid, new_h, h), tf.where(valid, new_c, c)
    return tf.stack(outputs), h, c


def network(spec, problem, cell):
    """The graph of a network on a problem's data: dict of y, h, c."""
    x, states = tf.constant(problem.x), []
    for layer in range(spec.num_layers):
        sides = []
        for d in range(spec.num_dirs):
            p = layer * spec.num_dirs + d
            if spec.num_dirs == 2:
                side = ("fw", "bw")[d]
                scope = f"stack_bidirectional_rnn/cell_{layer}/bidirectional_rnn/{side}"
            else:
                scope = f"rnn/multi_rnn_cell/cell_{layer}"
            with v1.variable_scope(scope):
                h, c = tf.constant(problem.h0[p]), tf.constant(problem.c0[p])
                out, h, c = _run_cell(spec, cell, x, h, c, problem.lengths, d == 1)
            sides.append(out)
            states.append((h, c))
        x = tf.concat(sides, axis=2)
    found = {"y": x, "h": tf.stack([h for h, _ in states])}
    if spec.mode == "lstm":
        found["c"] = tf.stack([c for _, c in states])
    return found


def restore_and_run(spec, problem, cell, prefix, scope=""):
    """What the cells compute with the variables of a checkpoint, read by TensorFlow's Saver."""
    with v1.Graph().as_default(), v1.Session() as session:
        found = _in_scope(spec, problem, cell, scope)
        v1.train.Saver().restore(session, str(prefix))
        return session.run(found)


def draw_save_and_run(spec, problem, cell, prefix, rng, scope=""):
    """Random cells: saves them by TensorFlow's Saver and says what they compute."""
    with v1.Graph().as_default(), v1.Session() as session:
        found = _in_scope(spec, problem, cell, scope)
        for variable in v1.global_variables():
            value = rng.uniform(-0.5, 0.5, variable.shape.as_list())
            variable.load(value.astype(variable.dtype.as_numpy_dtype), session)
        v1.train.Saver().save(session, str(prefix), write_meta_graph=False)
        return session.run(found)


def _in_scope(spec, problem, cell, scope):
    if not scope:
        return network(spec, problem, cell)
    with v1.variable_scope(scope):
        return network(spec, problem, cell)
