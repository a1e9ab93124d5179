"""Calls under Keras's torch backend over a stand-in for PyTorch, and those under its numpy backend,
against the engine on NumPy's arrays."""

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from framework import BACKEND
from openrnn.keras import _host
from test_jax_stand_in import FLAGS, MASK, call_of

sys.path.append(str(Path(__file__).parents[2] / "pytorch" / "over_numpy"))
import numpy_torch

pytestmark = pytest.mark.skipif(BACKEND == "torch", reason="PyTorch itself is there")


@pytest.fixture(scope="module")
def calls():
    with numpy_torch.installed():
        from openrnn.keras import _torch

        yield _torch


@pytest.fixture
def asked(monkeypatch):
    """(saving, threads) of forward calls; (gradients that are there, wanted) of backward passes."""
    found, forward, backward = [], _host.forward, _host.backward

    def count_forward(place, arrays, mask, saving, threads=0):
        found.append((saving, threads))
        return forward(place, arrays, mask, saving, threads)

    def count_backward(saved, grads, likes, wanted):
        found.append(([each is not None for each in grads], list(wanted)))
        return backward(saved, grads, likes, wanted)

    monkeypatch.setattr(_host, "forward", count_forward)
    monkeypatch.setattr(_host, "backward", count_backward)
    return found


class Strict(numpy_torch.Tensor):
    """Whose array PyTorch gives only to those who say that it may be part of a graph."""

    def numpy(self, force=False):
        assert force is True
        return super().numpy()


def tensors_of(arrays, wanted=()):
    return [None if each is None else Strict(each.copy(), requires_grad=n in wanted)
            for n, each in enumerate(arrays)]


def same(found, right):
    for a, b in zip(found, right, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            np.testing.assert_array_equal(getattr(a, "array", a), b)


@pytest.mark.parametrize("name", ["LSTM", "GRU", "SimpleRNN"])
@pytest.mark.parametrize("both", [False, True])
def test_results_and_gradients(calls, asked, name, both):
    for flags in FLAGS:
        for mask in (None, MASK):
            flags = (False, *flags[1:]) if both else flags
            place, arrays, _ = call_of(name, both, mask, flags, bias=not (both and name == "GRU"))
            check(calls, asked, place, arrays, mask)


def check(calls, asked, place, arrays, mask):
    right, saved = _host.forward(place, arrays, mask, True)
    there = [n for n, each in enumerate(arrays) if each is not None]
    random = np.random.default_rng(5)
    grads = [None if each is None else random.normal(size=each.shape).astype("float32") for each in right]
    for wanted, dropped in ((there, None), (there[:1], 1), (there[-2:], 0)):
        tensors = tensors_of(arrays, wanted)
        asked.clear()
        with numpy_torch.told(threads=3):
            outputs = calls.run(place, tensors, None if mask is None else Strict(mask), True)
        assert asked == [(True, 3)]
        same(outputs, right)
        for each in tensors:
            if each is not None:
                each.array[...] = 7  # what was saved is its own
        given = [None if n == dropped else each for n, each in enumerate(grads)]
        used = [n for n, each in enumerate(given) if each is not None]
        found = numpy_torch.grad([outputs[n] for n in used], tensors, [numpy_torch.Tensor(given[n]) for n in used])
        flags = [n in wanted for n in range(len(arrays))]
        assert asked[1] == ([each is not None for each in given], flags)
        likes = [None if each is None else (each.shape, each.dtype) for each in arrays]
        same([found[n] if n in wanted else None for n in range(len(arrays))],
             _host.backward(saved, given, likes, flags))


def test_calls_without_a_gradient_save_nothing(calls, asked):
    place, arrays, _ = call_of("GRU", False, None, FLAGS[0])
    right = _host.forward(place, arrays, MASK, False)[0]
    for way, wanted in (({"grad": False}, {0}), ({}, ())):
        asked.clear()
        with numpy_torch.told(threads=5, **way):
            found = calls.run(place, tensors_of(arrays, wanted), Strict(MASK), True)
        assert asked == [(False, 5)]
        same(found, right)
        assert not any(each.requires_grad for each in found if each is not None)


def test_a_backward_pass_of_nothing(calls, asked):
    context = SimpleNamespace(needs_input_grad=(False, False, True, True))
    assert calls.Recurrent.backward(context, None, None, None) == (None,) * 4
    assert not asked
    assert calls.Recurrent.backward.once  # a second derivative is refused
    assert calls.run.disabled  # a compiler leaves its graph


def test_where_a_call_can_run(calls):
    for kind in ("cpu", "cuda"):
        assert calls.on_cpu(SimpleNamespace(device=SimpleNamespace(type=kind))) is (kind == "cpu")


def test_the_numpy_backend(asked):
    from openrnn.keras import _numpy

    assert _numpy.on_cpu(object()) is True
    for name in ("LSTM", "GRU"):
        place, arrays, _ = call_of(name, False, None, FLAGS[0])
        right = _host.forward(place, arrays, MASK, False)[0]
        asked.clear()
        same(_numpy.run(place, arrays, MASK, True), right)
        assert asked == [(False, 0)]
