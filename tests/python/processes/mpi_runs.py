"""Runs programs under mpirun, more processes than processors."""
import os
import pathlib
import re
import shutil
import signal
import subprocess

import pytest

from tool.tool_runs import BUILD, MINUTES, TOOL, small_flags

EXAMPLES = pathlib.Path(__file__).parents[3] / "examples"
# What a whole machine has to itself is not shared among tests: no processor is kept for a process.
MPIRUN = ["mpirun", "--oversubscribe", "--bind-to", "none"]
ENVIRONMENT = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
               "OMPI_MCA_rmaps_base_oversubscribe": "1", "OPENRNN_NUM_THREADS": "1",
               "OPENRNN_MPI_LIBRARY": str(BUILD / "libopenrnn_mpi.so")}

needs_mpi = pytest.mark.skipif(
    shutil.which("mpirun") is None or not (BUILD / "libopenrnn_mpi.so").exists(),
    reason="no mpirun, or built without MPI (libopenmpi-dev, openmpi-bin)")


def command(processes, *arguments):
    return [*MPIRUN, "-n", str(processes), *map(str, arguments)]


def mpi(processes, *arguments):
    """A finished run of the tool in so many processes."""
    return subprocess.run(command(processes, TOOL, *arguments), capture_output=True, text=True,
                          timeout=MINUTES, check=False, env=ENVIRONMENT)


def good_mpi(processes, *arguments):
    done = mpi(processes, *arguments)
    assert done.returncode == 0, (processes, arguments, done.stdout, done.stderr)
    return done


def steps_saved(said):
    return [int(step) for step in re.findall(r"^saved .*\(step (\d+)\)", said, re.M)]


def start(processes, *arguments, step=0):
    """A running tool, and its words so far: it has saved twice, and after this step."""
    running = subprocess.Popen(command(processes, TOOL, *arguments), stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
    said = ""
    for line in running.stderr:
        said += line
        saved = steps_saved(said)
        if len(saved) >= 2 and saved[-1] > step:
            return running, said
    raise AssertionError(f"it ended with {running.wait()} before it saved twice")


def stopped(processes, *arguments, step=0):
    """What such a run said that Ctrl-C then ended."""
    running, said = start(processes, *arguments, step=step)
    running.send_signal(signal.SIGINT)
    said += running.communicate(timeout=MINUTES)[1]
    assert running.returncode != 0
    return said


def processes_of(running):
    """The tool's processes of an mpirun, by rank."""
    ranks = {}
    for folder in pathlib.Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
            if int(parent) != running.pid:
                continue
            variables = (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            continue  # it has ended
        for each in variables:
            if each.startswith(b"OMPI_COMM_WORLD_RANK="):
                ranks[int(each.partition(b"=")[2])] = int(folder.name)
    return [ranks[rank] for rank in sorted(ranks)]


def lives(process):
    try:
        state = pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def parts_flags(text, out, steps=50, **more):
    """A run in four parts."""
    more = {"batch": 8, "micro_batches": 4, "clip_norm": 0.2, "valid_every": 25, **more}
    return small_flags(text, out, steps=steps, **more)
