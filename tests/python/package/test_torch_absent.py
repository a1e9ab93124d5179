"""openrnn needs no PyTorch, and openrnn.torch says that it does."""

import subprocess
import sys

NO_TORCH = "import sys; sys.modules['torch'] = None\n"


def run(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )  # fmt: skip


def test_openrnn_does_not_import_torch():
    done = run("import sys, openrnn; print('torch' in sys.modules, 'openrnn.torch' in sys.modules)")
    assert done.stdout.split() == ["False", "False"]


def test_openrnn_torch_names_what_is_missing():
    done = run(NO_TORCH + "import openrnn.torch")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "ModuleNotFoundError: [openrnn.torch] PyTorch is not installed, expected version 2.4 or "
        "later: pip install torch"
    )
