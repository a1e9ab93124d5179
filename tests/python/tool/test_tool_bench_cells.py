"""`openrnn bench --cells`: what it prints and writes."""

import json
from pathlib import Path

from tool_runs import good, tool


def test_each_option_has_two_ratios(tmp_path: Path) -> None:
    figures = tmp_path / "cells.json"
    only = "GRU U32 B1 T50"
    done = good("bench", "--cells", "--only", only, "--threads", "1", "--json", figures)
    rows = json.loads(figures.read_text())
    assert [row["option"] for row in rows] == [
        "none",
        "recurrent_activation hard_sigmoid",
        "reset_after false",
        "layer_norm products",
    ]
    for row in rows:
        assert row["config"] == only and row["option"] in done.stdout
        assert row["forward_ratio"] > 0 and row["training_ratio"] > 0


def test_an_unknown_cell_is_refused() -> None:
    done = tool("bench", "--cells", "--only", "U7")
    assert done.returncode == 2
    assert "[bench] --only 'U7' names no cell, expected part of one such as" in done.stderr
