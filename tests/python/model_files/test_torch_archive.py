"""The state_dicts that we write, by Python's own readers of zip archives and pickles: PyTorch is not needed."""

import gzip
import pickletools
import re
import zipfile

import numpy as np
import openrnn
import pytest

from files.file_tools import call_tool, to_line
from tool.tool_runs import fault, good


def test_archive_and_pickle_are_well_formed(tmp_path):
    named = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.array(7, np.int64), "c": np.zeros((0, 2))}
    lines = [to_line(name, array) for name, array in named.items()]
    call_tool("model_file", "torch", tmp_path / "m", stdin="\n".join(lines) + "\n")
    with zipfile.ZipFile(tmp_path / "m") as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["archive/data.pkl", "archive/byteorder", "archive/data/0", "archive/data/1",
                                      "archive/data/2", "archive/version"]
        for number, array in enumerate(named.values()):
            assert archive.read(f"archive/data/{number}") == array.tobytes()
        names = {argument for opcode, argument, _ in pickletools.genops(archive.read("archive/data.pkl"))
                 if opcode.name == "GLOBAL"}
    assert names == {"collections OrderedDict", "torch._utils _rebuild_tensor_v2", "torch FloatStorage",
                     "torch LongStorage", "torch DoubleStorage"}
    shown = good("inspect", tmp_path / "m").stdout
    assert "3 tensors, 32 bytes in" in shown and "a PyTorch file, every checksum is right" in shown


def test_inspect_verifies_unless_it_is_to_be_fast(tmp_path):
    call_tool("model_file", "torch", tmp_path / "m", stdin=to_line("a", np.array([1.5, 2.5])) + "\n")
    whole = (tmp_path / "m").read_bytes()
    (tmp_path / "m").write_bytes(whole.replace(np.float64(1.5).tobytes(), np.float64(3.5).tobytes()))
    assert "16 bytes of tensors have checksum" in fault("inspect", tmp_path / "m")
    assert "not verified" in good("inspect", tmp_path / "m", "--fast").stdout


def test_files_of_no_known_kind_say_what_they_look_like(tmp_path):
    with zipfile.ZipFile(tmp_path / "zip", "w") as archive:
        archive.writestr("a", "b")
    np.save(tmp_path / "numpy.npy", np.zeros(3))
    for name, data in (
            ("png", b"\x89PNG\r\n\x1a\n" + bytes(9)), ("gzip", gzip.compress(b"words")), ("text", b"some words\n"),
            ("empty", b""), ("page", b" <!DOCTYPE HTML><html>"), ("zeros", bytes(99)), ("noise", b"\x01\xfe\x02" * 20),
            ("lfs", b"version https:\n"), ("json", b'{"a": 1}')):
        (tmp_path / name).write_bytes(data)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a.txt").write_bytes(b"")
    (tmp_path / "none").mkdir()
    for name, what in (
            ("zip", "a zip archive with 'a'"), ("numpy.npy", "a NumPy array"), ("png", "a PNG image"),
            ("gzip", "a gzip archive"), ("text", "a text file"), ("empty", "an empty file"), ("page", "an HTML page"),
            ("zeros", "a file of zeros"), ("noise", "a file of no known kind"), ("json", "a JSON file"),
            ("lfs", "a pointer of Git LFS, not the file itself"), ("folder", "a folder with 'a.txt'"),
            ("none", "an empty folder")):
        path = tmp_path / name
        assert fault("inspect", path) == (f"[inspect] '{path}' is {what}, expected a model file, the output folder of "
                                          "a run or a checkpoint's prefix")
        found = what.removeprefix("a file ") if name == "noise" else what
        assert f"this is {found}, expected a model: a file of OpenRNN, safetensors," in fault(
            "convert", path, tmp_path / "out.pt")
        with pytest.raises(openrnn.FormatError, match=re.escape(f"this is {found}, expected a model")):
            openrnn.load(path)
