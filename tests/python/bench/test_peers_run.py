"""The protocol, a whole line and the kept results, with workers that compute nothing."""

import json
import os
import signal
import sys
from argparse import Namespace
from dataclasses import replace
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from peers import __main__, agreement, measure, problem, protocol, store
from peers.lines import Line, Network, Side, full_set, gate_set
from peers.progress import Progress
from peers.workers import layout, server

FAKE = str(Path(__file__).with_name("fake_worker.py"))
NETWORK = Network("lstm", 1, 3, 2, 4)


@pytest.fixture
def environment():
    """Of a worker: it finds the package."""
    bench = str(Path(__file__).resolve().parents[3] / "bench")
    return dict(os.environ, PYTHONPATH=bench, PEERS_THREADS="1")


@pytest.fixture
def start(tmp_path, environment):
    """Starts a fake worker; all of them end with the test."""
    started = []

    def make(what, number=1.0):
        command = [sys.executable, FAKE, what, str(number)]
        worker = protocol.Worker(command, environment, tmp_path / f"{what}.log")
        started.append(worker)
        return worker

    yield make
    for worker in started:
        worker.kill()


@pytest.fixture
def folder(tmp_path):
    """With the inputs of a small problem."""
    path = tmp_path / "work"
    problem.write(Line("batches", NETWORK, "forward", 1, ()), path)
    return path


def state_of(worker):
    """'T' while it is stopped."""
    text = Path(f"/proc/{worker._process.pid}/stat").read_text()
    return text.rsplit(")", 1)[1].split()[0]


def test_a_worker_answers_and_is_stopped_between(start, folder, tmp_path):
    worker = start("scale", 2.0)
    assert worker.ask("about") == "Fake 1.0"
    assert worker.ask(f"setup folder={folder} pass=forward") == "fake scale"
    times = worker.times(3, 1)
    assert len(times) == 3 and all(time > 1e4 for time in times)
    assert worker.ask(f"output {tmp_path / 'out'}") == ""
    x, y = np.load(folder / "x.npy"), np.load(tmp_path / "out" / "y.npy")
    assert np.array_equal(y, 2 * x.reshape(-1))
    assert state_of(worker) == "T"
    assert worker.ask("release") == ""
    with pytest.raises(protocol.WorkerError, match="run without a job"):
        worker.times(1, 0)
    with pytest.raises(protocol.WorkerError, match="dance"):
        worker.ask(f"setup folder={folder}") and worker.ask("dance")


def test_memory_counts_from_the_mark(start, folder):
    worker = start("scale")
    worker.ask("mark")
    worker.ask(f"setup folder={folder}")
    worker.ask("reset")
    worker.times(1, 0)
    assert 0 <= int(worker.ask("memory")) < 1 << 28


def test_refusals_and_failures_are_told_apart(start, folder):
    with pytest.raises(protocol.Refusal, match="never heard of it"):
        start("refuse").ask(f"setup folder={folder}")
    worker = start("raise")
    worker.ask(f"setup folder={folder}")
    with pytest.raises(protocol.WorkerError, match="RuntimeError: no such kernel"):
        worker.times(1, 0)
    assert worker.alive
    worker = start("die")
    worker.ask(f"setup folder={folder}")
    with pytest.raises(protocol.WorkerError, match="ended: last words"):
        worker.times(1, 0)
    assert not worker.alive
    worker = start("hang")
    worker.ask(f"setup folder={folder}")
    with pytest.raises(protocol.WorkerError, match="no answer within"):
        worker.ask("run 1 0", limit=0.2)
    assert not worker.alive
    with pytest.raises(protocol.WorkerError, match="cannot be started"):
        protocol.Worker(["/no/such/program"], {}, folder / "log")


def test_a_peer_is_dropped_for_one_of_its_language(tmp_path):
    """Ours from C++ is so fast in short calls that nothing called from Python would be timed."""
    sides = (Side("OpenRNN", "openrnn_layers", "ours"), Side("OpenRNN C++", "openrnn_core", "ours"),
             Side("near", "pytorch"), Side("far", "pytorch"), Side("oneDNN", "onednn"))  # fmt: skip
    run = measure.LineRun(Line("streaming", NETWORK, "forward", 1, sides), None, tmp_path, 1.0, None)
    times = {"OpenRNN": 5.0, "OpenRNN C++": 0.5, "near": 14.0, "far": 16.0, "oneDNN": 4.0}
    for entry in run.entries:
        entry.rounds = [times[entry.side.key]] * measure.FEWEST_ROUNDS
    running = run._still_running(measure.FEWEST_ROUNDS)
    assert [entry.side.key for entry in running] == ["OpenRNN", "OpenRNN C++", "near"]
    assert len(run._still_running(measure.FEWEST_ROUNDS - 1)) == 5


def test_a_line(tmp_path, environment):
    """Ours, a peer that agrees, one that does not, one that refuses, one that dies, one slow."""
    kinds = {
        "ours": ("scale", 1.0), "good": ("scale", 1.0), "wrong": ("scale", 1.01),
        "absent": ("refuse", 0.0), "dead": ("die", 0.0), "slow": ("slow", 3.0),
    }  # fmt: skip
    sides = tuple(Side(name, name, "ours" if name == "ours" else "peer") for name in kinds)
    kinds["exact"] = ("exact", 1.0)  # float64, and what float32 storage allows
    commands = {name: [sys.executable, FAKE, a, str(b)] for name, (a, b) in kinds.items()}
    pool = protocol.Pool(commands, environment, tmp_path / "logs")
    pool.use_threads(1)
    line = Line("batches", NETWORK, "forward", 1, sides)
    try:
        entries = measure.LineRun(line, pool, tmp_path / "work", 0.3).run()
    finally:
        pool.close()
    found = {entry.side.key: entry for entry in entries}
    assert (found["ours"].about, found["ours"].kernel) == ("Fake 1.0", "fake scale")
    assert found["ours"].agrees and found["good"].agrees and not found["wrong"].agrees
    assert found["wrong"].differs_in == "y" and abs(found["wrong"].difference - 0.01) < 1e-4
    assert "never heard of it" in found["absent"].reason
    assert "last words" in found["dead"].reason
    assert found["ours"].errors == {"y": 0.0} and abs(found["wrong"].errors["y"] - 0.01) < 1e-4
    assert found["float32 storage"].errors == {"y": 0.0} and not found["absent"].errors
    rounds = len(found["ours"].rounds)
    assert rounds >= measure.FEWEST_ROUNDS
    assert all(value and value > 1e5 for value in found["ours"].rounds)
    # 30 times slower: as many rounds as are needed to see it, empty ones after that.
    timed = [value for value in found["slow"].rounds if value is not None]
    assert len(found["slow"].rounds) == rounds and len(timed) == measure.FEWEST_ROUNDS
    json.dumps([entry.as_json() for entry in entries])


def test_workers_of_another_number_of_threads_end(tmp_path, environment):
    pool = protocol.Pool({"a": [sys.executable, FAKE, "scale", "1"]}, environment, tmp_path)
    try:
        pool.use_threads(1)
        first = pool.get("a")
        assert pool.get("a") is first and pool.get("a#other") is not first
        os.kill(first._process.pid, signal.SIGKILL)
        first._process.wait()
        second = pool.get("a")
        assert second is not first
        pool.use_threads(2)
        assert not second.alive
    finally:
        pool.close()


def test_store_survives_a_cut_off_line(tmp_path):
    path = tmp_path / "deep" / "results.jsonl"
    kept = store.Store(path)
    kept.add("a", {"line": "one"})
    kept.add("a", {"line": "two"})
    path.write_text(path.read_text() + '{"key": "b", "li')
    again = store.Store(path)
    assert again.get("a") == {"key": "a", "line": "two"} and again.get("b") is None
    again.add("c", {"line": "three"})
    assert store.Store(path).get("c") == {"key": "c", "line": "three"}


def test_keys_follow_the_setting():
    setting = {"versions": {"torch": "2.0"}, "cores": 2}
    assert store.key_of("line", setting) == store.key_of("line", dict(setting))
    assert store.key_of("line", setting) != store.key_of("line", {**setting, "cores": 1})
    assert store.key_of("line", setting) != store.key_of("other", setting)


def test_keys_follow_the_line_and_its_sides():
    line = Line("batches", NETWORK, "forward", 1, (Side("JAX", "jax_scan"),))
    setting = {"cores": 2}
    assert __main__.key(line, setting) == __main__.key(replace(line), setting)
    changed = [
        replace(line, sides=(Side("JAX", "jax_scan", options=(("drop_in", "1"),)),)),
        replace(line, sides=(*line.sides, Side("PyTorch", "pytorch"))),
        replace(line, weights=0.5),
    ]
    keys = {__main__.key(each, setting) for each in changed}
    assert len(keys | {__main__.key(line, setting)}) == 4
    assert {each.name for each in changed} == {line.name}
    json.dumps([__main__.key(each, setting) for each in full_set()])


@pytest.mark.parametrize(
    "name", ["__init__.py", "keras/_loop.py", "_core.abi3.so", "bin/openrnn_core", "bin/onednn"]
)
def test_the_fingerprint_follows_what_is_ours(name, tmp_path, monkeypatch):
    """Python code of the package, too: a call of a drop-in is more than the engine."""
    for each in ("__init__.py", "keras/_loop.py", "_core.abi3.so", "bin/openrnn_core", "bin/onednn"):
        (tmp_path / each).parent.mkdir(exist_ok=True)
        (tmp_path / each).write_text("1")
    package = ModuleType("openrnn")
    package.__file__ = str(tmp_path / "__init__.py")
    monkeypatch.setitem(sys.modules, "openrnn", package)
    own = lambda: store.fingerprint(__main__.own_files(tmp_path / "bin"))
    before = own()
    assert own() == before
    (tmp_path / name).write_text("2")
    assert own() != before
    workers = {path.name for path in __main__.own_files(tmp_path / "bin")}
    assert {"jax_scan.py", "tensorflow.py"} <= workers


@pytest.mark.parametrize("cores,most", [(1, 1), (2, 2), (3, 2), (4, 4), (64, 4)])
def test_lines_have_no_more_threads_than_there_are_cores(cores, most, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)))
    options = Namespace(only="", full=False)
    found = __main__.lines_of(options)
    assert max(line.threads for line in found) == most
    assert [line.threads for line in found] == sorted(line.threads for line in found)
    four = {line.name for line in found if line.threads == 4}
    assert len(four) == (2 * (14 * 2 + 1) if most == 4 else 0)
    if four:
        assert "LSTM L4 U64 B1 T100, forward, 4 threads" in four
        assert "GRU L2 U256 B64 T1, forward, 4 threads" in four
        assert all(line.group == "four threads" for line in found if line.threads == 4)
        assert not any(s.key == "tract" for line in found if line.threads == 4 for s in line.sides)


def test_progress_tells_what_is_left():
    now = [0.0]
    stream = StringIO()
    progress = Progress([1.0, 3.0], stream, lambda: now[0])
    assert progress.remaining() == 4.0  # a guess of one second a unit
    now[0] = 10.0
    progress.advance()
    assert progress.remaining() == 30.0
    progress.show("a line")
    assert stream.getvalue() == "[##########..........] 1/2, 0:30 left: a line\n"


def test_parameters_are_cut_and_joined(tmp_path):
    """Two directions, two layers: every number lands in its place, and the gates turn."""
    network = Network("gru", 2, 3, 1, 1, directions=2)
    np.save(tmp_path / "params.npy", np.arange(problem.params_size(network), dtype=np.float32))
    task = server.Task.parse(
        f"folder={tmp_path} cell=gru layers=2 units=3 input=3 directions=2".split()
    )
    parts = layout.parts_of(task)
    assert [(p.layer, p.direction, p.w.shape) for p in parts] == [
        (0, 0, (9, 3)), (0, 1, (9, 3)), (1, 0, (9, 6)), (1, 1, (9, 6)),
    ]  # fmt: skip
    assert parts[0].r[0, 0] == 27 and parts[0].bw[0] == 270 and parts[0].br[0] == 279
    assert np.array_equal(layout.buffer_of(parts), task.array("params"))
    ordered = parts[0].reordered((1, 0, 2))
    assert np.array_equal(ordered.w[:3], parts[0].w[3:6])
    assert np.array_equal(ordered.bw[3:6], parts[0].bw[:3])


@pytest.mark.parametrize("batch,time", [(64, 30), (16, 100), (3, 7)])
def test_half_of_the_steps_are_padding(batch, time):
    network = Network("lstm", 1, 2, batch, time)
    lengths = problem.half_lengths(network, np.random.default_rng(1))
    assert lengths.sum() == batch * time // 2
    assert lengths.min() >= 1 and lengths.max() == time and len(set(lengths.tolist())) > 2


def test_results_are_compared_where_they_are_valid():
    network = Network("lstm", 1, 2, 2, 3)
    side = Side("peer", "peer")
    line = Line("padding", network, "forward", 1, (side,), padded=True)
    mask = agreement.valid_positions(line, np.array([3, 1], np.int32))
    wanted = np.ones((3, 2, 2), np.float32)
    found = wanted.copy()
    found[1:, 1] = 9.0  # past the end of the second row
    flat = {"y": found.reshape(-1), "hn": np.ones(4, np.float32)}
    other = {"y": wanted.reshape(-1), "hn": np.zeros(4, np.float32)}
    assert agreement.compare(side, flat, other, mask).within
    assert not agreement.compare(side, flat, other, None).within
    found[0, 1] = 9.0
    assert not agreement.compare(side, flat, other, mask).within
    flat["y"][:] = np.nan
    assert agreement.compare(side, flat, other, mask).difference == float("inf")


def test_large_results_are_thinned_evenly():
    large = np.arange(3 * server.MOST_ELEMENTS, dtype=np.float32)
    thinned = server.thin(large.reshape(3, -1))
    assert thinned.size <= server.MOST_ELEMENTS and thinned[1] == 3 and thinned[-1] > 0.99 * large[-1]
    assert np.array_equal(server.thin(large[:5]), large[:5])


def test_every_worker_of_a_line_can_be_started():
    commands = __main__.commands(Path("bin"))
    workers = {side.worker for line in [*gate_set(), *full_set()] for side in line.sides}
    assert workers <= commands.keys()
    assert commands["keras_jax"][-2:] == ["peers.workers.keras_layers", "jax"]
    for command in commands.values():
        if command[1:2] == ["-m"]:
            assert find_spec(command[2]) is not None
        if command[2:3] == ["peers.workers.keras_layers"]:
            assert find_spec(f"peers.workers.keras_calls.{command[3]}") is not None


def test_two_sides_of_a_line_are_two_processes():
    for line in gate_set():
        if line.group.startswith("dropin"):
            names = [measure.worker_name(side) for side in line.sides]
            assert len(set(names)) == len(names)


def test_a_second_run_into_one_folder_is_refused(tmp_path):
    held = __main__.hold(tmp_path / "out")
    with pytest.raises(SystemExit, match="another run"):
        __main__.hold(tmp_path / "out")
    os.close(held)
    os.close(__main__.hold(tmp_path / "out"))
