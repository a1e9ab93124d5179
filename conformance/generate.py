#!/usr/bin/env python3
# mypy: ignore-errors
"""Writes the conformance suite: one folder a case, in the form of ONNX's node tests and more.

Usage: generate.py FOLDER [--only REGEX]   makes the cases, and checks them against digests.txt
       generate.py --search                searches seeds anew and writes digests.txt

Needs NumPy and the package `onnx`. The arrays are the same bits on every machine: digests.txt has
of every case its seed and the SHA-256 of its arrays and its description.
"""

import argparse
import hashlib
import json
import os
import re
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

import descriptions
import numbers_of
import case_files

DIGESTS = Path(__file__).parent / "digests.txt"
DERIVATION = (
    "conformance/bounds.py: rounding of every sum in any order, own functions as far off as OpenCL allows, carried "
    "through all steps; elementwise in tensors.safetensors under bound/, the largest here"
)


def _dtype(name):
    if name != "bfloat16":
        return np.dtype(name)
    import ml_dtypes

    return np.dtype(ml_dtypes.bfloat16)


def _placed(case, name, array):
    """An array as the node has it: batch first under layout 1."""
    if not case.layout or name in ("W", "R", "B", "P", "sequence_lens"):
        return array
    return array.transpose(2, 0, 1, 3) if name == "Y" else array.swapaxes(0, 1)


def _stored_inputs(case, inputs):
    arrays = {n: a for n, a in inputs.items() if n != "lengths" and a is not None}
    stored = {n: _placed(case, n, a).astype(_dtype(case.dtype)) for n, a in arrays.items()}
    if inputs["lengths"] is not None:
        stored["sequence_lens"] = np.array(inputs["lengths"], np.int32)
    return {name: np.ascontiguousarray(array) for name, array in stored.items()}


def _tensors(case, solved, stored):
    found = {f"in/{name}": array for name, array in stored.items()}
    for number, (_, outputs) in enumerate(solved["readings"]):
        for name, (values, errors) in outputs.items():
            found[f"out/{number}/{name}"] = _placed(case, name, values)
            found[f"bound/{number}/{name}"] = _placed(case, name, errors)
    for name, (values, errors) in solved["gradients"].items():
        found[f"grad/{name}"] = _placed(case, name, values)
        found[f"grad_bound/{name}"] = _placed(case, name, errors)
    if solved["gradients"]:
        for name in case.named_outputs:
            found[f"upstream/{name}"] = _placed(case, name, solved["upstream"][name])
    return found


def _largest(errors):
    finite = errors[np.isfinite(errors)]
    return float(np.max(finite, initial=0.0))


def _description(case, solved, attributes, stored, graph_inputs):
    _, outputs = solved["readings"][0]
    bits = {name: getattr(case, name) for name in ("op", "name", "kind", "group", "opset", "dtype", "weights")}
    sizes = {name: getattr(case, name) for name in ("time", "batch", "width", "units")}
    return bits | sizes | {
        "attributes": attributes,
        "inputs": list(stored),
        "graph_inputs": graph_inputs,
        "outputs": list(outputs),
        "readings": [words for words, _ in solved["readings"]],
        "gradients": list(solved["gradients"]),
        "tolerance": {name: {"atol": _largest(errors), "rtol": 0.0} for name, (_, errors) in outputs.items()},
        "gradient_tolerance": {n: {"atol": _largest(e), "rtol": 0.0} for n, (_, e) in solved["gradients"].items()},
        "derivation": DERIVATION,
        "distance_to_kinks": None if np.isinf(solved["margin"]) else float(solved["margin"]),
        "seed": solved["seed"],
    }  # fmt: skip


def make(case, folder, seeds):
    """One case; gives its seed and its digest."""
    solved = numbers_of.solve(case, seeds)
    stored = _stored_inputs(case, solved["inputs"])
    attributes = case_files.node_attributes(case, numbers_of.attributes_of(case))
    folder.mkdir(parents=True, exist_ok=True)
    given = case_files.write_model(folder / "model.onnx", case, attributes, stored)
    case_files.write_data(folder / "test_data_set_0", "input", {name: stored[name] for name in given})
    _, outputs = solved["readings"][0]
    wanted = {n: np.ascontiguousarray(_placed(case, n, v)).astype(_dtype(case.dtype)) for n, (v, _) in outputs.items()}
    case_files.write_data(folder / "test_data_set_0", "output", wanted)
    case_files.write_safetensors(folder / "tensors.safetensors", _tensors(case, solved, stored))
    text = json.dumps(_description(case, solved, attributes, stored, given), indent=1)
    (folder / "case.json").write_text(text + "\n")
    digest = hashlib.sha256(text.encode() + (folder / "tensors.safetensors").read_bytes()).hexdigest()
    return solved["seed"], digest


def known():
    """{case: (seed, digest)} of digests.txt."""
    rows = [line.split() for line in DIGESTS.read_text().splitlines()]
    return {name: (int(seed), digest) for name, seed, digest in rows}


def search():
    with tempfile.TemporaryDirectory() as folder:
        lines = []
        for case in descriptions.every_case():
            seed, digest = make(case, Path(folder) / case.name, range(1, 400))
            lines.append(f"{case.name} {seed} {digest}\n")
    DIGESTS.write_text("".join(lines))
    print(f"{len(lines)} cases")


def generate(folder, pattern=""):
    """Gives the names of the cases whose bits are not those of digests.txt."""
    seeds = known()
    chosen = [case for case in descriptions.every_case() if re.search(pattern, case.name)]
    with ProcessPoolExecutor(min(os.cpu_count() or 1, 1 + len(chosen) // 50)) as pool:
        folders = [folder / case.name for case in chosen]
        made = list(pool.map(make, chosen, folders, ([seeds[case.name][0]] for case in chosen), chunksize=8))
    print(f"{len(chosen)} cases in {folder}")
    return [case.name for case, (_, digest) in zip(chosen, made) if digest != seeds[case.name][1]]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--only", default="", metavar="REGEX")
    parser.add_argument("--search", action="store_true")
    given = parser.parse_args()
    if given.search:
        search()
        return 0
    if given.folder is None:
        parser.error("a folder is missing")
    differ = generate(given.folder, given.only)
    for name in differ:
        print(f"{name}: its bits are not those of digests.txt", file=sys.stderr)
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
