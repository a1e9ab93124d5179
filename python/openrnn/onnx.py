"""ONNX models that run: recurrent operators, and what exporters put around them."""

import os

from openrnn import _core
from openrnn._core import OnnxProgram as Program

__all__ = ["Program", "load", "operators"]


def load(path: str | os.PathLike[str]) -> Program:
    """The graph of an ONNX model, ready to be called: `load(path)({"x": x})["y"]`.

    Constant weights are packed once. Raises NotImplementedError naming the node, before anything
    runs, for an operator that is not among operators(); ValueError for a malformed file.

    Examples
    --------
    >>> gru = openrnn.layers.GRU(4)
    >>> gru.build((None, None, 3))
    >>> openrnn.save("gru.onnx", gru)
    >>> program = openrnn.onnx.load("gru.onnx")
    >>> program({"x": np.ones((5, 2, 3), "float32")})["y"].shape
    (5, 2, 4)
    """
    return Program(os.fspath(path))


def operators() -> list[str]:
    """The names of the operators that a model may have.

    Examples
    --------
    >>> {"LSTM", "GRU", "MatMul"} <= set(openrnn.onnx.operators())
    True
    """
    return _core.onnx_operators()
