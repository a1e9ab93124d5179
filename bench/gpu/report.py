"""The table of a benchmark: ratios of medians, geometric means, goals; Markdown and JSON."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

from gpu.lines import ARITHMETICS, LABELS, PASSES

EACH, MEAN = 0.97, 1.1  # goals: of every line, and of their geometric mean
Line = dict[str, Any]


def counts(line: Line) -> bool:
    """Whether the line has a ratio, of two sides that computed the same."""
    return "ratio" in line and bool(line["agrees"]["within"])


def fails(line: Line) -> bool:
    """Whether it neither counts nor asks for what this GPU has not."""
    return not counts(line) and not line.get("skipped", False)


def geometric_mean(ratios: Sequence[float]) -> float | None:
    """None of nothing."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else None


def means(lines: Iterable[Line]) -> dict[str, float]:
    """Geometric means by pass and arithmetic, and of everything; what has no line is left out."""
    usable = [line for line in lines if counts(line)]
    found: dict[str, float] = {}
    for pass_ in PASSES:
        for arithmetic in ARITHMETICS:
            ratios = [
                line["ratio"] for line in usable
                if line["pass"] == pass_ and line["arithmetic"] == arithmetic
            ]  # fmt: skip
            if (mean := geometric_mean(ratios)) is not None:
                found[f"{LABELS[pass_]}, {arithmetic}"] = mean
    if (mean := geometric_mean([line["ratio"] for line in usable])) is not None:
        found["all"] = mean
    return found


def goals(lines: Sequence[Line], expected: int) -> list[dict[str, Any]]:
    """Each with what was wanted, what was found and its state; 'not met' needs a figure."""
    usable = [line for line in lines if counts(line)]
    slowest = min(usable, key=lambda line: line["ratio"], default=None)
    mean = geometric_mean([line["ratio"] for line in usable])
    wrong = [line["line"] for line in lines if fails(line)]
    whole = len(lines) >= expected

    def state(met: bool | None) -> str:
        if met is None:
            return "not measured"
        return "not met" if not met else "met" if whole else "met so far"

    return [
        {"goal": f"every line at least {EACH} times PyTorch's speed", "wanted": EACH,
         "found": slowest["ratio"] if slowest else None,
         "where": slowest["line"] if slowest else "",
         "state": state(slowest["ratio"] >= EACH if slowest else None)},
        {"goal": f"geometric mean at least {MEAN}", "wanted": MEAN, "found": mean,
         "where": f"{len(usable)} of {expected} lines",
         "state": state(mean >= MEAN if mean is not None else None)},
        {"goal": "both sides compute the same on every line", "wanted": 0, "found": len(wrong),
         "where": "; ".join(wrong[:3]), "state": state(not wrong if lines else None)},
    ]  # fmt: skip


def milliseconds(side: dict[str, float]) -> str:
    """'1.234 (1.230-1.250)': median and quartiles."""
    low, median, high = (side[key] / 1e6 for key in ("low_ns", "median_ns", "high_ns"))
    return f"{median:.4g} ({low:.4g}-{high:.4g})"


def row(line: Line) -> str:
    """Of the table; a line that does not count says why."""
    if "ratio" not in line:
        what = "skipped" if not fails(line) else line["failed"]
        return f"| {line['line']} | - | - | {what}: {line['reason']} |"
    agrees = line["agrees"]
    ratio = f"{line['ratio']:.2f}"
    if not agrees["within"]:
        ratio = f"does not count: {agrees['result']} differs by {agrees['difference']:.1e}"
    return f"| {line['line']} | {milliseconds(line['ours'])} | {milliseconds(line['torch'])} | {ratio} |"


def goal_lines(found: Iterable[dict[str, Any]]) -> list[str]:
    """One sentence each."""
    lines = []
    for goal in found:
        figure = "-" if goal["found"] is None else f"{goal['found']:.3g}"
        where = f" ({goal['where']})" if goal["where"] else ""
        lines.append(f"{goal['state']}: {goal['goal']}: {figure}{where}")
    return lines


def step_lines(step: dict[str, Any] | None) -> list[str]:
    """What a training step keeps of the GPU."""
    if not step:
        return []
    return ["", "## A training step", "", *(f"- {key}: {value}" for key, value in step.items())]


def markdown(
    lines: Sequence[Line], expected: int, step: dict[str, Any] | None = None
) -> str:
    """The page."""
    text = ["# OpenRNN against PyTorch on a GPU", ""]
    about = {what: None for line in lines for what in line["about"].items()}
    text += [f"- {name}: {what}" for name, what in about]
    text += [f"- {len(lines)} of {expected} lines", "", "## Goals", ""]
    text += [f"- {sentence}" for sentence in goal_lines(goals(lines, expected))]
    text += step_lines(step)
    text += ["", "## Geometric means", "", "| of | PyTorch's time / ours |", "|---|---|"]
    text += [f"| {name} | {mean:.3f} |" for name, mean in means(lines).items()]
    text += ["", "## Lines", "", "Milliseconds: median (quartiles) of CUDA events around each call.",
             "", "| line | OpenRNN | PyTorch | ratio |", "|---|---|---|---|"]  # fmt: skip
    return "\n".join([*text, *(row(line) for line in lines), ""])
