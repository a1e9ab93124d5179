"""A worker's results beside NumPy's float64, row by row."""

import os
from pathlib import Path

import numpy as np

from peers import __main__, agreement, measure, problem, protocol
from peers.accuracy import storage
from peers.lines import Line, Network, Side
from peers.workers import layout, server

ROOT = Path(__file__).resolve().parents[4]
# Programs in C++ that need no other library are built with the tests.
NATIVE = Path(os.environ.get("OPENRNN_BUILD_DIR", ROOT / "build/release")) / "peers"
MODES = ("lstm", "gru", "rnn_tanh")


def pool_of(folder, threads, packages=None, **more):
    """Every worker, in one process for each name; `packages` is a folder that comes first."""
    path = ([str(packages)] if packages else []) + [str(ROOT / "bench")]
    environment = dict(
        os.environ, PYTHONPATH=os.pathsep.join(path), CUDA_VISIBLE_DEVICES="",
        OPENRNN_ORT_LOOP=str(NATIVE / "libort_loop.so"), **more,
    )  # fmt: skip
    found = protocol.Pool(__main__.commands(NATIVE), environment, folder)
    found.use_threads(threads)
    return found


def line_of(cell, directions, work="forward", padded=False, option=""):
    """Sizes that differ; of two layers, a cell with options of one."""
    network = Network(cell, 2 if not option else 1, 5, 3, 7, directions)
    return Line("batches", network, work, 1, (), padded=padded, option=option)


def side_of(worker, padded=False):
    """One that is told the lengths where there are some."""
    return Side("a side", worker, options=(("lengths", "given"),) if padded else ())


def set_up(pool, line, side, folder):
    """(worker, kernel) of a side that has the line's problem."""
    problem.write(line, folder / "work")
    worker = pool.get(measure.worker_name(side))
    return worker, worker.ask(measure.setup_command(line, side, folder / "work", line.work))


def results_of(worker, folder):
    """What a side writes, flat."""
    worker.ask(f"output {folder / 'out'}")
    return agreement.read(folder / "out")


def wanted_of(line, folder):
    """Row by row in NumPy's float64, each as long as it is."""
    side = Side("", "openrnn_layers")
    words = measure.setup_command(line, side, folder / "work", line.work).split()[1:]
    task = server.Task.parse(words)
    x, r, parts = task.array("x"), task.array("r"), layout.parts_of(task)
    time, batch = x.shape[:2]
    lengths = task.array("lengths") if line.padded else [time] * batch
    states = (len(parts), batch, line.network.units)
    found = {"y": np.zeros(r.shape), "dx": np.zeros(x.shape), "hn": np.zeros(states)}
    found |= {"cn": np.zeros(states)} if line.network.cell == "lstm" else {}
    buffer = 0.0
    for row, length in enumerate(lengths):
        of_row, gradients = storage.run(
            line.network.cell, parts, x[:length, [row]], r[:length, [row]], np.float64,
            [state[:, [row]] for state in task.states()],
        )  # fmt: skip
        for name, value in of_row.items():
            place = slice(length) if name in ("y", "dx") else slice(None)
            found[name][place, [row]] = value
        buffer = buffer + layout.buffer_of(gradients)
    return found | {"dparams": buffer}


def check(line, found, folder):
    """All results that the pass has, outputs where rows are valid."""
    wanted = wanted_of(line, folder)
    names = {"y", "hn"} | ({"cn"} if line.network.cell == "lstm" else set())
    names |= {"dx", "dparams"} if line.work == "training" else set()
    assert found.keys() == names
    mask = np.ones(wanted["y"].size, bool)
    if line.padded:
        lengths = np.load(folder / "work" / "lengths.npy")
        mask = agreement.valid_positions(line, lengths)
        assert 0 < np.count_nonzero(~mask) < mask.size
    for name, value in found.items():
        mine, other = value, wanted[name].reshape(-1)
        if name == "y":
            mine, other = mine[mask], other[mask]
        assert agreement.difference(mine, other) < 2e-6, name


def check_a_step(worker, cell, directions, pool, folder):
    """A step of streams from states that are given, with every call the same ones."""
    line = Line("server", Network(cell, 2, 5, 3, 1, directions), "forward", 1, ())
    process, _ = set_up(pool, line, side_of(worker), folder)
    for name in ("h0", "c0") if cell == "lstm" else ("h0",):
        state = np.load(folder / "work" / f"{name}.npy")
        assert state.shape == (2 * directions, 3, 5) and np.unique(state).size == state.size
    check(line, results_of(process, folder), folder)
    assert len(process.times(2, 1)) == 2
    check(line, results_of(process, folder), folder)
