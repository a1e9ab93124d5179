"""Runs programs under mpirun, more processes than processors."""
import os
import pathlib
import shutil
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


def start(processes, *arguments):
    """A running tool that has just said that it has saved for the second time."""
    running = subprocess.Popen(command(processes, TOOL, *arguments), stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
    saves = 0
    for line in running.stderr:
        saves += line.startswith("saved ")
        if saves == 2:
            return running
    raise AssertionError(f"it ended with {running.wait()} before it saved twice")


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
