"""House rules that a script can see: sizes of files, functions and folders, and words that tie the
repository to one machine.

Usage: rules.py ROOT checks a tree; rules.py --self-test proves that violations are found.
"""
import pathlib
import re
import statistics
import sys
import tempfile

CODE = {".h", ".cc", ".inc", ".py"}
TEXT = CODE | {".md", ".txt", ".cmake", ".in", ".json", ".sh", ".toml", ".ipynb", ""}
FOLDERS = ("include", "src", "tests", "fuzz", "examples", "bench", "scripts", "cmake",
           "conformance", "docs", ".ci")
FILE_LINES, SOURCE_LINES, MEDIAN_LINES, FUNCTION_LINES, FOLDER_SOURCES = 500, 300, 150, 60, 12
HOSTS = ("www.apache.org", "www.w3.org", "github.com", "www.tensorflow.org", "docs.nvidia.com",
         "semver.org", "localhost")
URL = re.compile(r"\b(?:https?|ftp)://([A-Za-z0-9.-]+)")
MACHINE_PATH = re.compile(r"(?<![\w./$}])/(?:work|root|home)/\w")
OPENS_NO_FUNCTION = re.compile(r"^\s*(?:inline )?(?:namespace|class|struct|enum|union|extern)\b"
                               r"|^\s*template\b.*\b(?:class|struct) \w+[^()]*\{$|= ?\{$|\]\w* = \{")


def files_of(root):
    """The files of ours; fuzz corpora and golden files are data."""
    for name in FOLDERS:
        for path in sorted((root / name).rglob("*")):
            parts = path.relative_to(root).parts
            hidden = any(part.startswith(".") for part in parts[1:])
            if path.is_file() and not hidden and not {"corpus", "golden", "data"} & set(parts):
                yield path
    yield from (path for path in sorted(root.iterdir())
                if path.is_file() and (path.suffix in (".md", ".txt") or path.name == "Makefile"))


def is_continuation(line):
    """True for a line that the head of a function reaches from above: parameters, initialisers."""
    return "(" not in line or line.lstrip()[0] in ":," or line.startswith("      ")


def long_functions(text):
    """(line, length) of every C++ function over the limit, found by the indentation of its braces."""
    lines, found, start, indent = text.split("\n"), [], None, 0
    for number, line in enumerate(lines):
        here = len(line) - len(line.lstrip())
        if start is not None and line.startswith("}", indent) and here == indent:
            if number - start + 1 > FUNCTION_LINES:
                found.append((start + 1, number - start + 1))
            start = None
        elif start is None and line.endswith("{") and not OPENS_NO_FUNCTION.search(line):
            head = number
            while head > 0 and lines[head - 1].strip() and is_continuation(lines[head]):
                head -= 1
            if "(" in lines[head]:
                indent = len(lines[head]) - len(lines[head].lstrip())
                start = head
    return found


def check_file(path, relative):
    """What is wrong inside one file."""
    if path.suffix not in TEXT:
        return
    text = path.read_text(encoding="utf-8")
    lines = text.count("\n")
    # Public headers document what they declare.
    most = SOURCE_LINES if relative.parts[0] == "src" else FILE_LINES
    if path.suffix in CODE and lines > most:
        yield f"{relative}: {lines} lines, at most {most}"
    if path.suffix in (".h", ".cc"):
        for line, length in long_functions(text):
            yield f"{relative}:{line}: a function of {length} lines, at most {FUNCTION_LINES}"
    for host in URL.findall(text):
        if host not in HOSTS:
            yield f"{relative}: names the host {host}"
    for match in MACHINE_PATH.findall(text):
        yield f"{relative}: names a folder of one machine: {match}"


def unreached_headers(root):
    """Public headers that openrnn.h, which promises all of them, does not include."""
    folder, seen, left = root / "include" / "openrnn", set(), ["openrnn.h"]
    while left:
        name = left.pop()
        if name not in seen and (folder / name).is_file():
            seen.add(name)
            left += re.findall(r'#include "openrnn/([^"]+)"', (folder / name).read_text())
    for path in sorted(folder.glob("*.h")):
        if path.name not in seen:
            yield f"include/openrnn/{path.name}: not reached from openrnn.h"


def violations(root):
    """Every violation as a sentence, and the lengths of the C++ files of the library."""
    found, lengths, folders = [], [], {}
    for path in files_of(root):
        relative = path.relative_to(root)
        found.extend(check_file(path, relative))
        if path.suffix in CODE:
            folders.setdefault(relative.parent, set()).add(path.stem)
            if relative.parts[0] in ("include", "src"):
                lengths.append(path.read_text(encoding="utf-8").count("\n"))
    # A header and its source are one. The public headers are one a room, by design.
    folders.pop(pathlib.Path("include/openrnn"), None)
    found += [f"{folder}: {len(stems)} sources, at most {FOLDER_SOURCES}"
              for folder, stems in folders.items() if len(stems) > FOLDER_SOURCES]
    found += unreached_headers(root)
    if lengths and statistics.median(lengths) > MEDIAN_LINES:
        found.append(f"the median file has {statistics.median(lengths)} lines, not {MEDIAN_LINES}")
    return found, lengths


def self_test():
    """One violation of each kind; and a tree without any."""
    body = "  a();\n" * 58
    bad = {
        "src/a/long.cc": ("\n" * 301, "301 lines"),
        "tests/a/long.cc": ("\n" * 501, "501 lines"),
        "src/a/f.cc": ("namespace x {\nint f(int a,\n      int b) {\n" + body + "}\n}\n", "61 lines"),
        "src/a/m.cc": ("class C {\n  void f() const {\n" + body + "\n  }\n};\n", "61 lines"),
        "src/a/c2.cc": ("C::C(int a)\n    : a_(a) {\n" + body + "\n}\n", "62 lines"),
        "docs/a.md": ("see https://" + "example.com/x\n", "names the host"),
        "scripts/s.sh": ("cd /" + "home/me\n", "folder of one machine"),
        "include/openrnn/other.h": ("", "not reached from openrnn.h"),
    }
    good = {"src/a/c.cc": "C::C(int a)\n    : a_(a) {\n  f();\n}\n\n" + "int x;\n" * 80 + "}\n",
            "src/a/g.cc": "namespace x {\nint f() {\n" + body + "}\n}\n", "README.md": "# x\n",
            "include/a.h": "struct S {\n" + "  int a;\n" * 80 + "};\n",
            "src/a/whole.cc": "\n" * 300, "include/b.h": "\n" * 301,
            "include/openrnn/openrnn.h": '#include "openrnn/first.h"\n',
            "include/openrnn/first.h": "",
            "src/a/d.h": "", "src/a/e.h": "", "src/a/f.h": ""}
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)

        def write(name, text):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)

        for name, text in good.items():
            write(name, text)
        assert violations(root)[0] == [], violations(root)
        for name, (text, sentence) in bad.items():
            write(name, text)
            found = violations(root)[0]
            assert len(found) == 1 and sentence in found[0], (name, found)
            (root / name).unlink()
        for number in range(13):
            write(f"src/b/{number}.cc", "")
        assert "13 sources" in violations(root)[0][0]
        for number in range(13):
            write(f"src/b/{number}.cc", "\n" * 200)
        assert any("median" in line for line in violations(root)[0])
    print(f"self-test: {len(bad) + 2} kinds of violation found, none in the good tree")


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return 0
    found, lengths = violations(pathlib.Path(sys.argv[1]))
    for line in found:
        print(line)
    print(f"{len(lengths)} files of the library, {len(found)} violations")
    return 1 if found or not lengths else 0


if __name__ == "__main__":
    sys.exit(main())
