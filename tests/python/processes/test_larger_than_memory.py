"""Texts and tables that may be larger than memory: little of it is used, and the bits are the same.

Their processes may have less memory of their own (RLIMIT_DATA; pages of a mapped file are not part
of it) than the data takes there. OPENRNN_GRIDS=whole takes larger files.
"""
import random
import resource
import subprocess

import numpy as np
import pytest
from mpi_runs import ENVIRONMENT, command, needs_mpi

from model.covering import WHOLE
from tool.tool_runs import MINUTES, TOOL, checkpoint_bytes

MEGABYTE = 10**6
STEPS = 4
LIMIT = 90 * MEGABYTE  # a program over MPI takes half of it


def limited(arguments, processes=1, limit=LIMIT):
    """A finished run of the tool, whose processes have so much memory."""
    started = [TOOL, *map(str, arguments)]
    if processes > 1:
        shell = f'ulimit -d {limit // 1024}; exec "$@"'
        started = command(processes, "bash", "-c", shell, "limited", *started)
    return subprocess.run(
        started, capture_output=True, text=True, timeout=MINUTES, check=False, env=ENVIRONMENT,
        preexec_fn=lambda: processes > 1 or resource.setrlimit(resource.RLIMIT_DATA, (limit, limit)))


@pytest.fixture(name="text", scope="module")
def fixture_text(tmp_path_factory):
    """Above LIMIT, of repeated words with numbers between them."""
    path, draw = tmp_path_factory.mktemp("large") / "text.txt", random.Random(3)
    words = ["".join(draw.choices("abcdefgh", k=draw.randrange(2, 9))) for _ in range(300)]
    block = "".join(draw.choice(words) + draw.choice("    \n") for _ in range(180_000))[:MEGABYTE]
    with open(path, "w", encoding="ascii") as file:
        for number in range(1500 if WHOLE else 110):
            file.write(f"{number}\n{block[number:]}")
    yield path
    path.unlink()


def table(path, rows):
    """10 columns of three digits: 40 bytes a row, and twice as much in memory."""
    draw, columns = np.random.default_rng(1), 10
    with open(path, "wb") as file:
        file.write(b",".join(b"c%d" % i for i in range(columns)) + b"\n")
        for begin in range(0, rows, 100_000):
            count = min(100_000, rows - begin)
            block = np.full((count, columns, 4), ord(","), "uint8")
            block[:, -1, -1] = ord("\n")
            times = np.arange(begin, begin + count)[:, None]
            block[:, :, 0] = ord("0") + times // np.arange(1, columns + 1) % 10
            block[:, :, 1:3] = draw.integers(ord("0"), ord("9") + 1, (count, columns, 2))
            file.write(block.tobytes())
    return path


@pytest.fixture(name="csv", scope="module")
def fixture_csv(tmp_path_factory):
    """Above the 64 MiB up to which tables are read."""
    path = tmp_path_factory.mktemp("large") / "table.csv"
    yield table(path, 7_500_000 if WHOLE else 1_700_000)
    path.unlink()


def flags(data, out, level="byte"):
    own = (["--task", "series", "--horizon", "2", "--valid-fraction", "0.00002"]
           if data.suffix == ".csv"
           else ["--valid-fraction", "0.0001", "--seq-len", "20", "--level", level])  # fmt: skip
    return ["train", "--input", data, "--out", out, *own, "--steps", STEPS, "--units", "8", "--layers",
            "2", "--batch", "8", "--dropout", "0.2", "--micro-batches", "2"]  # fmt: skip


@needs_mpi
@pytest.mark.parametrize("kind, level", [("text", "byte"), ("text", "char"), ("csv", "byte")])
def test_the_bits_of_one_process_in_little_memory(kind, level, request, tmp_path):
    data = request.getfixturevalue(kind)
    for processes in (1, 2):
        done = limited(flags(data, tmp_path / str(processes), level), processes)
        assert done.returncode == 0, done.stderr
    assert checkpoint_bytes(tmp_path / "1", STEPS) == checkpoint_bytes(tmp_path / "2", STEPS)


def test_that_little_memory_is_too_little_for_a_table_in_memory(tmp_path):
    done = limited(flags(table(tmp_path / "table.csv", 1_500_000), tmp_path / "out"))
    assert done.returncode == 1 and "[allocate] 120000000 bytes are asked for" in done.stderr
    (tmp_path / "table.csv").unlink()


@needs_mpi
def test_another_file_of_one_process_is_refused(csv, tmp_path):
    other = tmp_path / "other.csv"
    bytes_of = bytearray(csv.read_bytes())
    bytes_of[-2] ^= 1  # the last digit
    other.write_bytes(bytes_of)
    one, two = ([TOOL, *map(str, flags(data, tmp_path / "out"))] for data in (csv, other))
    done = subprocess.run([*command(1, *one), ":", "-n", "1", *two], capture_output=True, text=True,
                          timeout=MINUTES, check=False, env=ENVIRONMENT)
    other.unlink()
    assert done.returncode != 0
    assert ("openrnn: [Group] rank 1 of 2 has failed: [Run] rank 1 of 2 has a file to train on of "
            "fingerprint ") in done.stderr, done.stderr
