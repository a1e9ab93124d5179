"""Engines against Keras 3's LSTM, GRU and SimpleRNN in float64: values, and gradients of inputs,
states and weights."""

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
keras = pytest.importorskip("keras", minversion="3", reason="Keras 3 is not installed")

import rnn_capi
from model.cells import cell_problems, cell_spec
from model.cells.cell_spec import CellSpec

CLASSES = {"lstm": "LSTM", "gru": "GRU", "rnn_tanh": "SimpleRNN"}
# Keras has the blocks i f c o, z r h.
BLOCKS = {"lstm": (0, 1, 2, 3), "gru": (1, 0, 2), "rnn_tanh": (0,)}
# Keras's names: its hard_sigmoid has a slope of 1/6, its leaky_relu 0.2, which TensorFlow rounds
# to float32.
OURS = {
    "hard_sigmoid": "hard_sigmoid(0.16666666666666666, 0.5)",
    "leaky_relu": f"leaky_relu({float(np.float32(0.2))!r})",
}


def weights(spec, buffer):
    """[kernel, recurrent kernel, bias] of Keras from a buffer."""
    ((matrices, biases, *_),) = cell_spec.split(spec, buffer)
    gates, order = spec.num_gates, BLOCKS[spec.mode]
    stack = lambda parts: np.concatenate([parts[k].T for k in order], axis=-1)
    found = [stack(matrices[:gates]), stack(matrices[gates:])]
    if biases:
        halves = [stack(biases[n : n + gates]) for n in range(0, len(biases), gates)]
        found.append(np.stack(halves) if len(halves) == 2 else halves[0])
    return found


def theirs(spec, problem, names):
    """The same results as rnn_capi.run gives, the gradients of parameters as Keras has them."""
    how = {"activation": names[0], "use_bias": spec.use_bias}
    if spec.mode != "rnn_tanh":
        how["recurrent_activation"] = names[1]
    if spec.mode == "gru":
        how["reset_after"] = spec.reset_after
    layer = getattr(keras.layers, CLASSES[spec.mode])(
        spec.num_units, return_sequences=True, return_state=True, dtype="float64", **how
    )
    x = tf.constant(problem.x.swapaxes(0, 1))
    states = [tf.constant(s[0]) for s in problem.states if s is not None]
    layer.build(x.shape)
    layer.set_weights(weights(spec, problem.params))
    with tf.GradientTape() as tape:
        tape.watch([x, *states])
        y, *last = layer(x, initial_state=states)
    upstream = [problem.dy.swapaxes(0, 1), problem.dh[0], problem.dc[0]][: 1 + len(last)]
    sources = [x, *states, *[w.value for w in layer.trainable_weights]]
    slopes = tape.gradient([y, *last], sources, [tf.constant(each) for each in upstream])
    found = {"y": y.numpy().swapaxes(0, 1), "dx": slopes[0].numpy().swapaxes(0, 1)}
    for n, name in enumerate("hc"[: len(last)]):
        found[name] = last[n].numpy()[None]
        found[f"d{name}0"] = slopes[1 + n].numpy()[None]
    return found | {str(n): slope.numpy() for n, slope in enumerate(slopes[1 + len(last) :])}


@pytest.mark.parametrize("mode", CLASSES)
@pytest.mark.parametrize("reset_after", [True, False])
@pytest.mark.parametrize("use_bias", [True, False])
@pytest.mark.parametrize("activation", ["tanh", "relu", "leaky_relu", "softplus"])
@pytest.mark.parametrize("recurrent_activation", ["sigmoid", "hard_sigmoid"])
def test_layer(mode, reset_after, use_bias, activation, recurrent_activation):
    names, how = (activation, recurrent_activation), {}
    own = [OURS.get(name, name) for name in names]
    if mode == "lstm":
        how["output_activation"] = own[0]
    if mode != "rnn_tanh":
        how["recurrent_activation"] = own[1]
    if mode == "gru":
        how["reset_after"] = reset_after
    single = not (mode == "gru" and reset_after)
    spec = CellSpec(
        mode, 1, 5, 3, activation=own[0], use_bias=use_bias, single_bias=single and use_bias, **how
    )
    problem = cell_problems.make(spec)
    wanted = theirs(spec, problem, names)
    for engine in ["reference", "cpu"]:
        ours = rnn_capi.run(engine, problem, saving=True, backward_calls=1)
        gradient = ours.pop("dparams")
        ours |= {str(n): part for n, part in enumerate(weights(spec, gradient))}
        cell_problems.assert_close(ours, wanted)
