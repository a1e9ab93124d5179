"""Calls under Keras's jax backend over a stand-in for JAX, against the engine on NumPy's arrays."""

import sys
from pathlib import Path
from types import SimpleNamespace

import keras
import numpy as np
import openrnn
import pytest
from framework import BACKEND
from openrnn.keras import _cells, _host

sys.path.append(str(Path(__file__).parents[2] / "jax_frames"))
import numpy_jax

pytestmark = pytest.mark.skipif(BACKEND == "jax", reason="JAX itself is there")


@pytest.fixture(scope="module")
def calls():
    with numpy_jax.installed():
        from openrnn.keras import _jax

        yield _jax


def call_of(name, both, mask, flags, bias=True):
    """(place, arrays, mask) of a call."""
    cell = getattr(keras.layers, f"{name}Cell")(4, use_bias=bias)
    cell.build((3, 2))
    place = _cells.place_of(cell, 2, "float32", flags, both=both)
    random = np.random.default_rng(3)
    draw = lambda *shape: random.normal(size=shape).astype("float32")
    weights = [draw(*v.shape) for v in (cell.kernel, cell.recurrent_kernel)]
    weights.append(draw(*cell.bias.shape) if bias else None)
    states = [draw(3, 4), draw(3, 4) if name == "LSTM" else None]
    times = 2 if both else 1
    return place, [draw(3, 5, 2), *states * times, *weights * times], mask


MASK = np.array([[1, 1, 0, 1, 0], [0, 1, 1, 1, 1], [0, 0, 0, 0, 0]], bool)
FLAGS = [(False, True, False), (True, False, False), (False, True, True)]


@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize("mask", [None, MASK], ids=["none", "holes"])
@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("name", ["LSTM", "GRU", "SimpleRNN"])
def test_results_and_gradients(calls, name, both, mask, flags):
    flags = (False, *flags[1:]) if both else flags
    place, arrays, mask = call_of(name, both, mask, flags, bias=not (both and name == "GRU"))
    right, saved = _host.forward(place, arrays, mask, True)
    found = calls.run(place, arrays, mask, True)
    for a, b in zip(found, right, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            np.testing.assert_array_equal(a, b)

    # Of some arrays, from some outputs.
    there = [each for each in range(len(arrays)) if arrays[each] is not None]
    random = np.random.default_rng(5)
    grads = [None if each is None else random.normal(size=each.shape).astype("float32") for each in right]
    for wanted, dropped in ((there, None), (there[:1], 1), (there[-2:], 0)):
        marked = [None if each is None else SimpleNamespace(value=each, perturbed=n in wanted)
                  for n, each in enumerate(arrays)]
        run = place.function
        made, kept = run.keep(tuple(marked), None if mask is None else SimpleNamespace(value=mask))
        assert len(made) == sum(each is not None for each in right)
        given = [None if n == dropped else each for n, each in enumerate(grads)]
        symbolic = [numpy_jax.SymbolicZero() if each is None else each
                    for each, value in zip(given, right, strict=True) if value is not None]
        gradients, nothing = run.first(kept, symbolic)
        assert nothing is None
        exact = _host.backward(saved, given, _host.likes(arrays), [n in wanted for n in range(len(arrays))])
        for a, b in zip(gradients, exact, strict=True):
            assert (a is None) == (b is None)
            if a is not None:
                np.testing.assert_array_equal(a, b)


def test_second_derivatives_are_refused(calls):
    operand = np.zeros((1, 2, 2), "float32")
    with pytest.raises(openrnn.UnsupportedError, match=r"^\[openrnn.keras\] a second derivative of a recurrent"):
        calls._call("forward", [], {}).keep(operand)


def test_where_a_call_can_run(calls, monkeypatch):
    import jax

    x = np.zeros(3, "float32").view(jax.Array)
    x.devices = lambda: [SimpleNamespace(platform="cpu"), SimpleNamespace(platform="cuda")]
    assert not calls.on_cpu(x)
    x.devices = lambda: [SimpleNamespace(platform="cpu")]
    assert calls.on_cpu(x) and calls.on_cpu(jax.core.Tracer())

    # JAX counts what stands for an array among its arrays; only the compiled program has devices.
    class Traced(jax.Array, jax.core.Tracer):
        def devices(self):
            raise AssertionError("of a value that is not there yet")

    assert calls.on_cpu(np.zeros(3, "float32").view(Traced))
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert not calls.on_cpu(x)
