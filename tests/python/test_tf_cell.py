"""The cell format and the cell's clip against TensorFlow's own fused LSTM cell."""

import numpy as np
import pytest

import rnn_capi
from engine_check import assert_within
from model import numpy_layout
from model.error_bound import Bounded, bound
from model.numpy_layout import Spec
from model.rnn_data import make_problem

# TensorFlow's op clamps to [-clip, clip]; -1 turns it off.
CLIPS = [-1.0, 0.25]


def tf_lstm(problem, tensors, clip):
    """One layer step by step: dict of y, h, c. `tensors`: kernel and bias in the cell format."""
    from tensorflow import raw_ops

    (kernel, bias), none = tensors, np.zeros(problem.spec.num_units, np.float32)
    h, c, outputs = problem.h0[0], problem.c0[0], []
    for x in problem.x:
        step = raw_ops.LSTMBlockCell(
            x=x, cs_prev=c, h_prev=h, w=kernel, wci=none, wcf=none, wco=none, b=bias,
            forget_bias=0.0, cell_clip=clip,
        )  # fmt: skip
        h, c = step.h.numpy(), step.cs.numpy()
        outputs.append(h)
    return {"y": np.stack(outputs), "h": h[None], "c": c[None]}


@pytest.mark.parametrize("clip", CLIPS)
@pytest.mark.parametrize("units,width", [(3, 2), (17, 33)])
def test_lstm_block_cell(units, width, clip):
    spec = Spec("lstm", 1, units, width, cell_clip=(-clip, clip) if clip > 0 else None)
    problem = make_problem(spec, 5, 4, np.float32)
    h0, c0 = problem.states
    wanted = bound(spec, np.float32, problem.params, problem.x, h0, c0, None, None)
    if clip > 0:
        assert np.abs(wanted["c"].value).max() == clip
    theirs = tf_lstm(problem, [t for _, t in numpy_layout.to_tf(spec, problem.params)], clip)
    for name, value in theirs.items():
        # Their bias is bW + bR, rounded in advance: one rounding more than ours, and all within
        # the sum of both bounds.
        assert_within(value, Bounded(wanted[name].value, 0.0, 2 * wanted[name].error), name)


@pytest.mark.parametrize("engine", ["reference", "cpu"])
def test_engines_from_a_cell_checkpoint(engine):
    """A buffer restored from the cell's tensors computes what the cell computes."""
    spec = Spec("lstm", 1, 17, 33)
    problem = make_problem(spec, 5, 4, np.float32)
    tensors = [tensor for _, tensor in rnn_capi.to_tf(spec, problem.params)]
    theirs = tf_lstm(problem, tensors, -1.0)
    ours = rnn_capi.run(engine, problem, params=rnn_capi.from_tf(spec, tensors))
    h0, c0 = problem.states
    wanted = bound(spec, np.float32, problem.params, problem.x, h0, c0, None, None)
    for name, value in theirs.items():
        assert_within(ours[name], Bounded(value, 0.0, 3 * wanted[name].error), name)
