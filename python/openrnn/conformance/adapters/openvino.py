"""OpenVINO on its CPU plugin, in float32 as the model says."""

from importlib import import_module
from typing import Any


def version() -> str:
    openvino: Any = import_module("openvino")
    return str(openvino.__version__)


def run(model_path: str, inputs: dict[str, Any]) -> dict[str, Any]:
    openvino: Any = import_module("openvino")
    core = openvino.Core()
    exact = {"INFERENCE_PRECISION_HINT": "f32"}
    compiled = core.compile_model(core.read_model(model_path), "CPU", exact)
    results = compiled(inputs)
    found: dict[str, Any] = {}
    for out in compiled.outputs:
        array = results[out]
        if out.get_element_type().get_type_name() == "bf16":  # its arrays call these bits float16
            array = array.view(import_module("ml_dtypes").bfloat16)
        found |= dict.fromkeys(out.get_names(), array)
    return found
