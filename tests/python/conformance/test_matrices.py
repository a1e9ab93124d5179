"""Verdicts, matrices and exit statuses of the conformance suite, of cases that nobody runs."""

import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from openrnn.conformance import __main__ as command
from openrnn.conformance import judge, lanes, report
from openrnn.conformance.judge import Case, Verdict


def case(name, group="clip", kind="settled", op="RNN", gradients=False, size=1, **attributes):
    facts = {"name": name, "op": op, "kind": kind, "group": group, "attributes": attributes,
             "gradients": gradients, "time": size, "batch": 2, "width": 3, "units": 5}  # fmt: skip
    return Case(Path("cases") / name, facts)


def passed(**reading):
    return Verdict("pass", reading=reading)


CASES = [
    case("a", clip=1.0, layout=1), case("b", size=3), case("c", gradients=True), case("p", "pairs"),
    case("o1", "zero_length", "open"), case("o2", "zero_length", "open"), case("o3", "alpha", "open"),
]  # fmt: skip
FIRST = report.Column(
    "first", version="1.2",
    forward={
        "a": Verdict("wrong", "too far", 2.0), "b": Verdict("wrong", "farther", 3.0),
        "c": Verdict("refused", "no"), "p": passed(), "o1": passed(zero_length="zeros"),
        "o2": Verdict("wrong"), "o3": passed(numbers="by those that take one"),
    },
    backward={"c": Verdict("wrong", "dX is off"), "a": Verdict("none")},
)  # fmt: skip
SECOND = report.Column("second", version="3", forward={
    "a": passed(), "b": passed(), "c": passed(), "o1": Verdict("crash"), "o2": Verdict("crash"),
    "o3": passed(alpha="no")})  # fmt: skip
ABSENT = report.Column("absent", skipped="ImportError: none")


def test_how_verdicts_are_counted():
    assert report.count([]) == report.count([Verdict("none")]) == "-"
    assert report.count([passed(), Verdict("none"), passed()]) == "2"
    kinds = ["timeout", "crash", "refused", "wrong", "wrong", "pass", "none"]
    assert report.count([Verdict(kind) for kind in kinds]) == (
        "1 of 6: 2 wrong, 1 refused, 1 crash, 1 timeout"
    )


def test_both_matrices():
    assert report.rows(CASES, [FIRST, SECOND]) == [
        ["", "first", "second"],
        ["clip (3)", "0 of 3: 2 wrong, 1 refused", "3"],
        ["pairs of attributes (1)", "1", "-"],
        ["all (4)", "1 of 4: 2 wrong, 1 refused", "3"],
        ["gradients (1)", "0 of 1: 1 wrong", "-"],
    ]
    assert [row[0] for row in report.rows(CASES, [SECOND])][-1] == "all (4)"
    assert report.open_rows(CASES, [FIRST, SECOND, report.Column("third")]) == [
        ["", "first", "second", "third"],
        ["Y_h, Y_c of a row of length 0 (2)", "1 zeros; 1 another", "crash", "-"],
        ["`activation_alpha` after a function that takes none (1)",
         "by the functions that take one", "as asked", "-"],
    ]  # fmt: skip
    assert report.text_table([["", "b"], ["long", "c"]]) == "      b\nlong  c"
    assert report.markdown_table([["", "b"], ["a", "c"]]) == "|  | b |\n|---|---|\n| a | c |"


def test_the_smallest_failures():
    """Those with the fewest attributes, then of the fewest elements: one of each group and kind."""
    assert CASES[1].size == 90
    found = report.smallest_failures(CASES, FIRST)
    assert [(group, one.name, verdict.status) for group, one, verdict in found] == [
        ("clip", "c", "refused"), ("clip", "b", "wrong"),
    ]  # fmt: skip
    assert report.smallest_failures(CASES, SECOND) == []


def test_what_is_printed(capsys):
    command.print_text(CASES, [FIRST, ABSENT])
    text = capsys.readouterr().out
    assert text.startswith("first: 1.2\nabsent: not run, ImportError: none\n\n")
    assert "\n\nWhat the standard leaves open:\n" in text and "absent  " not in text
    assert text.endswith(
        "\n\nfirst, clip: c refused: no\n\nfirst, clip: b wrong: farther\n\n"
        "first, gradients: c wrong: dX is off\n"
    )
    command.print_text(CASES, [ABSENT])
    assert capsys.readouterr().out == "absent: not run, ImportError: none\n"
    command.print_text(CASES[:4], [SECOND])
    assert "leaves open" not in capsys.readouterr().out
    command.print_text(CASES[:6], [SECOND])  # one question
    assert "leaves open:\n" in capsys.readouterr().out


TABLES = [
    "                         first                       second",
    "clip (3)                 0 of 3: 2 wrong, 1 refused  3",
    "pairs of attributes (1)  1                           -",
    "all (4)                  1 of 4: 2 wrong, 1 refused  3",
    "gradients (1)            0 of 1: 1 wrong             -",
    "",
    "What the standard leaves open:",
    "                                                         first                           second",
    "Y_h, Y_c of a row of length 0 (2)                        1 zeros; 1 another              crash",
    "`activation_alpha` after a function that takes none (1)  by the functions that take one  as asked",
]
FAILURES = ["", "first, clip: c refused: no", "", "first, clip: b wrong: farther", "",
            "first, gradients: c wrong: dX is off"]  # fmt: skip


def as_page(lines):
    """A table of text as one of a page."""
    rows = [[cell.strip() for cell in re.split(r"  +", line)] for line in lines]
    rows[0] = ["", *rows[0][1:]]
    return ["| " + " | ".join(rows[0]) + " |", "|---|---|---|",
            *("| " + " | ".join(row) + " |" for row in rows[1:])]  # fmt: skip


def test_everything_that_is_printed_and_written(capsys, tmp_path):
    """Of lanes that ran and, between them, one that did not: it has a line, and no column."""
    columns = [FIRST, ABSENT, SECOND]
    command.print_text(CASES, columns)
    heads = ["first: 1.2", "absent: not run, ImportError: none", "second: 3", ""]
    assert capsys.readouterr().out.splitlines() == [*heads, *TABLES, *FAILURES]
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- matrix -->\nold\n<!-- end of matrix -->\nafter\n")
    command.write_markdown(page, CASES, columns)
    found = page.read_text().splitlines()
    assert re.fullmatch(r"7 cases, \d{4}-\d\d-\d\d\.", found[2])
    assert [*found[:2], *found[3:]] == [
        "before", "<!-- matrix -->", "",
        "- first: 1.2", "- absent: not run: ImportError: none", "- second: 3", "",
        *as_page(TABLES[:5]), "", "What the standard leaves open:", "", *as_page(TABLES[7:]),
        "<!-- end of matrix -->", "after",
    ]  # fmt: skip


def test_a_page_without_marks(tmp_path):
    page = tmp_path / "page.md"
    marks = "<!-- matrix -->\n<!-- end of matrix -->"
    for text in ("<!-- matrix -->", "<!-- end of matrix -->", ""):
        page.write_text(text)
        with pytest.raises(SystemExit) as raised:
            command.write_markdown(page, CASES, [FIRST])
        assert str(raised.value) == (
            f"[conformance] {page} has no lines '<!-- matrix -->' and '<!-- end of matrix -->', "
            "expected both"
        )
        assert page.read_text() == text
    page.write_text(marks)
    command.write_markdown(page, CASES, [FIRST, ABSENT])
    lines = page.read_text().splitlines()
    assert lines[1].startswith("7 cases, 2") and lines[2] == ""
    assert lines[3:5] == ["- first: 1.2", "- absent: not run: ImportError: none"]


def test_when_the_command_fails():
    """By a settled case or a gradient; what is open, or not asked for, is no failure."""
    assert command.failed([FIRST], CASES) and not command.failed([SECOND], CASES)
    only = report.Column("c", forward={"c": passed()}, backward={"c": Verdict("wrong")})
    assert command.failed([SECOND, only], CASES)
    only.backward = {"c": Verdict("none")}
    assert not command.failed([only], CASES)
    only.backward = {"c": passed()}
    assert not command.failed([only], CASES)
    only.forward["a"] = Verdict("timeout")
    assert command.failed([only], CASES)
    found = command.results(CASES[:1], [ABSENT])
    assert found["cases"] == [{"name": "a", "op": "RNN", "kind": "settled", "group": "clip",
                               "attributes": {"clip": 1.0, "layout": 1}}]  # fmt: skip
    assert found["backends"] == [ABSENT.as_dict()] and found["backends"][0]["skipped"] == ABSENT.skipped


def options(**changed):
    given = {"backend": None, "case": "", "cases": None, "isa": None, "engine": None, "python": [],
             "timeout": 60.0, "json": False, "markdown": None, **changed}  # fmt: skip
    return argparse.Namespace(**given)


@pytest.fixture
def ran(monkeypatch, tmp_path):
    """The lanes that would run, over a folder of one case; columns come from `answer`."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "case.json").write_text(json.dumps(case("a").facts))
    seen = []

    def run_lane(lane, cases, timeout):
        seen.append((lane.name, lane.python, lane.environment, [one.name for one in cases], timeout))
        return report.Column(lane.name, skipped="no", forward={})

    monkeypatch.setattr(command, "run_lane", run_lane)
    return lambda **changed: (command.run(options(**changed), tmp_path), seen)


def test_which_lanes_run(ran, tmp_path, capsys):
    status, seen = ran(timeout=7.0)
    assert status == 1  # nothing ran
    assert [one[0] for one in seen] == ["openrnn reference", *(f"openrnn {isa}" for isa in lanes.ISAS)]
    assert seen[0][1:] == (sys.executable, {"OPENRNN_ENGINE": "reference"}, ["a"], 7.0)
    assert seen[1][2] == {"OPENRNN_ENGINE": "cpu", "OPENRNN_ISA": "scalar"}
    seen.clear()
    assert [one[0] for one in ran(isa=["avx2"])[1]] == ["openrnn avx2"]
    seen.clear()
    assert [one[0] for one in ran(isa=["avx2"], engine=["reference"])[1]] == ["openrnn reference"]
    seen.clear()
    adapter = tmp_path / "mine.py"
    adapter.touch()
    found = ran(backend=[str(adapter), "tract"], python=["tract=/bin/a=b", "mine=/bin/c"])[1]
    assert [one[:3] for one in found] == [("mine", "/bin/c", {}), ("tract", "/bin/a=b", {})]
    with pytest.raises(SystemExit) as raised:
        ran(case="^b$")
    assert str(raised.value) == f"[conformance] no case of {tmp_path} has '^b$' in its name"
    capsys.readouterr()
    ran(backend=["tract"], json=True)
    assert json.loads(capsys.readouterr().out)["backends"][0]["name"] == "tract"


def test_a_backend_that_is_none(monkeypatch, capsys, tmp_path):
    text = ("[conformance] backend is 'torch', expected openrnn, onnxruntime, reference, openvino, "
            "tract or the path of an adapter")  # fmt: skip
    with pytest.raises(ValueError) as raised:
        lanes.lanes_of("torch", {}, [], [])
    assert str(raised.value) == text
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "case.json").write_text(json.dumps(case("a").facts))
    monkeypatch.setattr(sys, "argv", ["conformance", "--cases", str(tmp_path), "--backend", "torch"])
    assert command.main() == 2
    assert capsys.readouterr() == ("", text + "\n")


def test_a_suite_that_cannot_be_made(monkeypatch):
    def fail(words, **kw):
        assert words[2:] == ["folder", "--only", "^a"] and kw == {"capture_output": True, "text": True}
        return subprocess.CompletedProcess(words, 1, "", "  no onnx\n")

    monkeypatch.setattr(command.subprocess, "run", fail)
    with pytest.raises(SystemExit) as raised:
        command.generated("folder", "^a")
    assert str(raised.value) == f"[conformance] {command.SUITE / 'generate.py'} failed: no onnx"


@pytest.mark.parametrize("gradients", [True, False])
def test_the_column_of_a_lane(monkeypatch, gradients):
    """Gradients are asked of a backend that has them; one that does not start says why in a line."""
    asked = []

    class Backend:
        answer = {"ok": True, "version": "7.5", "gradients": gradients}

        def __init__(self, *given):
            asked.append(given)

        def __enter__(self):
            return self

        def __exit__(self, *error):
            asked.append("closed")

        def version(self):
            return self.answer

    monkeypatch.setattr(command, "Backend", Backend)
    monkeypatch.setattr(command, "judge", lambda backend, one: Verdict("wrong", f"forward {one.name}"))
    monkeypatch.setattr(command, "judge_gradients", lambda backend, one: Verdict("wrong", f"back {one.name}"))
    lane = lanes.Lane("mine", Path("mine.py"), "/bin/python", {"A": "b"})
    column = command.run_lane(lane, CASES[:2], 7.0)
    assert asked == [(Path("mine.py"), "/bin/python", 7.0, {"A": "b"}), "closed"]
    assert (column.name, column.version, column.skipped) == ("mine", "7.5", "")
    assert {name: one.text for name, one in column.forward.items()} == {"a": "forward a", "b": "forward b"}
    backward = {"a": "back a", "b": "back b"} if gradients else {}
    assert {name: one.text for name, one in column.backward.items()} == backward
    Backend.answer = {"ok": False, "kind": "ImportError", "text": "no module\nat line 1"}
    column = command.run_lane(lane, CASES[:2], 7.0)
    assert (column.version, column.skipped, column.forward) == ("", "ImportError: no module", {})
    assert asked[-1] == "closed"


def test_a_reader_that_has_gone_is_no_error_of_the_command(monkeypatch, tmp_path, capsys):
    """What is still buffered at the end of the program then goes nowhere, without a message."""

    def gone(given, folder):
        raise BrokenPipeError

    redirected = []
    monkeypatch.setattr(command, "run", gone)
    monkeypatch.setattr(sys, "argv", ["conformance", "--cases", str(tmp_path)])
    monkeypatch.setattr(command.os, "open", lambda path, flags: (path, flags))
    monkeypatch.setattr(command.os, "dup2", lambda *given: redirected.append(given))
    status = command.main()
    monkeypatch.undo()
    assert status == 1 and redirected == [((os.devnull, os.O_WRONLY), 1)]
    assert capsys.readouterr() == ("", "")


def test_distances_in_bounds():
    bound = np.array([[1.0, 0.0], [np.inf, 2.0]])
    wanted = np.zeros((2, 2))
    for found, expected in [
        ([[0, 0], [9, 0]], (0.0, (0, 0))), ([[0, 0], [np.nan, 3]], (1.5, (1, 1))),
        ([[2, 0], [0, 1]], (2.0, (0, 0))), ([[-2, 0], [0, 1]], (2.0, (0, 0))),
        ([[0, 1e-300], [0, 0]], (np.inf, (0, 1))), ([[0, 0], [0, np.nan]], (np.inf, (1, 1))),
    ]:  # fmt: skip
        assert judge._distance(np.array(found, float), wanted, bound) == expected
    assert judge._distance(np.zeros((0, 2)), np.zeros((0, 2)), np.zeros((0, 2))) == (0.0, ())
    arrays = {"Y": np.array([[1.0, 2.0]]), "Y_h": np.array([3.0])}
    given = ({"Y": "float32", "Y_h": "float32"}, "float32")
    bounds = {"Y": np.full((1, 2), 0.5), "Y_h": np.array([0.25])}
    wanted = {"Y": np.array([[1.0, 2.25]]), "Y_h": np.array([2.0])}
    assert judge._compare(arrays, *given, wanted, bounds) == (
        4.0, "Y_h[0] is 3, expected 2 within 0.25"
    )  # fmt: skip
    assert judge._compare(arrays, *given, {"Y": arrays["Y"]}, bounds) == (0.0, "")
    assert judge._compare(arrays, *given, {"Y": np.ones(2)}, bounds) == (
        np.inf, "Y is float32 [1, 2], expected float32 [2]"
    )  # fmt: skip
    assert judge._compare(arrays, *given, {"Y_c": np.ones(2)}, bounds) == (np.inf, "Y_c is missing")
    answer = {"ok": False, "kind": "Refused", "text": "a\n  b Stack backtrace: c"}
    assert judge._failed(answer) == Verdict("refused", "Refused: a b")
    assert len(judge._failed({**answer, "text": "x" * 400}).text) == 300
    assert judge._failed({**answer, "kind": "timeout"}) == Verdict("timeout", answer["text"])
