"""What ran as a matrix: attributes by backends; and of every failure its smallest case."""

from dataclasses import asdict, dataclass, field
from typing import Any

from openrnn.conformance.judge import Case, Verdict

QUESTIONS = {
    "cell_clip": "what `clip` bounds in an LSTM besides the sums of gates",
    "coupling": "`input_forget`",
    "zero_length": "Y_h, Y_c of a row of length 0",
    "padding": "Y behind the end of a row",
    "nan": "NaN in X behind the end of a row",
    "threshold": "ThresholdedRelu at its alpha",
    "alpha": "`activation_alpha` after a function that takes none",
    "affine": "Affine, ScaledTanh without their numbers",
}
_WORDS = {"by those that take one": "by the functions that take one"}


@dataclass
class Column:
    """The results of one lane; `skipped` says why it did not run."""

    name: str
    version: str = ""
    skipped: str = ""
    forward: dict[str, Verdict] = field(default_factory=dict)
    backward: dict[str, Verdict] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def count(verdicts: list[Verdict]) -> str:
    """'all of 12', or '9 of 12: 2 wrong, 1 refused'."""
    asked = [v for v in verdicts if v.status != "none"]
    passed = sum(v.status == "pass" for v in asked)
    if not asked:
        return "-"
    if passed == len(asked):
        return f"{passed}"
    kinds = ("wrong", "refused", "crash", "timeout")
    others = [(kind, sum(v.status == kind for v in asked)) for kind in kinds]
    return f"{passed} of {len(asked)}: " + ", ".join(f"{n} {kind}" for kind, n in others if n)


def _reading(verdict: Verdict, question: str) -> str:
    """What a backend takes the text to say about one question."""
    if verdict.status == "pass":
        word = verdict.reading.get("numbers" if question == "alpha" else question, "as asked")
        return _WORDS.get(word, word)
    return verdict.status if verdict.status != "wrong" else "another"


def _groups(cases: list[Case]) -> list[str]:
    return list(dict.fromkeys(case.facts["group"] for case in cases))


def _ran(column: Column, cases: list[Case]) -> list[Verdict]:
    return [column.forward[case.name] for case in cases if case.name in column.forward]


def rows(cases: list[Case], columns: list[Column]) -> list[list[str]]:
    """The first matrix with its head: a group of cases a row, then the gradients."""
    table = [["", *(column.name for column in columns)]]
    settled = [case for case in cases if case.facts["kind"] != "open"]
    for group in _groups(settled):
        which = [case for case in settled if case.facts["group"] == group]
        head = "pairs of attributes" if group == "pairs" else group
        cells = [count(_ran(column, which)) for column in columns]
        table.append([f"{head} ({len(which)})", *cells])
    table.append([f"all ({len(settled)})", *(count(_ran(column, settled)) for column in columns)])
    if any(column.backward for column in columns):
        asked = sum(bool(case.facts["gradients"]) for case in cases)
        table.append([f"gradients ({asked})", *(count(list(c.backward.values())) for c in columns)])
    return table


def open_rows(cases: list[Case], columns: list[Column]) -> list[list[str]]:
    """The second matrix: how each backend reads what the standard leaves open."""
    table = [["", *(column.name for column in columns)]]
    for question, words in QUESTIONS.items():
        which = [case for case in cases if case.facts["kind"] == "open" and case.facts["group"] == question]
        if not which:
            continue
        cells = []
        for column in columns:
            found = [_reading(column.forward[case.name], question) for case in which if case.name in column.forward]
            counted = {word: found.count(word) for word in dict.fromkeys(found)}
            one = len(counted) == 1
            cells.append("; ".join(word if one else f"{n} {word}" for word, n in counted.items()) or "-")
        table.append([f"{words} ({len(which)})", *cells])
    return table


def smallest_failures(cases: list[Case], column: Column) -> list[tuple[str, Case, Verdict]]:
    """(group, case, verdict) of the smallest failing case of each group and kind of failure."""
    found: dict[tuple[str, str], tuple[str, Case, Verdict]] = {}
    for case in sorted(cases, key=lambda c: (len(c.facts["attributes"]), c.size, c.name)):
        verdict = column.forward.get(case.name)
        if verdict is None or verdict.status == "pass" or case.facts["kind"] == "open":
            continue
        key = (case.facts["group"], verdict.status)
        found.setdefault(key, (case.facts["group"], case, verdict))
    return list(found.values())


def text_table(table: list[list[str]]) -> str:
    widths = [max(len(row[n]) for row in table) for n in range(len(table[0]))]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(row, widths)).rstrip() for row in table)


def markdown_table(table: list[list[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in table]
    return "\n".join([lines[0], "|" + "---|" * len(table[0]), *lines[1:]])
