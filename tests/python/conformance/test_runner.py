"""python -m openrnn.conformance: adapters in processes of their own, verdicts, matrices."""

import json
import subprocess
import sys
import types
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from openrnn.conformance import report
from openrnn.conformance.adapters import openvino
from openrnn.conformance.judge import Case, cases_of, judge, judge_gradients
from openrnn.conformance.lanes import ADAPTERS, lanes_of
from openrnn.conformance.process import Backend

# An implementation by hand that does what a name of the case says.
STAND_IN = '''
import os, signal, sys, time
from pathlib import Path
import numpy as np
sys.path.insert(0, {adapters!r})
import onnxruntime
from onnxruntime import InferenceSession, SessionOptions

def version():
    print("on standard output")
    return "1.2.3"

def run(model_path, inputs):
    name = Path(model_path).parent.name
    print("noise on standard output", flush=True)
    if name == "rnn_defaults":
        os.kill(os.getpid(), signal.SIGSEGV)
    if name == "rnn_one_step":
        time.sleep(60)
    if name == "rnn_one_row":
        raise NotImplementedError("no rows\\nStack backtrace: here")
    if name == "rnn_reverse":
        os._exit(3)
    if name == "rnn_only_Y":
        raise RuntimeError()
    options = SessionOptions()
    options.log_severity_level = 4
    session = InferenceSession(model_path, options, providers=["CPUExecutionProvider"])
    y, h = session.run(["Y", "Y_h"], inputs)
    if name == "rnn_bidirectional":
        y[1, 1, 0, 2] += 1e-3
    if name == "rnn_initial_h":
        return {{"Y": y}}
    if name == "rnn_without_bias":
        return [y.astype(np.float64), h]
    if name == "rnn_lengths_full":
        y[0, 0, 0, 0] = np.nan
    return [y, h]
'''


@pytest.fixture
def stand_in(tmp_path):
    path = tmp_path / "stand_in.py"
    path.write_text(STAND_IN.format(adapters=str(ADAPTERS.parent)))
    return path


def chosen(suite_folder, *names):
    return [case for case in cases_of(suite_folder) if case.name in names]


WANTED = {
    "rnn_defaults": ("crash", "the process ended with signal SIGSEGV"),
    "rnn_one_step": ("timeout", "no answer in 10 s"),
    "rnn_one_row": ("refused", "NotImplementedError: no rows"),
    "rnn_reverse": ("crash", "the process ended with exit status 3"),
    "rnn_bidirectional": ("wrong", "Y[1, 1, 0, 2] is "),
    "rnn_initial_h": ("wrong", "Y_h is missing"),
    "rnn_without_bias": ("wrong", "Y is float64 [3, 1, 2, 3], expected float32 [3, 1, 2, 3]"),
    "rnn_lengths_full": ("wrong", "Y[0, 0, 0, 0] is nan"),
    "rnn_only_Y": ("refused", "RuntimeError: Traceback (most recent call last): File "),
    "rnn_clip": ("pass", ""),
}


def test_every_kind_of_end(suite_folder, stand_in):
    """A crash or an endless call is one case's result; the next case has a new process."""
    with Backend(stand_in, timeout=10.0) as backend:
        assert backend.version() == {"ok": True, "version": "1.2.3", "gradients": False}
        for case in chosen(suite_folder, *WANTED):
            status, text = WANTED[case.name]
            verdict = judge(backend, case)
            assert verdict.status == status and verdict.text.startswith(text), (case.name, verdict)


def test_readings(suite_folder):
    """Where the text is open a backend passes by its own reading, which is named."""
    (lane,) = lanes_of("onnxruntime", {}, [], [])
    with Backend(lane.adapter) as backend:
        (case,) = chosen(suite_folder, "gru_open_zero_length")
        verdict = judge(backend, case)
        assert (verdict.status, verdict.reading, verdict.number) == ("pass", {"zero_length": "zeros"}, 1)


class Answers:
    """A backend whose answer is given beforehand."""

    def __init__(self, dtype="float64", **arrays):
        self.answer, self.arrays = {"ok": True, "dtypes": dict.fromkeys(arrays, dtype)}, arrays

    def compute(self, do, folder):
        return self.answer, self.arrays


def case_of(folder, tensors, **facts):
    """A case of float64 tensors {name: numbers}."""
    header, data = {}, b""
    for name, numbers in tensors.items():
        part = np.array(numbers, "f8").tobytes()
        header[name] = {"dtype": "F64", "shape": [len(numbers)], "data_offsets": [len(data), len(data) + len(part)]}
        data += part
    text = json.dumps(header).encode()
    (folder / "tensors.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)
    return Case(folder, {"dtype": "float64", "readings": [{}], "gradients": False} | facts)


@pytest.mark.parametrize("values,status,number,error,text", [
    ([1.0, 2.0], "pass", 0, 0.0, ""),
    ([5.0, 6.5], "pass", 1, 0.5, ""),
    ([2.5, 2.0], "wrong", 0, 1.5, "Y[0] is 2.5, expected 1 within 1"),
    ([5.0, 8.0], "wrong", 0, 2.0, "Y[1] is 8, expected 6 within 1"),
    ([3.0, 2.5], "wrong", 0, 2.0, "Y[0] is 3, expected 1 within 1"),
    ([5.0, np.nan], "wrong", 0, np.inf, "Y[1] is nan, expected 2 within 1"),
])  # fmt: skip
def test_the_nearest_reading_is_the_verdict(tmp_path, values, status, number, error, text):
    """A pass says by which reading; what is wrong is said of the one that is nearest."""
    tensors = {"out/0/Y": [1, 2], "bound/0/Y": [1, 1], "out/1/Y": [5, 6], "bound/1/Y": [1, 1]}
    case = case_of(tmp_path, tensors, readings=[{}, {"clip": "late"}])
    verdict = judge(Answers(Y=np.array(values)), case)
    assert (verdict.status, verdict.number, verdict.error, verdict.text) == (status, number, error, text)
    assert verdict.reading == ({"clip": "late"} if number else {})


@pytest.mark.parametrize("values,bounds,error", [
    ([1.0, 7.0], [0.0, np.inf], 0.0),
    ([1.5, 7.0], [0.0, np.inf], np.inf),
    ([1.5, np.nan], [1.0, np.inf], 0.5),
    ([0.25, 2.5], [1.0, 1.0], 0.75),
    ([], [], 0.0),
])  # fmt: skip
def test_bounds_of_gradients(tmp_path, values, bounds, error):
    """A bound of zero is met by equality alone, one of infinity by everything."""
    wanted = [1.0, 2.0][: len(values)]
    case = case_of(tmp_path, {"grad/X": wanted, "grad_bound/X": bounds}, gradients=True)
    verdict = judge_gradients(Answers(X=np.array(values)), case)
    assert (verdict.status, verdict.error) == ("pass" if error <= 1 else "wrong", error)
    assert bool(verdict.text) == (verdict.status == "wrong")
    assert judge_gradients(Answers(), Case(tmp_path, case.facts | {"gradients": False})).status == "none"


def run_module(*words):
    return subprocess.run([sys.executable, "-m", "openrnn.conformance", *map(str, words)], capture_output=True, text=True)


def test_command(suite_folder, stand_in, tmp_path):
    """Text, JSON, a page, exit statuses."""
    words = ["--cases", suite_folder, "--backend", stand_in, "--case", "^rnn_(clip|bidirectional|open_padded_outputs)$"]
    done = run_module(*words)
    assert done.returncode == 1 and done.stderr == ""
    assert "stand_in: 1.2.3" in done.stdout and "0 of 1: 1 wrong" in done.stdout
    assert "stand_in, direction: rnn_bidirectional wrong: Y[1, 1, 0, 2]" in done.stdout
    assert "Y behind the end of a row (1)  zeros" in done.stdout
    found = json.loads(run_module(*words, "--json").stdout)
    assert [case["name"] for case in found["cases"]] == ["rnn_bidirectional", "rnn_clip", "rnn_open_padded_outputs"]
    assert found["backends"][0]["forward"]["rnn_clip"]["status"] == "pass"
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- matrix -->\nold\n<!-- end of matrix -->\nafter\n")
    assert run_module(*words, "--markdown", page).returncode == 1
    text = page.read_text()
    assert text.startswith("before\n<!-- matrix -->\n3 cases, 2") and text.endswith("<!-- end of matrix -->\nafter\n")
    assert "| direction (1) | 0 of 1: 1 wrong |" in text and "old" not in text
    assert run_module("--cases", suite_folder, "--backend", stand_in, "--case", "^rnn_clip$").returncode == 0


def test_cases_are_made_when_none_are_given(stand_in):
    """By the suite that is installed with the package."""
    done = run_module("--backend", stand_in, "--case", "^rnn_clip$")
    assert done.returncode == 0 and "all (1)   1" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("words,status,text", [
    (["--backend", "nothing"], 2, "[conformance] backend is 'nothing', expected openrnn, onnxruntime"),
    (["--case", "xyz"], 1, "has 'xyz' in its name"),
    (["--isa", "sse"], 2, "invalid choice: 'sse'"),
])  # fmt: skip
def test_what_is_asked_wrongly(suite_folder, words, status, text):
    done = run_module("--cases", suite_folder, *words)
    assert done.returncode == status and text in done.stderr


def test_backend_that_is_not_there(suite_folder):
    """A module that is missing is a reason, not a failure of cases."""
    done = run_module("--cases", suite_folder, "--backend", "tract", "--backend", "onnxruntime", "--case", "^gru_clip$")
    assert "tract: not run, ModuleNotFoundError: No module named 'tract'" in done.stdout
    assert done.returncode == 0 and "gru_clip" not in done.stdout
    assert run_module("--cases", suite_folder, "--backend", "tract", "--case", "^gru_clip$").returncode == 1


# Packages with the few names that the adapters use, over ONNX Runtime.
TRACT = '''
import numpy as np, onnxruntime
def version(): return "0.0"
class Result:
    def __init__(self, a): self.a = a
    def to_numpy(self): return self.a
class Model:
    def load(self, path):
        self.session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        return self
    def input_count(self): return len(self.session.get_inputs())
    def input_name(self, n): return self.session.get_inputs()[n].name
    def into_model(self): return self
    into_runnable = into_model
    def run(self, given):
        names = [i.name for i in self.session.get_inputs()]
        return [Result(a) for a in self.session.run(None, dict(zip(names, given)))]
def onnx(): return Model()
'''
OPENVINO = '''
import onnxruntime
__version__ = "0.0"
class Out:
    def __init__(self, name): self.name = name
    def get_names(self): return {self.name}
    def get_element_type(self): return self
    def get_type_name(self): return "f32"
class Compiled:
    def __init__(self, session): self.session, self.outputs = session, [Out(o.name) for o in session.get_outputs()]
    def __call__(self, inputs): return dict(zip(self.outputs, self.session.run(None, inputs)))
class Core:
    def read_model(self, path): return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    def compile_model(self, session, device, options):
        assert (device, options) == ("CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        return Compiled(session)
'''


@pytest.mark.parametrize("name,text", [("tract", TRACT), ("openvino", OPENVINO)])
def test_adapters_with_stand_ins(suite_folder, tmp_path, name, text):
    """The adapters of what no test needs installed."""
    (tmp_path / f"{name}.py").write_text(text)
    (lane,) = lanes_of(name, {}, [], [])
    with Backend(lane.adapter, environment={"PYTHONPATH": str(tmp_path)}) as backend:
        assert backend.version()["version"] == "0.0"
        for case in chosen(suite_folder, "gru_lengths_bidirectional", "lstm_peepholes", "rnn_only_Y"):
            assert judge(backend, case).status == "pass", case.name


def test_matrices():
    verdict = lambda status: report.Verdict(status)
    assert report.count([verdict("pass")] * 3 + [verdict("none")]) == "3"
    mixed = [verdict("pass"), verdict("wrong"), verdict("wrong"), verdict("crash")]
    assert report.count(mixed) == "1 of 4: 2 wrong, 1 crash" and report.count([]) == "-"
    assert report.markdown_table([["", "a"], ["x", "1"]]) == "|  | a |\n|---|---|\n| x | 1 |"


def test_interpreters(suite_folder, stand_in):
    """--python NAME=PATH: a worker needs no openrnn in its interpreter."""
    lanes = lanes_of("tract", {"tract": "/some/python"}, [], [])
    assert [lane.python for lane in lanes] == ["/some/python"]
    assert [lane.name for lane in lanes_of("openrnn", {}, ["avx2", "scalar"], ["reference", "cpu"])] == [
        "openrnn reference", "openrnn avx2", "openrnn scalar"]  # fmt: skip
    assert lanes_of(str(stand_in), {}, [], [])[0].name == "stand_in"


def test_openvinos_bfloat16_is_read_by_its_bits(monkeypatch):
    """Its arrays call them float16; an output that has two names is both."""
    bits = np.array([1.5, -2.0], ml_dtypes.bfloat16).view("float16")
    plain = np.array([1.5, -2.0], "float32")

    class Output:
        def __init__(self, names, kind):
            self.get_names, self.get_type_name = (lambda: names), (lambda: kind)

        def get_element_type(self):
            return self

    class Compiled:
        outputs = [Output({"Y", "Y_alias"}, "bf16"), Output({"Y_h"}, "f32")]

        def __call__(self, inputs):
            assert inputs == {"X": "x"}
            return dict(zip(self.outputs, (bits, plain), strict=True))

    class Core:
        def read_model(self, path):
            return f"read {path}"

        def compile_model(self, model, device, options):
            assert (model, device) == ("read m.onnx", "CPU")
            assert options == {"INFERENCE_PRECISION_HINT": "f32"}
            return Compiled()

    module = types.ModuleType("openvino")
    module.Core, module.__version__ = Core, "7.1"
    monkeypatch.setitem(sys.modules, "openvino", module)
    assert openvino.version() == "7.1"
    found = openvino.run("m.onnx", {"X": "x"})
    assert found.keys() == {"Y", "Y_alias", "Y_h"}
    for name, dtype in (("Y", "bfloat16"), ("Y_alias", "bfloat16"), ("Y_h", "float32")):
        assert found[name].dtype == dtype and found[name].astype("float32").tolist() == [1.5, -2.0]
