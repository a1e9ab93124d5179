"""`openrnn bench --cells`: what it prints and writes."""

import json
from pathlib import Path

import openrnn
import pytest
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
        "layer_norm split_products",
        "num_proj 16",
        "zoneout 0.1",
    ]
    for row in rows:
        assert row["config"] == only and row["option"] in done.stdout
        assert row["forward_ratio"] > 0 and row["training_ratio"] > 0


@pytest.mark.parametrize("call", ["gradients of gradients", "jvp"])
def test_gradients_of_gradients(tmp_path: Path, call: str) -> None:
    figures = tmp_path / "gradients.json"
    done = good("bench", "--gradients", "--only", call, "--threads", "1", "--json", figures)
    (row,) = json.loads(figures.read_text())
    assert (row["config"], row["call"]) == ("LSTM U256 B32 T100", call)
    assert row["ratio"] > 1 and row["ms"] > 0 and row["plain_ms"] > 0 and "kept_mb" not in row
    assert call in done.stdout


def test_training_in_less_memory(tmp_path: Path) -> None:
    figures, only = tmp_path / "memory.json", "GRU U256 B32 T512"
    good("bench", "--gradients", "--only", only, "--threads", "1", "--json", figures)
    (row,) = json.loads(figures.read_text())
    assert (row["config"], row["call"]) == (only, "save=inputs")
    # What forward keeps does not depend on the machine.
    kept, plain = (
        openrnn.explain(
            rnn_mode="gru", num_units=256, input_size=256, max_time=512, batch=32, save=save
        ).saved_bytes
        for save in ("inputs", True)
    )
    assert (row["kept_mb"], row["plain_kept_mb"]) == (kept / 1e6, plain / 1e6)
    assert kept * 4 < plain


def test_an_unknown_line_is_refused() -> None:
    done = tool("bench", "--gradients", "--only", "U7")
    assert done.returncode == 2
    assert "[bench] --only 'U7' names no line, expected part of one such as" in done.stderr


def test_an_unknown_cell_is_refused() -> None:
    done = tool("bench", "--cells", "--only", "U7")
    assert done.returncode == 2
    assert "[bench] --only 'U7' names no cell, expected part of one such as" in done.stderr
