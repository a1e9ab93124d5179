"""HDF5 against h5py: its files are read by us, ours by it."""

import json
import zipfile

import h5py
import ml_dtypes
import numpy as np
import pytest

from files.file_tools import call_tool, from_line, run_tool, to_line
from tool.tool_runs import good

DTYPES = ["float16", "float32", "float64", "int32", "int64", "uint8", "bool"]
SHAPES = [(), (1,), (0,), (7,), (3, 5), (2, 0, 3), (1, 17, 1, 2), (33, 15)]
VERSIONS = ["earliest", "v108", "v110", "latest"]


def arrays(count, seed=1):
    """Random bits in every dtype and shape, below groups of many names."""
    random = np.random.default_rng(seed)
    made = {}
    for number in range(count):
        dtype, shape = DTYPES[number % len(DTYPES)], SHAPES[number // len(DTYPES) % len(SHAPES)]
        bits = random.integers(0, 2 if dtype == "bool" else 256, (*shape, np.dtype(dtype).itemsize), np.uint8)
        made[f"group_{number % 5}/ä{number % 3}/t{number}"] = np.frombuffer(bits.tobytes(), dtype).reshape(shape)
    return made


def read(path):
    return dict(map(from_line, call_tool("model_file", "dump", path).splitlines()))


def write(kind, path, named, values=()):
    lines = [to_line(name, array) for name, array in named.items()]
    lines += [f"{name}\ttext\t{value}" if isinstance(value, str) else "\t".join([name, "texts", *value])
              for name, value in values]
    call_tool("model_file", kind, path, stdin="\n".join(lines) + "\n")


def assert_equal(found, expected):
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape), name
        assert np.asarray(found[name]).tobytes() == array.tobytes(), name


def datasets_of(file):
    found = {}
    file.visititems(lambda name, item: found.update({name: item[()]}) if isinstance(item, h5py.Dataset) else None)
    return found


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("count", [3, 56, 1500])
def test_groups_of_every_size(tmp_path, version, ordered, count):
    named = arrays(count)
    if count == 1500:  # one group of many: trees of several levels, heaps of several blocks
        named = {f"many/a name of some length, number {n}": array for n, array in enumerate(named.values())}
    with h5py.File(tmp_path / "m", "w", libver=version, track_order=ordered) as file:
        for name, array in named.items():
            file.create_dataset(name, data=array, track_order=ordered)
        for n in range(count):
            file[next(iter(named)).split("/")[0]].attrs[f"attribute {n}"] = f"value {n}"
    assert_equal(read(tmp_path / "m"), named)
    values = {value["name"]: value["value"] for value in json.loads(good("inspect", tmp_path / "m", "--json").stdout)["values"]}
    assert sorted(values.values()) == sorted(f"value {n}" for n in range(count))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("how", [{}, {"shuffle": True}, {"compression": "gzip", "compression_opts": 9},
                                 {"compression": "gzip", "compression_opts": 1, "shuffle": True}])
def test_chunks(tmp_path, version, how):
    random = np.random.default_rng(2)
    smooth = np.arange(70 * 33, dtype=np.float64).reshape(70, 33)
    values = {"smooth": smooth, "noise": random.standard_normal((70, 33)), "short": random.integers(0, 9, 1000, np.int32),
              "zeros": np.zeros((300, 300), np.float32), "deep": random.standard_normal((3, 17, 7, 15)).astype(np.float16)}
    chunks = {"smooth": (7, 15), "noise": (70, 33), "short": (33,), "zeros": (300, 300), "deep": (1, 7, 7, 4)}
    with h5py.File(tmp_path / "m", "w", libver=version) as file:
        for name, array in values.items():
            file.create_dataset(name, data=array, chunks=chunks[name], **how)
    assert_equal(read(tmp_path / "m"), values)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("chunk", [(6, 5), (2, 5), (4, 3)])
def test_chunks_that_were_never_written(tmp_path, version, chunk):
    """Weights that are not there are no zeros: the file is refused, and says what it lacks."""
    chunks = {(6, 5): 1, (2, 5): 3, (4, 3): 4}[chunk]
    for name, how in [("none", {}), ("packed", {"compression": "gzip"}), ("part", {})]:
        with h5py.File(tmp_path / "m", "w", libver=version) as file:
            made = file.create_dataset(name, (6, 5), np.float32, chunks=chunk, **how)
            if name == "part" and chunks > 1:
                made[5, 4] = 7
        there = int(name == "part" and chunks > 1)
        done = run_tool("model_file", "dump", tmp_path / "m")
        assert done.returncode != 0
        assert f"the dataset '{name}' has {there} of {chunks} chunks stored, expected it stored whole" in done.stderr


def test_what_compression_may_not_do(tmp_path):
    with h5py.File(tmp_path / "bomb", "w") as file:
        file.create_dataset("zeros", data=np.zeros((1 << 24,), np.uint8), chunks=(1 << 24,), compression="gzip")
        file.create_dataset("many", (1 << 40,), np.uint8, chunks=(1 << 20,), compression="gzip")
    assert (tmp_path / "bomb").stat().st_size < 1 << 16
    done = run_tool("model_file", "dump", tmp_path / "bomb")
    assert done.returncode != 0 and "more than 64 times as many" in done.stderr
    with h5py.File(tmp_path / "extended", "w", libver="latest") as file:
        file.create_dataset("a", data=np.arange(9), maxshape=(None,), chunks=(4,))
    done = run_tool("model_file", "dump", tmp_path / "extended")
    assert done.returncode != 0 and "an index of chunks of type 4" in done.stderr


@pytest.mark.parametrize("count", [0, 1, 56, 700])
def test_h5py_reads_what_we_write(tmp_path, count):
    named = arrays(count)
    if count == 700:
        named = {f"t{n}": array for n, array in enumerate(named.values())}
    named["brain"] = np.array([1, -2.5, 3e38], ml_dtypes.bfloat16)
    values = [("text", "ä"), ("long", "x" * 100000), ("group/texts", ["ab", "", "cde"]), ("brain/more", "")]
    write("hdf5", tmp_path / "m", named, values)
    with h5py.File(tmp_path / "m") as file:
        assert (file.attrs["text"], file.attrs["long"], file["brain"].attrs["more"]) == ("ä", "x" * 100000, "")
        assert list(file["group"].attrs["texts"]) == [b"ab", b"", b"cde"]
        assert file["brain"].attrs["dtype"] == "bfloat16"
        found = datasets_of(file)
        found["brain"] = np.array(file["brain"], dtype=ml_dtypes.bfloat16)
        assert_equal(found, named)
    assert_equal(read(tmp_path / "m"), named)
    # h5py may go on with it.
    with h5py.File(tmp_path / "m", "a") as file:
        file["group/new"] = np.arange(3)
        del file["brain"]
    assert "group/new" in read(tmp_path / "m") and "brain" not in read(tmp_path / "m")


def test_archives(tmp_path):
    named = {f"layers/lstm/cell/vars/{n}": np.arange(n + 3, dtype=np.float32) for n in range(3)}
    write("keras", tmp_path / "m", named, [("config.json", "{}"), ("metadata.json", "{}"), ("vars/name", "m")])
    with zipfile.ZipFile(tmp_path / "m") as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["metadata.json", "config.json", "model.weights.h5"]
        with archive.open("model.weights.h5") as inner, h5py.File(inner) as file:
            assert_equal(datasets_of(file), named)
    assert_equal(read(tmp_path / "m"), named)
    with zipfile.ZipFile(tmp_path / "m") as archive, zipfile.ZipFile(
            tmp_path / "deflated", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as again:
        for name in archive.namelist():
            again.writestr(name, archive.read(name))
    assert_equal(read(tmp_path / "deflated"), named)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("how", [{"chunks": (7, 15)}, {"chunks": (7, 15), "compression": "gzip", "shuffle": True}])
def test_chunks_in_an_archive(tmp_path, method, how):
    noise = np.random.default_rng(3).standard_normal((70, 33))
    with h5py.File(tmp_path / "h5", "w") as file:
        file.create_dataset("layers/a/vars/0", data=noise, **how)
        file["layers/a/vars/1"] = noise[0]
    with zipfile.ZipFile(tmp_path / "m", "w", method) as archive:
        for name, content in [("metadata.json", b"{}"), ("config.json", b"{}"), ("model.weights.h5", (tmp_path / "h5").read_bytes())]:
            entry = zipfile.ZipInfo(name)
            entry.comment = f"a comment on {name}".encode()  # the next entry lies behind it
            entry.compress_type = method
            archive.writestr(entry, content)
        archive.comment = b"one on the archive"
    assert_equal(read(tmp_path / "m"), {"layers/a/vars/0": noise, "layers/a/vars/1": noise[0]})
