"""The time of a training step of W processes: an alpha-beta model of the network.

A message of n bytes takes alpha + n / beta. Of a step there are

- the computation of a process's parts,
- notices, which decide and tell of failures: all-gathers of 64 bytes, log2(W) messages each,
- the sum of N bytes of gradients, in pieces of 16 MiB, or more where slices would be below 64 KiB.
  With overlap that of each layer begins when its gradients are there, the last layer's first, and one
  goes after another.

`exact` sends W - 1 slices (all-to-all) and gathers W - 1: 2 (W - 1) messages and 2 (W - 1) / W of the
bytes. `fast` is a ring's all-reduce, with as many, or for short arrays halving and doubling, 2 log2(W)
messages. Packing, adding and unpacking read and write memory.
"""

import math
from typing import NamedTuple

PIECE, SLICE, MESSAGE = 16 << 20, 64 << 10, 1 << 20  # as in the library
NOTICES = 3  # a step: before the sum, after the callbacks of Run and of Fit
NOTICE_BYTES = 64
BACKWARD = 2 / 3  # of the computation


class Network(NamedTuple):
    """Seconds of a message without bytes, and bytes a second."""

    name: str
    alpha: float
    beta: float


# Latency between two programs: TCP on Ethernet, then RDMA.
NETWORKS = (Network("10 Gbit/s", 30e-6, 10e9 / 8), Network("100 Gbit/s", 5e-6, 100e9 / 8),
            Network("400 Gbit/s", 3e-6, 400e9 / 8))  # fmt: skip


class Work(NamedTuple):
    """One process's part of a step."""

    name: str
    compute: float  # seconds
    gradients: float  # bytes, float32
    memory: float = 10e9  # bytes a second that one process reads or writes


def notice(processes: int, network: Network) -> float:
    """Seconds of one."""
    rounds = math.ceil(math.log2(processes))
    return rounds * network.alpha + (processes - 1) * NOTICE_BYTES / network.beta


def reduction(work: Work, processes: int, network: Network, exact: bool = True,
              element: int = 4) -> float:  # fmt: skip
    """Seconds of the sum; `element`: bytes of a gradient's element on the network."""
    if processes == 1:
        return 0.0
    size = work.gradients * element / 4
    pieces = math.ceil(size / max(PIECE, SLICE * processes))
    sent = 2 * (processes - 1) / processes * size / network.beta
    messages = 2 * (processes - 1)
    if not exact:
        messages = min(messages, 2 * math.ceil(math.log2(processes)))
    # Packed, unpacked, and each received byte added once: read, and read and written.
    touched = (2 * 2 * size + 3 * size) / work.memory
    return pieces * messages * network.alpha + sent + touched


def overlapped(work: Work, processes: int, network: Network, layers: int, **options) -> float:
    """When the gradients of all layers are summed, one layer after another, of equal layers; small
    ones together."""
    layers = max(1, min(layers, int(work.gradients // MESSAGE)))
    part = work._replace(gradients=work.gradients / layers)
    message = reduction(part, processes, network, **options)
    backward = BACKWARD * work.compute
    done = 0.0
    for layer in range(1, layers + 1):
        ready = work.compute - backward + layer * backward / layers
        done = max(done, ready) + notice(processes, network) + message
    return done


def step(work: Work, processes: int, network: Network, layers: int = 0, **options) -> float:
    """Seconds; `layers`: of a network whose gradients travel during the backward pass; 0: after it.
    Options as reduction's."""
    if processes == 1:
        return work.compute
    if layers:
        sums = overlapped(work, processes, network, layers, **options)
    else:
        sums = work.compute + reduction(work, processes, network, **options)
    return sums + NOTICES * notice(processes, network)


def efficiency(work: Work, processes: int, network: Network, **options) -> float:
    """Of W processes with W times the rows: 1 would be W times the speed of one."""
    return work.compute / step(work, processes, network, **options)


def last_that_pays(work: Work, network: Network, least: float = 0.5, **options) -> int:
    """The largest power of two, at most 1024, with at least this efficiency."""
    found = 1
    for power in range(1, 11):
        if efficiency(work, 2**power, network, **options) >= least:
            found = 2**power
    return found
