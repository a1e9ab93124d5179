"""Every public name has an example in its docstring, and each example prints what stands there."""

import ast
import importlib.util
import pathlib
import types

import openrnn
import pytest

from model.docstrings import fault, public_names

ROOT = pathlib.Path(__file__).resolve().parents[3]
NAMES = public_names(openrnn)
# Their examples run in `make test-torch`, `make test-keras` and `make test-jax`.
FRAMEWORKS = ("torch", "keras", "jax")


@pytest.fixture(autouse=True)
def own_folder_and_graph(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    openrnn.reset_default_graph()


@pytest.mark.parametrize("name", NAMES)
def test_examples(name):
    assert not fault(name, NAMES[name], openrnn=openrnn)


def test_the_names_are_those_of_every_module():
    modules = {name.rpartition(".")[0] for name in NAMES}
    assert modules == {"openrnn", *(f"openrnn.{name}" for name in (
        "cudnn_rnn", "cudnn_rnn.ops", "initializers", "layers", "losses", "nn", "nn.rnn_cell",
        "onnx", "regularizers", "train"))}  # fmt: skip


def reference():
    """The script that reads sources without importing them."""
    spec = importlib.util.spec_from_file_location("reference", ROOT / "scripts/python_reference.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_names_for_frameworks_have_examples(framework):
    package = reference().Package(pathlib.Path(openrnn.__file__).parent)
    names = package.public(f"openrnn.{framework}")
    assert len(names) > 7
    for name in names:
        nodes, _ = package.find(f"openrnn.{framework}", name)
        assert nodes and ">>> " in (ast.get_docstring(nodes[0]) or ""), name


class Right:
    """An example.

    >>> 1 + 1
    2
    """

    def method(self):
        """Another.

        >>> 1 + 2
        3
        """


class Wrong(Right):
    """An example.

    >>> 1 + 1
    2
    """

    def method(self):
        """Another.

        >>> 1 + 2
        2
        """


class Bare(Right):
    """Has no example of its own."""


def test_faults_are_found():
    module = types.ModuleType("module")
    module.__all__ = ["Right", "again", "Wrong", "Bare", "text", "Error"]
    module.Right = module.again = Right
    module.Wrong, module.Bare, module.text, module.Error = Wrong, Bare, "float32", KeyError
    names = public_names(module)
    assert list(names) == ["module.Right", "module.Wrong", "module.Bare"]
    said = [fault(name, found) for name, found in names.items()]
    assert not said[0]
    assert "module.Wrong.method" in said[1] and "Expected:\n    2\nGot:\n    3\n" in said[1]
    assert said[2] == "module.Bare has no example in its docstring"
