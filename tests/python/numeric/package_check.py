"""One training step through the Python package against the NumPy model within the derived bound."""

from engine_check import assert_within, expected
from model import package_run


def check(call, spec, dtype, time, batch, lengths=None, seed=0, **how):
    """Values, states and gradients of a layer or an op-level model; padding holds NaN."""
    problem, wanted = expected(spec, dtype, time, batch, lengths, 0.0, seed)
    found = package_run.run(call, problem, **how)
    assert found.keys() == wanted.keys()
    for name, value in found.items():
        assert value.dtype == dtype, name
        assert_within(value, wanted[name], name)
    return problem, found
