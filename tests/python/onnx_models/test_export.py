"""What is exported: onnx's checker accepts it, ONNX Runtime computes what the engines do, and it comes back."""

from itertools import product

import numpy as np
import onnx
import pytest

pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")

import rnn_capi
from model.cells import cell_problems
from model.cells.cell_spec import CellSpec
from onnx_models import onnx_tool

MODES = ["lstm", "gru", "rnn_tanh", "rnn_relu"]
DIRECTIONS = ["unidirectional", "bidirectional"]


def problem_of(spec, lengths=None):
    # For a row of length zero ONNX Runtime gives zeros in place of the initial state.
    return cell_problems.make(spec, dtype=np.float32, lengths=lengths)


def check(path, problem):
    """Exports the problem's network with states and lengths, and compares the runs."""
    spec = problem.spec
    words = ["states"] + (["lengths"] if problem.lengths is not None else [])
    onnx_tool.export(path, spec, problem.params, *words)
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    inputs = {"x": np.nan_to_num(problem.x), "h0": problem.h0}
    inputs |= {"c0": problem.c0} if spec.mode == "lstm" else {}
    inputs |= {"lengths": problem.lengths} if problem.lengths is not None else {}
    ours = rnn_capi.run("cpu", problem)
    assert ours.keys() == {output.name for output in model.graph.output}
    cell_problems.assert_close(ours, onnx_tool.run_onnxruntime(path, inputs), np.float32)
    found = onnx_tool.run(path, inputs)
    for name, value in ours.items():
        # The forget bias joins another one, rounded, in the file.
        most = 1e-6 if "forget_bias" in spec.options else 0.0
        np.testing.assert_allclose(found[name], value, rtol=0, atol=most, err_msg=name)


@pytest.mark.parametrize("mode,direction,layers", list(product(MODES, DIRECTIONS, [1, 3])))
@pytest.mark.parametrize("lengths", [None, "mixed"])
def test_every_network(tmp_path, mode, direction, layers, lengths):
    spec = CellSpec(mode, layers, 5, 3, direction=direction)
    check(tmp_path / "m.onnx", problem_of(spec, np.array([4, 1, 3]) if lengths else None))


@pytest.mark.parametrize("mode,direction,layers", list(product(MODES, DIRECTIONS, [1, 3])))
def test_it_comes_back(tmp_path, mode, direction, layers):
    spec = CellSpec(mode, layers, 5, 3, direction=direction)
    problem = problem_of(spec)
    onnx_tool.export(tmp_path / "m.onnx", spec, problem.params)
    (found,), notes, left = onnx_tool.networks(tmp_path / "m.onnx")
    assert not notes and found["rnn_mode"] == mode and found["num_layers"] == str(layers)
    assert found["direction"] == direction
    np.testing.assert_array_equal(found["params"], problem.params)
    assert all(name.endswith(("axes", "shape")) for name in left)


OPTIONS = [
    ("gru", {"reset_after": False}), ("gru", {"reset_after": False, "single_bias": True}),
    ("gru", {"recurrent_activation": "hard_sigmoid", "activation": "leaky_relu(0.3)"}),
    ("lstm", {"use_peepholes": True}), ("lstm", {"coupled_gates": True}), ("lstm", {"use_bias": False}),
    ("lstm", {"single_bias": True}), ("lstm", {"forget_bias": 1.0}), ("lstm", {"gate_clip": (-0.5, 0.5)}),
    ("lstm", {"forget_bias": 0.5, "use_bias": False, "use_peepholes": True, "output_activation": "elu(0.5)"}),
    ("rnn_tanh", {"activation": "scaled_tanh(1.25, 0.5)"}), ("rnn_tanh", {"activation": "softplus"}),
    ("rnn_tanh", {"activation": "affine(0.5, 0.25)"}), ("rnn_tanh", {"activation": "thresholded_relu(0.25)"}),
    ("rnn_tanh", {"activation": "softsign"}),
]  # fmt: skip


@pytest.mark.parametrize("mode,options", OPTIONS)
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_options(tmp_path, mode, options, direction):
    check(tmp_path / "m.onnx", problem_of(CellSpec(mode, 2, 5, 3, direction=direction, **options)))


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_states_of_the_network(tmp_path, direction):
    """Rows that the file begins with, for any size of the batch."""
    spec = CellSpec("lstm", 2, 5, 3, direction=direction)
    problem = problem_of(spec)
    h0, c0 = problem.h0[:, 0].copy(), problem.c0[:, 0].copy()
    path = tmp_path / "m.onnx"
    onnx_tool.export(path, spec, problem.params, initial_h=h0, initial_c=c0)
    onnx.checker.check_model(onnx.load(path), full_check=True)
    for batch in (1, 3):
        problem.x = np.ascontiguousarray(problem.x[:, :batch])
        problem.h0 = np.repeat(h0[:, None], problem.x.shape[1], axis=1)
        problem.c0 = np.repeat(c0[:, None], problem.x.shape[1], axis=1)
        theirs = onnx_tool.run_onnxruntime(path, {"x": problem.x})
        ours = onnx_tool.run(path, {"x": problem.x})
        cell_problems.assert_close(ours, theirs, np.float32)
    (found,), _, left = onnx_tool.networks(path)
    assert not left  # the numbers that the states are repeated by are no weights
    np.testing.assert_array_equal(found["initial_h"], h0)
    np.testing.assert_array_equal(found["initial_c"], c0)


REFUSED = [
    ("lstm", {"num_proj": 3}, "num_proj 3"), ("lstm", {"cell_clip": (-1.0, 1.0)}, "cell_clip [-1, 1]"),
    ("gru", {"layer_norm": "products"}, "layer_norm products"), ("gru", {"zoneout": 0.5}, "zoneout 0.5"),
    ("lstm", {"gate_clip": (-1.0, 0.5)}, "gate_clip (-1, 0.5)"),
]  # fmt: skip


@pytest.mark.parametrize("mode,options,named", REFUSED)
def test_what_is_refused(tmp_path, mode, options, named):
    words = ["rnn_mode=" + mode, "num_units=5", "input_size=3"]
    text = lambda value: ":".join(map(str, value)) if isinstance(value, tuple) else str(value)
    words += [f"{name}={text(value)}" for name, value in options.items()]
    complaint = onnx_tool.fault("export", tmp_path / "m", *words, arrays={"params": np.zeros(1000, np.float32)})
    assert named in complaint and not (tmp_path / "m").exists()
