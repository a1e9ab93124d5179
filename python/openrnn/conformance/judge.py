"""Whether what a backend computed is what a case asks for."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from openrnn.conformance.process import Backend
from openrnn.conformance.worker import read_tensors


@dataclass
class Verdict:
    """`status`: pass, wrong, refused, crash, timeout, or none where a case asks for nothing.

    `error` is the largest error over its bound, of the reading that is nearest; at most 1 in a pass.
    """

    status: str
    text: str = ""
    error: float | None = None
    reading: dict[str, str] = field(default_factory=dict)
    number: int = 0  # of the reading; 0 is what the suite recommends


@dataclass
class Case:
    folder: Path
    facts: dict[str, Any]

    @property
    def name(self) -> str:
        return str(self.facts["name"])

    @property
    def size(self) -> int:
        return int(np.prod([self.facts[n] for n in ("time", "batch", "width", "units")]))


def cases_of(folder: Path) -> list[Case]:
    """The cases in a folder that generate.py wrote, in the order of their operators and names."""
    found = [Case(path.parent, json.loads(path.read_text())) for path in folder.glob("*/case.json")]
    return sorted(found, key=lambda case: (["RNN", "GRU", "LSTM"].index(case.facts["op"]), case.name))


def _distance(found: Any, wanted: Any, bound: Any) -> tuple[float, tuple[int, ...]]:
    """The largest error over its bound and where it is; infinite bounds ask for nothing."""
    asked = np.isfinite(bound)
    error = np.abs(found - wanted)
    # A bound of zero is met by equality alone.
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(error == 0, 0.0, error / bound)
    ratio = np.where(asked, np.where(np.isnan(ratio), np.inf, ratio), 0.0)
    if ratio.size == 0:
        return 0.0, ()
    at = np.unravel_index(int(np.argmax(ratio)), ratio.shape)
    return float(ratio[at]), tuple(int(i) for i in at)


def _compare(arrays: dict[str, Any], dtypes: dict[str, str], dtype: str, wanted: dict[str, Any],
             bounds: dict[str, Any]) -> tuple[float, str]:  # fmt: skip
    """(largest error over its bound, a sentence about it)."""
    worst, text = 0.0, ""
    for name, values in wanted.items():
        if name not in arrays:
            return np.inf, f"{name} is missing"
        found = arrays[name]
        if found.shape != values.shape or dtypes[name] != dtype:
            given = f"{name} is {dtypes[name]} {list(found.shape)}"
            return np.inf, f"{given}, expected {dtype} {list(values.shape)}"
        ratio, at = _distance(found, values, bounds[name])
        if ratio > worst:
            worst = ratio
            text = f"{name}{list(at)} is {found[at]:.9g}, expected {values[at]:.9g} within {bounds[name][at]:.2g}"
    return worst, text


def _part(tensors: dict[str, Any], prefix: str) -> dict[str, Any]:
    return {name[len(prefix) :]: a for name, a in tensors.items() if name.startswith(prefix)}


def _failed(answer: dict[str, Any]) -> Verdict:
    kind = answer["kind"]
    if kind in ("crash", "timeout"):
        return Verdict(kind, answer["text"])
    text = " ".join(answer["text"].split("Stack backtrace")[0].split())
    return Verdict("refused", f"{kind}: {text}"[:300])


def judge(backend: Backend, case: Case) -> Verdict:
    """Runs a case forward; passes if any reading of the text fits."""
    answer, arrays = backend.compute("run", case.folder)
    if not answer["ok"]:
        return _failed(answer)
    tensors = read_tensors(case.folder / "tensors.safetensors")
    best = Verdict("wrong", error=np.inf)
    for number, reading in enumerate(case.facts["readings"]):
        wanted, bounds = (_part(tensors, f"{kind}/{number}/") for kind in ("out", "bound"))
        error, text = _compare(arrays, answer["dtypes"], case.facts["dtype"], wanted, bounds)
        if error <= 1.0:
            return Verdict("pass", error=error, reading=reading, number=number)
        if error < (best.error or 0.0) or not best.text:
            best = Verdict("wrong", text, error)
    return best


def judge_gradients(backend: Backend, case: Case) -> Verdict:
    """The same of the gradients, which are of the recommended reading."""
    if not case.facts["gradients"]:
        return Verdict("none")
    answer, arrays = backend.compute("gradients", case.folder)
    if not answer["ok"]:
        return _failed(answer)
    tensors = read_tensors(case.folder / "tensors.safetensors")
    wanted, bounds = _part(tensors, "grad/"), _part(tensors, "grad_bound/")
    error, text = _compare(arrays, answer["dtypes"], case.facts["dtype"], wanted, bounds)
    return Verdict("pass" if error <= 1.0 else "wrong", "" if error <= 1.0 else text, error)
