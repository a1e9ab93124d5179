"""One backend in a process of its own; a script that imports nothing but NumPy and the adapter.

Usage: worker.py ADAPTER.py, with one request a line on standard input, a JSON object:
  {"do": "version"}, {"do": "run", "case": FOLDER, "result": FILE} or "gradients" in place of "run".
Each is answered by a line {"ok": true, ..} or {"ok": false, "kind": .., "text": ..} on the standard
output that the process was started with; what a runtime prints goes to standard error. Results are
written to FILE, an .npz of float64 or integer arrays; "dtypes" has what they were.
"""

import importlib.util
import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

import numpy as np


def _dtype(name: str) -> Any:
    if name == "BF16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype({"F64": "f8", "F32": "f4", "F16": "f2", "I32": "i4"}[name])


def read_tensors(path: Path) -> dict[str, Any]:
    """The arrays of a safetensors file."""
    content = path.read_bytes()
    end = 8 + int.from_bytes(content[:8], "little")
    found = {}
    for name, facts in json.loads(content[8:end]).items():
        start, stop = (end + offset for offset in facts["data_offsets"])
        array = np.frombuffer(content[start:stop], _dtype(facts["dtype"]))
        found[name] = array.reshape(facts["shape"]).copy()
    return found


def _load(path: str) -> Any:
    spec = importlib.util.spec_from_file_location("conformance_adapter", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"[worker] {path}, expected a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _part(tensors: dict[str, Any], prefix: str) -> dict[str, Any]:
    return {name[len(prefix) :]: a for name, a in tensors.items() if name.startswith(prefix)}


def _answer(adapter: Any, request: dict[str, Any]) -> dict[str, Any]:
    if request["do"] == "version":
        return {"version": adapter.version(), "gradients": hasattr(adapter, "gradients")}
    folder = Path(request["case"])
    case = json.loads((folder / "case.json").read_text())
    tensors = read_tensors(folder / "tensors.safetensors")
    inputs = _part(tensors, "in/")
    if request["do"] == "run":
        given = {name: inputs[name] for name in case["graph_inputs"]}
        results = adapter.run(str(folder / "model.onnx"), given)
        if not isinstance(results, dict):  # in the order of the model's outputs
            results = dict(zip(case["outputs"], results, strict=True))
    else:
        results = adapter.gradients(case, inputs, _part(tensors, "upstream/"))
    arrays = {name: np.asarray(a) for name, a in results.items()}
    dtypes = {name: a.dtype.name for name, a in arrays.items()}
    wide = {n: a if a.dtype.kind in "iub" else a.astype(np.float64) for n, a in arrays.items()}
    write: Any = np.savez
    write(request["result"], **wide)
    return {"dtypes": dtypes}


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    adapter = _load(sys.argv[1])
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {"ok": True, **_answer(adapter, request)}
        except Exception as error:
            text = str(error).strip() or traceback.format_exc()
            answer = {"ok": False, "kind": type(error).__name__, "text": text}
        answers.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
