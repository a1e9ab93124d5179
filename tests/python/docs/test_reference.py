"""The references render without a warning, and hold every public class and function."""

import inspect
import pathlib
import shutil
import subprocess
import sys

import openrnn
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
PACKAGE = pathlib.Path(openrnn.__file__).parent


def test_cpp(tmp_path):
    """scripts/docs fails on a class without a word, and on everything that doxygen finds wrong."""
    if not shutil.which("doxygen"):
        pytest.skip("doxygen is not on PATH; `make docs` installs it")
    done = subprocess.run([ROOT / "scripts/docs", tmp_path, PACKAGE], text=True,
                          capture_output=True)
    assert done.returncode == 0, done.stderr
    pages = {path.name for path in (tmp_path / "cpp").glob("*.html")}
    assert {"index.html", "classopenrnn_1_1layers_1_1CudnnLSTM.html"} <= pages
    assert "openrnn.cudnn_rnn.CudnnLSTM" in (tmp_path / "python.html").read_text(encoding="utf-8")


def render(package, out):
    return subprocess.run([sys.executable, ROOT / "scripts/python_reference.py", package, out],
                          text=True, capture_output=True)


def test_python(tmp_path):
    done = render(PACKAGE, tmp_path / "python.html")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "python.html").read_text(encoding="utf-8")
    for module in (openrnn, openrnn.cudnn_rnn, openrnn.cudnn_rnn.ops, openrnn.train):
        for name in module.__all__:
            exempt = inspect.ismodule(getattr(module, name)) or name == "__version__"
            assert exempt or f'id="{module.__name__}.{name}"' in text, name


def test_a_missing_docstring_is_found(tmp_path):
    package = tmp_path / "openrnn"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    path = package / "losses.py"
    path.write_text(path.read_text() + "\ndef bare() -> None:\n    pass\n")
    path.write_text(path.read_text().replace("__all__ = [", '__all__ = ["bare", '))
    done = render(package, tmp_path / "python.html")
    assert done.returncode == 1
    assert done.stderr.splitlines() == ["openrnn.losses.bare has no docstring"]
