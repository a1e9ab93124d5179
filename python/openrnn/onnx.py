"""ONNX models that run: recurrent operators, and what exporters put around them."""

import os

from openrnn import _core
from openrnn._core import OnnxProgram as Program

__all__ = ["Program", "load", "operators"]


def load(path: str | os.PathLike[str]) -> Program:
    """The graph of an ONNX model, ready to be called: `load(path)({"x": x})["y"]`.

    Constant weights are packed once. Raises NotImplementedError naming the node, before anything
    runs, for an operator that is not among operators(); ValueError for a malformed file.
    """
    return Program(os.fspath(path))


def operators() -> list[str]:
    """The names of the operators that a model may have."""
    return _core.onnx_operators()
