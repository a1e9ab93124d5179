"""docs/exactness.md: its hashes are those of this machine, and the program that writes it."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[3]
PROGRAM = ROOT / "bench" / "exactness" / "exactness.py"


@pytest.fixture(scope="module")
def exactness():
    spec = importlib.util.spec_from_file_location("exactness", PROGRAM)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def table_of(name):
    text = (ROOT / "docs" / "exactness.md").read_text()
    lines = text.split(f"<!-- {name} -->\n")[1].split(f"<!-- end of {name} -->")[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")][2:]


def test_hashes_of_the_page():
    """All but those of products of bfloat16, which follow the machine."""
    done = subprocess.run([sys.executable, str(PROGRAM), "--hashes"], capture_output=True, text=True, check=True)
    found = dict(line.rsplit("  ", 1) for line in done.stdout.splitlines())
    rows, compared = table_of("hashes"), 0
    assert len(rows) == 27
    for result, *cells in rows:
        for what, cell in zip(("forward", "gradients"), cells):
            if cell == "-":
                assert f"{result}, {what}" not in found
            elif "math" not in result:
                assert found[f"{result}, {what}"].startswith(cell.strip("`")), (result, what)
                compared += 1
    assert compared == 3 * (7 + 4)


def test_what_the_page_says():
    """No bits differ, no function is worse than its documented error."""
    assert not any("DIFFERENT" in row for row in table_of("promises"))
    limits = {"elu": 3.0, "scaled_tanh(1.5, 0.5)": 4.0}
    assert all(float(row[1]) <= limits.get(row[0], 2.0) for row in table_of("functions"))


def test_units_in_the_last_place(exactness):
    """A function that is off by one unit somewhere is found."""
    worst, at = exactness.worst_ulp("tanh", 40_009, 1 << 14)
    assert 0.5 < worst <= 2.0
    right = exactness.FUNCTIONS["relu"]
    exactness.FUNCTIONS["relu"] = ("relu", lambda a: np.where(a > 1.0, a * (1 + 2.0**-22), np.maximum(a, 0.0)))
    try:
        worst, at = exactness.worst_ulp("relu", 40_009, 1 << 14)
        assert 2.0 <= worst <= 4.1 and at > 1.0
    finally:
        exactness.FUNCTIONS["relu"] = right


def test_numbers_are_the_same_everywhere(exactness):
    found = exactness.numbers(1, 2, 2)
    assert np.abs(found).max() < 1 and (found * 32768 == np.round(found * 32768)).all() and np.unique(found).size == 4
