"""What each argument with a default changes, at another value: functions of the package.

FUNCTIONS[name][argument]() is a pair, what is found and what is wanted; `refused` stands for an
error whose text holds a part.
"""

import numpy as np
import openrnn
from openrnn import nn
from openrnn.cudnn_rnn import ops
from openrnn.nn import rnn_cell

T, B, I, U = 4, 3, 2, 5
A = np.arange(6, dtype="float32").reshape(2, 3) - 2.5
X = np.random.default_rng(5).normal(size=(T, B, I)).astype("float32")
ELSEWHERE = "gpu:63"  # no machine has it


def name_of(symbolic):
    """As a pickle of a model keeps it."""
    node = openrnn._core.symbolic_state(symbolic)[0]
    return node.__reduce__()[1][0]


class Refused(str):
    """The part of an error's text."""


def refused(part, call, *args, **kw):
    """(what the call says, what it should say)."""
    try:
        result = call(*args, **kw)
    except (ValueError, TypeError, RuntimeError, NotImplementedError) as error:
        return str(error), Refused(part)
    return result, Refused(part)


def of_device(call, *args, **kw):
    return refused(ELSEWHERE, call, *args, device=ELSEWHERE, **kw)


def variable(**kw):
    return openrnn.get_variable("v", (3, 2), **kw)


def doubled(value):
    return value * 2.0


def regularized():
    made = variable(
        initializer=openrnn.initializers.ones(), regularizer=openrnn.regularizers.l2(0.5)
    )
    losses = openrnn.get_collection(openrnn.GraphKeys.REGULARIZATION_LOSSES)
    assert made.trainable
    return [float(loss() if callable(loss) else loss) for loss in losses], [1.5]


def constrained():
    made = variable(initializer=openrnn.initializers.ones(), constraint=doubled)
    openrnn.train.GradientDescentOptimizer(0.25).minimize(lambda: openrnn.reduce_sum(made))
    return made, np.full((3, 2), 1.5)


def owns_memory(copy):
    given = np.zeros(3, "float32")
    made = openrnn.from_dlpack(given, copy=copy)
    given[0] = 1.0
    return float(made.numpy()[0])


def explained(**kw):
    return openrnn.explain(num_units=5, input_size=2, num_layers=2, **kw).saved_bytes


def params_of(mode="lstm", **kw):
    return np.zeros(ops.cudnn_rnn_opaque_params_size(mode, 2, U, I, **kw), "float32")


SIZES = {"num_layers": 2, "num_units": U, "input_size": I}


def to_canonical(input_size=I, **kw):
    size = ops.cudnn_rnn_opaque_params_size("lstm", 2, U, input_size, **kw)
    params = np.arange(size, dtype="float32")
    weights, biases = ops.cudnn_rnn_opaque_params_to_canonical("lstm", 2, U, input_size, params, **kw)
    model = ops.CudnnLSTM(2, U, input_size, **kw)
    wanted = model.params_to_canonical(params)
    return params, (weights, biases), wanted


def flat(parts):
    return [np.asarray(one) for group in parts for one in group]


def canonical(**kw):
    _, found, wanted = to_canonical(**kw)
    return flat(found), flat(wanted)


def opaque(input_size=I, **kw):
    params, parts, _ = to_canonical(input_size, **kw)
    return ops.cudnn_rnn_canonical_to_opaque_params("lstm", 2, U, input_size, *parts, **kw), params


def not_used(**kw):
    """An argument that changes nothing, as its docstring says."""
    return (
        ops.cudnn_rnn_opaque_params_size("lstm", 2, U, I, **kw),
        ops.cudnn_rnn_opaque_params_size("lstm", 2, U, I),
    )


def size_of(**kw):
    return ops.cudnn_rnn_opaque_params_size("lstm", **{**SIZES, **kw})


OP_NAMES = ("cudnn_lstm", "cudnn_gru", "cudnn_rnn_tanh", "cudnn_rnn_relu")


def op(call, input_size=I, width=U, **kw):
    """(function's outputs, the model's) with those options."""
    model = {"cudnn_lstm": ops.CudnnLSTM, "cudnn_gru": ops.CudnnGRU,
             "cudnn_rnn_tanh": ops.CudnnRNNTanh, "cudnn_rnn_relu": ops.CudnnRNNRelu}[call]  # fmt: skip
    of_call = {key: kw.pop(key) for key in list(kw)
               if key in ("is_training", "sequence_lengths", "time_major")}  # fmt: skip
    of_model = dict(kw)
    of_model.pop("name", None)
    made = model(2, U, input_size, **of_model)
    random = np.random.default_rng(1)
    rows = 4 if kw.get("direction") == "bidirectional" else 2
    h, c = (random.normal(size=(rows, B, size)).astype("float32") for size in (width, U))
    x = random.normal(size=(T, B, input_size)).astype("float32")
    if of_call.get("time_major") is False:
        x, h, c = (one.swapaxes(0, 1).copy() for one in (x, h, c))
    params = random.uniform(-0.5, 0.7, made.params_size()).astype("float32")
    states = (h, c) if call == "cudnn_lstm" else (h,)
    found = getattr(ops, call)(x, *states, params, **kw, **of_call)
    return flat([found]), flat([made(x, *states, params, **of_call)])


def op_rows(name):
    rows = {
        "is_training": lambda: op(name, dropout=0.5, is_training=False),
        "input_mode": lambda: op(name, U, input_mode="skip_input"),
        "direction": lambda: op(name, direction="bidirectional"),
        "dropout": lambda: op(name, dropout=0.5),
        "seed": lambda: op(name, dropout=0.5, seed=3),
        "name": lambda: op(name, name="any"),
        "sequence_lengths": lambda: op(name, sequence_lengths=[2, 0, 4]),
        "time_major": lambda: op(name, time_major=False),
        "math": lambda: op(name, math="bf16x3", is_training=False),
        "weights_dtype": lambda: op(name, weights_dtype="int8", is_training=False),
    }
    if name == "cudnn_lstm":
        rows["num_proj"] = lambda: op(name, num_proj=3, width=3)
    return rows


def cell(size=U, **kw):
    return rnn_cell.BasicLSTMCell(size, kernel_initializer=openrnn.initializers.constant(0.1), **kw)


def tape(**kw):
    x = openrnn.constant([1.0, 2.0])
    with openrnn.GradientTape(**kw) as made:
        made.watch(x)
        y = x * x
    return made, x, y


def ones_like_dropout(**kw):
    return nn.dropout(np.ones((400,), "float32"), **kw).numpy()


def loop(call, *cells, **kw):
    """Outputs, flat, of a loop over X in its layout."""
    kw = {"dtype": "float32", **kw}
    x = X if kw.get("time_major") else X.swapaxes(0, 1)
    return call(*cells, x, **kw)


def oracle(lengths=None, state=None, reverse=False, x=X):
    """A loop over the cell by hand: outputs [T, B, U], state."""
    one, outputs = cell(), np.zeros((T, B, U), "float32")
    state = one.zero_state(B, "float32") if state is None else state
    c, h = (np.array(part) for part in state)
    lengths = [T] * B if lengths is None else lengths
    for step in range(T):
        rows = [row for row in range(B) if step < lengths[row]]
        at = [lengths[row] - 1 - step if reverse else step for row in rows]
        if rows:
            y, (new_c, new_h) = one(x[at, rows], (c[rows], h[rows]))
            outputs[at, rows], c[rows], h[rows] = y, new_c, new_h
    return outputs, (c, h)


STATE = tuple(np.random.default_rng(9).normal(size=(2, B, U)).astype("float32"))
OTHER = tuple(np.random.default_rng(8).normal(size=(2, B, U)).astype("float32"))
LENGTHS = [2, 0, 4]


def of_loop(result, wanted):
    """Outputs and state of a batch-major loop with those of oracle()."""
    outputs, state = result
    return [outputs, *state], [wanted[0].swapaxes(0, 1), *wanted[1]]


def static(**kw):
    outputs, state = nn.static_rnn(cell(), list(X), **{"dtype": "float32", **kw})
    return [np.stack([one.numpy() for one in outputs]), *state]


def both(lengths=None, fw=None, bw=None, **kw):
    """Of the forward and the backward loop: (found, wanted)."""
    one, two = cell(), cell(name="other")
    given = {"sequence_length": lengths, "initial_state_fw": fw, "initial_state_bw": bw, **kw}
    (y_fw, y_bw), (s_fw, s_bw) = loop(nn.bidirectional_dynamic_rnn, one, two, **given)
    first, second = oracle(lengths, fw), oracle(lengths, bw, reverse=True)
    if not kw.get("time_major"):
        y_fw, y_bw = (y.numpy().swapaxes(0, 1) for y in (y_fw, y_bw))
    return [y_fw, y_bw, *s_fw, *s_bw], [first[0], second[0], *first[1], *second[1]]


def stacked(lengths=None, fw=None, bw=None, **kw):
    """The same of a stack of one."""
    given = {"sequence_length": lengths, "initial_states_fw": fw and [fw],
             "initial_states_bw": bw and [bw], **kw}  # fmt: skip
    y, (s_fw,), (s_bw,) = loop(
        nn.stack_bidirectional_dynamic_rnn, [cell()], [cell(name="other")], **given
    )
    first, second = oracle(lengths, fw), oracle(lengths, bw, reverse=True)
    y = y.numpy() if kw.get("time_major") else y.numpy().swapaxes(0, 1)
    return [y, *s_fw, *s_bw], [np.concatenate([first[0], second[0]], 2), *first[1], *second[1]]


def dtypes_of(result):
    return {str(one.dtype) for part in result for one in (part if isinstance(part, tuple) else [part])}


def names_in(call, *cells, **kw):
    loop(call, *cells, **kw)
    return sorted({one.name.split("/")[0] for one in openrnn.global_variables()})


def labels(model, *given):
    return model([np.asarray(one) for one in given])


FUNCTIONS = {
    "openrnn.Input": {
        "shape": lambda: (openrnn.Input((5,)).shape, (None, 5)),
        "batch_size": lambda: (openrnn.Input((5,), batch_size=2).shape, (2, 5)),
        "name": lambda: (name_of(openrnn.Input((5,), name="given")), "given"),
        "dtype": lambda: (openrnn.Input((5,), dtype="float64").dtype, "float64"),
        "batch_shape": lambda: (openrnn.Input(batch_shape=(2, 5)).shape, (2, 5)),
    },
    "openrnn.constant": {
        "dtype": lambda: (openrnn.constant(A, "float64").dtype, "float64"),
        "device": lambda: of_device(openrnn.constant, A),
    },
    "openrnn.convert_to_tensor": {
        "dtype": lambda: (openrnn.convert_to_tensor(A, "float64").dtype, "float64"),
        "device": lambda: of_device(openrnn.convert_to_tensor, A),
    },
    "openrnn.from_dlpack": {
        "device": lambda: of_device(openrnn.from_dlpack, A),
        "copy": lambda: ([owns_memory(copy) for copy in (None, False, True)], [1.0, 1.0, 0.0]),
    },
    "openrnn.matmul": {
        "transpose_a": lambda: (openrnn.matmul(A, A, transpose_a=True), A.T @ A),
        "transpose_b": lambda: (openrnn.matmul(A, A, transpose_b=True), A @ A.T),
    },
    "openrnn.split": {
        "axis": lambda: (openrnn.split(A, 3, axis=1), np.split(A, 3, 1)),
    },
    "openrnn.reverse_sequence": {
        "seq_lengths": lambda: (
            openrnn.reverse_sequence(A, [2, 1, 0]), np.stack([A[[1, 0], [0, 0]], A[:, 1], A[:, 2]], 1)
        ),
        "time_major": lambda: (openrnn.reverse_sequence(A, time_major=False), A[:, ::-1]),
    },
    "openrnn.one_hot": {
        "dtype": lambda: (openrnn.one_hot([1], 2, dtype="float64").dtype, "float64"),
    },
    "openrnn.get_variable": {
        "dtype": lambda: (variable(dtype="float64").dtype, "float64"),
        "initializer": lambda: (variable(initializer=openrnn.initializers.ones()), np.ones((3, 2))),
        "regularizer": regularized,
        "trainable": lambda: (
            [variable(trainable=False).trainable, len(openrnn.trainable_variables())], [False, 0]
        ),
        "constraint": constrained,
        "device": lambda: refused(ELSEWHERE, variable, device=ELSEWHERE),
    },
    "openrnn.explain": {
        "max_time": lambda: (explained(max_time=50) > 20 * explained(), True),
        "batch": lambda: (explained(batch=50) > 20 * explained(), True),
        "save": lambda: (
            explained(save="inputs", max_time=200) < 0.1 * explained(max_time=200), True
        ),
    },
    "openrnn.math_kind": {
        "math": lambda: (openrnn.math_kind("float32"), "float32"),
        "weights_dtype": lambda: (openrnn.math_kind(weights_dtype="int8"), "int8"),
        "dtype": lambda: (openrnn.math_kind(dtype="float64"), "float64"),
        "device": lambda: of_device(openrnn.math_kind),
    },
    **{f"openrnn.cudnn_rnn.ops.{name}": op_rows(name) for name in OP_NAMES},
    "openrnn.cudnn_rnn.ops.cudnn_rnn_opaque_params_size": {
        "input_mode": lambda: (size_of(input_size=U, input_mode="skip_input"),
                               size_of(input_size=U) - 4 * U * U),
        "direction": lambda: (size_of(direction="bidirectional"),
                              ops.CudnnLSTM(2, U, I, direction="bidirectional").params_size()),
        "dtype": lambda: (size_of(dtype="float64"), size_of()),
        "dropout": lambda: not_used(dropout=0.5),
        "seed": lambda: not_used(seed=3),
        "name": lambda: not_used(name="any"),
        "num_proj": lambda: (size_of(num_proj=3), ops.CudnnLSTM(2, U, I, num_proj=3).params_size()),
    },
    "openrnn.cudnn_rnn.ops.cudnn_rnn_opaque_params_to_canonical": {
        "input_mode": lambda: canonical(input_size=U, input_mode="skip_input"),
        "direction": lambda: canonical(direction="bidirectional"),
        "num_proj": lambda: canonical(num_proj=3),
    },
    "openrnn.cudnn_rnn.ops.cudnn_rnn_canonical_to_opaque_params": {
        "input_mode": lambda: opaque(input_size=U, input_mode="skip_input"),
        "direction": lambda: opaque(direction="bidirectional"),
        "num_proj": lambda: opaque(num_proj=3),
    },
    "openrnn.nn.dropout": {
        "keep_prob": lambda: (set(ones_like_dropout(keep_prob=0.25)), {0.0, 4.0}),
        "seed": lambda: (
            [np.array_equal(ones_like_dropout(rate=0.5, seed=1), ones_like_dropout(rate=0.5, seed=seed))
             for seed in (2, 3)], [False, False]
        ),
        "rate": lambda: (set(ones_like_dropout(rate=0.75)), {0.0, 4.0}),
    },
    "openrnn.nn.dynamic_rnn": {
        "sequence_length": lambda: of_loop(loop(nn.dynamic_rnn, cell(), sequence_length=LENGTHS),
                                           oracle(LENGTHS)),
        "initial_state": lambda: of_loop(
            loop(nn.dynamic_rnn, cell(), initial_state=STATE), oracle(state=STATE)),
        "dtype": lambda: (dtypes_of(loop(nn.dynamic_rnn, cell(), dtype="float64")), {"float64"}),
        "time_major": lambda: (loop(nn.dynamic_rnn, cell(), time_major=True)[0], oracle()[0]),
        "scope": lambda: (names_in(nn.dynamic_rnn, cell(), scope="here"), ["here"]),
    },
    "openrnn.nn.bidirectional_dynamic_rnn": {
        "sequence_length": lambda: both(LENGTHS),
        "initial_state_fw": lambda: both(fw=STATE),
        "initial_state_bw": lambda: both(bw=STATE),
        "dtype": lambda: (
            dtypes_of(loop(nn.bidirectional_dynamic_rnn, cell(), cell(), dtype="float64")[0]),
            {"float64"}),
        "time_major": lambda: both(LENGTHS, STATE, OTHER, time_major=True),
        "scope": lambda: (
            names_in(nn.bidirectional_dynamic_rnn, cell(), cell(), scope="here"), ["here"]),
    },
    "openrnn.nn.stack_bidirectional_dynamic_rnn": {
        "initial_states_fw": lambda: stacked(fw=STATE),
        "initial_states_bw": lambda: stacked(bw=STATE),
        "dtype": lambda: (
            loop(nn.stack_bidirectional_dynamic_rnn, [cell()], [cell()], dtype="float64")[0].dtype,
            "float64"),
        "sequence_length": lambda: stacked(LENGTHS),
        "time_major": lambda: stacked(LENGTHS, STATE, OTHER, time_major=True),
        "scope": lambda: (
            names_in(nn.stack_bidirectional_dynamic_rnn, [cell()], [cell()], scope="here"), ["here"]),
    },
    "openrnn.nn.static_rnn": {
        "initial_state": lambda: (
            static(initial_state=STATE), [oracle(state=STATE)[0], *oracle(state=STATE)[1]]),
        "dtype": lambda: (static(dtype="float64")[1].dtype, "float64"),
        "sequence_length": lambda: (
            static(sequence_length=LENGTHS), [oracle(LENGTHS)[0], *oracle(LENGTHS)[1]]),
        "scope": lambda: (names_in_static(), ["here"]),
    },
}  # fmt: skip


def names_in_static():
    one = cell()
    nn.static_rnn(one, list(X), dtype="float32", scope="here")
    return sorted({one.name.split("/")[0] for one in openrnn.global_variables()})


# The options of these do nothing but choose among layouts: the other arguments have no effect.
for _name in ("opaque_params_to_canonical", "canonical_to_opaque_params"):
    _call = canonical if _name.endswith("canonical") else opaque
    for _argument, _value in (("dropout", 0.5), ("seed", 3)):
        FUNCTIONS[f"openrnn.cudnn_rnn.ops.cudnn_rnn_{_name}"][_argument] = (
            lambda call=_call, given={_argument: _value}: call(**given)
        )
    FUNCTIONS[f"openrnn.cudnn_rnn.ops.cudnn_rnn_{_name}"]["name"] = lambda call=_call: named(call)


def named(call):
    """`name` is taken, and not used."""
    params, (weights, biases), _ = to_canonical()
    if call is canonical:
        found = ops.cudnn_rnn_opaque_params_to_canonical("lstm", 2, U, I, params, name="any")
        return flat(found), flat((weights, biases))
    return ops.cudnn_rnn_canonical_to_opaque_params(
        "lstm", 2, U, I, weights, biases, name="any"), params  # fmt: skip


# ---- With NumPy's shapes

LOGITS = np.random.default_rng(2).normal(size=(5, 2, 4))
LABELS = np.array([[1, 2], [2, 1]], "int32")


def reduction(name, numpys):
    call = getattr(openrnn, name)
    return {
        "axis": lambda: (call(A, axis=1), numpys(A, axis=1)),
        "keepdims": lambda: (call(A, keepdims=True).shape, (1, 1)),
    }


def log_of_sum(x, **kw):
    return np.log(np.exp(x).sum(**kw))


def ctc(call, **kw):
    return np.asarray(call(LABELS, LOGITS, **kw))


def ctc_rows(call):
    """Each argument against a call on what it leaves."""
    batch_major = LOGITS.swapaxes(0, 1).copy()
    moved = np.concatenate([LOGITS[..., 3:], LOGITS[..., :3]], -1)
    return {
        "label_length": lambda: (ctc(call, label_length=[1, 1]),
                                 np.asarray(call(LABELS[:, :1], LOGITS))),
        "logit_length": lambda: (ctc(call, logit_length=[4, 4]),
                                 np.asarray(call(LABELS, LOGITS[:4]))),
        "logits_time_major": lambda: (
            np.asarray(call(LABELS, batch_major, logits_time_major=False)), ctc(call)),
        "blank_index": lambda: (ctc(call, blank_index=3), np.asarray(call(LABELS + 1, moved))),
    }  # fmt: skip


def softmax_0(x):
    return np.exp(x) / np.exp(x).sum(0)


P = np.array([0.25, 0.0, 1.0])
FUNCTIONS |= {
    "openrnn.reduce_sum": reduction("reduce_sum", np.sum),
    "openrnn.reduce_mean": reduction("reduce_mean", np.mean),
    "openrnn.reduce_max": reduction("reduce_max", np.max),
    "openrnn.reduce_min": reduction("reduce_min", np.min),
    "openrnn.reduce_variance": reduction("reduce_variance", np.var),
    "openrnn.reduce_std": reduction("reduce_std", np.std),
    "openrnn.reduce_logsumexp": reduction("reduce_logsumexp", log_of_sum),
    "openrnn.argmax": {"axis": lambda: (openrnn.argmax(A, axis=1), A.argmax(1))},
    "openrnn.argmin": {"axis": lambda: (openrnn.argmin(A, axis=1), A.argmin(1))},
    "openrnn.transpose": {"perm": lambda: (openrnn.transpose(A, perm=[0, 1]), A)},
    "openrnn.squeeze": {"axis": lambda: (openrnn.squeeze(A[None, :1], axis=0).shape, (1, 3))},
    "openrnn.gather": {"axis": lambda: (openrnn.gather(A, [2, 0], axis=1), A[:, [2, 0]])},
    "openrnn.zeros": {
        "dtype": lambda: (openrnn.zeros([2], dtype="float64").dtype, "float64"),
        "device": lambda: of_device(openrnn.zeros, [2]),
    },
    "openrnn.ones": {
        "dtype": lambda: (openrnn.ones([2], dtype="int32").dtype, "int32"),
        "device": lambda: of_device(openrnn.ones, [2]),
    },
    "openrnn.nn.softmax": {"axis": lambda: (nn.softmax(A, axis=0), softmax_0(A))},
    "openrnn.nn.log_softmax": {"axis": lambda: (nn.log_softmax(A, axis=0), np.log(softmax_0(A)))},
    "openrnn.nn.ctc_loss": ctc_rows(nn.ctc_loss),
    "openrnn.losses.ctc_loss": ctc_rows(openrnn.losses.ctc_loss),
    "openrnn.losses.binary_cross_entropy": {
        "from_logits": lambda: (
            openrnn.losses.binary_cross_entropy(np.ones(3), P, from_logits=True),
            np.mean(np.log1p(np.exp(-P))),
        ),
        "epsilon": lambda: (
            openrnn.losses.binary_cross_entropy(np.ones(3), P, epsilon=0.25),
            -np.mean(np.log(np.clip(P, 0.25, 0.75))),
        ),
    },
}
