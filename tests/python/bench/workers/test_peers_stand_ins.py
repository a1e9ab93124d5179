"""The workers of OpenVINO and tract, over packages with the few names that they use."""

import pytest
from peer_checks import MODES, check, check_a_step, line_of, pool_of, results_of, set_up, side_of

from peers import protocol
from peers.lines import Side

# They compute with ONNX Runtime what the model says.
TRACT = '''
import onnxruntime

def version(): return "0.9"

class Tensor:
    def __init__(self, array): self.array = array
    @staticmethod
    def from_numpy(array): return Tensor(array)
    def to_numpy(self): return self.array

class Model:
    def load(self, path):
        self.session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        return self
    def into_model(self): return self
    into_runnable = into_model
    def run(self, given):
        names = [each.name for each in self.session.get_inputs()]
        arrays = {name: each.array for name, each in zip(names, given, strict=True)}
        return [Tensor(array) for array in self.session.run(None, arrays)]

def onnx(): return Model()
'''
OPENVINO = '''
import os
import onnxruntime

__version__ = "2030.1.0-123-abc"

class Value:
    def __init__(self, value): self.value = value
    def to_string(self): return self.value

class Tensor:
    def __init__(self, array, shared_memory=False):
        self.data = array if shared_memory else array.copy()

class Request:
    def __init__(self, session): self.session, self.given = session, {}
    def set_tensor(self, name, tensor): self.given[name] = tensor
    def infer(self):
        names = [output.name for output in self.session.get_outputs()]
        given = {name: tensor.data for name, tensor in self.given.items()}
        self.found = dict(zip(names, self.session.run(names, given)))
    def get_tensor(self, name): return Tensor(self.found[name])

class Output:
    def __init__(self, name): self.name = name
    def get_any_name(self): return self.name

class Node:
    def __init__(self, **info): self.info = info
    def get_rt_info(self): return {name: Value(text) for name, text in self.info.items()}

class CompiledModel:
    def __init__(self, session, precision):
        self.session, self.precision = session, precision
        self.outputs = [Output(output.name) for output in session.get_outputs()]
    def get_property(self, name):
        assert name == "INFERENCE_PRECISION_HINT"
        return Value(self.precision)
    def create_infer_request(self): return Request(self.session)
    def get_runtime_model(self): return self
    def get_ops(self):
        kind = os.environ["STAND_IN_LAYER"]
        return [Node(layerType="Input", primitiveType="none"), Node(other="x"),
                Node(layerType=kind, primitiveType="second"), Node(layerType=kind, primitiveType="first")]

class Model:
    def __init__(self, data):
        self.session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    def reshape(self, shapes):
        wanted = {each.name: each.shape for each in self.session.get_inputs()}
        assert shapes == wanted and shapes["x"][1:] == [3, 5], shapes

class Core:
    def set_property(self, device, options):
        threads = int(os.environ["PEERS_THREADS"])
        assert device == "CPU" and options["INFERENCE_NUM_THREADS"] == threads
        assert options["PERFORMANCE_HINT"] == "LATENCY"
        self.precision = options["INFERENCE_PRECISION_HINT"]
        if os.environ["STAND_IN_BF16"] == "0": self.precision = "f32"
    def read_model(self, data): return Model(data)
    def compile_model(self, model, device):
        assert device == "CPU"
        return CompiledModel(model.session, self.precision)
'''


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    """A function: a pool of workers that find the packages."""
    folder, pools = tmp_path_factory.mktemp("packages"), {}
    (folder / "tract.py").write_text(TRACT)
    (folder / "openvino.py").write_text(OPENVINO)

    def start(threads=1, bf16="0", layer="RNNSeq"):
        key = threads, bf16, layer
        if key not in pools:
            logs = tmp_path_factory.mktemp("logs")
            pools[key] = pool_of(logs, threads, folder, STAND_IN_BF16=bf16, STAND_IN_LAYER=layer)
        return pools[key]

    yield start
    for pool in pools.values():
        pool.close()


@pytest.mark.parametrize("worker,padded", [
    ("onnx_runtimes.openvino_cpu", False), ("onnx_runtimes.openvino_cpu", True),
    ("onnx_runtimes.tract_cpu", False),
])  # fmt: skip
@pytest.mark.parametrize("cell", MODES)
@pytest.mark.parametrize("directions", [1, 2])
def test_forward(worker, padded, cell, directions, started, tmp_path):
    line = line_of(cell, directions, padded=padded)
    process, _ = set_up(started(), line, side_of(worker, padded), tmp_path)
    check(line, results_of(process, tmp_path), tmp_path)
    assert len(process.times(2, 1)) == 2


@pytest.mark.parametrize("worker", ["onnx_runtimes.openvino_cpu", "onnx_runtimes.tract_cpu"])
@pytest.mark.parametrize("cell", MODES)
@pytest.mark.parametrize("directions", [1, 2])
def test_a_step_from_given_states(worker, cell, directions, started, tmp_path):
    check_a_step(worker, cell, directions, started(), tmp_path)


def test_kernels_and_versions_are_told(started, tmp_path):
    line = line_of("lstm", 1)
    process, kernel = set_up(started(), line, side_of("onnx_runtimes.openvino_cpu"), tmp_path)
    assert kernel == "RNNSeq first, RNNSeq second" and process.ask("about") == "OpenVINO 2030.1.0"
    for layer, kernel in (("RNNCell", "RNNCell first, RNNCell second"), ("MatMul", "no recurrent operator"),
                          ("TensorIterator", "TensorIterator first, TensorIterator second")):  # fmt: skip
        found = set_up(started(layer=layer), line, side_of("onnx_runtimes.openvino_cpu"), tmp_path)
        assert found[1] == kernel
    process, kernel = set_up(started(), line, side_of("onnx_runtimes.tract_cpu"), tmp_path)
    assert (kernel, process.ask("about")) == ("its own", "tract 0.9")


def test_bf16_is_refused_where_the_processor_lacks_it(started, tmp_path):
    line = line_of("gru", 1)
    side = Side("OpenVINO bf16", "onnx_runtimes.openvino_cpu", "peer", (("math", "bf16"),))
    with pytest.raises(protocol.Refusal, match="no bf16 on this processor"):
        set_up(started(), line, side, tmp_path)
    process, _ = set_up(started(bf16="1"), line, side, tmp_path)
    check(line, results_of(process, tmp_path), tmp_path)  # the stand-in's float32


@pytest.mark.parametrize("worker,options,threads,reason", [
    ("openvino_cpu", {"math": "bf16x3"}, 1, "no such option of its recurrent operators"),
    ("openvino_cpu", {"weights": "int8"}, 1, "no int8 weights in its recurrent operators"),
    ("openvino_cpu", {"lengths": "packed"}, 1, "no such option of its recurrent operators"),
    ("tract_cpu", {"lengths": "given"}, 1, "no lengths in its recurrent operators"),
    ("tract_cpu", {"math": "bf16"}, 1, "no such option of its recurrent operators"),
    ("tract_cpu", {}, 2, "one thread alone"),
])  # fmt: skip
def test_refusals(worker, options, threads, reason, started, tmp_path):
    line = line_of("lstm", 1, padded="lengths" in options)
    side = Side("a side", f"onnx_runtimes.{worker}", options=tuple(options.items()))
    with pytest.raises(protocol.Refusal, match=reason):
        set_up(started(threads), line, side, tmp_path)
    training = line_of("lstm", 1, "training")
    with pytest.raises(protocol.Refusal, match="inference alone"):
        set_up(started(), training, side_of(f"onnx_runtimes.{worker}"), tmp_path)
