"""tract, by its Python package."""

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np


def version() -> str:
    tract: Any = import_module("tract")
    return str(tract.version())


def run(model_path: str, inputs: dict[str, Any]) -> list[Any]:
    """Its outputs have names of nodes, so they are given in the model's order."""
    tract: Any = import_module("tract")
    model = tract.onnx().load(Path(model_path))
    given = [np.ascontiguousarray(inputs[model.input_name(n)]) for n in range(model.input_count())]
    return [result.to_numpy() for result in model.into_model().into_runnable().run(given)]
