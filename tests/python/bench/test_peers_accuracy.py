"""Errors against float64: where the two measures come from, and how a side's are taken."""

import os
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from model import numpy_rnn
from model.numpy_layout import Spec
from peers import accuracy, agreement, measure, problem, protocol
from peers.accuracy import storage
from peers.lines import Line, Network, accuracy_lines, gate_set
from peers.workers import layout, server

BENCH = str(Path(__file__).resolve().parents[3] / "bench")
CELLS = ("lstm", "gru", "rnn_tanh")
SMALL = Network("lstm", 2, 5, 3, 7, directions=2)


def task_of(network, folder):
    """What a worker makes of the problem in `folder`."""
    side = measure.BOUND
    words = measure.setup_command(Line("", network, "training", 1, ()), side, folder, "training")
    return server.Task.parse(words.split()[1:])


def written(network, folder, **how):
    """(x, r, parts) of a problem."""
    problem.write(Line("batches", network, "training", 1, (), **how), folder)
    task = task_of(network, folder)
    return task.array("x"), task.array("r"), layout.parts_of(task)


@pytest.mark.parametrize("cell,directions", list(product(CELLS, (1, 2))))
def test_storage_is_the_network(cell, directions, tmp_path):
    """In float64 nothing is rounded: the numbers of the NumPy model."""
    network = Network(cell, 2, 4, 3, 6, directions)
    x, r, parts = written(network, tmp_path / "work")
    found, gradients = storage.run(cell, parts, x, r, np.float64)
    both = "bidirectional" if directions == 2 else "unidirectional"
    params = np.load(tmp_path / "work" / "params.npy").astype(np.float64)
    y, h, c, tape = numpy_rnn.forward(Spec(cell, 2, 4, 4, direction=both), params, x)
    dx, _, _, dparams = numpy_rnn.backward(tape, r)
    wanted = {"y": y, "hn": h, "dx": dx} | ({"cn": c} if cell == "lstm" else {})
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        np.testing.assert_allclose(found[name], value, rtol=0, atol=1e-13, err_msg=name)
    np.testing.assert_allclose(layout.buffer_of(gradients), dparams, rtol=0, atol=1e-12)


def test_storage_rounds_a_sum_once(tmp_path):
    """A step of one unit and many inputs, whose terms cancel: one chain in float32 loses them."""
    random = np.random.default_rng(3)
    w = random.uniform(-1, 1, (1, 4000)).astype(np.float32)
    w[0, 2000:] = -w[0, :2000]
    x = np.concatenate([np.full(2000, 1e4), np.full(2000, 1e4) + 1e-3]).astype(np.float32)
    zero = np.zeros(1, np.float32)
    part = layout.Part(0, 0, w, np.zeros((1, 1), np.float32), zero, zero)
    r = np.ones((1, 1, 1), np.float32)
    found, (gradients,) = storage.run("rnn_tanh", [part], x[None, None], r)
    a = np.float32(np.float64(w[0]) @ np.float64(x))
    h = np.float32(np.tanh(np.float64(a)))
    assert found["y"].dtype == gradients.w.dtype == np.float32
    assert found["y"][0, 0, 0] == h and 0.01 < abs(h) < 1
    assert gradients.bw[0] == np.float32(1 - np.float64(h) ** 2)
    a = np.float32([1 + 2**-12])
    assert storage.fused(a, a, -np.float32([1]))[0] == 2**-11 + 2**-24


@pytest.fixture
def exact(tmp_path):
    """The worker, in a process of its own as always."""
    environment = dict(os.environ, PYTHONPATH=BENCH, PEERS_THREADS="1", CUDA_VISIBLE_DEVICES="")
    command = [sys.executable, "-m", "peers.accuracy.worker"]
    pool = protocol.Pool({"exact": command}, environment, tmp_path / "logs")
    pool.use_threads(1)
    yield pool
    pool.close()


@pytest.mark.parametrize("cell", CELLS)
def test_both_measures(cell, tmp_path, exact):
    """The engine in float64 is NumPy's float64; storage is float32's rounding away from it."""
    network = Network(cell, 1, 48, 6, 30)
    x, r, parts = written(network, tmp_path / "work")
    line = Line("batches", network, "training", 1, ())

    def command(what):
        side = measure.Side(what, "exact", "bound", (("what", what),))
        return measure.setup_command(line, side, tmp_path / "work", "training")

    source = accuracy.Source(exact, tmp_path / "exact")
    both = source.of(line, tmp_path / "work", command)
    found, gradients = storage.run(cell, parts, x, r, np.float64)
    found["dparams"] = layout.buffer_of(gradients)
    for name, value in found.items():
        assert both.values[name].dtype == np.float64 and both.storage[name].dtype == np.float32
        np.testing.assert_allclose(both.values[name], value.reshape(-1), rtol=0, atol=1e-11)
    off = accuracy.errors(line, both.storage, both.values)
    states = {"hn", "cn"} if cell == "lstm" else {"hn"}
    assert off.keys() == {"y", "dx", "dW", "db"} | states
    assert all(1e-8 < value < 1e-6 for value in off.values())
    # Of the same inputs it is not computed again: another line of them needs no worker.
    exact.close()
    exact._commands.clear()
    forward = Line("batches", network, "forward", 1, ())
    assert source.of(forward, tmp_path / "work", command).values.keys() == both.values.keys()


@pytest.mark.parametrize("cell", CELLS)
def test_both_measures_from_given_states(cell, tmp_path, exact):
    network = Network(cell, 2, 6, 3, 1, 2)
    line = Line("server", network, "forward", 1, ())
    problem.write(line, tmp_path / "work")
    task = task_of(network, tmp_path / "work")

    def command(what):
        side = measure.Side(what, "exact", "bound", (("what", what),))
        return measure.setup_command(line, side, tmp_path / "work", "training")

    source = accuracy.Source(exact, tmp_path / "exact")
    both = source.of(line, tmp_path / "work", command)
    params = np.load(tmp_path / "work" / "params.npy").astype(np.float64)
    spec = Spec(cell, 2, 6, 6, direction="bidirectional")
    y, h, c, _ = numpy_rnn.forward(spec, params, task.array("x"), *task.states())
    wanted = {"y": y, "hn": h} | ({"cn": c} if cell == "lstm" else {})
    for name, value in wanted.items():
        np.testing.assert_allclose(both.values[name], value.reshape(-1), rtol=0, atol=1e-13)
        assert 1e-9 < np.abs(both.storage[name] - both.values[name]).max() < 1e-6
    # Other states are another problem.
    np.save(tmp_path / "work" / "h0.npy", task.array("h0") / 2)
    other = source.of(line, tmp_path / "work", command)
    assert np.abs(other.values["y"] - both.values["y"]).max() > 1e-3


def test_gradients_of_weights_and_biases_are_apart_when_thinned():
    network = Network("lstm", 1, 512, 1, 1)
    buffer = np.zeros(problem.params_size(network), np.float32)
    assert buffer.size > 2 * server.MOST_ELEMENTS
    buffer[problem.weights_size(network) :] = 1  # 2 * 4 * 512 of them
    found = accuracy.quantities(network, {"dparams": server.thin(buffer)})
    assert list(found) == ["dW", "db"]
    assert not found["dW"].any() and found["db"].all() and found["db"].size == 4096 // 3
    whole = accuracy.quantities(SMALL, {"dparams": np.arange(problem.params_size(SMALL))})
    assert whole["db"].size == 2 * 2 * 2 * 4 * 5 and whole["db"][0] == problem.weights_size(SMALL)


def test_errors_are_taken_where_rows_are_valid():
    line = Line("padding", Network("lstm", 1, 2, 2, 3), "forward", 1, (), padded=True)
    mask = agreement.valid_positions(line, np.array([3, 1], np.int32))
    wanted = {"y": np.ones(12), "hn": np.ones(4), "dx": np.full(12, 2.0)}
    found = {name: value.astype(np.float32) for name, value in wanted.items()}
    found["hn"][:], found["dx"][0] = 5, 2.5
    found["y"].reshape(3, 2, 2)[2, 1] = 9  # past the end of the second row
    assert accuracy.errors(line, found, wanted, mask) == {"y": 0.0, "dx": 0.5 / np.sqrt(48)}
    assert accuracy.errors(line, found, wanted)["hn"] == 4.0
    found["y"][0] = np.nan
    assert accuracy.errors(line, found, wanted, mask)["y"] == float("inf")


def test_float64_is_stored_as_it_is():
    assert server.stored(np.full(3, 1 / 3)).dtype == np.float64
    assert server.stored(np.full(3, 1, np.int32)).dtype == np.float32
    assert server.stored([[0.5]]).shape == (1,)


def test_the_lines(tmp_path):
    lines = accuracy_lines()
    assert {line.name for line in lines} <= {line.name for line in gate_set()}
    assert all("accuracy" in line.name and not line.timed for line in lines)
    assert [line.network.cell for line in lines] == ["lstm", "lstm", "lstm", "gru", "rnn_tanh"]
    for line in gate_set():
        other = "math", "weights", "model", "memory", "company", "cells"
        timed_alone = line.group in other or line.group.startswith("dropin")
        assert line.against_float64 != timed_alone
    assert "PyTorch aten" in {side.key for side in lines[0].sides}
    *_, parts = written(Network("rnn_tanh", 2, 4, 3, 2), tmp_path / "work", weights=0.005)
    for part in parts:
        assert (part.bw == 1).all() and (part.br == 1).all()
        assert 0 < np.abs(part.w).max() <= 0.005 and 0 < np.abs(part.r).max() <= 0.005
