"""The conformance suite against this library and other ONNX runtimes."""

import argparse
import datetime
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from openrnn.conformance import report
from openrnn.conformance.judge import Case, cases_of, judge, judge_gradients
from openrnn.conformance.lanes import ISAS, NAMES, Lane, lanes_of
from openrnn.conformance.process import Backend

SUITE = Path(__file__).parent / "onnx-suite"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m openrnn.conformance", description=__doc__)
    parser.add_argument("--backend", action="append", metavar="NAME",
                        help=f"{', '.join(NAMES)}, or the path of an adapter; may be repeated (openrnn)")  # fmt: skip
    parser.add_argument("--case", default="", metavar="REGEX", help="only cases whose name has it")
    parser.add_argument("--cases", type=Path, metavar="FOLDER",
                        help="cases that conformance/generate.py wrote; made anew if not given")  # fmt: skip
    parser.add_argument("--isa", action="append", choices=ISAS,
                        help="of openrnn, one instruction set; may be repeated (all)")  # fmt: skip
    parser.add_argument("--engine", action="append", choices=["reference", "cpu"],
                        help="of openrnn, one engine; may be repeated (both)")  # fmt: skip
    parser.add_argument("--python", action="append", default=[], metavar="NAME=PATH",
                        help="the interpreter that has a backend's packages (this one)")  # fmt: skip
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds for one case (60)")
    parser.add_argument("--json", action="store_true", help="print all results as JSON")
    parser.add_argument("--markdown", type=Path, metavar="FILE",
                        help="write the matrices between the marks of a page")  # fmt: skip
    return parser.parse_args()


def generated(folder: str, pattern: str) -> Path:
    """The cases, made by the suite that is installed with the package."""
    script = SUITE / "generate.py"
    done = subprocess.run([sys.executable, str(script), folder, "--only", pattern],
                          capture_output=True, text=True)  # fmt: skip
    if done.returncode:
        raise SystemExit(f"[conformance] {script} failed: {done.stderr.strip()}")
    return Path(folder)


def run_lane(lane: Lane, cases: list[Case], timeout: float) -> report.Column:
    column = report.Column(lane.name)
    with Backend(lane.adapter, lane.python, timeout, lane.environment) as backend:
        answer = backend.version()
        if not answer["ok"]:
            column.skipped = f"{answer['kind']}: {answer['text'].splitlines()[0]}"
            return column
        column.version = answer["version"]
        for case in cases:
            column.forward[case.name] = judge(backend, case)
            if answer["gradients"]:
                column.backward[case.name] = judge_gradients(backend, case)
    return column


def print_text(cases: list[Case], columns: list[report.Column]) -> None:
    ran = [column for column in columns if not column.skipped]
    for column in columns:
        print(f"{column.name}: {column.version or 'not run, ' + column.skipped}")
    if not ran:
        return
    print("\n" + report.text_table(report.rows(cases, ran)))
    table = report.open_rows(cases, ran)
    if len(table) > 1:
        print("\nWhat the standard leaves open:\n" + report.text_table(table))
    for column in ran:
        for group, case, verdict in report.smallest_failures(cases, column):
            print(f"\n{column.name}, {group}: {case.name} {verdict.status}: {verdict.text}")
        for name, verdict in column.backward.items():
            if verdict.status not in ("pass", "none"):
                print(f"\n{column.name}, gradients: {name} {verdict.status}: {verdict.text}")


def write_markdown(page: Path, cases: list[Case], columns: list[report.Column]) -> None:
    """Puts the matrices between the lines `<!-- matrix -->` and `<!-- end of matrix -->`."""
    ran = [column for column in columns if not column.skipped]
    lines = [f"{len(cases)} cases, {datetime.date.today().isoformat()}.", ""]
    lines += [f"- {c.name}: {c.version or 'not run: ' + c.skipped}" for c in columns]
    lines += ["", report.markdown_table(report.rows(cases, ran)), ""]
    lines += ["What the standard leaves open:", "", report.markdown_table(report.open_rows(cases, ran))]
    begin, end = "<!-- matrix -->", "<!-- end of matrix -->"
    text = page.read_text()
    if begin not in text or end not in text:
        raise SystemExit(f"[conformance] {page} has no lines '{begin}' and '{end}', expected both")
    before, after = text.split(begin)[0], text.split(end)[1]
    page.write_text(before + begin + "\n" + "\n".join(lines) + "\n" + end + after)


def failed(columns: list[report.Column], cases: list[Case]) -> bool:
    """Whether a settled case, or a gradient, is not passed."""
    settled = {case.name for case in cases if case.facts["kind"] != "open"}
    for column in columns:
        if any(v.status != "pass" for name, v in column.forward.items() if name in settled):
            return True
        if any(v.status not in ("pass", "none") for v in column.backward.values()):
            return True
    return False


def results(cases: list[Case], columns: list[report.Column]) -> dict[str, Any]:
    facts = [{n: case.facts[n] for n in ("name", "op", "kind", "group", "attributes")} for case in cases]
    return {"cases": facts, "backends": [column.as_dict() for column in columns]}


def run(given: argparse.Namespace, folder: Path) -> int:
    cases = [case for case in cases_of(folder) if re.search(given.case, case.name)]
    if not cases:
        raise SystemExit(f"[conformance] no case of {folder} has '{given.case}' in its name")
    pythons = dict(each.split("=", 1) for each in given.python)
    engines = given.engine or (["cpu"] if given.isa else ["reference", "cpu"])
    lanes: list[Lane] = []
    for backend in given.backend or ["openrnn"]:
        lanes += lanes_of(backend, pythons, given.isa or list(ISAS), engines)
    columns = [run_lane(lane, cases, given.timeout) for lane in lanes]
    if given.json:
        json.dump(results(cases, columns), sys.stdout, indent=1)
        print()
    else:
        print_text(cases, columns)
    if given.markdown:
        write_markdown(given.markdown, cases, columns)
    return 1 if failed(columns, cases) or all(column.skipped for column in columns) else 0


def main() -> int:
    given = arguments()
    try:
        if given.cases is not None:
            return run(given, given.cases)
        with tempfile.TemporaryDirectory() as folder:
            return run(given, generated(folder, given.case))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 1


if __name__ == "__main__":
    sys.exit(main())
