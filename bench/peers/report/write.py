"""Prints the table and writes it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from peers.lines import Line
from peers.report.chart import draw
from peers.report.goals import goals_of
from peers.report.results import LineResult
from peers.report.table import render


def write(
    lines: Sequence[Line], found: Sequence[Mapping[str, Any]], setting: Mapping[str, Any], out: Path
) -> None:
    """peers.md and peers.svg in `out`."""
    by_name = {line.name: line for line in lines}
    results = [LineResult.of(by_name[each["line"]], each) for each in found]
    page = render(results, goals_of(results, "amx_bf16" in setting["flags"]), setting)
    out.mkdir(parents=True, exist_ok=True)
    (out / "peers.md").write_text(page, "utf-8")
    print(page)
    chart = out / "peers.svg"
    drawn = draw(results, chart)
    print(f"written: {out / 'peers.md'}" + (f", {chart}" if drawn else " (no chart)"))
