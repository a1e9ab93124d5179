"""Whether the sides of a line computed the same."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from peers.lines import Line, Side
from peers.workers.server import thin

Results = Mapping[str, NDArray[np.float32]]
# Of the norm of the difference to that of the value: forward, gradients.
TOLERANCES = {
    "float32": (1e-4, 1e-3),
    "bf16x3": (1e-4, 1e-3),
    "float16": (5e-3, 0.0),
    "bf16": (3e-2, 1e-1),
    "bfloat16": (3e-2, 0.0),
    "int8": (8e-2, 0.0),
}
GRADIENTS = ("dx", "dparams")
# Of the first training steps. Keras has one bias where others have two, of which each is trained.
LOSSES = 5e-3
REFERENCES = ("PyTorch", "PyTorch loop", "ONNX Runtime", "oneDNN", "Keras", "JAX")


@dataclass(frozen=True)
class Agreement:
    """The worst relative difference of a side, and whether it is within the tolerance."""

    difference: float
    result: str
    within: bool


def read(folder: Path) -> dict[str, NDArray[np.float32]]:
    """What a side wrote."""
    return {path.stem: np.load(path) for path in sorted(folder.glob("*.npy"))}


def valid_positions(line: Line, lengths: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Of y, thinned as results are."""
    network = line.network
    inside = np.arange(network.time)[:, None] < lengths
    width = network.directions * network.units
    return thin(np.repeat(inside[:, :, None], width, axis=2)).astype(bool)


def difference(found: NDArray[np.float32], wanted: NDArray[np.float32]) -> float:
    """Norm of the difference over the norm of what is wanted; infinite for another size."""
    if found.shape != wanted.shape or not np.isfinite(found).all():
        return float("inf")
    norm = float(np.linalg.norm(wanted.astype(np.float64)))
    off = float(np.linalg.norm(found.astype(np.float64) - wanted))
    return off / norm if norm > 0 else off


def arithmetic_of(side: Side) -> str:
    """The name under which the tolerances stand."""
    options = dict(side.options)
    return options.get("math") or options.get("weights") or "float32"


def compare(
    side: Side, found: Results, wanted: Results, mask: NDArray[np.bool_] | None
) -> Agreement:
    """A side against the reference, over the results that both have."""
    forward, gradient = TOLERANCES[arithmetic_of(side)]
    worst = Agreement(0.0, "", True)
    for name in sorted(found.keys() & wanted.keys()):
        a, b = found[name], wanted[name]
        if mask is not None:
            if name in ("hn", "cn"):
                continue  # of a row that is computed to the end, another state
            if name == "y" and a.shape == b.shape == mask.shape:
                a, b = a[mask], b[mask]
        off = difference(a, b)
        limit = gradient if name in GRADIENTS else LOSSES if name == "losses" else forward
        within = off <= limit
        if (within, -off) < (worst.within, -worst.difference) or not worst.result:
            worst = Agreement(off, name, within)
    return worst


def check(
    line: Line, folders: Mapping[str, Path], lengths: NDArray[np.int32] | None
) -> dict[str, Agreement]:
    """Every side against the first of REFERENCES that is there, else against the first side."""
    results = {key: read(folder) for key, folder in folders.items()}
    mask = valid_positions(line, lengths) if lengths is not None else None
    order = [key for key in REFERENCES if key in results] + list(results)
    wanted: dict[str, NDArray[np.float32]] = {}
    for key in order:
        for name, array in results[key].items():
            wanted.setdefault(name, array)
    sides = {side.key: side for side in line.sides}
    return {key: compare(sides[key], found, wanted, mask) for key, found in results.items()}
