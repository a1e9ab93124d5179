"""The package beside others in one process, its types, and what its extension shows."""

import importlib.util
import itertools
import pathlib
import re
import shutil
import subprocess
import sys
import tomllib

import openrnn
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
PACKAGE = pathlib.Path(openrnn.__file__).parent

# Each does something with its own protocol buffers, snappy or thread pool.
USES = {
    "tensorflow": "import tensorflow as tf; tf.constant([1.0]).numpy()",
    "onnxruntime": "import onnxruntime; onnxruntime.get_available_providers()",
    "openrnn": "import numpy, openrnn; layer = openrnn.cudnn_rnn.CudnnLSTM(1, 2); "
    "layer(numpy.ones((2, 1, 3)))[0].numpy()",
}
SAVE = (
    "import sys; saver = openrnn.train.Saver(); "
    "saver.restore(saver.save(sys.argv[1])); print('restored')"
)


@pytest.mark.parametrize("order", list(itertools.permutations(USES)), ids="-".join)
def test_every_order_of_imports(order, tmp_path):
    for name in order:
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed here")
    program = "\n".join([*(USES[name] for name in order), *(USES[name] for name in order), SAVE])
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "model")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "restored\n"


def test_the_version_is_the_library_s():
    header = (ROOT / "include/openrnn/version.h").read_text()
    assert openrnn.__version__ == re.search(r'OPENRNN_VERSION "([0-9.]+)"', header).group(1)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["name"] == "openrnn" and "version" in project["dynamic"]


def test_the_extension_shows_its_entry_alone():
    if shutil.which("nm") is None:
        pytest.skip("no nm here")
    done = subprocess.run(
        ["nm", "-D", "--defined-only", openrnn._core.__file__],
        capture_output=True,
        text=True,
        check=True,
    )
    assert [line.split()[-1] for line in done.stdout.splitlines()] == ["PyInit__core"]


def test_the_extension_needs_the_c_and_c_plus_plus_libraries_alone():
    if shutil.which("readelf") is None:
        pytest.skip("no readelf here")
    done = subprocess.run(
        ["readelf", "-d", openrnn._core.__file__], capture_output=True, text=True, check=True
    )
    needed = re.findall(r"NEEDED.*\[(.*)\]", done.stdout)
    allowed = re.compile(r"(libstdc\+\+|libgcc_s|libc|libm|libpthread|ld-linux.*)\.so\.\d+$")
    assert needed and [name for name in needed if not allowed.match(name)] == []


def test_the_package_has_types():
    assert (PACKAGE / "py.typed").exists() and (PACKAGE / "_core.pyi").exists()


@pytest.mark.parametrize("what", ["package", "program"])
def test_mypy_strict(what, tmp_path):
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed here")
    # Beside an installed package lie others, which mypy would take for modules of ours.
    cwd = tmp_path if "site-packages" in PACKAGE.parts else PACKAGE.parent
    target = ["-p", "openrnn"] if what == "package" else [str(ROOT / "tests/python/typed")]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path), *target],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_public_name_is_there():
    for module in (openrnn, openrnn.cudnn_rnn, openrnn.cudnn_rnn.ops, openrnn.nn, openrnn.train):
        for name in module.__all__:
            assert getattr(module, name) is not None
