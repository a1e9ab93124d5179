"""Runs whose steps are computed in parts: the same bits, less memory."""

import os
import subprocess
import sys

import openrnn
import pytest
from tool.tool_runs import DATA, TOOL, checkpoint_bytes, fault, good, small_flags, write_text


def series_flags(out, steps):
    return ["train", "--task", "series", "--input", DATA / "sunspots.csv", "--out", out, "--batch", 30,
            "--seq-len", 5, "--units", 7, "--layers", 2, "--dropout", 0.3, "--steps", steps]  # fmt: skip


@pytest.mark.parametrize("task", ["text", "series"])
@pytest.mark.parametrize("threads", [1, 2])
def test_stopped_and_resumed_has_the_same_bits(tmp_path, task, threads):
    text = write_text(tmp_path)

    def flags(out, steps):
        made = series_flags(out, steps) if task == "series" else small_flags(text, out, steps, zoneout=0.1)
        return [*made, "--micro-batches", 3, "--lr-schedule", "constant", "--valid-every", 0, "--warmup", 0]

    threaded = {"env": {**os.environ, "OPENRNN_NUM_THREADS": str(threads)}}
    good(*flags(tmp_path / "whole", 25))
    good(*flags(tmp_path / "cut", 13), **threaded)
    good("train", "--out", tmp_path / "cut", "--resume", "--steps", 25, **threaded)
    assert checkpoint_bytes(tmp_path / "cut", 25) == checkpoint_bytes(tmp_path / "whole", 25)
    line = fault("train", "--out", tmp_path / "cut", "--resume", "--micro-batches", 1)
    assert line == ("[train] --micro-batches 1 contradicts the run to resume, expected "
                    "--micro-batches 3")


def test_the_number_of_parts_belongs_to_the_run(tmp_path):
    text = write_text(tmp_path)
    sizes = dict(units=4, batch=6, seq_len=9, steps=4)
    with openrnn.train.Run(tmp_path / "out", input=text, micro_batches=2, **sizes) as run:
        assert run.config["fit"]["micro_batches"] == 2
        run.train(lambda report: report.step < 2)
    with pytest.raises(openrnn.ArgumentError) as raised:
        openrnn.train.Run(tmp_path / "out", resume=True, micro_batches=3)
    assert "micro_batches 3 contradicts the run to resume, expected micro_batches 2" in str(raised.value)
    with openrnn.train.Run(tmp_path / "out", resume=True) as run:
        assert run.config["fit"]["micro_batches"] == 2
        assert run.train() == "done"
    with pytest.raises(openrnn.ArgumentError, match="micro_batches 4 with batch 6, expected a divisor"):
        openrnn.train.Run(tmp_path / "other", input=text, micro_batches=4, **sizes)


# A process begins with the peak of the one that started it, so a small one does.
SMALL = """import os, sys
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
_, status, usage = os.wait4(pid, 0)
print(os.waitstatus_to_exitcode(status), usage.ru_maxrss * 1024)
"""


def peak(*arguments):
    """Bytes of memory that a call of the tool had at most."""
    done = subprocess.run([sys.executable, "-I", "-S", "-c", SMALL, TOOL, *map(str, arguments)],
                          capture_output=True, text=True, check=True)  # fmt: skip
    code, size = map(int, done.stdout.split()[-2:])
    assert code == 0
    return size


@pytest.mark.skipif("asan" in TOOL, reason="a sanitizer keeps memory of its own")
def test_memory_falls_with_the_parts(tmp_path):
    text = write_text(tmp_path, size=40000)

    def of(parts, **more):
        out = tmp_path / f"{parts}-{len(more)}"
        flags = {"units": 96, "layers": 2, "batch": 32, "seq_len": 400, "steps": 2, **more}
        return peak(*small_flags(text, out, micro_batches=parts, **flags))

    idle = of(1, steps=0)
    whole, two, eight = (of(parts) - idle for parts in (1, 2, 8))
    # Activations of a step: 400 x 32 x 2 layers x some 6 x 96 floats.
    assert whole > 50e6
    assert two < 0.75 * whole
    assert eight < 0.35 * whole
