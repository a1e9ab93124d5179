"""openrnn needs neither Keras nor PyTorch nor JAX; the packages beside them say what is missing, and a
module that one of them lacks is named by its own error."""

import subprocess
import sys

import pytest

OLD_KERAS = """
import sys, types
keras = sys.modules["keras"] = types.ModuleType("keras")
keras.__version__ = "2.15.0"
"""
MISSING = {
    "torch": "[openrnn.torch] PyTorch is not installed, expected version 2.4 or later: pip install torch",
    "jax": "[openrnn.jax] JAX is not installed, expected version 0.4.38 or later: pip install jax",
    "keras": "[openrnn.keras] Keras is not installed, expected version 3.5 or later: pip install keras",
}
CATCH = """
try:
    import openrnn.{0}
except ModuleNotFoundError as error:
    print(error.name, error.__cause__, error.__suppress_context__, error, sep="|")
"""
JAX_OF = """
import sys, types
jax = sys.modules["jax"] = types.ModuleType("jax")
jax.__version__, jax.__version_info__ = "{0}", {1}
"""


def run(code, cwd=None):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("name", MISSING)
def test_what_is_missing_is_named(name, tmp_path):
    # The finder of a package that is not there.
    code = f"""
import sys
class Nothing:
    def find_spec(self, module, path=None, target=None):
        if module.split(".")[0] == "{name}":
            raise ModuleNotFoundError("No module named '{name}'", name="{name}")
sys.meta_path.insert(0, Nothing())
"""
    assert run(code + CATCH.format(name)) == f"{name}|None|True|{MISSING[name]}"
    # One that is there, and lacks another.
    (tmp_path / f"{name}.py").write_text("import nothing_of_the_kind\n")
    code = f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\n"
    assert run(code + CATCH.format(name)) == "nothing_of_the_kind|None|False|No module named 'nothing_of_the_kind'"


def test_a_keras_that_is_too_old():
    text = "[openrnn.keras] Keras 2.15.0 is installed, expected version 3.5 or later"
    assert run(OLD_KERAS + CATCH.format("keras")) == f"keras|None|False|{text}"
    assert run("import sys, openrnn; print('keras' in sys.modules)") == "False"


def test_the_oldest_jax():
    for version, told in (((0, 4, 37), True), ((0, 4, 38), False), ((0, 5, 0), False), ((0, 3, 99), True)):
        name = ".".join(map(str, version))
        found = run(JAX_OF.format(name, version) + CATCH.format("jax"))
        text = f"jax|None|False|[openrnn.jax] JAX {name} is installed, expected version 0.4.38 or later"
        assert (found == text) is told and found
