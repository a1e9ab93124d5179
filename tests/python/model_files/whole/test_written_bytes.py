"""Files of the same model have the same bytes, those whose hashes are kept in tests/golden: also what no
reader looks at, such as reserved fields, padding and order, does not change by accident.
OPENRNN_REGENERATE_GOLDEN=1 writes the hashes anew."""

import hashlib
import os
from pathlib import Path

import openrnn
import pytest

from test_golden import numbers

KEPT = Path(__file__).parents[3] / "golden" / "file_hashes.txt"


def built(make, seed, **options):
    layer = make(4, **options)
    layer.build((None, None, 3))
    layer.kernel.assign(numbers(layer.dtype, seed, *layer.kernel.shape))
    return layer


def networks(dtype):
    return {"encoder": built(openrnn.layers.LSTM, 1, direction="bidirectional", dtype=dtype),
            "decoder": built(openrnn.layers.GRU, 2, num_layers=2, dtype=dtype)}  # fmt: skip


def whole(units, activation):
    """A recurrent layer and a dense one behind it."""
    dense = openrnn.layers.Dense(units)
    dense.build((None, 4))
    dense.kernel.assign(numbers("float32", 4, 4, units))
    dense.bias.assign(numbers("float32", 5, units))
    layers = [
        {"name": "x", "kind": "input", "inputs": [], "options": {"shape": [-1, -1, 3]}},
        {"name": "r", "kind": "recurrent", "inputs": [("x", 0)], "options": {"network": "r"}},
        {"name": "d", "kind": "dense", "inputs": [("r", 0)], "options": {"units": units}},
    ]
    if activation:
        options = {"activation": activation}
        layers.append({"name": "a", "kind": "activation", "inputs": [("d", 0)], "options": options})
    made = {"r": built(openrnn.layers.LSTM, 3), "d": dense}
    return openrnn.layers.LayerGraph(layers, [(layers[-1]["name"], 0)], made)


MODELS = {
    "networks": lambda: networks("float32"),
    "wide": lambda: networks("float64"),
    "narrow": lambda: networks("bfloat16"),
    "whole": lambda: whole(2, "tanh"),
    "head": lambda: whole(1, ""),
}
GENERAL = ["openrnn", "safetensors", "torch", "npz", "onnx", "keras", "keras_h5", "keras_weights", "tensorflow"]
CASES = [(format, model) for format in GENERAL for model in MODELS]
CASES.remove(("npz", "narrow"))  # NumPy has no name for bfloat16
WITHOUT_VALUES = ["keras", "keras_h5", "keras_weights", "rtneural", "nam"]
CASES += [("rtneural", "whole"), ("rtneural", "head"), ("nam", "head")]  # chains of layers alone


def lines_of(folder, format, model):
    folder.mkdir()
    values = {} if format in WITHOUT_VALUES else {"rate": 16000, "made by": "a test"}
    openrnn.save(folder / "m", MODELS[model](), format, values=values)
    return [f"{hashlib.sha256(path.read_bytes()).hexdigest()[:32]} {format} {model} {path.name}"
            for path in sorted(folder.iterdir())]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=" ".join)
def test_a_file_has_the_bytes_that_are_kept(tmp_path, case):
    found = lines_of(tmp_path / "found", *case)
    assert lines_of(tmp_path / "again", *case) == found
    if os.environ.get("OPENRNN_REGENERATE_GOLDEN"):
        return
    kept = [line for line in KEPT.read_text().splitlines() if line.split()[1:3] == list(case)]
    assert found == kept


def test_no_case_is_forgotten(tmp_path):
    if os.environ.get("OPENRNN_REGENERATE_GOLDEN"):
        lines = [line for n, case in enumerate(CASES) for line in lines_of(tmp_path / str(n), *case)]
        KEPT.write_text("\n".join(lines) + "\n")
    kept = {tuple(line.split()[1:3]) for line in KEPT.read_text().splitlines()}
    assert kept == set(CASES)
