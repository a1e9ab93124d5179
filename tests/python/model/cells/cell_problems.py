"""Random data for cells with options, and an engine's or package's results beside the model's."""

from dataclasses import replace

import numpy as np

from model.cells import cell_spec, numpy_cells
from model.rnn_data import Problem

# A number this near to a kink may be on the other side of it in float32, whose errors are below
# 1e-5 in networks of this size; data that come nearer are drawn again.
MARGIN = 1e-4


def make(spec, time=4, batch=3, dtype=np.float64, lengths=None, scale=1.0, seed=0, masks=None):
    """A Problem whose numbers keep their distance from every kink. Padding holds NaN."""
    for attempt in range(100):
        problem = _draw(spec, time, batch, lengths, scale, [seed, attempt])
        _, functions = _values(problem, masks)
        if functions.margin > MARGIN:
            return cast(problem, dtype)
    raise AssertionError("every attempt came near to a kink")


def _draw(spec, time, batch, lengths, scale, seed):
    rng = np.random.default_rng(seed)
    # float32 numbers, so that engines of either dtype get the same ones.
    draw = lambda *shape: rng.uniform(-1, 1, shape).astype(np.float32).astype(np.float64)
    rows, width = spec.num_pseudo, spec.state_width
    if isinstance(lengths, str):  # "mixed"
        lengths = (time + 2 * np.arange(batch)) % (time + 1)
    problem = Problem(
        spec, scale * draw(cell_spec.params_size(spec)), draw(time, batch, spec.input_size),
        draw(rows, batch, width), draw(rows, batch, spec.num_units),
        None if lengths is None else np.asarray(lengths, np.int32),
        draw(time, batch, spec.num_dirs * width), draw(rows, batch, width),
        draw(rows, batch, spec.num_units),
    )  # fmt: skip
    if lengths is not None:
        for b, length in enumerate(problem.lengths):
            problem.x[length:, b] = np.nan
            problem.dy[length:, b] = np.nan
    return problem


def cast(problem, dtype):
    """The same numbers in another dtype."""
    names = ("params", "x", "h0", "c0", "dy", "dh", "dc")
    return replace(problem, **{name: getattr(problem, name).astype(dtype) for name in names})


def _values(problem, masks=None):
    p = problem
    given = [np.asarray(each, np.float64) for each in (p.params, p.x, p.h0, p.c0)]
    return numpy_cells.forward(p.spec, *given, p.lengths, masks)


def values(problem, masks=None):
    return _values(problem, masks)[0]


def wanted(problem, masks=None):
    """Values and gradients of the model in float64, with `masks` those in training."""
    return values(problem, masks) | numpy_cells.gradients(problem, masks)


# Sums of some dozen terms through eight steps: float64 is within some 1e-14 of the model, float32
# within 1e-5, both of the largest value; a wrong term or sign is off by more than 1e-3.
TOLERANCE = {np.dtype("float64"): 1e-12, np.dtype("float32"): 3e-5}


def assert_close(found, expected, dtype=np.float64, names=None):
    """Every array within the tolerance of its dtype; NaN is outside."""
    for name in names or expected:
        ours, theirs = np.asarray(found[name], np.float64), np.asarray(expected[name], np.float64)
        assert ours.shape == theirs.shape, name
        size = max(1.0, np.max(np.abs(theirs), initial=0.0))
        error = np.max(np.abs(ours - theirs), initial=0.0)
        assert error <= TOLERANCE[np.dtype(dtype)] * size, f"{name}: off by {error}, size {size}"
    if names is None:
        assert found.keys() == expected.keys()
