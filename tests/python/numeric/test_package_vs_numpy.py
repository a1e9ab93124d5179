"""Layers and op-level models against the NumPy model: outputs, states and gradients."""

from itertools import cycle, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine_check import assert_within, expected
from model import package_run
from model.covering import covering
from model.numpy_layout import Spec
from package_check import check

CALLS = package_run.CALLS
MODES = ["lstm", "gru", "rnn_tanh", "rnn_relu"]
INPUT_MODES = ["linear_input", "skip_input", "auto_select"]
DIRECTIONS = ["unidirectional", "bidirectional"]
DTYPES = [np.float32, np.float64, np.float16]
# (units, other input size, time, batch): odd sizes, one step, one row, one unit.
SIZES = [
    (1, 3, 3, 2), (3, 1, 4, 1), (7, 15, 1, 3), (15, 7, 4, 7), (17, 33, 3, 3), (33, 17, 2, 5),
    (3, 33, 2, 9), (33, 3, 2, 1), (7, 1, 6, 2), (15, 17, 1, 1), (17, 7, 3, 8),
]  # fmt: skip


def grid():
    """Mode x direction x input mode x dtype x lengths, with sizes, layers and layout of the data in
    turn; the counts of those have no common factor, so that they meet in every way."""
    cases, sizes, layers = [], cycle(SIZES), cycle([1, 2, 2, 3, 1])
    equal, time_major = cycle([True, False, False]), cycle([True, False])
    for mode, direction, inputs, dtype, lengths in product(
        MODES, DIRECTIONS, INPUT_MODES, DTYPES, [None, "mixed"]
    ):
        units, width, time, batch = next(sizes)
        if inputs == "skip_input" or (inputs == "auto_select" and next(equal)):
            width = units
        spec = Spec(mode, next(layers), units, width, inputs, direction)
        for call in CALLS:
            major = next(time_major)
            label = f"{mode}-L{spec.num_layers}-U{units}-I{width}-{inputs}-{direction}"
            label += f"-T{time}-B{batch}-{np.dtype(dtype).name}-{lengths or 'whole'}-{call}"
            label += "" if major else "-batch_major"
            cases.append(pytest.param(call, spec, dtype, time, batch, lengths, major, id=label))
        next(time_major)
    return covering(cases)


@pytest.mark.parametrize("call,spec,dtype,time,batch,lengths,time_major", grid())
def test_training_step(call, spec, dtype, time, batch, lengths, time_major):
    check(call, spec, dtype, time, batch, lengths, time_major=time_major)


def projections():
    for dtype, sizes, lengths, direction in product(
        DTYPES, [(3, 1), (17, 7), (33, 15)], [None, "mixed"], DIRECTIONS
    ):
        (units, proj), layers = sizes, 1 if lengths is None else 2
        for inputs, width in (("linear_input", 5), ("skip_input", units)):
            spec = Spec("lstm", layers, units, width, inputs, direction, proj)
            for call in CALLS:
                label = f"L{layers}-U{units}-P{proj}-{inputs}-{direction}-{np.dtype(dtype).name}"
                yield pytest.param(
                    call, spec, dtype, lengths, id=f"{label}-{lengths or 'whole'}-{call}"
                )


@pytest.mark.parametrize("call,spec,dtype,lengths", covering(projections()))
def test_projection(call, spec, dtype, lengths):
    check(call, spec, dtype, 3, 3, lengths, time_major=spec.num_dirs == 1)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("mode,sizes", list(zip(MODES, [(65, 31), (64, 130), (97, 64), (131, 5)])))
@pytest.mark.parametrize("batch", [1, 37])
def test_larger(call, mode, sizes, batch):
    """Several panels of units, several tiles of rows, none of them whole."""
    (units, width), proj = sizes, 33 if mode == "lstm" else 0
    spec = Spec(mode, 2, units, width, direction="bidirectional", num_proj=proj)
    check(call, spec, np.float32, 3, batch, "mixed")


@pytest.mark.parametrize("call,mode,direction", list(product(CALLS, MODES, DIRECTIONS)))
def test_inference(call, mode, direction):
    """Without gradients and without training: the same values."""
    spec = Spec(mode, 2, 7, 3, direction=direction)
    problem, wanted = expected(spec, np.float32, 4, 3, "mixed", 0.0, 0)
    found = package_run.run(call, problem, training=False, gradients=False)
    for name, value in found.items():
        assert_within(value, wanted[name], name)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("mode,direction", list(product(MODES, DIRECTIONS)))
@pytest.mark.parametrize("time,batch", [(0, 2), (3, 0), (0, 0)])
def test_no_steps_and_no_rows(call, mode, direction, time, batch):
    spec = Spec(mode, 2, 3, 2, direction=direction)
    problem, found = check(call, spec, np.float32, time, batch)
    assert found["y"].shape == (time, batch, spec.num_dirs * 3)
    assert found["dx"].shape == (time, batch, 2)
    assert not found["dparams"].any()
    assert np.array_equal(found["h"], problem.h0)
    assert np.array_equal(found["dh0"], problem.dh)


@st.composite
def random_steps(draw):
    """(spec, dtype, time, batch, lengths)"""
    mode, inputs = draw(st.sampled_from(MODES)), draw(st.sampled_from(INPUT_MODES))
    units, width = draw(st.integers(1, 36)), draw(st.integers(1, 36))
    if inputs == "skip_input":
        width = units
    proj = draw(st.integers(0, units - 1)) if mode == "lstm" else 0
    spec = Spec(
        mode, draw(st.integers(1, 3)), units, width, inputs, draw(st.sampled_from(DIRECTIONS)), proj
    )
    time, batch = draw(st.integers(1, 5)), draw(st.integers(1, 9))
    ragged = st.lists(st.integers(0, time), min_size=batch, max_size=batch).map(tuple)
    return spec, draw(st.sampled_from(DTYPES)), time, batch, draw(st.none() | ragged)


@pytest.mark.parametrize("call", CALLS)
@settings(max_examples=60)
@given(step=random_steps(), time_major=st.booleans(), seed=st.integers(0, 99))
def test_random_networks(call, step, time_major, seed):
    check(call, *step, seed=seed, time_major=time_major)


@pytest.mark.parametrize("call", CALLS)
def test_exchanged_directions_are_seen(call):
    """The check can fail: the two directions of the states exchanged."""
    spec = Spec("gru", 1, 7, 3, direction="bidirectional")
    problem, wanted = expected(spec, np.float32, 4, 3, None, 0.0, 0)
    found = package_run.run(call, problem, gradients=False)
    with pytest.raises(AssertionError, match="outside"):
        assert_within(found["h"][::-1], wanted["h"], "h")
