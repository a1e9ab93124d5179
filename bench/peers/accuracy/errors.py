"""Errors of results against float64, and where float64 comes from."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from peers import agreement, problem
from peers.lines import Line, Network
from peers.protocol import Pool
from peers.workers.server import thin_step

Arrays = Mapping[str, NDArray[Any]]
Errors = dict[str, float]
QUANTITIES = ("y", "hn", "cn", "dx", "dW", "db")
LIMIT = 3600.0  # seconds: float64 of the largest networks takes minutes on few processors
INPUTS = ("params", "x", "r", "h0", "c0")  # of those that the problem has


def quantities(network: Network, results: Arrays) -> dict[str, NDArray[Any]]:
    """The results with the gradients of weights (dW) and of biases (db) apart."""
    found = dict(results)
    if (buffer := found.pop("dparams", None)) is not None:
        step = thin_step(problem.params_size(network))
        weights = -(-problem.weights_size(network) // step)
        found |= {"dW": buffer[:weights], "db": buffer[weights:]}
    return {name: found[name] for name in QUANTITIES if name in found}


def errors(
    line: Line, found: Arrays, exact: Arrays, mask: NDArray[np.bool_] | None = None
) -> Errors:
    """Norm of the difference over the norm, of every quantity that the side has. Past the end of a
    row (`mask`) outputs and states are whatever a side makes of the padding."""
    mine, wanted = quantities(line.network, found), quantities(line.network, exact)
    result = {}
    for name in mine.keys() & wanted.keys():
        a, b = mine[name], wanted[name]
        if mask is not None and name in ("hn", "cn"):
            continue
        if mask is not None and name == "y":
            a, b = a[mask], b[mask]
        result[name] = agreement.difference(a, b)
    return {name: result[name] for name in QUANTITIES if name in result}


@dataclass(frozen=True)
class Exact:
    """Float64 of one problem, and what float32 storage allows."""

    values: Arrays
    storage: Arrays


class Source:
    """Computes both for a line, once for all lines of a run that have the same inputs."""

    def __init__(self, pool: Pool, folder: Path) -> None:
        self._pool, self._folder = pool, folder

    def _key(self, line: Line, inputs: Path) -> str:
        digest = hashlib.sha256(line.network.name.encode())
        for name in INPUTS:
            if (path := inputs / f"{name}.npy").exists():
                digest.update(path.read_bytes())
        return digest.hexdigest()[:20]

    def of(self, line: Line, inputs: Path, command: Callable[[str], str]) -> Exact:
        """`command`: what a worker is told to set up 'float64' or 'storage'. Raises: Refusal,
        WorkerError."""
        home = self._folder / self._key(line, inputs)
        for what in ("float64", "storage"):
            if (home / what / "done").exists():
                continue
            worker = self._pool.get("exact")
            worker.ask(command(what))
            worker.ask(f"output {home / what}", LIMIT)
            worker.ask("release")
            (home / what / "done").touch()
        return Exact(agreement.read(home / "float64"), agreement.read(home / "storage"))
