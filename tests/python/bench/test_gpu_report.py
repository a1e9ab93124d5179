"""The report of the GPU benchmark, on lines that are made up; and the bound of agreement."""

import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

from gpu import __main__ as program
from gpu import agreement, measure, report
from gpu.lines import ARITHMETICS, PASSES, Group, groups
from peers.lines import Network
from peers.protocol import Refusal, Worker, WorkerError
from peers.workers import server
from children import runs, until

BENCH = Path(__file__).resolve().parents[3] / "bench"
NETWORK = Network("lstm", 4, 512, 64, 30)


def line(ratio=1.2, pass_="inference", arithmetic="float32", within=True, ours=2e6):
    """As measure.as_json writes it."""
    group = Group(NETWORK, arithmetic)
    agrees = {"result": "hn", "difference": 3e-4, "within": within}
    times = {"ours": [ours] * 5, "torch": [ours * ratio] * 5}
    return measure.as_json(group, pass_, times, agrees) | {"about": {"ours": "A", "torch": "B"}}


def test_the_lines_are_the_ten_networks_and_the_batched_ones_at_256():
    found = list(groups())
    assert len(found) == 15 * 2 * 3 and len(set(found)) == len(found)
    assert sum(g.network.batch == 256 for g in found) == 5 * 2 * 3
    names = {g.line(p) for g in found for p in PASSES}
    assert len(names) == 270 and "GRU L4 U128 B256 T20, tf32, forward + backward" in names
    assert all(g.network.units <= 16 for g in groups(reduced=True))


def test_a_line_is_the_ratio_of_medians():
    times = {"ours": [1e6, 2e6, 9e6], "torch": [3e6, 3e6, 100e6]}
    found = measure.as_json(Group(NETWORK, "tf32"), "training", times, {"within": True})
    assert found["ratio"] == 1.5 and found["ours"]["calls"] == 3
    assert found["ours"]["low_ns"] == 1.5e6 and found["torch"]["high_ns"] == 51.5e6
    assert found["line"] == "LSTM L4 U512 B64 T30, tf32, forward + backward"
    json.dumps(found)


def test_means_are_geometric_and_leave_out_what_does_not_count():
    lines = [line(2.0), line(0.5), line(8.0, "training"), line(100.0, within=False)]
    lines += measure.refused(Group(NETWORK, "tf32"), "torch", "too old")
    found = report.means(lines)
    assert found["inference, float32"] == pytest.approx(1.0)
    assert found["forward + backward, float32"] == pytest.approx(8.0)
    assert found["all"] == pytest.approx(2.0) and "inference, tf32" not in found
    assert report.means([]) == {} and report.geometric_mean([]) is None


@pytest.mark.parametrize(
    ("ratios", "expected", "states"),
    [
        ([1.0, 1.3], 2, ["met", "met", "met"]),
        ([0.96, 2.0], 2, ["not met", "met", "met"]),
        ([1.0, 1.0], 2, ["met", "not met", "met"]),
        ([1.0, 1.3], 270, ["met so far", "met so far", "met so far"]),
        ([], 270, ["not measured", "not measured", "not measured"]),
    ],
)
def test_goals(ratios, expected, states):
    assert [g["state"] for g in report.goals([line(r) for r in ratios], expected)] == states


def test_a_line_that_differs_fails_the_goal_of_agreement_alone():
    found = report.goals([line(1.2), line(0.1, "training", within=False)], 2)
    assert [g["state"] for g in found] == ["met", "met", "not met"]
    assert found[2]["found"] == 1 and "forward + backward" in found[2]["where"]


def test_the_page_says_everything():
    lines = [line(1.2), line(0.5, "training", within=False)]
    lines += [found | {"about": {"ours": "A"}} for found in
              measure.refused(Group(NETWORK, "float16"), "ours", "no such thing")]  # fmt: skip
    page = report.markdown(lines, 270)
    assert "5 of 270 lines" in page and "- ours: A" in page and "- torch: B" in page
    assert "| 2 (2-2) | 2.4 (2.4-2.4) | 1.20 |" in page
    assert "does not count: hn differs by 3.0e-04" in page
    assert "float16, inference | - | - | ours: no such thing |" in page
    assert "not met: both sides compute the same on every line: 4" in page
    assert report.markdown([], 270)  # nothing is no accident


def test_what_an_older_gpu_has_not_is_skipped():
    reason = "EngineError: math 'tf32' needs a GPU of compute capability 8.0, this one has 7.5"
    lines = [line(1.2)]
    lines += [found | {"about": {}} for found in
              measure.refused(Group(NETWORK, "tf32"), "ours", reason)]  # fmt: skip
    assert [report.fails(l) for l in lines] == [False] * 4
    assert [g["state"] for g in report.goals(lines, 4)] == ["met"] * 3
    assert "tf32, inference | - | - | skipped: EngineError" in report.markdown(lines, 4)
    for arithmetic, why in (("float16", reason), ("tf32", "no memory")):
        assert all(map(report.fails, measure.refused(Group(NETWORK, arithmetic), "ours", why)))


def test_temporary_files_have_names_that_the_workers_can_read(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert program.scratch() == str(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", "/some where")
    assert program.scratch() == "/var/tmp"


def test_a_benchmark_that_is_ended_leaves_no_files(tmp_path):
    """Its worker never answers; the folder of its files goes, and the worker too."""
    silent = tmp_path / "silent"
    silent.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/made\nmv {tmp_path}/made {tmp_path}/worker\n"
                      "exec sleep 100\n")  # fmt: skip
    silent.chmod(0o755)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(BENCH), "TMPDIR": str(scratch)}
    command = [sys.executable, "-m", "gpu", "--program", str(silent), "--reduced"]
    process = subprocess.Popen([*command, "--lines", str(tmp_path / "lines")], env=environment)
    end = time.monotonic() + 30
    while not (tmp_path / "worker").exists():
        assert time.monotonic() < end and process.poll() is None
        time.sleep(0.02)
    assert len(list(scratch.iterdir())) == 1
    process.terminate()
    assert process.wait(30) == 128 + signal.SIGTERM
    assert list(scratch.iterdir()) == []
    worker = int((tmp_path / "worker").read_text())
    until(lambda: not runs(worker))


def test_agreement_tells_arithmetics_apart():
    """TF32 in place of float32, gates exchanged, a result left out."""
    random = np.random.default_rng(1)
    y = random.normal(size=4096).astype(np.float32)
    rounded = (y.view(np.uint32) + 0x1000 & 0xFFFFE000).view(np.float32)  # 10 bits, as TF32 reads
    exact, tf32 = Group(NETWORK, "float32"), Group(NETWORK, "tf32")
    ours, theirs = {"y": y, "dx": y}, {"y": rounded, "dx": y}
    assert agreement.worst(exact, ours, ours)["within"]
    found = agreement.worst(exact, ours, theirs)
    assert not found["within"] and found["result"] == "y"
    assert agreement.worst(tf32, ours, theirs)["within"]
    assert not agreement.worst(tf32, ours, {"y": y[::-1].copy(), "dx": y})["within"]
    lost = agreement.worst(exact, {"y": y}, ours)
    assert lost["result"] == "dx is missing" and not lost["within"]
    assert not agreement.worst(exact, ours, {"y": np.full_like(y, math.nan), "dx": y})["within"]


def test_the_bound_grows_with_what_rounds():
    limits = [agreement.limit(Group(NETWORK, a), "y") for a in ("float32", "tf32", "float16")]
    assert limits[0] < 1e-4 and limits[1] == limits[2] > 1e-3
    small = Group(Network("lstm", 1, 64, 1, 10), "float32")
    gradient = agreement.limit(Group(NETWORK, "float32"), "dparams")
    assert agreement.limit(small, "y") < limits[0] == pytest.approx(gradient / 3)


def test_lines_that_were_cut_off_are_measured_again(tmp_path):
    path = tmp_path / "lines"
    assert program.read_lines(path) == []
    whole = [json.dumps(line(1.0, p)) for p in PASSES]
    path.write_text("\n".join([*whole, whole[0][:40]]))
    assert [l["pass"] for l in program.read_lines(path)] == list(PASSES)
    known = program.read_lines(path)

    class Options:
        reduced = False

    missing = program.missing_groups(Options, known)
    assert len(missing) == 15 * 2 * len(ARITHMETICS) - 1
    assert Group(NETWORK, "float32") not in missing


class Pretender:
    """A worker that computes y = scale * x, and takes as long as it says."""

    alive = True

    def __init__(self, scale=1.0, ns=1e6, fails=""):
        self.scale, self.ns, self.fails, self.asked = scale, ns, fails, []

    def ask(self, command):
        self.asked.append(command)
        word, *rest = command.split()
        if word == self.fails:
            raise Refusal("never heard of it") if word == "setup" else WorkerError("it ended")
        if word == "setup":
            self.folder = Path(dict(w.split("=", 1) for w in rest if "=" in w)["folder"])
        if word == "output":
            Path(rest[0]).mkdir(exist_ok=True)
            np.save(Path(rest[0]) / "y.npy", np.load(self.folder / "x.npy") * np.float32(self.scale))
        return "faked"

    def times(self, count, warm):
        assert count >= 3 and warm > 0
        return [self.ns] * count


def sides_of(tmp_path, ours, theirs):
    return measure.Sides({"ours": ours, "torch": theirs}, tmp_path, {"torch": "device=cpu"})


SMALL = Group(Network("gru", 1, 3, 2, 4), "float32")


def test_a_group_is_set_up_once_and_timed_in_three_passes(tmp_path):
    ours, theirs = Pretender(), Pretender(ns=2.5e6)
    found = measure.run(SMALL, sides_of(tmp_path, ours, theirs), 0.0)
    assert [l["pass"] for l in found] == list(PASSES)
    assert all(l["ratio"] == 2.5 and report.counts(l) for l in found)
    assert sum(c.startswith("setup") for c in ours.asked) == 1 and ours.asked[-1] == "release"
    assert theirs.asked[0].endswith("arithmetic=float32 device=cpu")
    # 20 ms of calls a turn, three turns: the faster side has more calls.
    assert (found[0]["ours"]["calls"], found[0]["torch"]["calls"]) == (60, 24)


@pytest.mark.parametrize("fails", ["setup", "output"])
@pytest.mark.parametrize("side", ["ours", "torch"])
def test_a_side_that_cannot_is_in_every_line(tmp_path, side, fails):
    workers = {"ours": Pretender(), "torch": Pretender()}
    workers[side].fails = fails
    found = measure.run(SMALL, measure.Sides(workers, tmp_path), 0.0)
    assert len(found) == 3 and not any(report.counts(l) for l in found)
    assert {l["failed"] for l in found} == {side if fails == "setup" else "both"}


def test_sides_that_differ_are_timed_and_do_not_count(tmp_path):
    found = measure.run(SMALL, sides_of(tmp_path, Pretender(), Pretender(scale=1.001)), 0.0)
    assert all(l["agrees"]["result"] == "y" and not report.counts(l) for l in found)
    assert found[0]["agrees"]["difference"] == pytest.approx(1e-3, rel=0.01)


def test_the_problem_of_a_network_is_written_once(tmp_path):
    sides = sides_of(tmp_path, Pretender(), Pretender())
    measure.run(SMALL, sides, 0.0)
    (tmp_path / "x.npy").rename(tmp_path / "kept")
    sides.write_problem(Group(SMALL.network, "tf32"))
    assert not (tmp_path / "x.npy").exists()
    sides.write_problem(Group(Network("gru", 1, 3, 2, 5), "tf32"))
    assert np.load(tmp_path / "x.npy").shape == (5, 2, 3)


def test_a_job_with_passes_and_a_clock_of_its_own():
    """What the workers' protocol has for sides on a GPU."""

    class Job:
        kernel, pass_ = "k", ""

        def choose(self, pass_):
            self.pass_ = pass_

        def times(self, count, warm):
            return [1000.0 * (warm + n) for n in range(count)]

    jobs = []
    served = server.Server(lambda task: jobs.append(Job()) or jobs[-1], lambda: "About")
    assert served.answer("setup folder=x") == "ok k"
    assert served.answer("choose training") == "ok" and jobs[0].pass_ == "training"
    assert served.answer("run 3 2") == "times 2000.0 3000.0 4000.0"
    del Job.choose
    assert served.answer("choose training").startswith("error unknown command")


def test_a_worker_that_idles_without_cost_is_not_stopped(tmp_path):
    command = [sys.executable, "-c", "import sys\nfor _ in sys.stdin: print('ok x', flush=True)"]
    worker = Worker(command, {}, tmp_path / "log", stopping=False)
    try:
        assert worker.ask("about") == "x"
        stat = Path(f"/proc/{worker._process.pid}/stat").read_text()
        assert stat.rsplit(")", 1)[1].split()[0] != "T"
    finally:
        worker.kill()
