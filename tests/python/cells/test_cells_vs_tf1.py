"""Engines against TensorFlow 1's LSTMCell, BasicLSTMCell, GRUCell and BasicRNNCell in float64:
values, and gradients of inputs, states and variables."""

import pytest

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

import rnn_capi
import tf1_cells
from model.cells import cell_problems, cell_spec
from model.cells.cell_spec import CellSpec

ENGINES = ["reference", "cpu"]


def check(spec, lengths, basic=False):
    problem = cell_problems.make(spec, time=3, lengths=lengths)
    named = lambda buffer: {
        f"{scope}/{name}": tensor
        for scope, parts in zip(tf1_cells.scopes(spec), cell_spec.split(spec, buffer))
        for name, tensor in tf1_cells.tensors(spec, parts).items()
    }
    theirs = tf1_cells.run(spec, problem, named(problem.params), basic)
    for engine in ENGINES:
        ours = rnn_capi.run(engine, problem, saving=True, backward_calls=1)
        ours |= named(ours.pop("dparams"))
        cell_problems.assert_close(ours, theirs)


# TensorFlow takes half a second or more to build a loop and its gradient, so the grids are small.
STACKS = [(2, "unidirectional"), (1, "bidirectional")]


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("lengths", [None, "mixed"])
@pytest.mark.parametrize("peepholes", [False, True])
@pytest.mark.parametrize("cell_clip", [None, (-0.25, 0.25)])
@pytest.mark.parametrize("proj", [0, 2])
@pytest.mark.parametrize("proj_clip", [None, (-0.25, 0.25)])
@pytest.mark.parametrize("forget_bias", [0.0, 1.0])
@pytest.mark.parametrize("activation", [None, "softsign", "leaky_relu(0.25)"])
def test_lstm_cell(
    stack, lengths, peepholes, cell_clip, proj, proj_clip, forget_bias, activation
):
    layers, direction = stack
    spec = CellSpec(
        "lstm", layers, 5, 3, direction=direction, num_proj=proj, cell_clip=cell_clip,
        forget_bias=forget_bias, activation=activation, output_activation=activation,
        use_peepholes=peepholes, proj_clip=proj_clip if proj else None, single_bias=True,
    )  # fmt: skip
    check(spec, lengths)


def test_basic_lstm_cell():
    how = {"activation": "softplus", "output_activation": "softplus", "single_bias": True}
    check(CellSpec("lstm", 2, 5, 3, forget_bias=1.0, **how), "mixed", basic=True)


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("lengths", [None, "mixed"])
@pytest.mark.parametrize("forget_bias,activation", [(1.0, None), (0.0, "softsign")])
def test_layer_norm_basic_lstm_cell(stack, lengths, forget_bias, activation):
    layers, direction = stack
    spec = CellSpec(
        "lstm", layers, 5, 3, direction=direction, single_bias=True, forget_bias=forget_bias,
        activation=activation, output_activation=activation, layer_norm="gates",
        layer_norm_cell="carried", layer_norm_epsilon=1e-12,
    )  # fmt: skip
    check(spec, lengths)


@pytest.mark.parametrize(
    "stack,lengths,activation", [(STACKS[0], "mixed", None), (STACKS[1], "mixed", "relu")]
)
def test_gru_cell(stack, lengths, activation):
    layers, direction = stack
    how = {"reset_after": False, "activation": activation, "single_bias": True}
    check(CellSpec("gru", layers, 5, 3, direction=direction, **how), lengths)


@pytest.mark.parametrize(
    "mode,stack,activation", [("rnn_tanh", STACKS[0], "elu"), ("rnn_relu", STACKS[1], None)]
)
def test_basic_rnn_cell(mode, stack, activation):
    layers, direction = stack
    how = {"activation": activation, "single_bias": True}
    check(CellSpec(mode, layers, 5, 3, direction=direction, **how), "mixed")
