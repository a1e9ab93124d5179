"""recurrent_dropout and zoneout: every engine against the NumPy model and Keras with the masks that
the library generates, their rates, and what layers, models and files make of them."""

from dataclasses import replace
from itertools import product

import numpy as np
import openrnn
import pytest
from openrnn import cudnn_rnn, layers

import rnn_capi
from model.cells import cell_problems, cell_spec
from model.cells.cell_spec import CellSpec

SEED, NUMBER = 11, 3
ENGINES = ["reference", "cpu"]
NETWORKS = {
    "lstm": ("lstm", {}),
    "every option of an lstm": ("lstm", {
        "use_peepholes": True, "cell_clip": (-0.5, 0.625), "num_proj": 2, "proj_clip": (-0.5, 0.5),
        "forget_bias": 0.5, "activation": "softsign", "single_bias": True,
    }),
    "coupled gates": ("lstm", {"coupled_gates": True}),
    "gru": ("gru", {}),
    "projected gru": ("gru", {"num_proj": 2, "proj_clip": (-0.5, 0.5)}),
    "reset before": ("gru", {"reset_after": False, "recurrent_activation": "hard_sigmoid"}),
    "tanh": ("rnn_tanh", {}),
    "projected tanh": ("rnn_tanh", {"num_proj": 2}),
    "relu": ("rnn_relu", {}),
}  # fmt: skip
RATES = {
    "state": {"recurrent_dropout": 0.375},
    "candidate": {"recurrent_dropout": 0.375, "recurrent_dropout_form": "candidate"},
    "zoneout": {"zoneout": 0.25, "zoneout_cell": 0.5},
    "state and zoneout": {"recurrent_dropout": 0.5, "zoneout": 0.5, "zoneout_cell": 0.25},
    "candidate and zoneout": {
        "recurrent_dropout": 0.25, "recurrent_dropout_form": "candidate", "zoneout": 0.375,
    },
    "no state": {"recurrent_dropout": 1.0},
    "no candidate": {"recurrent_dropout": 1.0, "recurrent_dropout_form": "candidate"},
    "all stays": {"zoneout": 1.0, "zoneout_cell": 1.0},
}  # fmt: skip


def rates_of(has_cell, rates):
    return {n: rate for n, rate in RATES[rates].items() if n != "zoneout_cell" or has_cell}


def spec_of(network, rates, **more):
    mode, options = NETWORKS[network]
    spec = CellSpec(mode, num_units=5, input_size=3, **options, **more)
    return replace(spec, **rates_of(spec.has_cell, rates))


def run(engine, problem, dtype, **how):
    given = cell_problems.cast(problem, dtype)
    return rnn_capi.run(engine, given, saving=True, backward_calls=1, seed=SEED, number=NUMBER, **how)


@pytest.mark.parametrize("network,rates", list(product(NETWORKS, RATES)))
def test_training_is_the_model_with_the_masks(network, rates):
    for direction, lengths in [("bidirectional", "mixed"), ("unidirectional", None)]:
        spec = spec_of(network, rates, num_layers=2, direction=direction)
        masks = rnn_capi.step_masks(spec, 4, 3, SEED, NUMBER)
        problem = cell_problems.make(spec, lengths=lengths, masks=masks)
        wanted = cell_problems.wanted(problem, masks)
        for engine, dtype in product(ENGINES, ["float64", "float32"]):
            found = run(engine, problem, dtype, training=True)
            cell_problems.assert_close(found, wanted, dtype)
            plain = rnn_capi.run(
                engine, cell_problems.cast(problem, dtype), training=True, seed=SEED, number=NUMBER
            )
            for name, value in plain.items():
                assert np.array_equal(value, found[name]), f"{name} differs without saving"


@pytest.mark.parametrize("network,rates", list(product(NETWORKS, RATES)))
def test_outside_of_training_zoneout_is_its_expectation(network, rates):
    spec = spec_of(network, rates, num_layers=2, direction="bidirectional")
    problem = cell_problems.make(spec, lengths="mixed")
    wanted = cell_problems.wanted(problem)
    for engine, dtype in product(ENGINES, ["float64", "float32"]):
        found = run(engine, problem, dtype)
        cell_problems.assert_close(found, wanted, dtype)


@pytest.mark.parametrize("rates", ["state and zoneout", "candidate and zoneout"])
@pytest.mark.parametrize("mode", ["lstm", "gru", "rnn_tanh"])
def test_wide_networks_agree(mode, rates):
    """More units and rows than a vector or a register tile has."""
    spec = CellSpec(mode, 2, 35, 19, direction="bidirectional", **rates_of(mode == "lstm", rates))
    masks = rnn_capi.step_masks(spec, 5, 13, SEED, NUMBER)
    problem = cell_problems.make(spec, 5, 13, "float64", "mixed", scale=0.25, masks=masks)
    runs = [run(engine, problem, "float64", training=True) for engine in ENGINES]
    cell_problems.assert_close(runs[1], cell_problems.values(problem, masks), names=["y", "h"])
    cell_problems.assert_close(runs[1], runs[0])


def test_masks_have_their_rates_and_streams_of_their_own():
    """Each of the masks has its share of zeros, and no two of them have more zeros in common than
    chance: the product of their rates."""
    rates = {"zoneout": 0.375, "zoneout_cell": 0.25, "recurrent_dropout": 0.5}
    found = {}
    for form in ["state", "candidate"]:
        spec = CellSpec("lstm", 3, 64, 3, direction="bidirectional", recurrent_dropout_form=form,
                        **rates)  # fmt: skip
        found |= rnn_capi.step_masks(spec, 7, 16, SEED, NUMBER)
    found["state"] = np.broadcast_to(found["state"], found["candidate"].shape)
    by_rate = {"state": 0.5, "candidate": 0.5, "zoneout": 0.375, "zoneout_cell": 0.25}
    for name, mask in found.items():
        assert set(np.unique(mask)) == {0.0, 1 / (1 - by_rate[name])}, name
    # The state's masks repeat over 7 steps, so a seventh as many draws are independent.
    draws = found["state"].size / 7
    for one, other in product(found, found):
        share = np.mean((found[one] == 0) & (found[other] == 0))
        chance = by_rate[one] * (1 if one == other else by_rate[other])
        assert abs(share - chance) < 5 * np.sqrt(chance * (1 - chance) / draws), (one, other)
    places = found["zoneout"].reshape(-1, 64)
    assert len(np.unique(places, axis=0)) == len(places)


@pytest.mark.parametrize("mode,reset_after", [("lstm", True), ("gru", True), ("gru", False),
                                              ("rnn_tanh", True)])  # fmt: skip
def test_keras_with_the_masks(mode, reset_after):
    """Keras has a mask for each gate: here the same one for all."""
    tf = pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
    keras = pytest.importorskip("keras", minversion="3", reason="Keras 3 is not installed")
    from test_cells_vs_keras import CLASSES, weights

    single = not (mode == "gru" and reset_after)
    spec = CellSpec(
        mode, 1, 5, 3, recurrent_dropout=0.5, single_bias=single,
        **({"reset_after": reset_after} if mode == "gru" else {}),
    )  # fmt: skip
    problem = cell_problems.make(spec, time=6)
    how = {"reset_after": reset_after} if mode == "gru" else {}
    if mode != "rnn_tanh":
        how["implementation"] = 1
    layer = getattr(keras.layers, CLASSES[mode])(
        5, return_sequences=True, dtype="float64", recurrent_dropout=0.5, **how
    )
    layer.build((3, 6, 3))
    layer.set_weights(weights(spec, problem.params))
    mask = tf.constant(rnn_capi.step_masks(spec, 6, 3, SEED, NUMBER)["state"][0, 0])
    gates = mask if mode == "rnn_tanh" else [mask] * spec.num_gates
    layer.cell.get_recurrent_dropout_mask = lambda state: gates
    x = tf.constant(problem.x.swapaxes(0, 1))
    states = [tf.constant(s[0]) for s in problem.states if s is not None]
    with tf.GradientTape() as tape:
        tape.watch([x, *states])
        y = layer(x, initial_state=states, training=True)
    slopes = tape.gradient(
        y, [x, *states, layer.cell.recurrent_kernel.value],
        tf.constant(problem.dy.swapaxes(0, 1)),
    )  # fmt: skip
    wanted = {"y": y.numpy().swapaxes(0, 1), "dx": slopes[0].numpy().swapaxes(0, 1)}
    wanted |= {f"d{name}0": slope.numpy()[None] for name, slope in zip("hc", slopes[1:-1])}
    problem.dh, problem.dc = np.zeros_like(problem.dh), np.zeros_like(problem.dc)
    for engine in ENGINES:
        ours = run(engine, problem, "float64", training=True)
        cell_problems.assert_close(ours, wanted, names=list(wanted))
        recurrent = weights(spec, ours["dparams"])[1]
        np.testing.assert_allclose(recurrent, slopes[-1].numpy(), rtol=0, atol=1e-12)


def test_the_paper_of_zoneout_in_training():
    """Krueger et al. (2017), equation 4, written out: h sees the cell before it is zoned out."""
    spec = CellSpec("lstm", 1, 5, 3, zoneout=0.5, zoneout_cell=0.5)
    problem = cell_problems.make(spec, time=3)
    masks = rnn_capi.step_masks(spec, 3, 3, SEED, NUMBER)
    found = run("cpu", problem, "float64", training=True)
    ((matrices, biases, *_),) = cell_spec.split(spec, problem.params)
    h, c = problem.h0[0], problem.c0[0]
    sigmoid = lambda a: 1 / (1 + np.exp(-a))
    for t in range(3):
        i, f, g, o = (
            problem.x[t] @ matrices[k].T + biases[k] + h @ matrices[4 + k].T + biases[4 + k]
            for k in range(4)
        )
        now = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        d_h, d_c = (1.0 * (masks[name][0, t] == 0) for name in ("zoneout", "zoneout_cell"))
        h = d_h * h + (1 - d_h) * (sigmoid(o) * np.tanh(now))
        c = d_c * c + (1 - d_c) * now
        np.testing.assert_allclose(found["y"][t], h, rtol=0, atol=1e-14)
    np.testing.assert_allclose(found["c"][0], c, rtol=0, atol=1e-14)


X = np.linspace(-1, 1, 4 * 3 * 3, dtype=np.float32).reshape(4, 3, 3)


def layer_of(**options):
    layer = layers.LSTM(6, 2, seed=2, direction="bidirectional", **options)
    layer.build((None, None, 3))
    return layer


def test_every_call_of_a_layer_has_masks_of_its_own():
    layer = layer_of(recurrent_dropout=0.5, zoneout=0.25)
    first, second = (np.array(layer(X, training=True)[0]) for _ in range(2))
    assert not np.array_equal(first, second)
    again = layer_of(recurrent_dropout=0.5, zoneout=0.25)
    again.kernel.assign(layer.kernel)
    with pytest.raises(ValueError, match="expected axis -1 to have value 3"):
        again(X[:, :, :2], training=True)
    with pytest.raises(ValueError, match="initial_state"):
        again(X, (X,), training=True)
    again(X, training=False)
    assert np.array_equal(again(X, training=True)[0], first)
    assert np.array_equal(again(X, training=True)[0], second)


@pytest.mark.parametrize("weights_dtype", [None, "float16", "bfloat16", "int8"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_packed_model_has_the_expectation(dtype, weights_dtype):
    layer = layer_of(zoneout=0.25, zoneout_cell=0.5, recurrent_dropout=0.5, dtype=dtype)
    x = X.astype(dtype)
    model = openrnn.PackedModel.from_layer(layer, weights_dtype=weights_dtype)
    assert model.spec["zoneout"] == 0.25
    y, states = openrnn.InferenceSession(model).run(x)
    plain = layers.LSTM(6, 2, direction="bidirectional", dtype=dtype)
    plain.build((None, None, 3))
    plain.kernel.assign(layer.kernel)
    own = np.asarray(layer(x, training=False)[0])
    assert np.abs(own.astype(float) - np.asarray(plain(x, training=False)[0])).max() > 1e-2
    if weights_dtype is None:
        assert np.array_equal(y, own)
    np.testing.assert_allclose(y, own, rtol=0, atol=2e-2)


def test_a_rate_of_zero_is_no_option():
    zero = layer_of(zoneout=0.0, zoneout_cell=0.0, recurrent_dropout=0.0,
                    recurrent_dropout_form="candidate")  # fmt: skip
    plain = layer_of()
    zero.kernel.assign(plain.kernel)
    assert np.array_equal(zero(X, training=True)[0], plain(X, training=True)[0])
    assert "zoneout" not in zero.get_config()


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="zoneout_cell is set for gru, expected it for lstm, and"):
        cudnn_rnn.CudnnGRU(1, 5, zoneout_cell=0.5)
    with pytest.raises(ValueError, match="zoneout is 1.5, expected 0 to 1"):
        layers.RNN(5, zoneout=1.5)
    with pytest.raises(ValueError, match="recurrent_dropout is -0.5, expected 0 to 1"):
        layers.GRU(5, recurrent_dropout=-0.5)
    with pytest.raises(ValueError, match="is 'both', expected one of 'state', 'candidate'"):
        layers.LSTM(5, recurrent_dropout_form="both")
