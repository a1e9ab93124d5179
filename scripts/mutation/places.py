"""Where the mutated build lies, and its lists."""
import json
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORK = ROOT / "build" / "mutation"
TREE = WORK / "tree"  # the mutated sources, and their build
BUILD = TREE / "build" / "release"
SITE = WORK / "site"  # the mutated Python package
RELEASE = ROOT / "build" / "release"  # what `make test` built: objects of the tests
FIRST_PYTHON = 100_000  # numbers of mutations in C++ are smaller
NUMBERS = 2 * FIRST_PYTHON


def load(name, default=None):
    path = WORK / name
    return json.loads(path.read_text()) if default is None or path.exists() else default


def keep(name, value):
    (WORK / name).write_text(json.dumps(value))


def mutations():
    """{number: mutation}: file, line, kind, text."""
    found = {number: m for number, m in enumerate(load("cpp.json")) if not m.get("dropped")}
    found.update((FIRST_PYTHON + n, m) for n, m in enumerate(load("python.json")))
    return found


def python_environment():
    """What the Python tests need to run over the mutated build."""
    return {"OPENRNN_BUILD_DIR": str(BUILD), "OPENRNN_TOOL": str(BUILD / "openrnn"),
            "TF_CPP_MIN_LOG_LEVEL": "2", "CUDA_VISIBLE_DEVICES": "", "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": f"{SITE}:{pathlib.Path(__file__).parent}"}
