"""ONNX's own tests of the operators RNN, LSTM and GRU, and of those around them, all of them run here."""

import warnings
from functools import cache

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from onnx_models import onnx_tool

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from onnx.backend.test.case.node import collect_testcases

RECURRENT = ["RNN", "LSTM", "GRU"]
# Cases of these that need element types without a DType, or operators of another kind, are left out by name.
AROUND = [
    "Abs", "Add", "Clip", "Concat", "Constant", "ConstantOfShape", "Conv", "Div", "Elu", "Exp", "Expand", "Flatten",
    "Gather", "Gemm", "HardSigmoid", "Identity", "LeakyRelu", "Log", "LogSoftmax", "MatMul", "Mul", "Neg", "Pad", "Pow",
    "ReduceMean", "Relu", "Reshape", "Shape", "Sigmoid", "Size", "Slice", "Softmax", "Softplus", "Softsign", "Split",
    "Sqrt", "Squeeze", "Sub", "Tanh", "Transpose", "Unsqueeze",
]  # fmt: skip
KNOWN = {np.dtype(name) for name in ("float16", "float32", "float64", "int32", "int64", "uint8", "bool")}
ARITHMETIC = {"Abs", "Add", "Clip", "Div", "Mul", "Neg", "Sub", "MatMul"}


@cache
def all_cases():
    """They are made when the package first collects them, and only then."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [case for case in collect_testcases() if case.kind == "node" and "_expanded" not in case.name]


def cases(operators):
    return [case for case in all_cases() if case.model.graph.node[0].op_type in operators]


def arrays_of(case):
    """The values of a case, or None where one is no tensor."""
    inputs, outputs = case.data_sets[0]
    values = [numpy_helper.to_array(v) if isinstance(v, onnx.TensorProto) else v for v in [*inputs, *outputs]]
    return values if all(isinstance(v, (np.ndarray, np.generic)) for v in values) else None


def runs_here(case):
    values = arrays_of(case)
    operator = case.model.graph.node[0].op_type
    if values is None or len(case.model.graph.node) != 1 or any(np.asarray(v).dtype not in KNOWN for v in values):
        return False
    integers = {np.asarray(v).dtype for v in values if np.asarray(v).dtype.kind in "iub"}
    # Functions are of floating numbers; sums and products of int32 and int64, too.
    most = {np.dtype("int32"), np.dtype("int64")} if operator in {"Add", "Sub", "Mul", "Div"} else set()
    if operator == "Pow":  # only the exponent may be an integer
        return np.asarray(values[0]).dtype.kind == "f"
    return operator not in ARITHMETIC or integers <= most


def check(case, folder):
    onnx.save(case.model, folder / "m.onnx")
    inputs, outputs = case.data_sets[0]
    as_array = lambda v: numpy_helper.to_array(v) if isinstance(v, onnx.TensorProto) else np.asarray(v)
    graph = case.model.graph
    given = {info.name: as_array(value) for info, value in zip(graph.input, inputs, strict=True)}
    found = onnx_tool.run(folder / "m.onnx", given)
    for info, value in zip(graph.output, outputs, strict=True):
        expected, ours = as_array(value), found[info.name]
        assert (ours.shape, ours.dtype) == (expected.shape, expected.dtype), info.name
        np.testing.assert_allclose(ours, expected, rtol=case.rtol, atol=case.atol, err_msg=info.name)


@pytest.mark.parametrize("case", cases(RECURRENT), ids=lambda case: case.name)
def test_recurrent(tmp_path, case):
    check(case, tmp_path)


def test_all_recurrent_cases_are_there():
    assert len(cases(RECURRENT)) >= 15


@pytest.mark.parametrize("case", [case for case in cases(AROUND) if runs_here(case)], ids=lambda case: case.name)
def test_around(tmp_path, case):
    check(case, tmp_path)


def test_every_operator_around_has_cases():
    named = {case.model.graph.node[0].op_type for case in cases(AROUND) if runs_here(case)}
    assert named == set(AROUND)
    ours = set(onnx_tool.tool("operators").split())
    assert ours - named == {*RECURRENT, "Cast", "Dropout"}
