"""Every engine against the NumPy model: values and gradients inside the derived bound."""

from itertools import cycle, product

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rnn_capi
from engine_check import RATE, assert_within, check_step, expected
from model import numpy_layout
from model.covering import covering
from model.error_bound import bound
from model.numpy_layout import Spec
from model.rnn_data import make_problem

ENGINES = ["reference", "cpu"]
MODES = ["lstm", "gru", "rnn_tanh", "rnn_relu"]
INPUT_MODES = ["linear_input", "skip_input", "auto_select"]
DIRECTIONS = ["unidirectional", "bidirectional"]
DTYPES = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16]
# (units, other input size, time, batch): odd sizes, below and above a vector and a register tile.
SIZES = [
    (1, 3, 3, 2), (3, 1, 4, 1), (7, 15, 1, 3), (15, 7, 4, 7), (17, 33, 3, 3), (33, 17, 5, 5),
    (3, 33, 2, 13), (33, 3, 2, 1), (7, 1, 6, 2), (15, 17, 1, 1), (17, 7, 3, 8),
]  # fmt: skip


def grid():
    """Mode x direction x input mode x dtype x lengths x layers, sizes in turn. auto_select meets equal
    and unequal sizes."""
    cases, sizes, equal = [], cycle(SIZES), cycle([True, False])
    for mode, direction, inputs, layers, dtype, lengths in product(
        MODES, DIRECTIONS, INPUT_MODES, [1, 2, 3], DTYPES, [None, "mixed"]
    ):
        units, width, time, batch = next(sizes)
        if inputs == "skip_input" or (inputs == "auto_select" and next(equal)):
            width = units
        spec = Spec(mode, layers, units, width, inputs, direction)
        label = f"{mode}-L{layers}-U{units}-I{width}-{inputs}-{direction}-T{time}-B{batch}"
        label += f"-{np.dtype(dtype).name}-{lengths or 'whole'}"
        cases += [
            pytest.param(engine, spec, dtype, time, batch, lengths, id=f"{label}-{engine}")
            for engine in ENGINES
        ]
    return covering(cases)


@pytest.mark.parametrize("engine,spec,dtype,time,batch,lengths", grid())
def test_training_step(engine, spec, dtype, time, batch, lengths):
    check_step(engine, spec, dtype, time, batch, lengths, RATE if spec.num_layers > 1 else 0.0)


@pytest.mark.parametrize(
    "engine,mode,direction,dtype", list(product(ENGINES, MODES, DIRECTIONS, DTYPES))
)
def test_inference_ignores_dropout(engine, mode, direction, dtype):
    spec = Spec(mode, 2, 7, 3, direction=direction)
    problem, wanted = expected(spec, dtype, 4, 3, "mixed", 0.0, 0)
    found = rnn_capi.run(engine, problem, dropout=1.0)
    for name in found:
        assert_within(found[name], wanted[name], name)


@pytest.mark.parametrize(
    "engine,mode,direction,lengths", list(product(ENGINES, MODES, DIRECTIONS, [None, "mixed"]))
)
def test_batch_major(engine, mode, direction, lengths):
    spec = Spec(mode, 2, 7, 3, direction=direction)
    check_step(engine, spec, np.float32, 4, 3, lengths, RATE, time_major=False)


@pytest.mark.parametrize(
    "engine,direction,dtype,sizes,lengths",
    list(product(ENGINES, DIRECTIONS, DTYPES, [(3, 1), (17, 7), (33, 16)], [None, "mixed"])),
)
def test_projection(engine, direction, dtype, sizes, lengths):
    units, proj = sizes
    for layers, inputs in ((1, "skip_input"), (2, "linear_input")):
        width = units if inputs == "skip_input" else 5
        spec = Spec("lstm", layers, units, width, inputs, direction, proj)
        check_step(engine, spec, dtype, 3, 3, lengths)


@pytest.mark.parametrize("engine,direction,dtype", list(product(ENGINES, DIRECTIONS, DTYPES)))
def test_cell_clip(engine, direction, dtype):
    for proj in (0, 4):
        clip = (-0.125, 0.25)
        spec = Spec("lstm", 2, 7, 3, direction=direction, num_proj=proj, cell_clip=clip)
        check_step(engine, spec, dtype, 4, 3, "mixed")


@pytest.mark.parametrize("engine,mode,direction", list(product(ENGINES, MODES, DIRECTIONS)))
def test_dropout_of_everything(engine, mode, direction):
    """Rate 1: upper layers see zeros, and nothing becomes NaN."""
    check_step(engine, Spec(mode, 3, 5, 4, direction=direction), np.float32, 3, 2, "mixed", 1.0)


@pytest.mark.parametrize("engine,mode,direction", list(product(ENGINES, MODES, DIRECTIONS)))
@pytest.mark.parametrize("time,batch", [(0, 2), (3, 0), (0, 0)])
def test_no_steps_and_no_rows(engine, mode, direction, time, batch):
    problem, _ = check_step(
        engine, Spec(mode, 2, 3, 2, direction=direction), np.float32, time, batch
    )
    found = rnn_capi.run(engine, problem, saving=True, backward_calls=1)
    assert not found["dparams"].any()
    assert np.array_equal(found["h"], problem.h0)


@pytest.mark.parametrize("engine,mode,direction", list(product(ENGINES, MODES, DIRECTIONS)))
def test_all_rows_of_length_zero(engine, mode, direction):
    spec = Spec(mode, 2, 3, 2, direction=direction)
    problem = make_problem(spec, 4, 3, np.float32, lengths=np.zeros(3))
    problem.x[:] = np.nan
    problem.dy[:] = np.nan
    found = rnn_capi.run(engine, problem, saving=True, backward_calls=1)
    for name in ("y", "dx", "dparams"):
        assert not found[name].any(), name
    assert np.array_equal(found["h"], problem.h0)
    assert np.array_equal(found["dh0"], problem.dh)


@pytest.mark.parametrize("engine,mode", list(product(ENGINES, MODES)))
def test_a_longer_buffer_is_taken(engine, mode):
    spec = Spec(mode, 2, 5, 3)
    problem = make_problem(spec, 3, 2, np.float32)
    longer = np.concatenate([problem.params, np.full(7, np.nan, np.float32)])
    exact, found = rnn_capi.run(engine, problem), rnn_capi.run(engine, problem, params=longer)
    for name in exact:
        assert np.array_equal(exact[name], found[name]), name


@pytest.mark.parametrize("engine,mode", list(product(ENGINES, MODES)))
def test_a_shorter_buffer_is_refused(engine, mode):
    spec = Spec(mode, 2, 5, 3)
    problem = make_problem(spec, 3, 2, np.float32)
    size = numpy_layout.params_size(spec)
    with pytest.raises(rnn_capi.CallError, match=rf"{size - 1}\b.*{size}\b") as error:
        rnn_capi.run(engine, problem, params=problem.params[:-1].copy())
    assert error.value.kind == "ArgumentError"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("lengths", [[2, 4, 1], [2, 3, -1]])
def test_lengths_out_of_range_are_refused(engine, lengths):
    problem = make_problem(Spec("lstm", 1, 5, 3), 3, 3, np.float32, lengths=np.array(lengths))
    wrong = next(value for value in lengths if not 0 <= value <= 3)
    with pytest.raises(rnn_capi.CallError, match=rf"{wrong}\b") as error:
        rnn_capi.run(engine, problem)
    assert error.value.kind == "ArgumentError"


@st.composite
def random_steps(draw):
    """(spec, dtype, time, batch, lengths, dropout)"""
    mode, inputs = draw(st.sampled_from(MODES)), draw(st.sampled_from(INPUT_MODES))
    units, width = draw(st.integers(1, 40)), draw(st.integers(1, 40))
    if inputs == "skip_input":
        width = units
    proj = draw(st.integers(0, units - 1)) if mode == "lstm" else 0
    direction = draw(st.sampled_from(DIRECTIONS))
    spec = Spec(mode, draw(st.integers(1, 3)), units, width, inputs, direction, proj)
    time, batch = draw(st.integers(1, 6)), draw(st.integers(1, 20))
    lengths = draw(
        st.none() | st.lists(st.integers(0, time), min_size=batch, max_size=batch).map(tuple)
    )
    dropout = draw(st.sampled_from([0.0, 0.25, 0.9]))
    return spec, draw(st.sampled_from(DTYPES)), time, batch, lengths, dropout


@pytest.mark.parametrize("engine", ENGINES)
@given(step=random_steps(), time_major=st.booleans())
def test_random_networks(engine, step, time_major):
    check_step(engine, *step, time_major=time_major)


def test_a_wrong_gate_order_is_outside_the_bound():
    """The check can fail: two gates exchanged in one layer are seen in every dtype."""
    spec = Spec("lstm", 2, 7, 3)
    for dtype in DTYPES:
        problem, wanted = expected(spec, dtype, 4, 3, None, 0.0, 0)
        weights, biases = numpy_layout.params_to_canonical(spec, problem.params.astype(np.float64))
        weights[8], weights[9] = weights[9], weights[8]
        swapped = numpy_layout.canonical_to_params(spec, weights, biases)
        h0, c0 = problem.states
        other = bound(spec, dtype, swapped, problem.x, h0, c0, None, None)
        with pytest.raises(AssertionError, match="outside"):
            assert_within(other["y"].value, wanted["y"], "y")
