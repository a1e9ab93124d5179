"""Layers here and cells in TensorFlow exchange checkpoints, each reading what the other wrote."""

from itertools import product

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

import file_tools as tools
import tf_cells
from engine_check import assert_within
from model import numpy_layout
from model.error_bound import Bounded, bound
from model.numpy_layout import Spec
from model.rnn_data import make_problem

MODES = ["lstm", "gru", "rnn_tanh", "rnn_relu"]
DIRECTIONS = ["unidirectional", "bidirectional"]
CASES = list(product(MODES, DIRECTIONS, ["float32", "float64"]))


def spec_of(mode, direction, **more):
    return Spec(mode, 2, 7, 3, direction=direction, **more)


def run_layer(spec, source, target, problem, **options):
    """Restores a layer from `source` unless that is '-', saves it to `target`, runs it there."""
    data = {"x": problem.x, "h0": problem.h0, "c0": problem.c0, "lengths": problem.lengths}
    tools.write_bundle(f"{target}-data", data)
    words = {
        "mode": spec.mode,
        "layers": spec.num_layers,
        "units": spec.num_units,
        "input": spec.input_size,
        "direction": spec.direction,
        "input_mode": spec.input_mode,
        "proj": spec.num_proj,
        "dtype": problem.x.dtype.name,
        **options,
    }
    tools.call_tool("checkpoint", "run", source, target, *[f"{k}={v}" for k, v in words.items()])
    return tools.read_bundle(f"{target}-results")


def read_by_tensorflow(prefix):
    reader = tf.train.load_checkpoint(str(prefix))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def assert_both_right(spec, problem, tensors, ours, theirs):
    """Each is within the bound of what the model computes from the canonical tensors; TensorFlow
    within twice that, as its cells round one sum more and its activations are less exact."""
    params = numpy_layout.from_tf(spec, tensors)
    wanted = bound(spec, problem.x.dtype, params, problem.x, *problem.states, problem.lengths, None)
    assert set(ours) == set(theirs) == set(wanted)
    for name, value in wanted.items():
        assert_within(ours[name], Bounded(value.value, 0.0, 2 * value.error), name)
        assert_within(theirs[name], Bounded(value.value, 0.0, 2 * value.error), name)
        assert value.error.max() < 1e-3, "a bound that allows everything shows nothing"


@pytest.mark.parametrize("mode,direction,dtype", CASES)
def test_tensorflow_runs_what_a_layer_saved(tmp_path, mode, direction, dtype):
    spec = spec_of(mode, direction)
    problem = make_problem(spec, 4, 3, dtype, lengths=[4, 0, 2])
    ours = run_layer(spec, "-", tmp_path / "ckpt", problem)
    theirs = tf_cells.restore_and_run(
        spec, problem, numpy_layout.CELL_NAMES[mode], tmp_path / "ckpt"
    )
    tensors = read_by_tensorflow(tmp_path / "ckpt")
    assert_both_right(spec, problem, tensors, ours, theirs)


@pytest.mark.parametrize("mode,direction,dtype", CASES)
def test_a_layer_runs_what_tensorflow_saved(tmp_path, mode, direction, dtype):
    spec = spec_of(mode, direction)
    problem = make_problem(spec, 4, 3, dtype, lengths=[1, 4, 0])
    theirs = tf_cells.draw_save_and_run(
        spec,
        problem,
        numpy_layout.CELL_NAMES[mode],
        tmp_path / "tf",
        np.random.default_rng(7),
        scope="m1",
    )
    ours = run_layer(
        spec, tmp_path / "tf", tmp_path / "ours", problem, scope="m1", saver="saveables"
    )
    tensors = read_by_tensorflow(tmp_path / "tf")
    tools.assert_same(
        {n: t for n, t in read_by_tensorflow(tmp_path / "ours").items() if n in tensors}, tensors
    )
    inner = {name.removeprefix("m1/"): tensor for name, tensor in tensors.items()}
    assert_both_right(spec, problem, inner, ours, theirs)
    lines = tools.call_tool("checkpoint", "describe", tmp_path / "tf").splitlines()
    shown = "rnn_tanh or rnn_relu" if mode.startswith("rnn") else mode
    assert lines == [f"m1\t{shown}, 2 layers, 7 units, input size 3, {direction}, {dtype}\t"]


EXTRA = [{"input_mode": "skip_input"}, {"num_proj": 5}]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("mode,direction", list(product(MODES, DIRECTIONS)))
def test_names_shapes_and_values(tmp_path, mode, direction, dtype):
    """Every tensor of the model's table, with bias sums rounded once; and the raw buffer."""
    specs = [spec_of(mode, direction)]
    for more in EXTRA if mode == "lstm" else EXTRA[:1]:
        width = {"input_size": 7} if "input_mode" in more else {"input_size": 3}
        specs.append(Spec(mode, 2, 7, direction=direction, **width, **more))
    for number, spec in enumerate(specs):
        prefix = tmp_path / str(number)
        problem = make_problem(spec, 2, 2, dtype, lengths="full")
        run_layer(spec, "-", prefix, problem)
        found = read_by_tensorflow(prefix)
        layer = {"lstm": "cudnn_lstm", "gru": "cudnn_gru"}.get(mode, f"cudnn_{mode}")
        raw = found.pop(f"{layer}/opaque_kernel")
        assert raw.dtype == dtype and raw.shape == (numpy_layout.params_size(spec),)
        wanted = dict(numpy_layout.to_tf(spec, raw))
        tools.assert_same(found, {n: np.ascontiguousarray(t) for n, t in wanted.items()})


def write_by_tensorflow(prefix, tensors):
    tf.raw_ops.SaveV2(
        prefix=str(prefix),
        tensor_names=list(tensors),
        shape_and_slices=[""] * len(tensors),
        tensors=[tf.constant(tensor) for tensor in tensors.values()],
    )


@pytest.mark.parametrize("changed", [False, True])
def test_a_file_with_raw_and_canonical(tmp_path, changed):
    """The raw buffer counts if it says the same as the canonical tensors, and else they do."""
    spec = spec_of("gru", "bidirectional")
    problem = make_problem(spec, 3, 2, np.float32, lengths="mixed")
    tensors = {n: np.ascontiguousarray(t) for n, t in numpy_layout.to_tf(spec, problem.params)}
    if changed:
        next(iter(tensors.values()))[0, 0] += 1
    raw = "cudnn_gru/opaque_kernel"
    write_by_tensorflow(tmp_path / "tf", {raw: problem.params, "slot": np.float32(1), **tensors})
    run_layer(spec, tmp_path / "tf", tmp_path / "ours", problem)
    found = read_by_tensorflow(tmp_path / "ours")
    wanted = numpy_layout.from_tf(spec, tensors) if changed else problem.params
    assert found[raw].tobytes() == wanted.astype(np.float32).tobytes()
    assert (wanted != problem.params).any() == changed


def test_canonical_alone_and_a_wrong_shape(tmp_path):
    spec = spec_of("lstm", "unidirectional")
    problem = make_problem(spec, 3, 2, np.float32, lengths="full")
    tensors = {n: np.ascontiguousarray(t) for n, t in numpy_layout.to_tf(spec, problem.params)}
    write_by_tensorflow(tmp_path / "tf", tensors)
    run_layer(spec, tmp_path / "tf", tmp_path / "ours", problem, saver="saveables")
    found = read_by_tensorflow(tmp_path / "ours")
    tools.assert_same({n: t for n, t in found.items() if n in tensors}, tensors)
    other = ["mode=lstm", "layers=2", "units=7", "input=4", "saver=saveables"]
    done = tools.run_tool("checkpoint", "run", tmp_path / "tf", tmp_path / "no", *other)
    name = "rnn/multi_rnn_cell/cell_0/cudnn_compatible_lstm_cell/kernel"
    assert done.returncode == 1
    assert done.stderr == (
        f"[CudnnLSTMSaveable] tensor {name} has shape [10, 28], expected [11, 28]\n"
    )
