"""The program: which lines, what is kept of them, what is measured again."""

import json
import sys
from argparse import Namespace
from io import StringIO
from pathlib import Path

import pytest

from peers import __main__, measure, protocol, store
from peers.lines import Line, Network, Side, gate_set
from peers.progress import Progress, clock

NETWORK = Network("lstm", 1, 3, 2, 4)
SETTING = {"cores": 2}
OURS = (Side("OpenRNN", "openrnn_layers", "ours"), Side("JAX", "jax_scan"))


def line_of(time, work="forward", threads=1):
    return Line("batches", Network("lstm", 1, 3, 2, time), work, threads, OURS)


class Run:
    """In place of what measures a line."""

    made = []

    def __init__(self, line, pool, folder, seconds, tell):
        self.line, self.tell = line, tell
        folder.mkdir(parents=True, exist_ok=True)
        Run.made.append((line.name, pool.threads, folder, seconds))

    def run(self):
        self.tell("timing")
        return [measure.Entry(side, about="1.0") for side in self.line.sides]


class Pool:
    """In place of the workers."""

    made = []

    def __init__(self, commands, environment, logs):
        self.commands, self.environment, self.logs = commands, environment, logs
        self.threads, self.closed = 0, False
        Pool.made.append(self)

    def use_threads(self, threads):
        self.threads = threads

    def close(self):
        self.closed = True


@pytest.fixture
def options(tmp_path, monkeypatch):
    """Of a run without workers."""
    monkeypatch.setattr(__main__, "LineRun", Run)
    monkeypatch.setattr(__main__, "Pool", Pool)
    monkeypatch.setattr(Run, "made", [])
    monkeypatch.setattr(Pool, "made", [])
    return Namespace(out=tmp_path / "out", native=tmp_path / "bin", fresh=False, quick=False)


def test_finished_lines_are_kept(options):
    first, second = line_of(4), line_of(5, threads=2)
    found = __main__.measure([first, second], SETTING, options)
    assert [each["line"] for each in found] == [first.name, second.name]
    assert [side["side"] for side in found[0]["sides"]] == ["OpenRNN", "JAX"]
    work = options.out / "work"
    assert Run.made == [(first.name, 1, work, 5.0), (second.name, 2, work, 5.0)]
    assert len(found[0]["date"]) == len("2030-01-01T00:00:00")
    third = line_of(6)
    found = __main__.measure([second, third, first], SETTING, options)
    assert [name for name, *_ in Run.made[2:]] == [third.name]
    assert [each["line"] for each in found] == [second.name, third.name, first.name]
    __main__.measure([first], {"cores": 4}, options)
    options.fresh = options.quick = True
    __main__.measure([first], SETTING, options)
    assert [(made[0], made[3]) for made in Run.made[3:]] == [(first.name, 5.0), (first.name, 1.0)]
    written = [json.loads(line) for line in (options.out / "results.jsonl").read_text().splitlines()]
    assert [each["line"] for each in written] == [
        first.name, second.name, third.name, first.name, first.name]  # fmt: skip


def test_what_a_run_leaves(options):
    """Its inputs are removed and its workers end, also where it is interrupted."""
    for name in ("work", "exact", "other"):
        (options.out / name).mkdir(parents=True)
    __main__.measure([line_of(4)], SETTING, options)
    assert {path.name for path in options.out.iterdir()} == {"results.jsonl", "other"}
    (pool,) = Pool.made
    assert pool.closed and pool.logs == options.out / "logs"
    assert pool.commands == __main__.commands(options.native)
    assert pool.environment["OPENRNN_ORT_LOOP"] == str(options.native / "libort_loop.so")
    assert pool.environment["PATH"]


def test_an_interrupted_run_ends_its_workers(options, monkeypatch):
    def interrupt(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(Run, "run", interrupt)
    with pytest.raises(KeyboardInterrupt):
        __main__.measure([line_of(4)], SETTING, options)
    assert Pool.made[0].closed and not (options.out / "work").exists()


def test_memory_is_measured_its_own_way(options, monkeypatch):
    asked = []

    def memory(line, pool, folder, tell):
        asked.append((line.name, folder))
        return [measure.Entry(line.sides[0], memory=9)]

    monkeypatch.setattr(__main__, "measure_memory", memory)
    line = line_of(4, "memory", 2)
    (found,) = __main__.measure([line], SETTING, options)
    assert asked == [(line.name, options.out / "work")] and not Run.made
    assert found["sides"][0]["memory"] == 9


def test_the_time_that_a_line_may_take():
    line = line_of(4)
    assert __main__.weight(line) == pytest.approx(10 + 4 * 2 * NETWORK.forward_flop / 1e11)
    large = Line("batches", Network("lstm", 4, 1024, 64, 40), "training", 2, OURS[:1])
    assert __main__.weight(large) == pytest.approx(10 + 2 * 3 * large.network.forward_flop / 1e11)


def lines_of(**more):
    return __main__.lines_of(Namespace(**{"only": "", "full": False, **more}))


def test_lines_are_chosen_by_their_names(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(4)))
    every = {line.name for line in lines_of()}
    found = {line.name for line in lines_of(only="gru l1 u64 b1 t100, forward, [12]")}
    assert found == {f"GRU L1 U64 B1 T100, forward, {n}" for n in ("1 thread", "2 threads")}
    assert not lines_of(only="no such line")
    more = {line.name for line in lines_of(full=True)}
    assert every < more and "RNN L1 U64 B1 T100, forward, 1 thread" in more - every
    assert {line.name for line in gate_set()} <= every


def started(monkeypatch, tmp_path, *words):
    monkeypatch.setattr(sys, "argv", ["bench-peers", "--out", str(tmp_path / "out"), *words])
    return __main__.main()


def test_names_are_listed(monkeypatch, tmp_path, capsys):
    assert started(monkeypatch, tmp_path, "--list", "--only", "L1 U64 B1 T1, forward, 1 ") == 0
    assert capsys.readouterr().out.splitlines() == [
        "LSTM L1 U64 B1 T1, forward, 1 thread", "GRU L1 U64 B1 T1, forward, 1 thread"]  # fmt: skip
    assert started(monkeypatch, tmp_path, "--only", "nothing") == 2
    assert capsys.readouterr().out == "no line matches 'nothing'\n"
    with pytest.raises(SystemExit, match="out': expected a path without blanks"):
        started(monkeypatch, tmp_path / "two words", "--only", "L1 U64 B1 T1, ")
    assert not (tmp_path / "out").exists()


def test_a_report_measures_nothing(monkeypatch, tmp_path, capsys, options):
    name = "LSTM L1 U64 B1 T1, forward, 1 thread"
    words = ("--only", name + "$", "--native", str(tmp_path / "bin"))
    monkeypatch.setattr(__main__, "own_files", lambda native: [])
    assert started(monkeypatch, tmp_path, *words, "--report") == 0
    assert not Run.made and "nothing measured" in capsys.readouterr().out
    assert started(monkeypatch, tmp_path, *words) == 0
    assert [made[0] for made in Run.made] == [name]
    page = (tmp_path / "out" / "peers.md").read_text()
    assert page in capsys.readouterr().out and "nothing measured" not in page
    assert started(monkeypatch, tmp_path, *words, "--report") == 0
    assert len(Run.made) == 1 and (tmp_path / "out" / "peers.md").read_text() == page
    assert started(monkeypatch, tmp_path, *words, "--quick", "--report") == 0
    assert "nothing measured" in (tmp_path / "out" / "peers.md").read_text()  # another setting


def test_an_interruption_says_how_to_go_on(monkeypatch, tmp_path, capsys, options):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(__main__, "measure", interrupt)
    monkeypatch.setattr(__main__, "own_files", lambda native: [])
    assert started(monkeypatch, tmp_path, "--only", "L1 U64 B1 T1, forward, 1 ") == 130
    assert "the same command goes on" in capsys.readouterr().err
    assert not (tmp_path / "out" / "peers.md").exists()


def test_what_the_first_processor_says(monkeypatch, tmp_path):
    text = "processor\t: 0\nmodel name\t: A: B\nflags\t\t: fpu avx2\n\nprocessor\t: 1\nmodel name\t: C\n"
    monkeypatch.setattr(Path, "read_text", lambda self, *_: text if "cpuinfo" in str(self) else "")
    assert store.cpu_info() == {"processor": "0", "model name": "A: B", "flags": "fpu avx2"}


def test_versions_of_packages():
    found = store.versions()
    assert list(found) == ["torch", "onnxruntime", "tensorflow-cpu", "keras", "jax", "jaxlib",
                           "onednn-cpu-gomp", "numpy", "openvino", "tract"]  # fmt: skip
    import numpy

    assert found["numpy"] == numpy.__version__ and found["tract"] == "not there"


def test_a_file_of_results_with_other_lines(tmp_path):
    path = tmp_path / "results.jsonl"
    path.write_text('[1]\n{"line": "no key"}\n\nnonsense\n{"key": "a", "line": "one"}\n')
    kept = store.Store(path)
    assert kept.get("a") == {"key": "a", "line": "one"}
    assert kept.add("b", {"line": "two"}) == {"key": "b", "line": "two"} == kept.get("b")
    assert path.read_text().endswith('"one"}\n{"key": "b", "line": "two"}\n')  # no empty line
    assert store.fingerprint([]) != store.fingerprint([path])
    other = tmp_path / "another"
    other.write_text("x")
    assert store.fingerprint([path, other]) == store.fingerprint([other, path])
    assert len(store.fingerprint([path])) == 12 and len(store.key_of("a", {})) == 20


class Terminal(StringIO):
    """A stream that can be drawn over."""

    def isatty(self):
        return True


def test_progress_on_a_terminal():
    now, stream = [0.0], Terminal()
    progress = Progress([1.0, 1.0, 2.0], stream, lambda: now[0])
    progress.show("a line", "timing")
    assert stream.getvalue() == "\r\x1b[K[" + "." * 20 + "] 0/3, 0:04 left: a line: timing"
    progress.advance()
    now[0] = 61.0
    progress.show("b" * 200)
    last = stream.getvalue().rsplit("\r\x1b[K", 1)[1]
    assert last.startswith("[######..............] 1/3, 3:03 left: bbb") and len(last) == 150
    progress.close()
    assert stream.getvalue().endswith("\r\x1b[K")
    plain = StringIO()
    progress = Progress([], plain, lambda: 0.0)
    progress.show("a line", "timing")  # a step of a line is no line of a log
    progress.close()
    assert plain.getvalue() == ""
    assert [clock(value) for value in (-1, 59.6, 125, 3600)] == ["0:00", "1:00", "2:05", "60:00"]


def test_what_a_process_is_given(monkeypatch, tmp_path):
    made = []
    monkeypatch.setattr(protocol, "Worker", lambda *given: made.append(given))
    pool = protocol.Pool({"a": ["run", "a"]}, {"PATH": "x", "OMP_NUM_THREADS": "9"}, tmp_path)
    pool.use_threads(3)
    pool.start("a#jit1")
    names = ("PEERS", "OMP", "MKL", "OPENRNN")
    threads = {f"{name}_{'NUM_' if name != 'PEERS' else ''}THREADS": "3" for name in names}
    assert made == [(["run", "a"], {"PATH": "x", **threads}, tmp_path / "a-jit1-3.log")]
