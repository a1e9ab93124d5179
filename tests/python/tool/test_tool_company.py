"""`openrnn bench --company`: what it prints, and that its busy process never outlives it."""

import contextlib
import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
from tool_runs import TOOL, good, tool

SHORT = ["bench", "--company", "--only", "LSTM L1 U64 B1", "--threads", "2"]
two_processors = pytest.mark.skipif(
    len(os.sched_getaffinity(0)) < 2, reason="one processor: a busy process would leave none"
)


def children(pid):
    """Of every thread of a process, once it has any."""
    end = time.monotonic() + 30
    found = []
    while not found and time.monotonic() < end:
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):  # a thread that has just ended
                found += [int(word) for word in (task / "children").read_text().split()]
    return found


def gone(pid):
    """Whether a process has ended; one that waits for its parent to look has, too."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


@two_processors
def test_one_thread_and_several_beside_the_neighbour(tmp_path):
    figures = tmp_path / "company.json"
    shown = good(*SHORT, "--seconds", 0.05, "--json", figures).stdout
    assert re.search(r"^a busy process has CPU \d+; medians of calls next to it$", shown, re.M)
    rows = json.loads(figures.read_text())
    assert [row["pass"] for row in rows] == ["forward", "forward_training", "forward_backward"]
    for row in rows:
        assert row["config"] == "LSTM L1 U64 B1 T100" and row["threads"] == 2
        assert row["ratio"] == pytest.approx(row["ms"] / row["ms_one_thread"])
        times = f"{row['ms_one_thread']:>12.3f}  {row['ms']:>12.3f}  {row['ratio']:>6.2f}"
        assert f"{row['config']:<22}  {row['pass']:<16}  {times}  " in shown


@two_processors
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_the_neighbour_ends_with_the_tool(ending):
    # Of a network whose calls take seconds: the tool must not end by itself first.
    command = [TOOL, "bench", "--company", "--only", "LSTM L4 U1024 B64", "--threads", "2"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        (busy,) = children(process.pid)
        process.send_signal(ending)
        process.stdout.read()
        assert process.wait() != 0
    while not gone(busy):
        pass


@pytest.mark.parametrize("flags", [["--threads", "1"]])
def test_one_thread_has_nothing_to_be_compared_with(flags):
    done = tool("bench", "--company", "--only", "LSTM L1 U64 B1", *flags)
    assert done.returncode == 2
    assert "[bench] --company compares threads of the CPU" in done.stderr
