"""Words that the field does not use, in sources, docs and help texts, each with what to write.

Usage: words.py ROOT checks a tree; words.py --self-test proves that every word is found.
"""
import pathlib
import re
import sys
import tempfile

FOLDERS = ("src", "include", "python", "docs", "tests", "fuzz", "examples", "bench", "scripts",
           "cmake", "conformance")
DATA = {"corpus", "golden", "data"}
TEXT = {".h", ".cc", ".inc", ".cu", ".py", ".md", ".cmake", ".txt", ".toml", ".ipynb", ""}

# pattern, what to write, a text in which it must be found; spaces match line ends and the marks of
# comments too.
WORDS = (
    (r"meetings?", "barrier, or cache-line transfer", "a meeting of the threads"),
    (r"threads? (?:that |which )?meets?", "wait at a barrier", "threads meet once a step"),
    (r"sweeps? back|sweeping back", "backward pass", "the sweep back"),
    (r"(?:first|second|third|last)(?:-level)? caches?(?! line)", "L1, L2, L3", "the second cache"),
    (r"(?:the|of|its) multipliers", "FMA units", "the peak of the multipliers"),
    (r"turned(?! (?:on|off|into|out))", "transposed", "weights are turned"),
    (r"(?:the|a|one|of) teams?(?:'s)?", "thread pool", "the team's threads"),
    (r"right to use the \w+", "a lease on the thread pool", "the right to use the team"),
    (r"works? alone", "runs single-threaded", "who works alone"),
    (r"dealt out", "assigned, distributed", "rows are dealt out"),
    (r"likeliest", "most probable", "the likeliest symbol"),
    (r"(?:only|always|at most|every|the|that|after) so many(?! that)", "N, or 'at most N'",
     "Only the so many symbols"),
    (r"of everything random", "random seed", "Of everything random."),
    (r"whole numbers? of \d+ bits", "8-bit integers", "whole numbers of 8 bits"),
    (r"sets? the pace", "is the bottleneck: bandwidth-bound, compute-bound", "caches set the pace"),
    (r"up and down in turn", "in alternating order", "read up and down in turn"),
    (r"strangers?(?:'s)?", "untrusted", "A file is a stranger's data"),
    (r"neighbours?", "another program; the next one", "beside a busy neighbour"),
    (r"pretended", "stand-in", "a pretended driver"),
)
GAP = r"(?:[ \t]+|[ \t]*\n[ \t]*(?:///?|#|\*)?[ \t]*)"


def compiled():
    """(pattern, what to write) of every word."""
    for pattern, instead, _ in WORDS:
        yield re.compile(rf"\b(?:{pattern.replace(' ', GAP)})\b", re.IGNORECASE), instead


def files_of(root):
    """The files that people read, but for data and this list."""
    for name in FOLDERS:
        for path in sorted((root / name).rglob("*")):
            parts = path.relative_to(root).parts
            hidden = any(part.startswith(".") or part in DATA for part in parts[1:])
            hidden |= parts == ("tests", "house", "words.py")
            if path.is_file() and not hidden and path.suffix in TEXT:
                yield path
    yield from (path for path in sorted(root.iterdir())
                if path.is_file() and (path.suffix == ".md" or path.name == "Makefile"))


def violations(root):
    """Every old word as a sentence, and how many files were read."""
    found, patterns, count = [], list(compiled()), 0
    for path in files_of(root):
        count += 1
        text = path.read_text(encoding="utf-8")
        for pattern, instead in patterns:
            for match in pattern.finditer(text):
                line = text.count("\n", 0, match.start()) + 1
                word = " ".join(match.group().split())
                found.append(f"{path.relative_to(root)}:{line}: '{word}', expected: {instead}")
    return found, count


def self_test():
    """Every word is found, in a comment over two lines too; field's words are not."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        file = root / "src" / "a.cc"
        file.parent.mkdir()
        for pattern, instead, example in WORDS:
            for text in (example, example.upper(), example.replace(" ", "\n  /// ")):
                file.write_text(f"// {text}.\n")
                found, _ = violations(root)
                assert any(instead in line for line in found), (pattern, text, found)
        file.write_text("// Meets the need: streams of steam, turned off, as many as so manyfold.\n"
                        "// The last cache line; multiplier; a steamed team-mate is not 'the' one.\n")
        assert violations(root) == ([], 1), violations(root)
        file.unlink()
        (root / "README.md").write_text("A meeting.\n")
        assert len(violations(root)[0]) == 1
    print(f"self-test: {len(WORDS)} words found, none in the good text")


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return 0
    found, count = violations(pathlib.Path(sys.argv[1]))
    for line in found:
        print(line)
    print(f"{count} files, {len(found)} old words")
    return 1 if found or not count else 0


if __name__ == "__main__":
    sys.exit(main())
