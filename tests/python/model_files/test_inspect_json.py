"""openrnn inspect --json: the same as the text, for programs."""

import json
import math
import pathlib

import numpy as np

from files.file_tools import write_bundle
from tool.tool_runs import good

CORPUS = pathlib.Path(__file__).parents[3] / "fuzz" / "corpus"


def inspected(*arguments):
    return json.loads(good("inspect", *arguments, "--json").stdout)


def test_a_model_file():
    path = CORPUS / "torch_file" / "good_checkpoint"
    found = inspected(path)
    assert (found["path"], found["kind"], found["checksums"]) == (str(path), "a PyTorch file", "right")
    assert inspected(path, "--fast")["checksums"] == "not verified"
    tensors = {tensor["name"]: tensor for tensor in found["tensors"]}
    assert tensors["tensors.transposed"] == {
        "name": "tensors.transposed", "dtype": "float64", "shape": [4, 2, 3], "bytes": 192}
    values = {value["name"]: value["value"] for value in found["values"]}
    assert {name: values[name] for name in ("epoch", "loss", "name", "none", "done", "size", "mixed", "words")} == {
        "epoch": 3, "loss": 0.5, "name": "LSTM ä", "none": None, "done": False, "size": [1, 2], "mixed": [1, 2.5],
        "words": ["a", "b"]}
    text = good("inspect", path).stdout
    assert all(f"\n{name} " in text for name in tensors) and all(f"\n{name}: " in text for name in values)


def test_files_without_checksums_and_bytes_that_are_no_text():
    assert inspected(CORPUS / "safetensors" / "good_package")["checksums"] == "none"
    values = {value["name"]: value["value"] for value in inspected(CORPUS / "torch_file" / "good_protocol_4")["values"]}
    assert values == {"bytes": "\0\ufffd"}


def test_a_checkpoint(tmp_path):
    units, inputs = 2, 3
    random = np.random.default_rng(1)
    cell = "rnn/multi_rnn_cell/cell_0/cudnn_compatible_lstm_cell/"
    write_bundle(tmp_path / "m", {
        cell + "kernel": random.standard_normal((inputs + units, 4 * units)).astype(np.float32),
        cell + "bias": np.full(4 * units, math.pi, np.float32)})
    found = inspected(tmp_path / "m")
    assert (found["path"], found["kind"], found["checksums"]) == (str(tmp_path / "m"), "a checkpoint", "right")
    assert [tensor["shape"] for tensor in found["tensors"]] == [[8], [5, 8]]
    assert len(found["networks"]) == 1 and found["networks"][0]["text"].startswith("lstm")
    assert found["values"] == [] and found["notes"] == []
    assert "\nnetwork: " + found["networks"][0]["text"] in good("inspect", tmp_path / "m").stdout
