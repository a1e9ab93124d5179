"""openrnn needs no JAX, and openrnn.jax says that it does."""

import subprocess
import sys

NO_JAX = "import sys; sys.modules['jax'] = None\n"
OLD_JAX = """
import sys, types
jax = sys.modules["jax"] = types.ModuleType("jax")
jax.__version__, jax.__version_info__ = "0.4.37", (0, 4, 37)
"""


def run(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )  # fmt: skip


def test_openrnn_does_not_import_jax():
    done = run("import sys, openrnn; print('jax' in sys.modules, 'openrnn.jax' in sys.modules)")
    assert done.stdout.split() == ["False", "False"]


def test_openrnn_jax_names_what_is_missing():
    done = run(NO_JAX + "import openrnn.jax")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "ModuleNotFoundError: [openrnn.jax] JAX is not installed, expected version 0.4.38 or later: "
        "pip install jax"
    )


def test_a_jax_that_lacks_a_module_says_so_itself(tmp_path):
    (tmp_path / "jax.py").write_text("import no_such_module_of_jax")
    done = run(f"import sys; sys.path.insert(0, {str(tmp_path)!r})\nimport openrnn.jax")
    assert done.returncode == 1
    last = "ModuleNotFoundError: No module named 'no_such_module_of_jax'"
    assert done.stderr.splitlines()[-1] == last


def test_openrnn_jax_names_a_jax_that_is_too_old():
    done = run(OLD_JAX + "import openrnn.jax")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "ModuleNotFoundError: [openrnn.jax] JAX 0.4.37 is installed, expected version 0.4.38 or later"
    )
