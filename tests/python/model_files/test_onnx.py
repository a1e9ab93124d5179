"""ONNX models against the onnx package: its files are read by us, in every field that has elements."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from files.file_tools import call_tool, from_line
from tool.tool_runs import fault, good

SHAPES = [(), (1,), (0,), (7,), (3, 5), (2, 0, 3), (1, 17, 1, 2)]
DTYPES = {
    "float16": TensorProto.FLOAT16, "bfloat16": TensorProto.BFLOAT16, "float32": TensorProto.FLOAT,
    "float64": TensorProto.DOUBLE, "int32": TensorProto.INT32, "int64": TensorProto.INT64,
    "uint8": TensorProto.UINT8, "bool": TensorProto.BOOL,
}


def initializers(raw, seed=1):
    """Every dtype in every shape, random values."""
    random = np.random.default_rng(seed)
    for dtype, kind in DTYPES.items():
        for shape in SHAPES:
            values = random.integers(0, 2 if dtype == "bool" else 200, shape)
            name = f"{dtype}.{'x'.join(map(str, shape))}"
            if raw:
                array = values.astype(helper.tensor_dtype_to_np_dtype(kind))
                yield numpy_helper.from_array(array, name)
            else:
                yield helper.make_tensor(name, kind, shape, np.ravel(values))


def model_of(tensors):
    graph = helper.make_graph([], "g", [], [], list(tensors))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def read(path):
    return dict(map(from_line, call_tool("model_file", "dump", path).splitlines()))


def assert_read(path, tensors):
    found = read(path)
    assert found.keys() == {tensor.name for tensor in tensors}
    for tensor in tensors:
        array = numpy_helper.to_array(tensor)
        assert found[tensor.name].shape == array.shape
        assert found[tensor.name].tobytes() == array.tobytes(), tensor.name


@pytest.mark.parametrize("raw", [True, False])
def test_every_element_type(tmp_path, raw):
    tensors = list(initializers(raw))
    onnx.save(model_of(tensors), tmp_path / "m")
    assert_read(tmp_path / "m", tensors)
    shown = good("inspect", tmp_path / "m").stdout
    assert "an ONNX model" in shown and f"{len(tensors)} tensors" in shown
    assert "opset_import: ['ai.onnx 17']" in shown


def test_external_data(tmp_path):
    tensors = list(initializers(raw=True))
    onnx.save_model(model_of(tensors), tmp_path / "m.onnx", save_as_external_data=True, location="m.data",
                    size_threshold=0)
    assert (tmp_path / "m.data").stat().st_size > 1000
    assert_read(tmp_path / "m.onnx", tensors)
    (tmp_path / "m.data").rename(tmp_path / "other.data")
    assert "m.data" in fault("inspect", tmp_path / "m.onnx", code=1)
