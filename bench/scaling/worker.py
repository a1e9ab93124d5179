"""Under mpirun: times of messages and of training steps, as one line of JSON from rank 0.

    mpirun -n 2 python -m bench.scaling.worker '{"layers": 2, "units": 512, ..}'
"""

import ctypes
import json
import os
import statistics
import sys
import time

import numpy as np
import openrnn
from openrnn import train


class Table(ctypes.Structure):
    """OpenrnnMpiTable."""

    Bytes = ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
    _fields_ = [("version", ctypes.c_int),
                ("start", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.POINTER(ctypes.c_int),
                                           ctypes.POINTER(ctypes.c_int))),
                ("takes_any_thread", ctypes.CFUNCTYPE(ctypes.c_int)),
                ("all_to_all", Bytes), ("all_gather", Bytes)]  # fmt: skip


def messages(library):
    """Seconds of an all-gather of 64 bytes; bytes a second of an exchange of 4 MiB with each."""
    entry = ctypes.CDLL(library).openrnn_mpi_table
    entry.restype = ctypes.POINTER(Table)
    table = entry().contents
    rank, size = ctypes.c_int(), ctypes.c_int()
    assert table.start(ctypes.byref(rank), ctypes.byref(size)) is None

    def seconds(count, repeats):
        send, receive = np.ones(count * size.value, "u1"), np.ones(count * size.value, "u1")
        taken = []
        for _ in range(repeats):
            begin = time.perf_counter()
            table.all_gather(send.ctypes.data, receive.ctypes.data, count)
            taken.append(time.perf_counter() - begin)
        return min(taken), statistics.median(taken)

    seconds(64, 100)
    short, usual = seconds(64, 2000)
    long, _ = seconds(4 << 20, 60)
    return {"alpha": short, "alpha_median": usual,
            "beta": (4 << 20) * (size.value - 1) / max(long - short, 1e-9)}  # fmt: skip


def steps(options):
    """Seconds of training steps: the shortest, and the median; what the sums cost."""
    apart = options.pop("apart", False)
    several = int(os.environ.get("OMPI_COMM_WORLD_SIZE", 1)) > 1 and not apart
    folder = options.pop("folder")
    if not several:  # each has its own
        folder = os.path.join(folder, os.environ.get("OMPI_COMM_WORLD_RANK", "0"))
        os.mkdir(folder)
        os.symlink("../text", os.path.join(folder, "text"))
    marks = []
    with train.Run(os.path.join(folder, "run"), input=os.path.join(folder, "text"), valid_every=0,
                   save_seconds=0, communicator="mpi" if several else None, **options) as run:  # fmt: skip
        run.train(lambda report: marks.append(time.perf_counter()))
        cost = run.reduction_cost
        size = sum(int(np.prod(one.shape)) for one in run.variables)
    taken = np.diff(marks)
    each = max(cost.steps, 1)
    return {"step": float(np.percentile(taken, 10)), "step_median": float(np.median(taken)),
            "gradients": 4 * size, "sums": cost.seconds / each, "waited": cost.seconds_waited / each,
            "beside": cost.seconds_overlapped / each, "bytes": cost.bytes / each}  # fmt: skip


def main():
    """Measures and prints."""
    options = json.loads(sys.argv[1])
    openrnn.set_num_threads(options.pop("threads"))
    found = {}
    library = os.environ.get("OPENRNN_MPI_LIBRARY")
    # Those apart do not start MPI, and need not end it.
    if int(os.environ.get("OMPI_COMM_WORLD_SIZE", 1)) > 1 and not options.get("apart"):
        found = messages(library)
    found |= steps(options)
    if os.environ.get("OMPI_COMM_WORLD_RANK", "0") == "0":
        print(json.dumps(found))


if __name__ == "__main__":
    main()
