"""Runs the small C++ programs that read and write files, and speaks their line format."""

import os
import pathlib
import subprocess

import numpy as np
import pytest

BUILD_DIR = pathlib.Path(os.environ.get("OPENRNN_BUILD_DIR", "build/release"))


def run_tool(name, *words, stdin=""):
    """The completed process of tool_NAME."""
    program = BUILD_DIR / f"tool_{name}"
    if not program.exists():
        pytest.fail(f"{program} is not built; OPENRNN_BUILD_DIR names the build directory")
    return subprocess.run(
        [program, *map(str, words)], input=stdin, capture_output=True, text=True, timeout=120
    )


def call_tool(name, *words, stdin=""):
    """What tool_NAME prints; fails the test if the tool fails."""
    done = run_tool(name, *words, stdin=stdin)
    assert done.returncode == 0, done.stderr
    return done.stdout


def is_text(array):
    return array.dtype.kind in "SO"


def to_line(name, array):
    array = np.asarray(array)
    shape = ",".join(map(str, array.shape))
    if is_text(array):
        data = "".join(bytes(item).hex() + "," for item in array.reshape(-1))
        return f"{name}\tstring\t{shape}\t{data}"
    return f"{name}\t{array.dtype.name}\t{shape}\t{array.tobytes().hex()}"


def from_line(line):
    name, dtype, dims, data = line.split("\t")
    shape = tuple(int(dim) for dim in dims.split(",")) if dims else ()
    if dtype == "string":
        items = [bytes.fromhex(item) for item in data.split(",")[:-1]]
        array = np.empty(len(items), object)
        array[:] = items
        return name, array.reshape(shape)
    return name, np.frombuffer(bytes.fromhex(data), dtype).reshape(shape)


def write_bundle(prefix, tensors):
    lines = [to_line(name, array) for name, array in tensors.items()]
    call_tool("bundle", "write", prefix, stdin="\n".join(lines) + "\n")


def read_bundle(prefix):
    return dict(map(from_line, call_tool("bundle", "dump", prefix).splitlines()))


def list_bundle(prefix):
    """name -> (dtype, dimensions as text)."""
    rows = [line.split("\t") for line in call_tool("bundle", "list", prefix).splitlines()]
    return {name: (dtype, dims) for name, dtype, dims, _ in rows}


def assert_same(found, expected):
    """Equal names, dtypes, shapes and bits."""
    assert sorted(found) == sorted(expected)
    for name, array in expected.items():
        other, array = np.asarray(found[name]), np.asarray(array)
        assert other.shape == array.shape, name
        if is_text(array):
            assert [bytes(x) for x in other.flat] == [bytes(x) for x in array.flat], name
        else:
            assert other.dtype == array.dtype, name
            assert other.tobytes() == array.tobytes(), name
