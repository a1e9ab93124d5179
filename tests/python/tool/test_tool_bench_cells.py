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
        assert row["config"] == only
        assert row["forward_ratio"] > 0 and row["training_ratio"] > 0
        figures_of = f"{row['forward_ratio']:>7.2f}  {row['training_ratio']:>8.2f}"
        assert f"{only:<16}  {row['option']:<48}  {figures_of}\n" in done.stdout


@pytest.mark.parametrize(
    "only", ["GRU U512 B1 T20 reset_after false", "GRU U256 B1 T50 num_proj 128"]
)
def test_larger_cells_take_fewer_steps(tmp_path: Path, only: str) -> None:
    figures = tmp_path / "cells.json"
    good("bench", "--cells", "--only", only, "--threads", "1", "--json", figures)
    (row,) = json.loads(figures.read_text())
    assert f"{row['config']} {row['option']}" == only


@pytest.mark.parametrize("call", ["gradients of gradients", "jvp"])
def test_gradients_of_gradients(tmp_path: Path, call: str) -> None:
    figures = tmp_path / "gradients.json"
    done = good("bench", "--gradients", "--only", call, "--threads", "1", "--json", figures)
    (row,) = json.loads(figures.read_text())
    assert (row["config"], row["call"]) == ("LSTM U256 B32 T100", call)
    assert row["ratio"] > 1 and row["ms"] > 0 and row["plain_ms"] > 0 and "kept_mb" not in row
    times = f"{row['ratio']:>5.2f}  {row['ms']:>9.1f}  {row['plain_ms']:>9.1f}"
    assert f"{'LSTM U256 B32 T100':<32}  {call:<24}  {times}\n" in done.stdout


def test_training_in_less_memory(tmp_path: Path) -> None:
    figures, only = tmp_path / "memory.json", "GRU U256 B32 T512"
    done = good("bench", "--gradients", "--only", only, "--threads", "1", "--json", figures)
    (row,) = json.loads(figures.read_text())
    assert (row["config"], row["call"]) == (only, "save=inputs")
    kept_text = f"  {row['kept_mb']:.1f} instead of {row['plain_kept_mb']:.1f}\n"
    assert f"  {row['ms']:>9.1f}  {row['plain_ms']:>9.1f}{kept_text}" in done.stdout
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


def test_the_options_of_an_lstm(tmp_path: Path) -> None:
    figures = tmp_path / "cells.json"
    good("bench", "--cells", "--only", "LSTM U32 B1 T50", "--threads", "1", "--json", figures)
    assert [row["option"] for row in json.loads(figures.read_text())] == [
        "none",
        "recurrent_activation hard_sigmoid",
        "use_peepholes true",
        "cell_clip [-3, 3]",
        "gate_clip [-3, 3]",
        "coupled_gates true",
        "activation softplus",
        "activation elu",
        "layer_norm products, layer_norm_cell output",
        "layer_norm gates, layer_norm_cell carried",
        "zoneout 0.1, zoneout_cell 0.1",
        "recurrent_dropout 0.25",
        "recurrent_dropout 0.25, recurrent_dropout_form candidate",
    ]


def test_the_sizes_of_the_cells(tmp_path: Path) -> None:
    """Each of few units and batch sizes; of the others one is enough."""
    figures, found = tmp_path / "cells.json", []
    for only in ("U32 B16 T50 none", "U32 B64 T50 none", "U128 B1 T50 none"):
        good("bench", "--cells", "--only", only, "--threads", "1", "--json", figures)
        found += [row["config"] for row in json.loads(figures.read_text())]
    assert found == [
        f"{kind} {size}"
        for size in ("U32 B16 T50", "U32 B64 T50", "U128 B1 T50")
        for kind in ("LSTM", "GRU")
    ]
