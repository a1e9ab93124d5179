"""The conformance suite of conformance/, generated once for all tests here."""

import subprocess
import sys
from pathlib import Path

import pytest

SUITE = Path(__file__).parents[3] / "conformance"
sys.path.insert(0, str(SUITE))


@pytest.fixture(scope="session")
def suite_folder(tmp_path_factory):
    """The cases; that their bits are those of digests.txt is test_suite_files's."""
    folder = tmp_path_factory.mktemp("cases")
    command = [sys.executable, str(SUITE / "generate.py"), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True)
    (folder / "differ").write_text(done.stderr)
    return folder
