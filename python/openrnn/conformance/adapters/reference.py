"""The reference evaluator of the package `onnx`."""

from importlib import import_module
from typing import Any


def version() -> str:
    onnx: Any = import_module("onnx")
    return str(onnx.__version__)


def run(model_path: str, inputs: dict[str, Any]) -> dict[str, Any]:
    evaluator = import_module("onnx.reference").ReferenceEvaluator(model_path)
    return dict(zip(evaluator.output_names, evaluator.run(None, inputs), strict=True))
