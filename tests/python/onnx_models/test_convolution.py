"""Conv against float64, ONNX Runtime and the reference evaluator of ONNX, at odd sizes."""

import hashlib
import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

import openrnn
from onnx_models import onnx_tool

# X, W, and the attributes; with a bias where `bias` says so.
CASES = {
    "one_tap": dict(x=(1, 3, 7), w=(5, 3, 1)),
    "stft": dict(x=(1, 1, 640), w=(66, 1, 256), strides=[128]),
    "same_three": dict(x=(2, 33, 5), w=(17, 33, 3), pads=[1, 1], bias=True),
    "strided": dict(x=(2, 4, 23), w=(3, 4, 5), strides=[3], pads=[2, 1], bias=True),
    "dilated": dict(x=(1, 4, 61), w=(6, 4, 3), dilations=[7], pads=[14, 0]),
    "depthwise": dict(x=(3, 8, 19), w=(8, 1, 5), group=8, pads=[2, 2], bias=True),
    "groups": dict(x=(2, 6, 19), w=(9, 2, 4), group=3, strides=[2], bias=True),
    "upper": dict(x=(1, 2, 10), w=(3, 2, 4), auto_pad="SAME_UPPER", strides=[3]),
    "lower": dict(x=(1, 2, 11), w=(3, 2, 4), auto_pad="SAME_LOWER", strides=[2]),
    "valid": dict(x=(1, 2, 11), w=(3, 2, 4), auto_pad="VALID"),
    "pads_beyond": dict(x=(1, 2, 3), w=(3, 2, 2), pads=[5, 6], strides=[2], bias=True),
    "long": dict(x=(1, 2, 50_001), w=(3, 2, 7), pads=[3, 3], bias=True),  # several products
    "long_batch": dict(x=(70, 40, 11), w=(4, 40, 9), pads=[4, 4], strides=[2]),
    "image": dict(x=(2, 3, 9, 7), w=(4, 3, 3, 2), strides=[2, 1], pads=[1, 0, 2, 1], bias=True),
    "image_dilated": dict(x=(1, 2, 13, 11), w=(3, 2, 2, 3), dilations=[3, 2], pads=[0, 2, 1, 3]),
    "image_groups": dict(x=(1, 4, 5, 6), w=(4, 2, 3, 3), group=2, auto_pad="SAME_UPPER", strides=[2, 3], bias=True),
    "keras": dict(x=(2, 64, 1, 9), w=(16, 64, 1, 4), bias=True),  # one dimension as tf2onnx writes it
    "volume": dict(x=(1, 2, 5, 6, 7), w=(3, 2, 2, 3, 2), strides=[1, 2, 3], pads=[1, 0, 1, 0, 2, 1]),
    "deep": dict(x=(1, 700, 3), w=(2, 700, 3), pads=[1, 1], bias=True),  # several spans of a sum
}  # fmt: skip
WHOLE = pytest.mark.parametrize("name", CASES)


def operands(name, dtype="float32"):
    """X, W and B or None; the attributes."""
    case = dict(CASES[name])
    random = np.random.default_rng(len(name))
    x, w = (random.uniform(-1, 1, case.pop(key)).astype(dtype) for key in "xw")
    bias = random.uniform(-1, 1, len(w)).astype(dtype) if case.pop("bias", False) else None
    return x, w, bias, case


def saved(path, x, w, bias, attributes):
    """A model of one node; its weights are inputs, too."""
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    names = ["x", "w", "b"][: 2 if bias is None else 3]
    graph = helper.make_graph(
        [helper.make_node("Conv", names, ["y"], **attributes)], "g",
        [helper.make_tensor_value_info(name, kind, None) for name in names],
        [helper.make_tensor_value_info("y", kind, None)],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=7)
    onnx.save(model, path)
    return {name: array for name, array in zip("xwb", [x, w, bias]) if array is not None}


def pads_of(x, w, attributes):
    """What is added before and behind each dimension."""
    rank, kind = x.ndim - 2, attributes.get("auto_pad", "NOTSET")
    if kind in ("NOTSET", "VALID"):
        pads = attributes.get("pads", [0] * 2 * rank)
        return list(zip(pads[:rank], pads[rank:]))
    pairs = []
    for size, taps, stride in zip(x.shape[2:], w.shape[2:], attributes["strides"]):
        total = max((-(-size // stride) - 1) * stride + taps - size, 0)
        small, large = total // 2, total - total // 2
        pairs.append((small, large) if kind == "SAME_UPPER" else (large, small))
    return pairs


def in_float64(x, w, bias, attributes):
    """The sum over taps of shifted inputs, each by its slice of the weights."""
    rank, groups = x.ndim - 2, attributes.get("group", 1)
    strides, dilations = (attributes.get(key, [1] * rank) for key in ("strides", "dilations"))
    x = np.pad(x.astype("float64"), [(0, 0), (0, 0), *pads_of(x, w, attributes)])
    w = w.astype("float64").reshape(groups, w.shape[0] // groups, *w.shape[1:])
    sizes = [(x.shape[i + 2] - (w.shape[i + 3] - 1) * dilations[i] - 1) // strides[i] + 1 for i in range(rank)]
    x = x.reshape(len(x), groups, -1, *x.shape[2:])
    y = 0.0
    for tap in np.ndindex(*w.shape[3:]):
        cut = tuple(
            slice(t * d, t * d + (size - 1) * s + 1, s) for t, d, size, s in zip(tap, dilations, sizes, strides)
        )
        y = y + np.einsum("ngc...,gmc->ngm...", x[(...,) + cut], w[(...,) + tap])
    y = y.reshape(len(x), -1, *sizes)
    return y if bias is None else y + bias.astype("float64").reshape(-1, *[1] * rank)


def bound(x, w, bias, attributes, roundings):
    """Each rounding errs by at most half an epsilon of the sum of all absolute terms."""
    most = in_float64(abs(x), abs(w), None if bias is None else abs(bias), attributes)
    return roundings * np.finfo(x.dtype).eps / 2 * most


def ours(path, given):
    return openrnn.onnx.load(path)(given)["y"].numpy()


def depth(w):
    """The terms of a sum, and one for the bias."""
    return w[0].size + 1


@WHOLE
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_against_float64(tmp_path, name, dtype):
    x, w, bias, attributes = operands(name, dtype)
    y = ours(tmp_path / "m", saved(tmp_path / "m", x, w, bias, attributes))
    expected = in_float64(x, w, bias, attributes)
    # A chain in a block of 32, 16 blocks of a span, the spans, the bias; float64 has its own sum,
    # and float16 is rounded once, from float32.
    roundings = {"float32": 32 + 16 + depth(w) / 512 + 2, "float64": 50 + depth(w), "float16": 1.01}[dtype]
    assert (y.shape, y.dtype) == (expected.shape, x.dtype)
    assert (abs(y - expected) <= bound(x, w, bias, attributes, roundings)).all()
    assert abs(expected).max() > 0.5


@WHOLE
def test_against_other_runtimes(tmp_path, name):
    pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    x, w, bias, attributes = operands(name)
    given = saved(tmp_path / "m", x, w, bias, attributes)
    y, both = ours(tmp_path / "m", given), bound(x, w, bias, attributes, 52 + 2 * depth(w))
    theirs = onnx_tool.run_onnxruntime(tmp_path / "m", given)["y"]
    assert y.shape == theirs.shape and (abs(y - theirs) <= both).all()
    # The evaluator has one and two dimensions, and takes seconds for what is long.
    if name not in ("volume", "long", "long_batch"):
        (reference,) = ReferenceEvaluator(str(tmp_path / "m")).run(None, given)
        assert y.shape == reference.shape and (abs(y - reference) <= both).all()


DIGEST = """
import hashlib, pathlib, sys
import numpy as np, openrnn
for path in sorted(pathlib.Path(sys.argv[1]).glob("*.onnx")):
    y = openrnn.onnx.load(path)(dict(np.load(path.with_suffix(".npz"))))["y"].numpy()
    print(path.stem, hashlib.sha256(y.tobytes()).hexdigest())
"""


def test_same_bits_without_vectors_and_for_any_number_of_threads(tmp_path, monkeypatch):
    expected = []
    for name in sorted(CASES):
        given = saved(tmp_path / f"{name}.onnx", *operands(name))
        np.savez(tmp_path / f"{name}.npz", **given)
        expected.append(f"{name} {hashlib.sha256(ours(tmp_path / f'{name}.onnx', given).tobytes()).hexdigest()}")
    for variable, value in [("OPENRNN_ISA", "scalar"), ("OPENRNN_NUM_THREADS", "1"), ("OPENRNN_NUM_THREADS", "3")]:
        with monkeypatch.context() as patch:
            patch.setenv(variable, value)
            shown = subprocess.run([sys.executable, "-c", DIGEST, tmp_path], capture_output=True, text=True, check=True)
        assert shown.stdout.split("\n")[:-1] == expected, (variable, value)


def test_a_row_of_a_batch_has_the_bits_that_it_has_alone(tmp_path):
    x, w, bias, attributes = operands("long_batch")
    given = saved(tmp_path / "m", x, w, bias, attributes)
    whole = ours(tmp_path / "m", given)
    for row in (0, 33, 69):
        np.testing.assert_array_equal(ours(tmp_path / "m", given | {"x": x[row : row + 1]})[0], whole[row])
