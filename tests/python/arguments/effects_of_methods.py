"""The same of constructors that have no configuration, and of methods: 'class.method' or 'class'."""

import numpy as np
import openrnn
from effects_of_functions import A, B, ELSEWHERE, I, T, U, X, flat, of_device, refused, tape
from openrnn import cudnn_rnn, initializers, layers, train
from openrnn.cudnn_rnn import ops

ONES = initializers.ones()
LENGTHS = [2, 0, 4]
FLAGS = np.random.default_rng(3).random((T, B)) < 0.6
RESETS = np.random.default_rng(4).random((T, B)) < 0.4


def built(kind=cudnn_rnn.CudnnLSTM, num_layers=1, **kw):
    layer = kind(num_layers, U, seed=3, **kw)
    layer.build((None, None, I))
    layer.kernel.assign(np.random.default_rng(2).uniform(-0.6, 0.7, layer.kernel.shape))
    return layer


def state_of(layer, seed=6):
    random = np.random.default_rng(seed)
    return tuple(random.normal(size=shape).astype("float32") for shape in layer.state_shape(B))


def rows_by_hand(layer, step):
    """Outputs [T, B, U] of one row at a time, one step at a time; step(t, row, state, y) says what
    the row's state before the step is, and whether the step is run."""
    outputs = np.zeros((T, B, U), "float32")
    for row in range(B):
        state, last = None, np.zeros(U, "float32")
        for t in range(T):
            state, run, kept = step(t, row, state)
            if run:
                y, state = layer(X[t : t + 1, row : row + 1], state, training=False)
                last = np.asarray(y)[0, 0]
            outputs[t, row] = last if run or kept else 0.0
    return outputs


def called(by_call=False, **kw):
    layer = built()
    return (layer.call if by_call else layer)(X, **{"training": False, **kw})


def masked(zero, **how):
    return called(mask=FLAGS, zero_output_for_mask=zero, **how)[0], rows_by_hand(
        built(), lambda t, row, state: (state, FLAGS[t, row], not zero)
    )


def reset(initial, **how):
    layer = built()
    start = state_of(layer)
    first = lambda row: tuple(part[:, row : row + 1] for part in start)  # noqa: E731

    def step(t, row, state):
        state = first(row) if t == 0 else state
        if RESETS[t, row]:
            state = first(row) if initial else None
        return state, True, False

    return called(
        initial_state=start, reset=RESETS, reset_to_initial=initial, **how
    )[0], rows_by_hand(layer, step)


def saved_gradient(save, **how):
    layer = built()
    call = layer.call if how.get("by_call") else layer
    gradients = []
    for kw in ({"training": False, "save": save}, {"training": True}):
        with openrnn.GradientTape() as recorded:
            loss = openrnn.reduce_sum(call(X, **kw)[0])
        gradients.append(recorded.gradient(loss, layer.kernel).numpy())
    return tuple(gradients)


def dropped(**how):
    layer = built(num_layers=2, dropout=0.5)
    call = layer.call if how.get("by_call") else layer
    same = [np.array_equal(call(X, training=on)[0], call(X, training=on)[0]) for on in (True, False)]
    return same, [False, True]


def transposed(**how):
    layer = built()
    start = state_of(layer)
    swapped = tuple(part.swapaxes(0, 1).copy() for part in start)
    y, state = called(initial_state=start)
    given = {"inputs": X.swapaxes(0, 1), "initial_state": swapped, "training": False}
    other = (layer.call if how.get("by_call") else layer)(**given, time_major=False)
    return [np.swapaxes(np.asarray(one), 0, 1) for one in (other[0], *other[1])], [y, *state]


def lengths(**how):
    y, state = called(sequence_lengths=LENGTHS, **how)
    layer = built()
    wanted = rows_by_hand(layer, lambda t, row, state: (state, t < LENGTHS[row], False))
    return [y, np.asarray(state[0])[0, 2]], [wanted, wanted[-1, 2]]


def every(**how):
    layer = built(num_layers=2)
    y, _, found = (layer.call if how.get("by_call") else layer)(X, training=False, return_all=True)
    return [found.outputs[1], [one.shape for one in found.cells]], [y, [(T, B, U)] * 2]


def initial(**how):
    layer, start = built(), state_of(built())
    call = layer.call if how.get("by_call") else layer
    whole, _ = layer(X, start, training=False)
    _, middle = call(X[:1], initial_state=start, training=False)
    return call(X[1:], initial_state=middle, training=False)[0], whole.numpy()[1:]


def scoped():
    layer = cudnn_rnn.CudnnLSTM(1, U, name="named")
    layer(X, scope="here")
    return layer.kernel.name.split("/")[0], "here"


OF_CALL = {
    "initial_state": initial, "training": dropped, "sequence_lengths": lengths,
    "time_major": transposed, "save": lambda **how: saved_gradient(True, **how),
    "return_all": every, "mask": lambda **how: masked(True, **how),
    "zero_output_for_mask": lambda **how: masked(False, **how),
    "reset": lambda **how: reset(False, **how), "reset_to_initial": lambda **how: reset(True, **how),
}  # fmt: skip


def op_called(kind, **kw):
    """(outputs of an op-level model, those of the layer of the same parameters)."""
    model = getattr(ops, kind)(1, U, I)
    layer = built(getattr(cudnn_rnn, kind))
    start = state_of(layer)
    x, given = (X, start)
    if kw.get("time_major") is False:
        x, given = X.swapaxes(0, 1), tuple(part.swapaxes(0, 1) for part in start)
    found = model(x, *given, layer.kernel, **kw)
    options = {"training": kw.pop("is_training", True), **kw}
    y, state = layer(x, given, **options)
    return flat([found]), flat([(y, *state)])


def op_trained(kind):
    model = getattr(ops, kind)(2, U, I, dropout=0.5)
    states = [np.zeros((2, B, U), "float32")] * (2 if kind == "CudnnLSTM" else 1)
    params = np.random.default_rng(1).uniform(-1, 1, model.params_size()).astype("float32")
    call = lambda on: model(X, *states, params, is_training=on)[0]  # noqa: E731
    return [np.array_equal(call(on), call(on)) for on in (True, False)], [False, True]


def op_saved(kind):
    model = getattr(ops, kind)(1, U, I)
    states = [np.zeros((1, B, U), "float32")] * (2 if kind == "CudnnLSTM" else 1)
    params = openrnn.Variable(np.full(model.params_size(), 0.25, "float32"))
    gradients = []
    for kw in ({"is_training": False, "save": "inputs"}, {}):
        with openrnn.GradientTape() as recorded:
            loss = openrnn.reduce_sum(model(X, *states, params, **kw)[0])
        gradients.append(recorded.gradient(loss, params).numpy())
    return tuple(gradients)


def op_rows(kind):
    return {
        "is_training": lambda: op_trained(kind),
        "sequence_lengths": lambda: op_called(kind, sequence_lengths=LENGTHS),
        "time_major": lambda: op_called(kind, time_major=False, is_training=False),
        "save": lambda: op_saved(kind),
    }


class Own(layers.Layer):
    """Nothing but what the base class does."""

    def call(self, inputs):
        return inputs


def weight(method, **kw):
    return getattr(Own(**kw.pop("layer", {})), method)("w", (3, 2), **kw)


def weight_losses(method):
    layer = Own()
    getattr(layer, method)("w", (3, 2), initializer=ONES, regularizer=openrnn.regularizers.l2(0.5))
    return [float(one) for one in layer.losses], [1.5]


def weight_constraint(method):
    made = weight(method, initializer=ONES, constraint=lambda value: value * 2.0)
    train.GradientDescentOptimizer(0.25).minimize(lambda: openrnn.reduce_sum(made))
    return made, np.full((3, 2), 1.5)


def weight_rows(method):
    return {
        "dtype": lambda: (weight(method, dtype="float64").dtype, "float64"),
        "initializer": lambda: (weight(method, initializer=ONES), np.ones((3, 2))),
        "regularizer": lambda: weight_losses(method),
        "trainable": lambda: (weight(method, trainable=False).trainable, False),
        "constraint": lambda: weight_constraint(method),
        "use_resource": lambda: (weight(method, use_resource=False).shape, (3, 2)),
        "partitioner": lambda: refused("partitioner is a int", weight, method, partitioner=3),
    }


def for_inputs(what):
    layer, x = Own(), openrnn.Input(batch_shape=(None, 2))
    given = openrnn.constant(1.0) if what == "losses" else (lambda: None)
    add = layer.add_loss if what == "losses" else layer.add_update
    read = layer.get_losses_for if what == "losses" else layer.get_updates_for
    add(given, inputs=layer(x))
    return [len(read(x)), len(read(None))], [1, 0]


def reused():
    with openrnn.variable_scope("s"):
        first = layers.Layer(name="same").add_weight("w", (2,))
    with openrnn.variable_scope("s"):
        second = layers.Layer(name="same", _reuse=True).add_weight("w", (2,))
    return second.name, first.name


def reused_scope():
    held = openrnn.get_variable("w", (2,), initializer=ONES)
    with openrnn.variable_scope("", reuse=True):
        return openrnn.get_variable(held.name, (2,)), np.ones(2)


def model_of(layer=None, **kw):
    x = openrnn.Input(batch_shape=(None, 4))
    return openrnn.Model(x, (layer or layers.Dense(2))(x), **kw)


def trained_model(by_call=False):
    model = model_of(layers.Dropout(0.5))
    ones = np.ones((50, 4), "float32")
    found = (model.call if by_call else model)(ones, training=True).numpy()
    return [set(found.ravel()), set((model.call if by_call else model)(ones).numpy().ravel())], [
        {0.0, 2.0}, {1.0}
    ]  # fmt: skip


def get_layer(**kw):
    x = openrnn.Input(batch_shape=(None, 4))
    model = openrnn.Model(x, layers.Dense(2, name="b")(layers.Dense(3, name="a")(x)))
    return model.get_layer(**kw).name


def output_gradients():
    made, x, y = tape()
    return made.gradient(y, x, output_gradients=openrnn.constant([3.0, 5.0])), [6.0, 20.0]


def by_rows(what):
    w = openrnn.Variable([1.0, -2.0])
    data = np.arange(6, dtype="float32").reshape(3, 2)
    with openrnn.GradientTape() as made:
        losses = openrnn.reshape(openrnn.matmul(data, openrnn.reshape(w, (2, 1))), (1, 3))
    found = getattr(made, what)(losses, w, axis=1)
    return found, data if what == "per_sample_gradients" else np.linalg.norm(data, axis=1)


def packed(**kw):
    return openrnn.PackedModel.from_layer(built(), **kw)


def session_run(**kw):
    layer = built()
    y, state = openrnn.InferenceSession(packed()).run(kw.pop("x", X), **kw)
    options = {"training": False, **kw}
    inputs = X.swapaxes(0, 1) if kw.get("time_major") is False else X
    wanted, wanted_state = layer(inputs, **options)
    return [y, *state], [wanted, *wanted_state]


def batch_major_run():
    return session_run(x=X.swapaxes(0, 1), time_major=False)


def pool_of(**kw):
    return openrnn.StreamPool(packed(), **{"streams": B, "time": T, **kw})


def stepped(**kw):
    pool, layer = pool_of(), built()
    start = state_of(layer)
    ids = [pool.join(tuple(part[:, row] for part in start)) for row in range(B)]
    x = X.swapaxes(0, 1) if kw.get("time_major") is False else X
    found = pool.step(ids, x, **kw)
    wanted = layer(X, start, training=False, sequence_lengths=kw.get("sequence_lengths"))[0].numpy()
    return found, wanted.swapaxes(0, 1) if kw.get("time_major") is False else wanted


def joined(by_reset=False):
    pool, layer = pool_of(), built()
    start = tuple(part[:, 1] for part in state_of(layer))
    if by_reset:
        stream = pool.join()
        pool.reset(stream, initial_state=start)
    else:
        stream = pool.join(initial_state=start)
    return list(pool.read(stream)), list(start)


def limit(what, wanted):
    """What a pool of one less refuses."""
    pool = pool_of(**{what: {"streams": 2, "batch": 2, "time": T - 1}[what]})
    if what == "streams":
        pool.join(), pool.join()
        return refused(wanted, pool.join)
    ids = [pool.join() for _ in range(B)]
    return refused(wanted, pool.step, ids, X)


def converter(kind, **kw):
    size = kw.pop("input_size", I)
    options = {key: value for key, value in kw.items()}
    model = getattr(ops, {"LSTM": "CudnnLSTM", "GRU": "CudnnGRU", "Tanh": "CudnnRNNTanh",
                          "Relu": "CudnnRNNRelu"}[kind])(2, U, size, **options)  # fmt: skip
    made = getattr(cudnn_rnn, "CudnnParamsFormatConverter" + kind)(2, U, size, **kw)
    params = np.arange(model.params_size(), dtype="float32")
    found = made.opaque_to_tf_canonical(params)
    back = made.tf_canonical_to_opaque([*found[0], *found[1]], *found[2:])
    # Two biases are stored as their sum: halves of it come back.
    return [made.opaque_to_tf_canonical(back)[0][-1], back.shape], [found[0][-1], params.shape]


def converter_rows(kind):
    rows = {
        "input_mode": lambda: converter(kind, input_size=U, input_mode="skip_input"),
        "direction": lambda: converter(kind, direction="bidirectional"),
    }
    if kind == "LSTM":
        rows["num_proj"] = lambda: converter(kind, num_proj=3)
        rows["tf_canonical_to_opaque.weights_proj"] = rows["num_proj"]
    return rows


METHODS = {
    "openrnn.Tensor": {
        "dtype": lambda: (openrnn.Tensor(A, dtype="float64").dtype, "float64"),
        "device": lambda: of_device(openrnn.Tensor, A),
    },
    "openrnn.Variable": {
        "trainable": lambda: (
            [openrnn.Variable(A, trainable=False).trainable, openrnn.trainable_variables()], [False, []]
        ),
        "name": lambda: (openrnn.Variable(A, name="given").name, "given"),
        "dtype": lambda: (openrnn.Variable(A, dtype="float64").dtype, "float64"),
        "device": lambda: of_device(openrnn.Variable, A),
    },
    "openrnn.variable_scope": {"reuse": reused_scope},
    "openrnn.GradientTape": {"persistent": lambda: (tape(persistent=False)[0].gradient(*tape()[:0:-1])
                                                    is None, True)},
    "openrnn.GradientTape.gradient": {"output_gradients": output_gradients},
    "openrnn.GradientTape.per_sample_norms": {"axis": lambda: by_rows("per_sample_norms")},
    "openrnn.GradientTape.per_sample_gradients": {"axis": lambda: by_rows("per_sample_gradients")},
    "openrnn.Model": {"name": lambda: (model_of(name="given").name, "given")},
    "openrnn.Model.__call__": {"training": trained_model},
    "openrnn.Model.call": {"training": lambda: trained_model(True)},
    "openrnn.Model.get_layer": {
        "name": lambda: (get_layer(name="b"), "b"), "index": lambda: (get_layer(index=-2), "a"),
    },
    "openrnn.PackedModel.from_layer": {
        "math": lambda: (packed(math="bf16x3").spec["math"], "bf16x3"),
        "weights_dtype": lambda: (packed(weights_dtype="int8").spec["weights_dtype"], "int8"),
        "max_threads": lambda: refused("max_threads is -1", packed, max_threads=-1),
    },
    "openrnn.InferenceSession": {
        "max_threads": lambda: refused(
            "max_threads is -1", openrnn.InferenceSession, packed(), max_threads=-1),
    },
    "openrnn.InferenceSession.run": {
        "initial_state": lambda: session_run(initial_state=state_of(built())),
        "sequence_lengths": lambda: session_run(sequence_lengths=LENGTHS),
        "time_major": batch_major_run,
    },
    "openrnn.StreamPool": {
        "streams": lambda: limit("streams", "2"), "batch": lambda: limit("batch", "2"),
        "time": lambda: limit("time", str(T - 1)),
        "max_threads": lambda: refused("time 4 and -1 threads", pool_of, max_threads=-1),
    },
    "openrnn.StreamPool.join": {"initial_state": joined},
    "openrnn.StreamPool.reset": {"initial_state": lambda: joined(True)},
    "openrnn.StreamPool.step": {
        "sequence_lengths": lambda: stepped(sequence_lengths=LENGTHS),
        "time_major": lambda: stepped(time_major=False),
    },
    "openrnn.cudnn_rnn.CudnnLSTM.__call__": {**OF_CALL, "scope": scoped},
    "openrnn.cudnn_rnn.CudnnLSTM.call": {
        name: (lambda row=row: row(by_call=True)) for name, row in OF_CALL.items()
    },
    "openrnn.cudnn_rnn.CudnnLSTM.with_arithmetic": {
        "math": lambda: (built().with_arithmetic(math="bf16").math, "bf16"),
        "weights_dtype": lambda: (
            built().with_arithmetic(weights_dtype="int8").weights_dtype, "int8"),
    },
    **{f"openrnn.cudnn_rnn.CudnnParamsFormatConverter{kind}": converter_rows(kind)
       for kind in ("LSTM", "GRU", "Tanh", "Relu")},
    **{f"openrnn.cudnn_rnn.ops.{kind}.__call__": op_rows(kind)
       for kind in ("CudnnLSTM", "CudnnGRU", "CudnnRNNTanh", "CudnnRNNRelu")},
    "openrnn.layers.Layer": {
        "trainable": lambda: (layers.Layer(trainable=False).trainable, False),
        "name": lambda: (layers.Layer(name="given").name, "given"),
        "dtype": lambda: (layers.Layer(dtype="float64").dtype, "float64"),
        "device": lambda: of_device(layers.Layer),
        "_reuse": reused,
    },
    "openrnn.layers.Layer.add_weight": weight_rows("add_weight"),
    "openrnn.layers.Layer.add_variable": weight_rows("add_variable"),
    "openrnn.layers.Layer.add_loss": {"inputs": lambda: for_inputs("losses")},
    "openrnn.layers.Layer.add_update": {"inputs": lambda: for_inputs("updates")},
    "openrnn.layers.Layer.compute_mask": {
        "mask": lambda: refused("a mask of type 'int'", Own().compute_mask, X, mask=3),
    },
    "openrnn.layers.Dropout.__call__": {
        "training": lambda: (set(layers.Dropout(0.5)(np.ones(99, "float32"), training=True).numpy()),
                             {0.0, 2.0}),
    },
    "openrnn.layers.Dropout.call": {
        "training": lambda: (
            set(layers.Dropout(0.5).call(np.ones(99, "float32"), training=True).numpy()), {0.0, 2.0}),
    },
    "openrnn.nn.rnn_cell.BasicRNNCell.__call__": {
        "scope": lambda: (scoped_cell(), "here"),
    },
}  # fmt: skip


def scoped_cell():
    cell = openrnn.nn.rnn_cell.BasicRNNCell(3)
    cell(A, cell.zero_state(2, "float32"), scope="here")
    return cell.weights[0].name.split("/")[0]
