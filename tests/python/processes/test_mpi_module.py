"""libopenrnn_mpi.so by itself: whose MPI it ends, what it moves, what it says; and where it is found."""
import os
import pathlib
import shutil
import subprocess
import sys

import pytest
from mpi_runs import ENVIRONMENT, command, needs_mpi, parts_flags

from tool.tool_runs import BUILD, MINUTES, TOOL, write_text

MODULE = BUILD / "libopenrnn_mpi.so"
NAME = pathlib.Path(TOOL).name

# The module's table, as src/train/mpi/table.h has it, and the MPI that it is linked with.
OPENS = """
import ctypes, sys
import numpy as np
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_void_p
says = lambda *arguments: ctypes.CFUNCTYPE(c_char_p, *arguments)
class Table(ctypes.Structure):
    _fields_ = [("version", c_int), ("start", says(POINTER(c_int), POINTER(c_int))),
                ("takes_any_thread", ctypes.CFUNCTYPE(c_int)),
                ("all_to_all", says(c_void_p, c_void_p, c_size_t)),
                ("all_gather", says(c_void_p, c_void_p, c_size_t)),
                ("all_reduce", says(c_int, c_size_t, c_void_p)),
                ("broadcast", says(c_void_p, c_size_t, c_int)), ("barrier", says()),
                ("abort", ctypes.CFUNCTYPE(None, c_char_p, c_int)), ("finish", says())]
module = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
module.openrnn_mpi_table.restype = POINTER(Table)
table, mpi = module.openrnn_mpi_table().contents, ctypes.CDLL(None)
def flag(name):
    value = c_int(-1)
    getattr(mpi, name)(byref(value))
    return value.value
def start():
    rank, size = c_int(-1), c_int(-1)
    said = table.start(byref(rank), byref(size))
    return said.decode() if said else (rank.value, size.value)
initialized, finalized = lambda: flag("MPI_Initialized"), lambda: flag("MPI_Finalized")
ENDED = "MPI has ended in this process, expected one start"
"""

HOSTS_OWN = """
mpi.MPI_Init(None, None)
level = flag("MPI_Query_thread")
for _ in range(2):
    assert start() == (0, 1)
    assert table.takes_any_thread() == (level >= 2)  # MPI_THREAD_SERIALIZED
    assert table.finish() is None and table.finish() is None
    assert finalized() == 0
assert start() == (0, 1)
mpi.MPI_Finalize()
assert table.finish() is None  # and asks nothing of an MPI that has ended
assert start() == ENDED
print("good")
"""

ITS_OWN = """
assert table.version == 2
assert table.finish() is None and initialized() == 0
for _ in range(2):
    assert start() == (0, 1)
assert initialized() == 1 and table.takes_any_thread() == 1
assert table.finish() is None
assert finalized() == 1
assert table.finish() is None
assert start() == ENDED
print("good")
"""

MESSAGES = """
rank, size = start()
assert size == 2
def at(array):
    return array.ctypes.data_as(c_void_p)
send, received = np.arange(4, dtype="int32") + 10 * rank, np.zeros(4, "int32")
assert table.all_to_all(at(send), at(received), 8) is None
assert received.tolist() == [2 * rank, 2 * rank + 1, 10 + 2 * rank, 11 + 2 * rank]
assert table.all_gather(at(send), at(received), 8) is None
assert received.tolist() == [0, 1, 10, 11]
for is_double, dtype in enumerate(["float32", "float64"]):
    values = np.array([0.1, 2.0, 7.0], dtype) * (rank + 1)
    assert table.all_reduce(is_double, 2, at(values)) is None
    one = np.array([0.1, 2.0, 7.0], dtype)
    assert values.tolist() == [*(one[:2] + one[:2] * 2).tolist(), one[2] * (rank + 1)]
data = np.array([rank, rank], "int64")
assert table.broadcast(at(data), 8, 1) is None
assert data.tolist() == [1, rank]
assert table.barrier() is None
# Errors are told, and nothing ends.
said = table.broadcast(at(data), 8, 7).decode()
assert said.startswith("MPI_Bcast: ") and len(said) > 15, said
# Where only a buffer may be: MPI_IN_PLACE of Open MPI.
said = table.all_gather(at(send), c_void_p(1), 8).decode()
assert said.startswith("MPI_Allgather: ") and len(said) > 19, said
assert table.all_gather(at(send), at(received), 8) is None
assert received.tolist() == [0, 1, 10, 11]
many = 2**31
for name, call in [("MPI_Alltoall", lambda: table.all_to_all(None, None, many)),
                   ("MPI_Allgather", lambda: table.all_gather(None, None, many)),
                   ("MPI_Allreduce", lambda: table.all_reduce(0, many, None)),
                   ("MPI_Bcast", lambda: table.broadcast(None, many, 0))]:
    assert call().decode() == (f"{name}: 2147483648 elements in one message, expected 2147483647 "
                               "or fewer")
assert table.barrier() is None
assert table.finish() is None
print("good")
"""

# How many threads the host's MPI takes: 0 of one thread alone, 3 of any at once.
LEVELS = """
wanted, given = int(sys.argv[2]), c_int(-1)
mpi.MPI_Init_thread(None, None, wanted, byref(given))
assert given.value == flag("MPI_Query_thread")
assert start() == (0, 1)
assert table.takes_any_thread() == (given.value >= 2)
assert table.finish() is None and finalized() == 0
mpi.MPI_Finalize()
print("good")
"""

ABORTS = """
rank, size = start() if sys.argv[2] == "started" else (None, None)
if rank is None:
    mpi.MPI_Init(None, None)
    rank = 1
if rank == 1:
    table.abort(b"no memory", 3)
table.barrier()
print("goes on")
"""


def in_mpi(processes, program, *arguments):
    return subprocess.run(command(processes, sys.executable, "-c", OPENS + program, MODULE, *arguments),
                          capture_output=True, text=True, timeout=MINUTES, check=False, env=ENVIRONMENT)


@needs_mpi
@pytest.mark.parametrize("processes, program", [(1, HOSTS_OWN), (1, ITS_OWN), (2, MESSAGES)],
                         ids=["of the host", "of its own", "messages"])
def test_the_module(processes, program):
    done = in_mpi(processes, program)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("good") == processes


@needs_mpi
@pytest.mark.parametrize("level", range(4))
def test_threads_of_the_host(level):
    done = in_mpi(1, LEVELS, level)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "good\n"


@needs_mpi
@pytest.mark.parametrize("when", ["started", "not started"])
def test_an_abort_ends_all(when):
    done = in_mpi(2 if when == "started" else 1, ABORTS, when)
    assert done.returncode == 3, done.stderr
    rank = 1 if when == "started" else 0
    assert f"openrnn: rank {rank}: no memory" in done.stderr
    assert "goes on" not in done.stdout


@pytest.fixture(name="program")
def fixture_program(tmp_path):
    """The tool alone in a folder bin, and what it says when it is to open MPI."""
    (tmp_path / "bin").mkdir()
    shutil.copy(TOOL, tmp_path / "bin")
    text = write_text(tmp_path)

    def said(tool=tmp_path / "bin" / NAME, **environment):
        flags = [*parts_flags(text, tmp_path / "out"), "--communicator", "mpi"]
        rest = {key: value for key, value in os.environ.items() if key != "OPENRNN_MPI_LIBRARY"}
        done = subprocess.run([tool, *map(str, flags)], capture_output=True, text=True,
                              timeout=MINUTES, check=False, env={**rest, **environment})
        assert done.returncode == 1, (done.stdout, done.stderr)
        return done.stderr

    return said


def test_places_of_the_module(program, tmp_path):
    """The first of them that has one is taken: here files that are none, which the error names."""
    cannot = "[mpi] MPI cannot be opened: "
    # Beside the program, in the lib beside its folder, the same of where a link to it lies, and
    # last what the loader finds.
    link = tmp_path / "link" / "bin" / NAME
    link.parent.mkdir(parents=True)
    link.symlink_to(tmp_path / "bin" / NAME)
    loaded = {"LD_LIBRARY_PATH": str(tmp_path / "loaded")}
    places = [tmp_path / "link" / "bin", tmp_path / "link" / "lib", tmp_path / "bin",
              tmp_path / "lib", tmp_path / "loaded"]
    for folder in reversed(places):
        folder.mkdir(exist_ok=True)
        module = folder / MODULE.name
        module.write_text("no library", encoding="ascii")
        for empty in ({}, {"OPENRNN_MPI_LIBRARY": ""}):
            said = program(link, **loaded, **empty)
            assert f"{cannot}{module}: " in said, said
    # A file that is named is the only one that is looked for.
    missing = tmp_path / "none.so"
    assert f"{cannot}no file {missing}; expected {MODULE.name}, " in program(
        link, **loaded, OPENRNN_MPI_LIBRARY=str(missing))


def test_no_module_anywhere(program):
    said = program()
    assert (f"[mpi] MPI cannot be opened: {MODULE.name}: cannot open shared object file: No such "
            f"file or directory; expected {MODULE.name}, which the build makes") in said, said


@needs_mpi
def test_a_module_that_only_the_loader_finds(tmp_path):
    """A program without one beside it takes that of the library path."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "loaded").mkdir()
    shutil.copy(TOOL, tmp_path / "bin")
    shutil.copy(MODULE, tmp_path / "loaded")
    environment = {key: value for key, value in ENVIRONMENT.items() if key != "OPENRNN_MPI_LIBRARY"}
    environment["LD_LIBRARY_PATH"] = str(tmp_path / "loaded")
    flags = parts_flags(write_text(tmp_path), tmp_path / "out", steps=2, valid_every=2)
    done = subprocess.run([tmp_path / "bin" / NAME, *map(str, flags), "--communicator", "mpi"],
                          capture_output=True, text=True, timeout=MINUTES, check=False,
                          env=environment)
    assert done.returncode == 0, done.stderr
