"""The Python package on a problem of the NumPy model: one training step as a user writes it."""

import numpy as np
import openrnn
from openrnn import cudnn_rnn

FAMILY = {
    "lstm": "CudnnLSTM", "gru": "CudnnGRU", "rnn_tanh": "CudnnRNNTanh", "rnn_relu": "CudnnRNNRelu",
}  # fmt: skip


def _proj(spec):
    """`num_proj` is an argument of the LSTM alone."""
    return {"num_proj": spec.num_proj or None} if spec.mode == "lstm" else {}


def make_layer(spec, dtype, params=None, **more):
    """A layer of cudnn_rnn, built and filled when there are parameters."""
    layer = getattr(cudnn_rnn, FAMILY[spec.mode])(
        spec.num_layers, spec.num_units, spec.input_mode, spec.direction,
        dtype=np.dtype(dtype), **_proj(spec), **more,
    )  # fmt: skip
    if params is not None:
        layer.build((None, None, spec.input_size))
        layer.set_weights([params])
    return layer


def make_op(spec, dtype, **more):
    """An op-level model of cudnn_rnn.ops."""
    return getattr(cudnn_rnn.ops, FAMILY[spec.mode])(
        spec.num_layers, spec.num_units, spec.input_size, spec.input_mode, spec.direction,
        np.dtype(dtype), **_proj(spec), **more,
    )  # fmt: skip


def _layer_step(problem, params, tape, more):
    """(source of the parameters' gradient, call): a layer; its kernel is a variable."""
    layer = make_layer(problem.spec, problem.x.dtype, params, **more)
    return layer.kernel, lambda x, states, training, **how: _flat(
        layer(x, tuple(states), training=training, **how)
    )


def _flat(result):
    output, states = result
    return [output, *states]


def _op_step(problem, params, tape, more):
    """The same of an op-level model; its parameters are a bare tensor."""
    model = make_op(problem.spec, problem.x.dtype, **more)
    params = openrnn.Tensor(params)
    tape.watch(params)
    return params, lambda x, states, training, **how: list(
        model(x, *states, params, is_training=training, **how)
    )


STEPS = {"layer": _layer_step, "op": _op_step}
CALLS = list(STEPS)


def run(
    call, problem, *, training=True, gradients=True, time_major=True, params=None, before=0, **more
):
    """dict of y h (c), dx dh0 (dc0) dparams; time-major whatever the call was. `before`: so many
    calls of the same object go first; `more` goes to its constructor."""
    turn = (lambda a: a) if time_major else (lambda a: np.ascontiguousarray(a.swapaxes(0, 1)))
    tensor = lambda a: openrnn.Tensor(turn(a))
    lstm = problem.spec.has_cell
    x, states = tensor(problem.x), [tensor(s) for s in problem.states if s is not None]
    how = {} if problem.lengths is None else {"sequence_lengths": problem.lengths}
    with openrnn.GradientTape() as tape:
        for each in [x, *states]:
            tape.watch(each)
        given = problem.params if params is None else params
        source, step = STEPS[call](problem, given, tape, more)
        for _ in range(before):
            step(x, states, training, time_major=time_major, **how)
        results = step(x, states, training, time_major=time_major, **how)
    names = ["y", "h", "c"] if lstm else ["y", "h"]
    assert len(results) == len(names)
    found = {name: turn(np.array(value)) for name, value in zip(names, results)}
    if gradients:
        upstream = [tensor(each) for each in problem.upstream if each is not None]
        values = tape.gradient(results, [x, *states, source], output_gradients=upstream)
        names = ["dx", "dh0", "dc0"] if lstm else ["dx", "dh0"]
        found.update((name, turn(np.array(value))) for name, value in zip(names, values))
        found["dparams"] = np.array(values[-1])
    return found
