"""What is run: each backend, and of this library each engine and instruction set."""

import sys
from dataclasses import dataclass, field
from pathlib import Path

ADAPTERS = Path(__file__).parent / "adapters"
NAMES = ("openrnn", "onnxruntime", "reference", "openvino", "tract")
# Names of OPENRNN_ISA; what this machine lacks answers so itself, and is shown as not run.
ISAS = ("scalar", "avx2", "avx512", "amx", "amx_emulated", "neon")


@dataclass
class Lane:
    """A column of the matrix."""

    name: str
    adapter: Path
    python: str = sys.executable
    environment: dict[str, str] = field(default_factory=dict)


def lanes_of(backend: str, pythons: dict[str, str], isas: list[str], engines: list[str]) -> list[Lane]:
    """The lanes of a name or of an adapter's path. Raises ValueError for one that is neither."""
    if backend not in NAMES:
        path = Path(backend)
        if not path.is_file():
            raise ValueError(f"[conformance] backend is '{backend}', expected {', '.join(NAMES)} or the path of an adapter")
        return [Lane(path.stem, path, pythons.get(path.stem, sys.executable))]
    adapter, python = ADAPTERS / f"{backend}.py", pythons.get(backend, sys.executable)
    if backend != "openrnn":
        return [Lane(backend, adapter, python)]
    found = []
    if "reference" in engines:
        found.append(Lane("openrnn reference", adapter, python, {"OPENRNN_ENGINE": "reference"}))
    if "cpu" in engines:
        for isa in isas:
            environment = {"OPENRNN_ENGINE": "cpu", "OPENRNN_ISA": isa}
            found.append(Lane(f"openrnn {isa}", adapter, python, environment))
    return found
