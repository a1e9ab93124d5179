"""openrnn train under mpirun: the bits of one process, stops, deaths and full disks."""
import os
import random
import re
import signal
import subprocess
import sys
import time

import pytest
from mpi_runs import (ENVIRONMENT, EXAMPLES, MPIRUN, command, good_mpi, lives, mpi, needs_mpi,
                      parts_flags, processes_of, start, steps_saved, stopped)

from tool.tool_runs import BUILD, MINUTES, TOOL, checkpoint_bytes, fault, good, write_text

ENDLESS = 10**6  # steps that no process gets through before its signal comes
SECONDS = 60  # far above the 2 that a death takes on an idle machine


@pytest.fixture(name="text", scope="module")
def fixture_text(tmp_path_factory):
    return write_text(tmp_path_factory.mktemp("text"))


@pytest.fixture(name="table", scope="module")
def fixture_table(tmp_path_factory):
    draw = random.Random(5)
    path = tmp_path_factory.mktemp("table") / "table.csv"
    path.write_text("a,b\n" + "".join(f"{row % 7},{draw.uniform(-1, 1):.3f}\n"
                                      for row in range(131)), encoding="utf-8")
    return path


@needs_mpi
@pytest.mark.parametrize("case", ["float32", "bfloat16", "bf16", "series"])
def test_the_bits_of_one_process(case, text, table, tmp_path):
    def arguments(out):
        if case == "series":
            return ["train", "--task", "series", "--input", table, "--out", out, "--steps", "50",
                    "--units", "7", "--layers", "2", "--batch", "8", "--dropout", "0.25",
                    "--clip-norm", "0.1", "--micro-batches", "4"]
        more = {"bfloat16": {"dtype": "bfloat16"}, "bf16": {"math": "bf16"}}
        return parts_flags(text, out, **more.get(case, {}))

    alone = good(*arguments(tmp_path / "1"))
    for processes in (2, 4):
        out = tmp_path / str(processes)
        done = good_mpi(processes, *arguments(out))
        assert checkpoint_bytes(out, 50) == checkpoint_bytes(tmp_path / "1", 50)
        assert done.stdout == alone.stdout, "one of them speaks"
        assert len(re.findall(r"^saved .*step 50", done.stderr, re.M)) == 1
        assert f"{processes} processes, each with {4 // processes} of 4 micro-batches" in done.stderr
        assert re.search(r"^sums of gradients, a step: [0-9.]+ MB sent, [0-9.]+ ms, ", done.stderr,
                         re.M)


@needs_mpi
def test_overlap_changes_no_bit(text, tmp_path):
    def arguments(out):  # layers of 1.2 MB, each a message
        return parts_flags(text, out, steps=6, units=192, layers=3, valid_every=6)

    good(*arguments(tmp_path / "1"))
    for processes in (2, 4):
        good_mpi(processes, *arguments(tmp_path / str(processes)), "--overlap")
        assert checkpoint_bytes(tmp_path / str(processes), 6) == checkpoint_bytes(tmp_path / "1", 6)


@needs_mpi
def test_killed_stopped_and_resumed_in_other_numbers(text, tmp_path):
    out, draw = tmp_path / "out", random.Random(3)

    def flags(folder):
        return parts_flags(text, folder, steps=ENDLESS, units=6, layers=1, valid_every=ENDLESS,
                           save_steps=20)

    victim = draw.randrange(4)
    running, _ = start(4, *flags(out))
    ranks = processes_of(running)
    assert len(ranks) == 4
    time.sleep(draw.uniform(0.0, 0.2))
    os.kill(ranks[victim], signal.SIGKILL)
    _, said = running.communicate(timeout=SECONDS)
    assert running.returncode != 0
    assert f"rank {victim} " in said and "Killed" in said, said
    end = time.monotonic() + SECONDS
    while any(lives(each) for each in ranks):
        assert time.monotonic() < end, "a process outlives its run"
        time.sleep(0.02)
    # Ctrl-C saves once more, at a step of its own.
    step = steps_saved(stopped(2, *flags(out), "--resume"))[-1]
    said = stopped(1, *flags(out), "--resume", "--keep", 0)
    assert f"(step {step} of {ENDLESS})" in said
    common = steps_saved(said)[0]
    assert common > step
    stopped(1, *flags(tmp_path / "whole"), "--keep", 0, step=common)
    assert checkpoint_bytes(out, common) == checkpoint_bytes(tmp_path / "whole", common)


@needs_mpi
@pytest.mark.parametrize("asked", [0, 1])
def test_a_signal_to_any_of_them_stops_and_saves_all(asked, text, tmp_path):
    flags = parts_flags(text, tmp_path / "out", steps=ENDLESS, units=6, layers=1,
                        valid_every=ENDLESS, save_steps=20)
    running, said = start(2, *flags)
    try:
        os.kill(processes_of(running)[asked], signal.SIGTERM)
        said += running.communicate(timeout=SECONDS)[1]
    finally:
        running.terminate()
    assert running.returncode == 130
    assert re.search(r"^sums of gradients, a step: ", said, re.M), "it was told before it ended"
    assert steps_saved(said)[-1] == max(steps_saved(said)) < ENDLESS


@needs_mpi
def test_the_cost_is_that_of_a_step(text, tmp_path):
    def cost(steps, *more):
        out = tmp_path / f"{steps}{len(more)}"
        start_of_it = time.monotonic()
        said = good_mpi(2, *parts_flags(text, out, steps=steps, units=192, layers=2,
                                        valid_every=steps), *more).stderr
        seconds = time.monotonic() - start_of_it
        sent, spent, beside, waited = re.search(
            r"^sums of gradients, a step: (\d+\.\d\d) MB sent, (\d+\.\d\d) ms(?:, (\d+\.\d\d) ms "
            r"of them beside the backward pass)?, and (\d+\.\d\d) ms waiting for the slowest "
            r"process$", said, re.M).groups()
        assert 0.0 < float(spent) and 0.0 <= float(waited)
        assert (float(spent) + float(waited)) * steps / 1e3 < seconds, "a part of the run"
        # Whether a message is exchanged before the pass ends is the system's, which gives time to threads.
        assert beside is None or more
        assert float(beside or 0.0) <= float(spent)
        return float(sent)

    few = cost(4)
    # 4 gates of 192 units, on 5 + 192 and on 192 + 192 of them, each number of 4 bytes once.
    assert few == pytest.approx(4 * 4 * 192 * (197 + 384) / 1e6, rel=0.1)
    assert cost(12) == few
    assert cost(12, "--overlap") == pytest.approx(few, rel=0.1)


@needs_mpi
def test_what_they_say_of_themselves(text, tmp_path):
    for reduction in ("exact", "fast"):
        done = good_mpi(2, *parts_flags(text, tmp_path / reduction, steps=2, valid_every=2),
                        "--reduction", reduction)
        said = f"2 processes, each with 2 of 4 micro-batches, reduction {reduction}\n"
        assert said in done.stderr


@needs_mpi
def test_a_full_disk_of_one_process_ends_all(text, tmp_path):
    """Rank 0, which writes, may make no file above 64 KiB."""
    flags = [str(each) for each in parts_flags(text, tmp_path / "out", units=64)]
    limited = ["bash", "-c", 'ulimit -f 64; exec "$@"', "limited", TOOL, *flags]
    done = subprocess.run([*MPIRUN, "-n", "1", *limited, ":", "-n", "3", TOOL, *flags],
                          capture_output=True, text=True, timeout=MINUTES, check=False,
                          env=ENVIRONMENT)
    assert done.returncode == 1
    complaints = [line for line in done.stderr.splitlines() if line.startswith("openrnn: ")]
    assert len(complaints) == 1 and "File too large" in complaints[0], done.stderr


@needs_mpi
def test_what_the_processes_refuse(text, tmp_path):
    done = mpi(4, *parts_flags(text, tmp_path / "out", micro_batches=2))
    assert done.returncode in (1, 2)
    complaints = [line for line in done.stderr.splitlines() if line.startswith("openrnn: ")]
    assert complaints == ["openrnn: [train] --micro-batches 2 with 4 processes, expected that many "
                          "times a power of two, so that each computes a subtree of the sum: 4, 8, "
                          "16, .."]
    assert not (tmp_path / "out").exists()
    # One is told apart by its data.
    other = write_text(tmp_path, seed=2)
    flags = [[TOOL, *map(str, parts_flags(each, tmp_path / "out"))] for each in (text, other)]
    done = subprocess.run([*MPIRUN, "-n", "1", *flags[0], ":", "-n", "1", *flags[1]],
                          capture_output=True, text=True, timeout=MINUTES, check=False,
                          env=ENVIRONMENT)
    assert "openrnn: [Group] rank 1 of 2 has failed: [Run] rank 1 of 2 has data of fingerprint " in (
        done.stderr)


@needs_mpi
def test_one_process_of_mpi_and_none(text, tmp_path):
    one = good(*parts_flags(text, tmp_path / "one"), "--communicator", "mpi", env=ENVIRONMENT)
    assert "processes" not in one.stderr
    # Each alone: the second finds the folder in use, or holding a run.
    done = mpi(2, *parts_flags(text, tmp_path / "both"), "--communicator", "none")
    complaints = [line for line in done.stderr.splitlines() if line.startswith("openrnn: ")]
    assert done.returncode != 0 and len(complaints) == 1 and "/both" in complaints[0], done.stderr


def run_in(processes, *program):
    done = subprocess.run(command(processes, *program), capture_output=True, text=True,
                          timeout=MINUTES, check=False, env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    return done.stdout


SAVES = """
import openrnn, sys
with openrnn.train.Run(sys.argv[2], input=sys.argv[1], units=6, batch=4, seq_len=7, steps=3,
                       micro_batches=2, communicator="mpi", save_seconds=0) as run:
    run.train()
    saved = run.save()
    assert saved.startswith(sys.argv[2] + "/model.ckpt-3"), saved
"""


@needs_mpi
def test_every_process_is_told_where_a_run_was_saved(text, tmp_path):
    run_in(2, sys.executable, "-c", SAVES, text, tmp_path / "out")


@needs_mpi
def test_the_examples(text, tmp_path):
    program = [sys.executable, EXAMPLES / "python" / "mpi_train.py"]
    alone = run_in(1, *program)
    assert re.search(r"^weights: [0-9a-f]{16}$", alone, re.M)
    assert run_in(2, *program) == alone
    program = BUILD / "examples" / "mpi_train"
    alone = run_in(1, program, text, tmp_path / "1")
    assert alone.startswith("step 20: ") and "validation: " in alone
    assert run_in(2, program, text, tmp_path / "2") == alone
    assert checkpoint_bytes(tmp_path / "2", 100) == checkpoint_bytes(tmp_path / "1", 100)


FAILS = """
import openrnn, sys
with openrnn.train.Run("out", input=sys.argv[1], units=6, batch=4, seq_len=7, steps=12,
                       micro_batches=2, communicator="mpi", save_seconds=0) as run:
    if sys.argv[2] == "callback":
        print(run.train(lambda report: 1 // (5 - report.step) if report.step == 5 else True))
    else:
        run.train(lambda report: report.step < 5)
        # The other one waits in a save that this one never reaches.
        import os
        if os.environ["OMPI_COMM_WORLD_RANK"] == "1":
            raise OSError("gone")
        run.save()
"""


@needs_mpi
@pytest.mark.parametrize("where", ["callback", "between"])
def test_an_exception_in_python_ends_all(where, text, tmp_path):
    done = subprocess.run(command(2, sys.executable, "-c", FAILS, text, where), cwd=tmp_path,
                          capture_output=True, text=True, timeout=MINUTES, check=False,
                          env=ENVIRONMENT)
    assert done.returncode != 0
    assert ("ZeroDivisionError" if where == "callback" else "OSError: gone") in done.stderr
    assert (tmp_path / "out" / "model.ckpt-5.index").exists()


def test_mpi_that_is_missing(text, tmp_path):
    flags = [*parts_flags(text, tmp_path / "out"), "--communicator", "mpi"]
    missing = tmp_path / "none.so"
    said = fault(*flags, code=1, env={**os.environ, "OPENRNN_MPI_LIBRARY": str(missing)})
    assert said.startswith(f"[mpi] MPI cannot be opened: no file {missing}; expected "
                           "libopenrnn_mpi.so, which the build makes where it finds MPI")
    text_file = tmp_path / "no_library.so"
    text_file.write_text("no library")
    said = fault(*flags, code=1, env={**os.environ, "OPENRNN_MPI_LIBRARY": str(text_file)})
    assert str(text_file) in said


@needs_mpi
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < (os.cpu_count() or 1), reason="some processors are not for this process")
@pytest.mark.parametrize("name", ["OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"])
def test_processes_of_a_machine_share_its_processors(name, text, tmp_path):
    """As many as the launcher says that there are, unless somebody says how many threads to take."""
    machine = {key: value for key, value in ENVIRONMENT.items() if key != "OPENRNN_NUM_THREADS"}

    def threads(*more, communicator="mpi", **environment):
        said = good("train", "--input", text, "--out", tmp_path / str(len(list(tmp_path.iterdir()))), "--units", 4,
                    "--steps", 1, "--communicator", communicator, *more,
                    env={**machine, **environment}).stderr
        return int(re.search(r"^cpu, (\d+) threads, ", said, re.M).group(1))

    alone = threads()
    assert threads(**{name: "2"}) == max(1, alone // 2)
    assert threads(**{name: "1000"}) == 1
    assert threads(**{name: "0"}) == alone
    assert threads("--threads", 3, **{name: "1000"}) == 3
    assert threads(OPENRNN_NUM_THREADS="3", **{name: "1000"}) == 3
    assert threads(communicator="none", **{name: "1000"}) == alone
