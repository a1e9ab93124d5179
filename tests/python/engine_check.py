"""One training step of an engine against the NumPy model within the derived bound."""

from functools import lru_cache

import numpy as np

import rnn_capi
from model.error_bound import bound
from model.rnn_data import make_problem

RATE, SEED, NUMBER = 0.4, 11, 3


def poisoned(problem):
    """NaN wherever a sequence has ended: an engine that reads there shows it."""
    if problem.lengths is not None:
        for b, length in enumerate(problem.lengths):
            problem.x[length:, b] = np.nan
            problem.dy[length:, b] = np.nan
    return problem


@lru_cache(maxsize=4)
def expected(spec, dtype, time, batch, lengths, dropout, seed):
    """(problem, values with bounds); kept for the other engines."""
    problem = poisoned(make_problem(spec, time, batch, dtype, lengths, seed))
    masks = None
    if dropout:
        masks = list(rnn_capi.dropout_mask(spec, dtype, dropout, time, batch, SEED, NUMBER))
    h0, c0 = problem.states
    found = bound(
        spec, dtype, problem.params, problem.x, h0, c0, problem.lengths, masks, problem.upstream
    )
    return problem, found


def assert_within(found, wanted, what):
    """Every element within its own bound; NaN is outside."""
    error = np.abs(found.astype(np.float64) - wanted.value)
    outside = ~(error <= wanted.error)
    if outside.any():
        at = tuple(int(i) for i in np.argwhere(outside)[0])
        raise AssertionError(
            f"{what}{list(at)}: {found[at]!r}, expected {wanted.value[at]!r} within "
            f"{wanted.error[at]:.3g}; {outside.sum()} of {outside.size} are outside"
        )


def check_step(engine, spec, dtype, time, batch, lengths=None, dropout=0.0, seed=0, **how):
    """Forward with saving, backward twice, and every result inside its bound."""
    problem, wanted = expected(spec, dtype, time, batch, lengths, dropout, seed)
    found = rnn_capi.run(
        engine, problem, saving=True, training=True, backward_calls=2, dropout=dropout,
        seed=SEED, number=NUMBER, **how,
    )  # fmt: skip
    assert found.keys() == wanted.keys()
    for name, value in found.items():
        assert_within(value, wanted[name], name)
    return problem, wanted
