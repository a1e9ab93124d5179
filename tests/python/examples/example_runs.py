"""Runs the examples, of both languages, on data that the tests' packages ship."""
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILD = pathlib.Path(os.environ.get("OPENRNN_BUILD_DIR", ROOT / "build" / "release"))
MINUTES = 10 * 60  # a bound for a hung process, far above what a run takes


def run(language, name, *words, **environment):
    """The finished process of an example: returncode, stdout, stderr."""
    program = ([BUILD / "examples" / name] if language == "c++" else
               [sys.executable, ROOT / "examples" / "python" / f"{name}.py"])
    return subprocess.run([*map(str, program), *map(str, words)], capture_output=True, text=True,
                          timeout=MINUTES, check=False, env={**os.environ, **environment})


def output(language, name, *words, **environment):
    """What it prints; it must succeed."""
    done = run(language, name, *words, **environment)
    assert done.returncode == 0, (done.args, done.stdout, done.stderr)
    return done.stdout


def figure(text, what):
    """The number after `what: `, which stands at the start of one line."""
    found = re.findall(rf"^{re.escape(what)}: (-?[\d.]+(?:e-?\d+)?)(?: |$)", text, re.MULTILINE)
    assert len(found) == 1, (what, text)
    return float(found[0])


def documented(language, name, *figures):
    """Whether the examples' page says these figures in the line of that example."""
    begin = f"| `{name} " if language == "c++" else f"| `{name}.py"
    page = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    lines = [line for line in page.splitlines() if line.startswith(begin)]
    assert len(lines) == 1, (begin, lines)
    return all(figure_ in lines[0] for figure_ in figures)
