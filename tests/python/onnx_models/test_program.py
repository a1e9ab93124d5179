"""openrnn.onnx: models that run, in Python."""

import threading

import numpy as np
import onnx
import pytest

pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")

import openrnn
from onnx_models import graphs, onnx_tool


def torch_model(folder):
    model, _ = graphs.torch_module()
    onnx.save(model, folder / "m.onnx")
    return folder / "m.onnx"


def test_a_model_runs(tmp_path):
    path = torch_model(tmp_path)
    program = openrnn.onnx.load(path)
    assert isinstance(program, openrnn.onnx.Program)
    assert program.inputs == {"input": ("float32", (None, None, 3))}
    assert list(program.outputs) == ["scores", "hn"] and program.outputs["hn"] == ("float32", None)
    x = np.random.default_rng(1).uniform(-1, 1, (4, 6, 3)).astype(np.float32)
    found = program({"input": x})
    assert list(found) == ["scores", "hn"] and isinstance(found["hn"], openrnn.Tensor)
    for name, value in onnx_tool.run_onnxruntime(path, {"input": x}).items():
        np.testing.assert_allclose(found[name].numpy(), value, rtol=1e-5, atol=3e-6)


def test_what_becomes_an_input(tmp_path):
    """Lists and arrays with strides; values take the dtype of the model, tensors keep theirs."""
    program = openrnn.onnx.load(str(torch_model(tmp_path)))
    x = np.random.default_rng(1).uniform(-1, 1, (6, 4, 3)).astype(np.float32).swapaxes(0, 1)
    wanted = program({"input": np.ascontiguousarray(x)})["hn"].numpy()
    for given in (x, x.tolist(), openrnn.convert_to_tensor(x)):
        np.testing.assert_array_equal(program({"input": given})["hn"].numpy(), wanted)
    whole = np.random.default_rng(1).integers(-2, 3, (4, 6, 3))
    wanted = program({"input": whole.astype(np.float32)})["hn"].numpy()
    np.testing.assert_array_equal(program({"input": whole.tolist()})["hn"].numpy(), wanted)
    with pytest.raises(ValueError, match="'input' is int64, expected float32"):
        program({"input": openrnn.convert_to_tensor(whole)})
    with pytest.raises(ValueError, match="'input' is not given"):
        program({})
    with pytest.raises(ValueError, match="'x' is given, expected inputs of the graph"):
        program({"x": x})


def test_threads_share_a_program(tmp_path):
    program = openrnn.onnx.load(torch_model(tmp_path))
    x = np.random.default_rng(1).uniform(-1, 1, (4, 6, 3)).astype(np.float32)
    wanted, found = program({"input": x})["scores"].numpy(), [None] * 4

    def work(i):
        found[i] = [program({"input": x})["scores"].numpy() for _ in range(5)]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for values in found:
        for value in values:
            np.testing.assert_array_equal(value, wanted)


def test_operators_and_faults(tmp_path):
    assert {"GRU", "LSTM", "RNN", "Gemm", "Slice"} <= set(openrnn.onnx.operators())
    model = onnx.helper.make_model(onnx.helper.make_graph([onnx.helper.make_node("Erf", ["x"], ["y"])], "g", [], []))
    onnx.save(model, tmp_path / "m")
    with pytest.raises(NotImplementedError, match=r"node 'y' \(Erf\): no program runs this operator"):
        openrnn.onnx.load(tmp_path / "m")
    (tmp_path / "cut").write_bytes((tmp_path / "m").read_bytes()[:-5])
    with pytest.raises(ValueError, match="is malformed"):
        openrnn.onnx.load(tmp_path / "cut")
    with pytest.raises(OSError):
        openrnn.onnx.load(tmp_path / "nothing")
