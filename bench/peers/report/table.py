"""The table as Markdown."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from peers.lines import KERAS_BACKENDS
from peers.report import accuracy
from peers.report.goals import Goal
from peers.markdown import head, row
from peers.report.results import ARITHMETIC, LineResult, SideResult, roofline_percent
from peers.stats import Ratio, geometric_mean

GROUPS = {
    "batch 1": "Batch 1",
    "streaming": "Streaming: one step at a time",
    "server": "A server: 64 streams, one step at a time",
    "batches": "Batches",
    "four threads": "Four threads",
    "padding": "Half of the steps are padding",
    "math": "Other arithmetic",
    "weights": "Smaller weights",
    "cells": "Cells with options, against loops over time",
    "dropin": "Modules of torch.nn, converted by openrnn.torch",
    **{
        f"dropin keras {backend}": f"Layers of Keras on {name}, converted by openrnn.keras"
        for backend, name in KERAS_BACKENDS.items()
    },
    "dropin jax": "Scans of JAX, and openrnn.jax in their place",
    "company": "In turn with another library in one process",
    "model": "A language model's training step",
    "accuracy": "Accuracy: float32 against float64",
    "memory": "Peak memory of a training step",
    "full": "More networks",
}

UNTIMED = ("meter", "bound")


def milliseconds(nanoseconds: float) -> str:
    """Three significant digits, without an exponent."""
    value = nanoseconds * 1e-6
    digits = 2 - math.floor(math.log10(value)) if value > 0 else 0
    return f"{value:.{max(0, digits)}f}"


def time_cell(side: SideResult) -> str:
    """Median (lower quartile - upper quartile)."""
    t = side.times
    return f"{milliseconds(t.median)} ({milliseconds(t.low)} - {milliseconds(t.high)})"


def ratio_cell(ratio: Ratio) -> str:
    """'1.43 [1.40, 1.45]'."""
    return f"{ratio.value:.2f} [{ratio.low:.2f}, {ratio.high:.2f}]"


def turns_cell(side: SideResult) -> str:
    """The side's name; and how many turns it took, if they were less than half of the rounds."""
    taken = sum(each is not None for each in side.rounds)
    few = 2 * taken < len(side.rounds)
    return f"{side.key}, {taken} of {len(side.rounds)} turns" if few else side.key


def best_row(result: LineResult) -> str:
    """A line of the group's table: ours, the best peer, the ratio."""
    best, roof = result.best(), roofline_percent(result)
    roof_cell = f"{roof:.0f} %" if roof is not None else ""
    ours = result.challenger(best[0]) if best else result.ours(True)
    cells = [result.line.name, time_cell(ours) if ours else "not there"]
    if best is None:
        return row([*cells, "none", "", "", "", roof_cell])
    peer, ratio = best
    verdict = f"**{ratio.verdict}**" if ratio.verdict == "lost" else ratio.verdict
    return row([*cells, turns_cell(peer), time_cell(peer), ratio_cell(ratio), verdict, roof_cell])


def timed_group(results: Sequence[LineResult]) -> list[str]:
    """The table of ratios of a group."""
    columns = ("line", "OpenRNN, ms", "best peer", "ms", "ratio", "", "of the roofline")
    return head(columns) + [best_row(result) for result in results]


def means_group(results: Sequence[LineResult]) -> list[str]:
    """Geometric means of ours over each peer, and the worst lines."""
    keys = list(dict.fromkeys(s.key for r in results for s in r.sides if s.role == "peer"))
    works = {"forward": "forward", "training": "forward + backward"}
    lines = head(["geometric mean over", *works.values(), "worst line"])
    for key in keys:
        found = [
            (ratio.value, result.line)
            for result in results
            for side, ratio in result.peers()
            if side.key == key
        ]
        cells = []
        for work in works:
            mean = geometric_mean([value for value, line in found if line.work == work])
            cells.append("-" if mean is None else f"{mean:.2f}")
        worst = min(found, key=lambda pair: pair[0], default=None)
        cells.append("-" if worst is None else f"{worst[0]:.2f}, {worst[1].name}")
        lines.append(row([key, *cells]))
    return lines


def speedup_group(results: Sequence[LineResult]) -> list[str]:
    """Our other arithmetics over our float32, called from C++."""
    keys = list(dict.fromkeys(s.key for r in results for s in r.sides if s.role == "own"))
    lines = head(["times as fast as our float32", *keys])
    for result in results:
        cells = []
        for key in keys:
            over = "OpenRNN C++" if key.startswith("OpenRNN C++") else "OpenRNN"
            ratio = result.speedup(key, over)
            cells.append(ratio_cell(ratio) if ratio else "-")
        lines.append(row([result.line.name, *cells]))
    return lines


def memory_group(results: Sequence[LineResult]) -> list[str]:
    """MB of every side."""
    keys = list(dict.fromkeys(side.key for result in results for side in result.sides))
    lines = head(["line, MB", *keys])
    for result in results:
        sides = {side.key: side for side in result.sides}
        cells = [
            f"{sides[k].memory / 1e6:.0f}" if k in sides and sides[k].memory else "-" for k in keys
        ]
        lines.append(row([result.line.network.name, *cells]))
    return lines


def every_side(results: Sequence[LineResult]) -> list[str]:
    """Medians of all sides of a group; '!' marks numbers that disagree."""
    keys = list(dict.fromkeys(s.key for r in results for s in r.sides if s.role not in UNTIMED))
    lines = head(["median ms", *keys])
    for result in results:
        sides = {side.key: side for side in result.sides}
        cells = [result.line.name]
        for key in keys:
            side = sides.get(key)
            timed = side is not None and any(r is not None for r in side.rounds)
            if side is None or side.reason or not timed:
                cells.append("-")
            else:
                cells.append(milliseconds(side.times.median) + ("" if side.agrees else " !"))
        lines.append(row(cells))
    return lines


def tokens_per_second(results: Sequence[LineResult]) -> list[str]:
    """Of the language model."""
    lines = head(["training, tokens a second", "side", "tokens/s"])
    for result in results:
        tokens = result.line.network.batch * result.line.network.time
        for side in result.sides:
            if side.counts:
                rate = tokens / (side.times.median * 1e-9)
                lines.append(row([result.line.name, side.key, f"{rate:.0f}"]))
    return lines


def goal_table(goals: Sequence[Goal]) -> list[str]:
    """Every goal with its state."""
    lines = head(["goal", "wanted", "found", "lines", ""])
    for goal in goals:
        found = "-" if goal.found is None else f"{goal.found:.2f}"
        wanted = f"{'at most ' if goal.at_most else ''}{goal.wanted:g}"
        state = f"**{goal.state}**" if goal.state == "not met" else goal.state
        lines.append(row([goal.text, wanted, found, str(goal.lines), state]))
    return lines


def remarks(results: Sequence[LineResult]) -> list[str]:
    """What was not there and what disagreed, each reason once, and the kernels in use."""
    absent: dict[tuple[str, str], int] = {}
    kernels: dict[str, set[str]] = {}
    wrong = []
    for result in results:
        for side in result.sides:
            if side.reason:
                absent[side.key, side.reason] = absent.get((side.key, side.reason), 0) + 1
            elif side.role not in UNTIMED:
                name = f"{side.key} ({side.about})" if side.about else side.key
                kernels.setdefault(name, set()).add(side.kernel)
            if not side.reason and not side.agrees:
                wrong.append(
                    f"- {result.line.name}: {side.key} differs in {side.differs_in} by "
                    f"{side.difference:.1e} of its norm; its ratio is not counted."
                )
    lines = ["## Numbers that disagree", "", *(wrong or ["None."]), ""]
    lines += ["## Not there", ""]
    lines += [f"- {key} ({count} lines): {why}" for (key, why), count in absent.items()] or ["-"]
    lines += ["", "## What computed", ""]
    return lines + [f"- {key}: {'; '.join(sorted(found))}" for key, found in kernels.items()]


def setting_lines(setting: Mapping[str, Any], results: Sequence[LineResult]) -> list[str]:
    """Machine, versions, dates."""
    dates = sorted(result.date for result in results)
    span = f"{dates[0]} to {dates[-1]}" if dates else "nothing measured"
    versions = ", ".join(f"{name} {value}" for name, value in setting["versions"].items())
    quick = " Measured with --quick: few repetitions." if setting.get("quick") else ""
    return [
        f"{setting['processor']}, {setting['cores']} cores, {' '.join(setting['flags'])}; {span}.",
        f"{versions}.{quick}",
        "",
        "Times are medians with their quartiles. A ratio is the peer's time over ours in the same "
        "round, ours called from the peer's language: above 1 we are faster. In brackets is its 95 "
        "percent interval; a line is lost when all of it lies below 1.",
        "",
        "Errors are norms of the difference to float64 over the norm of float64. Float32 storage is "
        "the error that is left when every sum of products is made in float64 and rounded once.",
    ]


def render(results: Sequence[LineResult], goals: Sequence[Goal], setting: Mapping[str, Any]) -> str:
    """The whole page."""
    page = ["# OpenRNN against its peers", "", *setting_lines(setting, results), ""]
    page += ["## Goals", "", *goal_table(goals), ""]
    for group, title in GROUPS.items():
        mine = [result for result in results if result.line.group == group]
        if not mine:
            continue
        page += [f"## {title}", ""]
        if group == "memory":
            page += [*memory_group(mine), ""]
            continue
        if group == "accuracy":
            page += [*accuracy.every_quantity(mine), ""]
            continue
        page += [*timed_group(mine), "", *every_side(mine), ""]
        if group.startswith("dropin"):
            page += [*means_group(mine), ""]
        if errors := accuracy.in_short(mine):
            page += [*errors, ""]
        if group in ARITHMETIC:
            page += [*speedup_group(mine), ""]
        if group == "model":
            page += [*tokens_per_second(mine), ""]
    page += ["## Farther from float64 than the goals allow", ""]
    page += [*(accuracy.beyond(results) or ["None."]), ""]
    return "\n".join([*page, *remarks(results), ""])
