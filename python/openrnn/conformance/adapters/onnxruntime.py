"""ONNX Runtime."""

from importlib import import_module
from typing import Any


def version() -> str:
    onnxruntime: Any = import_module("onnxruntime")
    return str(onnxruntime.__version__)


def run(model_path: str, inputs: dict[str, Any]) -> dict[str, Any]:
    onnxruntime: Any = import_module("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model_path, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))
