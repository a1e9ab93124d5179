"""safetensors files against the package of that name: ours are read by it, its files by us."""

import json
import shutil

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from files.file_tools import call_tool, from_line, to_line
from tool.tool_runs import good

DTYPES = ["float16", "bfloat16", "float32", "float64", "int32", "int64", "uint8", "bool"]
SHAPES = [(), (1,), (0,), (7,), (3, 5), (2, 0, 3), (1, 17, 1, 2)]


def arrays(seed=1):
    """Every dtype in every shape, random bits and names in no order."""
    random = np.random.default_rng(seed)
    names = random.permutation(len(DTYPES) * len(SHAPES))
    pairs = [(dtype, shape) for dtype in DTYPES for shape in SHAPES]
    made = {}
    for name, (dtype, shape) in zip(names, pairs):
        bits = random.integers(0, 2 if dtype == "bool" else 256, (*shape, np.dtype(dtype).itemsize), np.uint8)
        made[f"t{name}.ä"] = np.frombuffer(bits.tobytes(), dtype).reshape(shape)
    return made


def read(path):
    return dict(map(from_line, call_tool("model_file", "dump", path).splitlines()))


def write(path, named, *words):
    lines = [to_line(name, array) for name, array in named.items()]
    call_tool("model_file", "safetensors", path, *words, stdin="\n".join(lines) + "\n")


def assert_equal(found, expected):
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape), name
        assert found[name].tobytes() == array.tobytes(), name


def test_we_read_what_the_package_writes(tmp_path):
    named = arrays()
    save_file(named, tmp_path / "m", {"format": "np"})
    assert_equal(read(tmp_path / "m"), named)
    shown = good("inspect", tmp_path / "m").stdout
    assert f"{len(named)} tensors" in shown and "a safetensors file" in shown
    assert "\nformat: 'np'\n" in shown


def test_the_package_reads_what_we_write_and_writes_the_same_bytes(tmp_path):
    named = arrays()
    write(tmp_path / "ours", named)
    assert_equal(load_file(tmp_path / "ours"), named)
    with safe_open(tmp_path / "ours", "np") as file:
        assert file.metadata() == {"format": "np"}
    save_file(named, tmp_path / "theirs", {"format": "np"})
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()


@pytest.mark.parametrize("most", [1, 200, 10**9])
def test_shards(tmp_path, most):
    named = arrays()
    write(tmp_path / "m.safetensors", named, most)
    index = json.loads((tmp_path / "m.safetensors.index.json").read_text())
    assert index["metadata"] == {"total_size": sum(array.nbytes for array in named.values())}
    found = {}
    for shard in set(index["weight_map"].values()):
        held = load_file(tmp_path / shard)
        assert all(index["weight_map"][name] == shard for name in held)
        assert len(held) == 1 or sum(array.nbytes for array in held.values()) <= most
        found.update(held)
    assert_equal(found, named)
    shutil.move(tmp_path, tmp_path.with_name("moved"))
    assert_equal(read(tmp_path.with_name("moved") / "m.safetensors.index.json"), named)
