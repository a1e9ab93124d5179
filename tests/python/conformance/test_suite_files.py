"""What generate.py writes: the bits of digests.txt, valid models, every pair of attributes."""

import json
import os
import subprocess
import sys
from itertools import combinations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from conformance.conftest import SUITE
from openrnn.conformance.worker import read_tensors

import covering
import descriptions
import generate


def test_bits_are_those_of_digests(suite_folder):
    assert (suite_folder / "differ").read_text() == ""


def test_digests_are_of_these_cases():
    assert list(generate.known()) == [case.name for case in descriptions.every_case()]


def test_a_changed_digest_is_found(tmp_path):
    """A copy of the suite with a wrong digest; --only takes the cases that it names."""
    copy = tmp_path / "suite"
    copy.mkdir()
    for path in SUITE.glob("*.*"):
        (copy / path.name).write_bytes(path.read_bytes())
    text = (copy / "digests.txt").read_text()
    line = next(line for line in text.splitlines() if line.startswith("rnn_clip "))
    (copy / "digests.txt").write_text(text.replace(line, line[:-4] + "0000"))
    command = [sys.executable, str(copy / "generate.py"), str(tmp_path / "out"), "--only", "^rnn_clip"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr == "rnn_clip: its bits are not those of digests.txt\n"
    assert sorted(os.listdir(tmp_path / "out")) == ["rnn_clip", "rnn_clip_bidirectional", "rnn_clip_that_is_not_reached"]


def folders(suite_folder):
    return sorted(path.parent for path in suite_folder.glob("*/case.json"))


def test_models_and_data_agree(suite_folder):
    """The checker takes every model; .pb files and initializers hold the arrays of tensors.safetensors."""
    for folder in folders(suite_folder):
        model = onnx.load(folder / "model.onnx")
        onnx.checker.check_model(model)
        facts, tensors = json.loads((folder / "case.json").read_text()), read_tensors(folder / "tensors.safetensors")
        assert all(array.flags.writeable for array in tensors.values())  # an adapter may change its inputs
        data = folder / "test_data_set_0"
        load = lambda kind, n: onnx.load_tensor(data / f"{kind}_{n}.pb")
        given = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
        assert [value.name for value in model.graph.input] == facts["graph_inputs"]
        for n, value in enumerate(model.graph.input):
            tensor = load("input", n)
            assert tensor.name == value.name
            given[value.name] = numpy_helper.to_array(tensor)
        assert given.keys() == {name[3:] for name in tensors if name.startswith("in/")}
        for name, array in given.items():
            np.testing.assert_array_equal(array, tensors[f"in/{name}"])
        for n, value in enumerate(model.graph.output):
            array = numpy_helper.to_array(load("output", n))
            shape = tuple(dim.dim_value for dim in value.type.tensor_type.shape.dim)
            assert array.dtype.name == facts["dtype"] and array.shape == shape
            wanted = tensors[f"out/0/{value.name}"]
            np.testing.assert_array_equal(array, wanted.astype(array.dtype))
            bound = tensors[f"bound/0/{value.name}"]
            assert facts["tolerance"][value.name]["atol"] == np.max(bound[np.isfinite(bound)], initial=0.0)
        assert len(list(data.iterdir())) == len(model.graph.input) + len(model.graph.output)


def test_shape_inference_knows_the_outputs(suite_folder):
    for folder in folders(suite_folder):
        if folder.name.endswith("without_hidden_size"):
            continue
        onnx.shape_inference.infer_shapes(onnx.load(folder / "model.onnx"), check_type=True, strict_mode=True)


def test_every_pair_of_attributes(suite_folder):
    """Of those that differ from their defaults in single cases, every pair is in one case of the operator."""
    words = {
        "RNN": ["activations", "clip", "direction", "layout", "B", "sequence_lens", "initial_h"],
        "GRU": ["linear_before_reset"],
        "LSTM": ["input_forget", "initial_c", "P"],
    }
    for op, special in words.items():
        names = [*words["RNN"], *(special if op != "RNN" else [])]
        seen = set()
        for folder in folders(suite_folder):
            facts = json.loads((folder / "case.json").read_text())
            if facts["op"] == op:
                there = [name for name in names if name in facts["attributes"] or name in facts["inputs"]]
                seen |= set(combinations(there, 2))
        assert seen >= set(combinations(names, 2)), op


def test_what_the_cases_hold():
    cases = descriptions.every_case()
    for op in ("RNN", "GRU", "LSTM"):
        mine = [case for case in cases if case.op == op]
        assert {case.opset for case in mine} == {1, 7, 14, 22}
        assert {case.units for case in mine} >= {1, 3, 7, 15, 17, 33}
        assert {case.dtype for case in mine} == {"float64", "float32", "float16", "bfloat16"}
        assert any(case.time == 1 for case in mine) and any(case.batch == 1 for case in mine)
        assert any(case.lengths and 0 in case.lengths for case in mine)
        assert any(case.lengths and set(case.lengths) == {case.time} for case in mine)
        named = {name for case in mine for name, _, _ in case.activations}
        assert len(named) == 11


def test_covering_arrays():
    """Every allowed pair is in a row, no row is forbidden, and the array is small."""
    factors = {"a": [1, 2, 3], "b": ["x", "y", "z"], "c": [True, False], "d": [None, 0.5, 1.5, 2.5]}
    allowed = lambda row: not (row["a"] == 1 and row["d"] is None)
    rows = covering.cover(factors, allowed)
    assert all(map(allowed, rows)) and 12 <= len(rows) <= 16
    seen = set().union(*map(covering.pairs_of, rows))
    for (a, xs), (b, ys) in combinations(sorted(factors.items()), 2):
        for x in xs:
            for y in ys:
                assert (((a, x), (b, y)) in seen) == (not (a == "a" and x == 1 and b == "d" and y is None))


def test_random_numbers():
    """SplitMix64 as published: the first outputs of the seed 1234567."""
    random = covering.Random(1234567)
    assert [random.next() for _ in range(2)] == [6457827717110365317, 3203168211198807973]


@pytest.mark.parametrize("case", ["gru_lengths", "lstm_layout_1_lengths"])
def test_padding_is_not_asked_for(suite_folder, case):
    tensors = read_tensors(suite_folder / case / "tensors.safetensors")
    batch = 3
    lengths, bound = tensors["in/sequence_lens"], tensors["bound/0/Y"]
    bound = bound if case == "gru_lengths" else bound.transpose(1, 2, 0, 3)
    for row in range(batch):
        steps = np.arange(bound.shape[0]) >= lengths[row]
        assert (np.isinf(bound[:, :, row]).all(axis=(1, 2)) == steps).all()
