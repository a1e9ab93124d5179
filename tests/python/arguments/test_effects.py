"""Every argument that has a default: a row says what it does at another value."""

import inspect

import numpy as np
import openrnn
import pytest
from effects_of_functions import FUNCTIONS, Refused
from effects_of_methods import METHODS
from effects_of_runs_and_files import OTHERS
from training.effects_of_training import TRAINING
from table.saving.test_optimizers import ROWS as OPTIMIZERS
from test_defaults import CONFIGS
from test_messages import CALLABLES
from test_network_options import OTHERS as NETWORK

ROWS = {**FUNCTIONS, **METHODS, **OTHERS}
ROWS.update(TRAINING)
CASES = [(name, argument) for name, rows in ROWS.items() for argument in rows]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def same(found, wanted):
    if isinstance(wanted, Refused):
        assert isinstance(found, str) and wanted in found, found
    elif isinstance(wanted, (list, tuple)) and not all(isinstance(one, int) for one in wanted):
        assert len(found) == len(wanted)
        for one, two in zip(found, wanted, strict=True):
            same(one, two)
    elif hasattr(wanted, "shape"):
        np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=2e-6, atol=2e-7)
    elif isinstance(wanted, float) or hasattr(found, "numpy"):
        np.testing.assert_allclose(np.asarray(found), wanted, rtol=2e-6)
    else:
        assert found == wanted


@pytest.mark.parametrize("name, argument", CASES)
def test_what_an_argument_does(name, argument):
    same(*ROWS[name][argument]())


# ---- Nothing is left out -------------------------------------------------------------------------


def code_of(call):
    """What a function or a constructor runs: a class that inherits its constructor has a copy."""
    function = call.__init__ if isinstance(call, type) else call
    return getattr(inspect.unwrap(function), "__code__", function)


def found_at(name):
    parts, value = name.split(".")[1:], openrnn
    for part in parts:
        value = getattr(value, part)
    return value


def defaulted(call):
    try:
        parameters = inspect.signature(call).parameters.values()
    except ValueError:
        return set()
    return {one.name for one in parameters if one.default is not one.empty}


def public_calls():
    """Every public function and constructor, and every public method of a class."""
    for name, call in CALLABLES.items():
        yield name, call
        if not isinstance(call, type):
            continue
        for method in sorted(set(dir(call)) & (PUBLIC | set(vars(call)))):
            function = inspect.getattr_static(call, method)
            if (method == "__call__" or not method.startswith("_")) and inspect.isfunction(
                getattr(function, "__func__", function)
            ):
                yield f"{name}.{method}", getattr(call, method)


PUBLIC = {name for call in CALLABLES.values() if isinstance(call, type)
          for base in call.__mro__ if base.__module__.startswith("openrnn") for name in vars(base)}  # fmt: skip


def covered():
    """(code, argument) of every row, here and in the tables of configurations and optimizers."""
    found = set()
    for name, rows in ROWS.items():
        for argument in rows:
            of = f"{name}.{argument.split('.')[0]}" if "." in argument else name
            found.add((code_of(found_at(of)), argument.split(".")[-1]))
    for cls, given in CONFIGS:
        found |= {(code_of(cls), argument) for argument in given}
    for _, name, given, _, _ in OPTIMIZERS:
        found |= {(code_of(getattr(openrnn.train, f"{name}Optimizer")), one) for one in given}
    for cls in (openrnn.layers.LSTM, openrnn.layers.GRU, openrnn.layers.RNN):
        found |= {(code_of(cls), argument) for argument in NETWORK}
    return found


def test_every_argument_with_a_default_has_a_row():
    rows = covered()
    missing = [
        f"{name}({argument})"
        for name, call in public_calls()
        for argument in sorted(defaulted(call))
        if (code_of(call), argument) not in rows
    ]
    assert not missing, " ".join(missing)
