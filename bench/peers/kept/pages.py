"""Blocks of docs/*.md that are drawn from kept runs, between markers:

    <!-- bench: RUN KIND -->
    <!-- end of bench -->

RUN is the name of a file of bench/results, KIND one of `tables.KINDS`; `all summary` is the table
of all runs. A run that no page shows gets a page of its own.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from peers.kept import tables
from peers.kept.record import KeptError, Record

MARKER = re.compile(r"<!-- bench: (.*?) -->")
END = "<!-- end of bench -->"
SUMMARY = "all summary"
MOST_LINES = 220  # of a page
TITLES = {
    "networks": "", "alone": "In each cell: our median in ms, percent of the FMA peak, and in batches of "
    "what register tiles reach alone, over the same weights and rows.",
    "padding": "Half of the batch padded, ours told the lengths:",
    "model": "Training the language model of `make demo`:",
    "cells": "Cells with options, against the same cell as a loop in PyTorch:",
    "arithmetic": "Other arithmetic and smaller weights, times as fast:",
    "roofline": "Percent of the FMA peak in large networks, of the read bandwidth at batch 1:",
    "memory": "Peak memory:", "dropin": "Converted layers, geometric means:", "goals": "Goals:",
}  # fmt: skip


def markers(text: str) -> list[str]:
    """What the blocks of a page ask for."""
    return MARKER.findall(text)


def drawn(wanted: str, runs: Mapping[str, Record], shown_on: Mapping[str, str]) -> list[str]:
    """The lines of one block."""
    if wanted == SUMMARY:
        return tables.summary(dict(runs), dict(shown_on))
    name, _, kind = wanted.partition(" ")
    if name not in runs:
        raise KeptError(f"run {name!r}, expected one of {', '.join(runs) or 'none, as none is kept'}")
    if kind not in tables.KINDS:
        raise KeptError(f"table {kind!r}, expected one of {', '.join(tables.KINDS)}")
    return tables.KINDS[kind](runs[name])


def filled(page: str, text: str, runs: Mapping[str, Record], shown_on: Mapping[str, str]) -> str:
    """A page with its blocks drawn anew."""
    lines, inside = [], ""
    for number, line in enumerate(text.splitlines(), 1):
        place = f"[draw_benchmarks] {page}:{number}"
        if found := MARKER.fullmatch(line):
            if inside:
                raise KeptError(f"{place}: {line!r} inside another block, expected {END!r} before it")
            inside = found[1]
            try:
                block = drawn(inside, runs, shown_on)
            except KeptError as error:
                raise KeptError(f"{place}: {error}") from None
            lines += [line, "", *block, "", END]
        elif line == END:
            if not inside:
                raise KeptError(f"{place}: {END!r}, expected a marker before it")
            inside = ""
        elif not inside:
            lines.append(line)
    if inside:
        raise KeptError(f"[draw_benchmarks] {page}: {inside!r} has no end, expected {END!r}")
    return "\n".join(lines) + "\n"


def new_page(name: str, run: Record) -> str:
    """With every table that the run fills; more than a page holds is left out."""
    machine = run["machine"]["name"]
    alone = name.endswith("_alone")
    kind = ": drop-in layers" if name.endswith("_dropin") else ": our layers alone" if alone else ""
    said = "[performance.md](performance.md) says what limits them." if alone else (
        "[benchmarks.md](benchmarks.md) says how it is measured and how to read it."
    )
    lines = [
        f"# Benchmarks on {machine}{kind}", "",
        f"Drawn from a kept run of `make bench{'' if alone else '-peers'}`. {said}", "",
        f"<!-- bench: {name} machine -->", END,
    ]  # fmt: skip
    used = len(lines) + 3
    for each, title in TITLES.items():
        block = tables.KINDS[each](run)
        if len(block) <= 2 or used + len(block) + 7 > MOST_LINES:
            continue
        lines += ["", *([title, ""] if title else []), f"<!-- bench: {name} {each} -->", END]
        used += len(block) + 7
    return "\n".join(lines) + "\n"


def pages_of(docs: Path, runs: Mapping[str, Record]) -> dict[Path, str]:
    """Every page with blocks as it has to be, new ones for runs that none shows."""
    texts = {path: path.read_text("utf-8") for path in sorted(docs.glob("*.md"))}
    texts = {path: text for path, text in texts.items() if MARKER.search(text) or END in text}
    shown_on: dict[str, str] = {}
    for path, text in texts.items():
        for wanted in markers(text):
            shown_on.setdefault(wanted.partition(" ")[0], path.name)
    for name, run in runs.items():
        if name not in shown_on:
            path = docs / f"benchmarks_{name}.md"
            texts[path], shown_on[name] = new_page(name, run), path.name
    if not any(SUMMARY in markers(text) for text in texts.values()):
        raise KeptError(f"[draw_benchmarks] no page has the block {SUMMARY!r} of all runs")
    return {path: filled(path.name, text, runs, shown_on) for path, text in texts.items()}
