"""Dropout of one layer does nothing, and says so once, where it is asked for."""

import copy
import inspect
import warnings

import numpy as np
import openrnn
import pytest
from table.support import B, I, L, T, U, draw



def caught(call):
    """(result, warnings) of a call."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        result = call()
    return result, found


def assert_one(found, line, name):
    (warning,) = found
    assert (warning.category, warning.filename, warning.lineno) == (UserWarning, __file__, line)
    text = str(warning.message)
    assert text.startswith(f"[{name}] dropout is 0.5 with num_layers=1") and "expected" in text


def test_constructors(kind):
    own = type("Own", (kind.layer,), {})
    for cls in (kind.layer, own):
        made, found = caught(lambda cls=cls: cls(1, U, dropout=0.5))
        assert_one(found, inspect.currentframe().f_lineno - 1, cls.__name__)
        copied, found = caught(lambda made=made: (copy.deepcopy(made), made(draw(T, B, I))))
        assert not found
    config = made.get_config()
    _, found = caught(lambda: own.from_config(config))
    assert_one(found, inspect.currentframe().f_lineno - 1, "Own")
    _, found = caught(lambda: kind.op(1, U, I, dropout=0.5))
    assert_one(found, inspect.currentframe().f_lineno - 1, kind.name)


@pytest.mark.parametrize("direction, dirs", [("unidirectional", 1), ("bidirectional", 2)])
@pytest.mark.parametrize("time_major", [True, False])
def test_functions(kind, direction, dirs, time_major):
    op = kind.op(1, U, I, direction=direction)
    state = np.zeros((dirs, B, U) if time_major else (B, dirs, U), "float32")
    given = [draw(T, B, I) if time_major else draw(B, T, I), *[state] * kind.num_states]
    given.append(draw(op.params_size()))
    how = {"direction": direction, "dropout": 0.5, "time_major": time_major}
    _, found = caught(lambda: kind.function(*given, **how))
    assert_one(found, inspect.currentframe().f_lineno - 1, kind.snake)


def test_silence_elsewhere(kind):
    def run():
        kind.layer(L, U, dropout=0.5)
        kind.layer(1, U)
        kind.op(L, U, I, dropout=0.5)
        kind.op(1, U, I)
        states = [np.zeros((L, B, U), "float32")] * kind.num_states
        params = draw(kind.op(L, U, I).params_size())
        kind.function(draw(T, B, I), *states, params, dropout=0.5)
        openrnn.layers.Dropout(0.5)

    _, found = caught(run)
    assert not found
