"""The language model of the workers, ours and Keras's, against NumPy: losses of the first steps."""

from pathlib import Path

import numpy as np
import pytest

from model import numpy_rnn
from model.numpy_layout import Spec
from peer_checks import pool_of

from peers import agreement, measure, problem
from peers.lines import Line, Network, Side

LINE = Line("model", Network("lstm", 1, 24, 4, 6), "model", 1, ())
RATE, CLIP = 0.002, 1.0
BETAS, EPSILON = (0.9, 0.999), 1e-8


@pytest.fixture(scope="module")
def pools(tmp_path_factory):
    """One with the frameworks that there are, one with stand-ins."""
    found = [
        pool_of(tmp_path_factory.mktemp("logs"), 1, packages)
        for packages in (None, Path(__file__).parent / "stand_ins")
    ]
    yield found
    for pool in found:
        pool.close()


class Adam:
    """Of all arrays, their gradients clipped by the norm of all."""

    def __init__(self, arrays):
        self.arrays, self.steps = arrays, 0
        self.slots = [[np.zeros(a.shape), np.zeros(a.shape)] for a in arrays]

    def step(self, gradients):
        norm = np.sqrt(sum(float((g * g).sum()) for g in gradients))
        self.steps += 1
        powers = [beta**self.steps for beta in BETAS]
        rate = RATE * np.sqrt(1 - powers[1]) / (1 - powers[0])
        for array, slots, gradient in zip(self.arrays, self.slots, gradients, strict=True):
            gradient = gradient * min(1.0, CLIP / norm)
            for slot, beta, value in zip(slots, BETAS, (gradient, gradient**2), strict=True):
                slot[...] = beta * slot + (1 - beta) * value
            array -= rate * slots[0] / (np.sqrt(slots[1]) + EPSILON)
        return norm


def losses_of(arrays, single_bias):
    """(four losses, norms of the gradients): the state goes on, with one bias or two for each gate."""
    ids = arrays.pop("ids")
    parts = {name: value.astype(np.float64) for name, value in arrays.items()}
    embedding, params, dense, bias = (parts[n] for n in ("embedding", "params", "dense", "bias"))
    units, spec = dense.shape[0], Spec("lstm", 1, dense.shape[0], embedding.shape[1])
    count = 4 * units
    if single_bias:
        params[-2 * count : -count] += params[-count:]
        params[-count:] = 0
    optimizer, state, losses, norms = Adam([embedding, params, dense, bias]), (None, None), [], []
    for window in ids[:4]:
        inputs, targets = window[:-1], window[1:]
        y, h, c, tape = numpy_rnn.forward(spec, params, embedding[inputs], *state)
        logits = y @ dense + bias
        chances = np.exp(logits - logits.max(axis=2, keepdims=True))
        chances /= chances.sum(axis=2, keepdims=True)
        wanted = np.eye(len(bias))[targets]
        losses.append(-np.log((chances * wanted).sum(axis=2)).mean())
        dlogits = (chances - wanted) / targets.size
        dx, _, _, dparams = numpy_rnn.backward(tape, dlogits @ dense.T)
        dembedding = np.zeros(embedding.shape)
        np.add.at(dembedding, inputs, dx)
        if single_bias:
            dparams[-count:] = 0
        ddense = np.tensordot(y, dlogits, ((0, 1), (0, 1)))
        norms.append(optimizer.step([dembedding, dparams, ddense, dlogits.sum((0, 1))]))
        state = h, c
    return np.array(losses), norms


@pytest.mark.parametrize("name,worker,options", [
    ("OpenRNN", "openrnn_layers", ()), ("Keras", "keras_tensorflow", ()),
    ("Keras XLA", "keras_tensorflow", (("jit", "1"),)), ("PyTorch", "pytorch", ()),
])  # fmt: skip
def test_losses(name, worker, options, pools, tmp_path):
    problem.write(LINE, tmp_path / "work")
    side = Side(name, worker, options=options)
    process = pools[name == "PyTorch"].get(measure.worker_name(side))
    kernel = process.ask(measure.setup_command(LINE, side, tmp_path / "work", "model"))
    assert kernel == {
        "OpenRNN": "layers, GradientTape, AdamOptimizer", "Keras": "a step in tf.function",
        "Keras XLA": "a step under XLA", "PyTorch": "eager, Adam(fused=True)",
    }[name]  # fmt: skip
    process.ask(f"output {tmp_path / 'out'}")
    found = agreement.read(tmp_path / "out")
    assert found.keys() == {"losses"}
    arrays = problem.language_model_arrays(LINE)
    wanted, _ = losses_of(arrays, single_bias="Keras" in name)
    np.testing.assert_allclose(found["losses"], wanted, rtol=2e-5)


def test_what_the_losses_can_tell():
    """They begin near a guess among 96 symbols. One bias instead of two is seen, and is close enough
    for a comparison of libraries."""
    two, norms = losses_of(problem.language_model_arrays(LINE), False)
    one, _ = losses_of(problem.language_model_arrays(LINE), True)
    assert abs(two[0] - np.log(problem.SYMBOLS)) < 0.2 and one[0] == two[0]
    assert 1e-4 < np.abs(one / two - 1).max() < agreement.LOSSES == 5e-3
    assert 0 < max(norms) < CLIP


def test_inputs_of_the_language_model():
    arrays = problem.language_model_arrays(LINE)
    assert {name: value.shape for name, value in arrays.items()} == {
        "embedding": (96, 64), "params": (4 * 24 * (64 + 24 + 2),), "dense": (24, 96), "bias": (96,),
        "ids": (16, 7, 4),
    }  # fmt: skip
    assert all(value.dtype == np.float32 for name, value in arrays.items() if name != "ids")
    ids = arrays["ids"]
    assert ids.dtype == np.int32 and ids.min() == 0 and ids.max() < 96
    assert np.bincount(ids.reshape(-1)).argmax() == 0  # skewed as letters are
    for name in ("embedding", "params", "dense"):
        most = np.abs(arrays[name]).max()
        assert 0.9 * 24**-0.5 < most <= np.float32(24**-0.5) and (arrays[name] < 0).any()
    assert not arrays["bias"].any()
    again = problem.language_model_arrays(LINE)
    assert all((again[name] == value).all() for name, value in arrays.items())
