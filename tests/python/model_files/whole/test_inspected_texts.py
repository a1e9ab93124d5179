"""What the tool says of every file of the fuzzers' corpora that it reads, word for word: tensors, values, networks,
layers and notes. OPENRNN_REGENERATE_GOLDEN=1 writes tests/golden/inspected_texts.txt anew; what is said of the files
that are refused is kept beside it."""

import os
from pathlib import Path

from tool.tool_runs import tool

ROOT = Path(__file__).resolve().parents[4]
KEPT = ROOT / "tests" / "golden" / "inspected_texts.txt"


def test_what_is_said_of_a_file_is_what_is_kept():
    corpus = ROOT / "fuzz" / "corpus"
    found = {}
    for path in sorted(path for path in corpus.rglob("*") if path.is_file()):
        name = path.relative_to(corpus).as_posix()
        done = tool("inspect", name, cwd=corpus)
        assert done.returncode in (0, 1, 2), (name, done.stderr)
        if done.returncode == 0:
            found[name] = done.stdout + done.stderr
    if os.environ.get("OPENRNN_REGENERATE_GOLDEN"):
        KEPT.write_text("".join(f"== {name}\n{text}" for name, text in found.items()), encoding="utf-8")
    parts = (part.split("\n", 1) for part in KEPT.read_text(encoding="utf-8").removeprefix("== ").split("\n== "))
    kept = {name: text.rstrip("\n") for name, text in parts}
    assert {name: text.rstrip("\n") for name, text in found.items()} == kept
