"""The worker's end of the protocol, and the parameters of a problem as Keras has them."""

import os
from io import StringIO

import numpy as np
import pytest

from peers.workers import keras_weights, layout, server


class Job:
    """Counts its calls."""

    kernel = "its own"

    def __init__(self, task):
        if (error := task.text("error")) != "":
            raise {"refused": server.Refused, "type": TypeError, "value": ValueError,
                   "runtime": RuntimeError, "absent": NotImplementedError, "key": KeyError,
                   }[error]("first\n  second " + "x" * 400)  # fmt: skip
        self.task, self.calls = task, 0

    def call(self):
        self.calls += 1

    def results(self):
        return {"y": np.full((2, 3), self.calls, np.float64), "n": np.arange(3)}


class Clocked(Job):
    """With a clock of its own, and calls of two kinds."""

    def times(self, count, warm):
        return (10 * count + warm, 7)

    def choose(self, what):
        self.kind = what


def served(commands, make=Job):
    """The answers to lines."""
    answers = StringIO()
    server.Server(make, lambda: "A 1.0").serve(StringIO(commands), answers)
    return answers.getvalue().splitlines()


def test_answers(tmp_path):
    made = []

    def make(task):
        made.append(Job(task))
        return made[-1]

    found = served(f"about\nsetup a=b=c n=3\nrun 4 2\noutput {tmp_path}/deep/out\nsetup\n", make)
    assert found[:2] == ["ok A 1.0", "ok its own"] and found[3:] == ["ok", "ok its own"]
    assert found[2].startswith("times ") and len(found[2].split()) == 5
    assert made[0].calls == 4 + 2 + 1 and made[1].calls == 0
    assert (made[0].task.text("a"), made[0].task.number("n")) == ("b=c", 3)
    y, n = (np.load(tmp_path / "deep" / "out" / f"{name}.npy") for name in "yn")
    assert y.dtype == np.float64 and y.tolist() == [7.0] * 6  # of one call more
    assert n.dtype == np.float32 and n.tolist() == [0, 1, 2]


def test_answers_without_a_job():
    found = served("run 1 0\noutput x\ndance\nsetup\nrelease\nrun 1 0\nquit\nabout\n")
    assert found == ["error run without a job", "error output without a job",
                     "error dance without a job", "ok its own", "ok",
                     "error run without a job"]  # fmt: skip
    assert served("setup\nchoose forward\nquit \n") == ["ok its own", "error unknown command choose"]
    assert served("setup\nrun 1\nabout\n")[1:] == [
        "error IndexError: list index out of range", "ok A 1.0"]  # fmt: skip


@pytest.mark.parametrize("error,name", [
    ("refused", "Refused"), ("type", "TypeError"), ("value", "ValueError"),
    ("runtime", "RuntimeError"), ("absent", "NotImplementedError"),
])  # fmt: skip
def test_what_a_job_cannot_is_refused(error, name):
    """On one line, which ends somewhere; the job before is gone."""
    found = served(f"setup\nsetup error={error}\nrun 1 0\n")
    assert found[1].startswith(f"refused {name}: first second xxx") and found[1].endswith("x")
    assert len(found[1]) == len(f"refused {name}: ") + 300
    assert found[2] == "error run without a job"


def test_other_errors_are_told():
    found = served("setup error=key\nabout\n")
    assert found[0].startswith("error KeyError: ") and len(found[0]) <= len("error KeyError: ") + 300
    assert found[1] == "ok A 1.0"


def test_a_job_with_a_clock():
    assert served("setup\nrun 3 2\nchoose backward\n", Clocked) == ["ok its own", "times 32 7", "ok"]


def test_memory_above_the_mark(monkeypatch):
    sizes = {"VmRSS": 500, "VmHWM": 700}
    monkeypatch.setattr(server, "status_bytes", sizes.__getitem__)
    assert served("memory\nmark\nmemory\n") == ["bytes 700", "ok", "bytes 200"]
    sizes["VmHWM"] = 400
    assert served("mark\nmemory\n") == ["ok", "bytes 0"]


def test_memory_of_the_process():
    high, now = server.status_bytes("VmHWM"), server.status_bytes("VmRSS")
    assert high >= now > 1 << 20 and now % 1024 == 0
    assert server.status_bytes("VmNone") == 0


def test_options_of_a_task(tmp_path):
    task = server.Task.parse([f"folder={tmp_path}", "pass=training", "lengths=given"])
    assert task.training and task.lengths_kind == "given"
    other = server.Task.parse(["pass=forward"])
    assert not other.training and other.lengths_kind == "none"
    assert (other.text("cell"), other.text("cell", "gru")) == ("", "gru")
    assert (other.number("units"), other.number("units", 4)) == (0, 4)
    np.save(tmp_path / "x.npy", np.arange(3))
    assert task.has("x") and not task.has("y") and task.array("x").tolist() == [0, 1, 2]


def test_steps_of_thinning_are_odd():
    """So that every gate and row is hit; the last element of a million is the last of all."""
    most = server.MOST_ELEMENTS
    sizes = [1, most, most + 1, 2 * most, 2 * most + 1, 3 * most, 4 * most + 1]
    assert [server.thin_step(size) for size in sizes] == [1, 1, 3, 3, 3, 3, 5]
    large = np.zeros((2, most + 1), np.int8)
    assert server.thin(large).size == -(-large.size // 3)


def test_a_process_is_held_to_its_cores(monkeypatch):
    held = []
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {7, 3, 5})
    monkeypatch.setattr(os, "sched_setaffinity", lambda who, cores: held.append((who, cores)))
    monkeypatch.setenv("PEERS_THREADS", "2")
    assert server.pin() == 2 and held == [(0, [3, 5])]
    monkeypatch.delenv("PEERS_THREADS")
    assert server.pin() == 1 and held[1:] == [(0, [3])]


def test_jax_on_one_thread_is_told_so(monkeypatch):
    for name in ("JAX_PLATFORMS", "XLA_FLAGS"):
        monkeypatch.setenv(name, "--given")
    monkeypatch.setenv("PEERS_THREADS", "2")
    server.set_up_jax()
    assert os.environ["JAX_PLATFORMS"] == "cpu" and os.environ["XLA_FLAGS"] == "--given"
    monkeypatch.setenv("PEERS_THREADS", "1")
    server.set_up_jax()
    assert os.environ["XLA_FLAGS"] == "--xla_cpu_multi_thread_eigen=false --given"
    monkeypatch.delenv("XLA_FLAGS")
    server.set_up_jax()
    assert os.environ["XLA_FLAGS"] == "--xla_cpu_multi_thread_eigen=false"


@pytest.mark.parametrize("cell,places", [("lstm", "ifgo"), ("gru", "zrn"), ("rnn_tanh", "h")])
def test_weights_of_keras(cell, places):
    """Gates in Keras's order, columns for units; gru alone has both biases."""
    gates = {"lstm": "ifgo", "gru": "rzn", "rnn_tanh": "h"}[cell]
    rows = [(gate, unit) for gate in gates for unit in range(2)]
    random = np.random.default_rng(2)
    draw = lambda *shape: random.normal(size=(len(rows), *shape)).astype(np.float32)
    part = layout.Part(3, 1, draw(4), draw(2), draw(), draw())
    kernel, recurrent, bias = keras_weights.weights_of(cell, part)
    order = [rows.index((gate, unit)) for gate in places for unit in range(2)]
    np.testing.assert_array_equal(kernel, part.w[order].T)
    np.testing.assert_array_equal(recurrent, part.r[order].T)
    both = np.stack([part.bw[order], part.br[order]])
    np.testing.assert_array_equal(bias, both if cell == "gru" else both[0] + both[1])
    assert all(array.flags.c_contiguous for array in (kernel, recurrent))
    again = keras_weights.part_of(cell, part, [kernel, recurrent, bias])
    assert (again.layer, again.direction) == (3, 1)
    np.testing.assert_array_equal(again.w, part.w)
    np.testing.assert_array_equal(again.r, part.r)
    wanted = (part.bw, part.br) if cell == "gru" else (part.bw + part.br,) * 2
    np.testing.assert_array_equal(again.bw, wanted[0])
    np.testing.assert_array_equal(again.br, wanted[1])
