"""tool_onnx: networks to and from ONNX models, and models that run."""

import numpy as np
import onnxruntime

from files.file_tools import from_line, run_tool, to_line


def lines(arrays):
    return "".join(to_line(name, np.ascontiguousarray(array)) + "\n" for name, array in arrays.items())


def tool(*words, arrays=None):
    """What tool_onnx prints; fails the test if the tool fails."""
    done = run_tool("onnx", *words, stdin=lines(arrays or {}))
    assert done.returncode == 0, done.stderr
    return done.stdout


def fault(*words, arrays=None):
    """What it complains of; it must fail."""
    done = run_tool("onnx", *words, stdin=lines(arrays or {}))
    assert done.returncode == 1, done.stdout
    return done.stderr.strip()


def run(path, inputs):
    return dict(map(from_line, tool("run", path, arrays=inputs).splitlines()))


def networks(path):
    """Of each network its name, fields and tensors; then the notes and what was left."""
    found, notes, left = [], [], []
    for line in tool("networks", path).splitlines():
        kind, *rest = line.split("\t")
        if kind == "network":
            found.append({"name": rest[0], "made of": []} | dict(field.split("=", 1) for field in rest[1:]))
        elif kind == "made of":
            found[-1]["made of"].append(rest[0])
        elif kind in ("note", "left"):
            (notes if kind == "note" else left).append(rest[0])
        else:
            name, array = from_line(line)
            found[-1][name] = array
    return found, notes, left


def words_of(spec):
    """The fields of a CellSpec as words of the tool."""
    fields = {
        "rnn_mode": spec.mode, "num_layers": spec.num_layers, "num_units": spec.num_units,
        "input_size": spec.input_size, "direction": spec.direction, **getattr(spec, "options", {}),
    }  # fmt: skip
    text = lambda value: ":".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return [f"{name}={text(value)}" for name, value in fields.items()]


def export(path, spec, params, *words, **states):
    tool("export", path, *words, *words_of(spec), f"dtype={params.dtype.name}", arrays={"params": params, **states})


def run_onnxruntime(path, inputs):
    """The outputs of a model by name, in ONNX Runtime."""
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs)))
