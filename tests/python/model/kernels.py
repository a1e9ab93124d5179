"""Notebooks in kernels of their own, by the script that saves those of the examples."""

import contextlib
import importlib.util
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
spec = importlib.util.spec_from_file_location("notebooks_script", ROOT / "scripts" / "notebooks.py")
script = importlib.util.module_from_spec(spec)
spec.loader.exec_module(script)


@contextlib.contextmanager
def own_folders(tmp_path_factory):
    """Jupyter and matplotlib write into folders of the test."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "IPYTHONDIR", "MPLCONFIGDIR"):
            patch.setenv(name, str(tmp_path_factory.mktemp(name.lower())))
        # On a busy machine matplotlib says on stderr that it makes its list of fonts, in a new folder.
        subprocess.run([sys.executable, "-c", "import matplotlib.font_manager"], check=True,
                       stderr=subprocess.DEVNULL)
        yield
