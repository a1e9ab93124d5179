"""Every option of a cell on every engine against the NumPy model, whose gradients are complex
steps: values, states, dx, gradients of states and of parameters."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import rnn_capi
from model.cells import cell_problems, cell_spec
from model.cells.cell_activations import FUNCTIONS
from model.cells.cell_spec import CellSpec
from model.covering import WHOLE, cover

MODES = ["lstm", "gru", "rnn_tanh", "rnn_relu"]
PLACES = ["activation", "recurrent_activation", "output_activation"]
ENGINES = ["reference", "cpu"]
DTYPES = ["float64", "float32"]
# Every function, with its defaults and, where it has parameters, with others.
ACTIVATIONS = [
    *FUNCTIONS, "affine(0.5, 0.25)", "leaky_relu(0.3)", "thresholded_relu(0.25)",
    "scaled_tanh(1.25, 0.5)", "hard_sigmoid(0.5, 0.375)", "elu(0.75)",
]  # fmt: skip
CLIP = (-0.25, 0.375)


def check(spec, lengths):
    """Both engines in both dtypes, with and without what gradients need."""
    problem = cell_problems.make(spec, lengths=lengths)
    wanted = cell_problems.wanted(problem)
    for dtype in DTYPES:
        assert rnn_capi.params_size(spec, dtype) == cell_spec.params_size(spec)
        for engine in ENGINES:
            given = cell_problems.cast(problem, dtype)
            found = rnn_capi.run(engine, given, saving=True, backward_calls=1)
            cell_problems.assert_close(found, wanted, dtype)
            plain = rnn_capi.run(engine, given)
            for name, value in plain.items():
                assert np.array_equal(value, found[name]), f"{name} differs without saving"


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize(
    "mode,place",
    [*product(["lstm"], PLACES), *product(["gru"], PLACES[:2]), ("rnn_tanh", PLACES[0])],
)
def test_each_activation(activation, mode, place):
    spec = CellSpec(mode, 1, 5, 3, direction="bidirectional", **{place: activation})
    check(spec, "mixed")


NETWORK = {
    "lengths": [None, "mixed"],
    "num_layers": [1, 2],
    "direction": ["unidirectional", "bidirectional"],
    "input_mode": ["linear_input", "skip_input"],
    "gate_clip": [None, (-0.5, 0.75)],
    "biases": ["two", "single", "none"],
}
GRIDS = {
    "lstm": {
        "num_proj": [0, 2],
        "proj_clip": [None, CLIP],
        "cell_clip": [None, CLIP],
        "forget_bias": [0.0, 1.0],
        "use_peepholes": [False, True],
        "coupled_gates": [False, True],
        "activation": [None, "relu"],
        "recurrent_activation": [None, "hard_sigmoid"],
        "output_activation": [None, "softsign"],
        "layer_norm": [None, "products", "gates"],
        "layer_norm_cell": [None, "output", "carried"],
    },
    "gru": {
        "reset_after": [True, False],
        "num_proj": [0, 2],
        "proj_clip": [None, CLIP],
        "activation": [None, "elu(0.5)", "softplus"],
        "recurrent_activation": [None, "hard_sigmoid"],
        "layer_norm": [None, "products", "split_products"],
    },
    "rnn_tanh": {
        "num_proj": [0, 2],
        "proj_clip": [None, CLIP],
        "activation": [None, "leaky_relu(0.3)"],
    },
}
GRIDS["rnn_relu"] = GRIDS["rnn_tanh"]


def rows(mode):
    """(mode, {option: value}) of a covering array. The product of all would be too many to list:
    the array covers rows that are drawn from it, which hold every pair of values many times."""
    columns = NETWORK | GRIDS[mode]
    rng = np.random.default_rng(3)
    drawn = [[rng.integers(len(values)) for values in columns.values()] for _ in range(300)]
    kept = drawn if WHOLE else [drawn[n] for n in cover(drawn)]
    for row in kept:
        yield mode, {name: columns[name][n] for name, n in zip(columns, row)}


@pytest.mark.parametrize("mode,options", [row for mode in MODES for row in rows(mode)])
def test_options(mode, options):
    lengths, biases = options.pop("lengths"), options.pop("biases")
    if mode == "gru" and (not options["reset_after"] or options["layer_norm"]):
        options["num_proj"] = 0
    if not options.get("num_proj"):
        options["proj_clip"] = None
    options.update(use_bias=biases != "none", single_bias=biases == "single")
    if options.get("layer_norm") is None:
        options.pop("layer_norm_cell", None)
    if options.get("layer_norm") == "products":
        options.pop("coupled_gates", None)
    if not options.get("reset_after", True):
        options.pop("layer_norm")
    width = 5 if options["input_mode"] == "skip_input" else 3
    check(CellSpec(mode, num_units=5, input_size=width, **options), lengths)


EVERY = {
    "lstm": {
        "forget_bias": 0.5, "activation": "softsign", "recurrent_activation": "hard_sigmoid",
        "output_activation": "elu", "use_peepholes": True, "gate_clip": (-1.5, 1.75),
        "cell_clip": (-0.5, 0.625), "num_proj": 17, "proj_clip": (-1.5, 1.25), "single_bias": True,
        "layer_norm": "products", "layer_norm_cell": "output", "layer_norm_epsilon": 1e-3,
    },
    "gru": {
        "reset_after": False, "activation": "scaled_tanh(1.25, 0.5)", "gate_clip": (-1.5, 1.75),
        "recurrent_activation": "hard_sigmoid", "single_bias": True,
    },
    "rnn_tanh": {"activation": "softplus", "num_proj": 17, "proj_clip": (-1.5, 1.25)},
    "rnn_relu": {"gate_clip": (-1.5, 1.75), "use_bias": False},
}  # fmt: skip


@pytest.mark.parametrize("mode,dtype", list(product(MODES, DTYPES)))
def test_wide_networks_agree(mode, dtype):
    """More units and rows than a vector or a register tile has: too many for complex steps, so the
    gradients of the two engines are compared."""
    spec = CellSpec(mode, 2, 35, 19, direction="bidirectional", **EVERY[mode])
    problem = cell_problems.make(spec, 5, 13, dtype, "mixed", scale=0.25)
    runs = [rnn_capi.run(e, problem, saving=True, backward_calls=2) for e in ENGINES]
    cell_problems.assert_close(runs[1], cell_problems.values(problem), dtype, ["y", "h"])
    cell_problems.assert_close(runs[1], runs[0], dtype)


@pytest.mark.parametrize("engine,mode", list(product(ENGINES, MODES)))
def test_no_steps_and_no_rows(engine, mode):
    spec = CellSpec(mode, 2, 5, 3, direction="bidirectional", **{**EVERY[mode], "num_proj": 0})
    spec = replace(spec, proj_clip=None)
    for time, batch in [(0, 2), (3, 0)]:
        problem = cell_problems.make(spec, time, batch)
        found = rnn_capi.run(engine, problem, saving=True, backward_calls=1)
        assert np.array_equal(found["h"], problem.h0)
        assert np.array_equal(found["dh0"], problem.dh)
        assert not found["dparams"].any()


MOVED = {
    "gate_clip": None, "cell_clip": None, "proj_clip": None, "activation": None,
    "recurrent_activation": None, "output_activation": None, "forget_bias": 0.0,
    "layer_norm_epsilon": 1e-1, "layer_norm_cell": "carried",
}  # fmt: skip


@pytest.mark.parametrize("option", MOVED)
def test_a_network_without_the_option_is_outside(option):
    """The check can fail: each option moves the values by more than any tolerance."""
    spec = CellSpec("lstm", 1, 5, 3, **{**EVERY["lstm"], "num_proj": 2, "proj_clip": CLIP})
    problem = cell_problems.make(spec)
    wanted = cell_problems.values(problem)
    problem.spec = replace(spec, **{option: MOVED[option]})
    found = rnn_capi.run("cpu", problem)
    assert np.max(np.abs(found["y"] - wanted["y"])) > 1e-3
