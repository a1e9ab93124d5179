"""Every snippet of *.md and docs/*.md runs; links and commands name what there is.

Python: the snippets of a page share one namespace, in a folder and a graph of their own. An
expression with `# -> X` behind it must have the repr X.
"""

import ast
import importlib.util
import os
import pathlib
import re
import shlex
import subprocess

import openrnn
import pytest
import snippets

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGES = snippets.pages(ROOT)
LANGUAGES = {"python", "cpp", "sh", "cmake", ""}
EXPECTED = re.compile(r"# -> (.*)$")


def text_of(page):
    return (ROOT / page).read_text(encoding="utf-8")


def with_language(language):
    return [page for page in PAGES if snippets.of_language(ROOT, page, language)]


def expected_value(node, lines):
    """What stands behind an expression as its value, or None."""
    found = EXPECTED.search(lines[node.end_lineno - 1])
    return found[1] if found and isinstance(node, ast.Expr) else None


def run_python(code, page, namespace):
    """Runs statement after statement; returns how many values were compared."""
    lines, compared = code.split("\n"), 0
    for node in ast.parse(code, page).body:
        wanted = expected_value(node, lines)
        if wanted is None:
            exec(compile(ast.Module([node], []), page, "exec"), namespace)
            continue
        found = eval(compile(ast.Expression(node.value), page, "eval"), namespace)
        assert repr(found) == wanted, f"{page}:{node.lineno}"
        compared += 1
    return compared


@pytest.mark.parametrize("page", with_language("python"))
def test_python(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    openrnn.reset_default_graph()
    namespace, compared, marked = {"__name__": "page"}, 0, 0
    found = snippets.of_language(ROOT, page, "python")
    for framework in snippets.OF_FRAMEWORKS:
        if importlib.util.find_spec(framework) is None:
            found = snippets.without(framework, page, found)
    for one in found:
        # Empty lines in front, so that errors name lines of the page.
        compared += run_python("\n" * (one.line - 1) + one.code, page, namespace)
        marked += len(re.findall(EXPECTED.pattern, one.code, re.MULTILINE))
    openrnn.reset_default_graph()
    assert compared == marked, "a value stands where no expression is"


def test_a_wrong_value_is_found():
    with pytest.raises(AssertionError, match="page:2"):
        run_python("a = 1\na + 1  # -> 3\n", "page", {})
    assert run_python("a = 1\na + 1  # -> 2\n", "page", {}) == 1


def test_all_snippets_are_run():
    """Every language is known, and no snippet is left out."""
    for page in PAGES:
        for one in snippets.snippets(text_of(page)):
            assert one.language in LANGUAGES, f"{page}:{one.line}: {one.language}"
            assert not one.not_run, f"{page}:{one.line} is not run: {one.not_run}"
    for page, test in snippets.RUN_ELSEWHERE.items():
        assert pathlib.Path(page).name in text_of(test), f"{test} does not read {page}"


def anchor_of(heading):
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES)
def test_links(page):
    folder = (ROOT / page).parent
    for target in re.findall(r"\]\(([^)\s]+)\)", text_of(page)):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        path = folder / name if name else ROOT / page
        assert path.exists(), f"{page} links {target}"
        if anchor:
            headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in map(anchor_of, headings), f"{page} links {target}"


@pytest.mark.parametrize("page", PAGES)
def test_named_files_exist(page):
    """Paths in `code`, so that a page does not outlive a file that was moved."""
    for path in re.findall(r"`((?:src|include|tests|cmake|scripts|docs|examples|bench|fuzz)/[\w./-]*)`",
                           text_of(page)):
        placeholder = path == "include/openrnn/X.h"
        assert placeholder or (ROOT / path).exists(), f"{page} names {path}"


@pytest.mark.parametrize("page", PAGES)
def test_length(page):
    assert text_of(page).count("\n") <= {"README.md": 120, "HACKING.md": 300}.get(page, 220)


def shell_lines():
    return [(page, line.split("#")[0].strip())
            for page in PAGES for one in snippets.of_language(ROOT, page, "sh")
            for line in one.code.split("\n") if line.strip()]


def test_goals_and_scripts_exist():
    goals = set(re.findall(r"^([a-z-]+):", text_of("Makefile"), re.MULTILINE))
    for page, line in shell_lines():
        words = shlex.split(line, comments=True)
        if words[0] == "make":
            named = {word for word in words[1:] if "=" not in word}
            assert named <= goals, f"{page}: {line}"
        elif words[0].startswith("scripts/"):
            assert (ROOT / words[0]).exists(), f"{page}: {line}"


def test_flags_exist():
    """Commands and flags of the tool, in snippets and in `code` of its page."""
    tool = os.environ.get("OPENRNN_TOOL")
    if not tool:
        pytest.skip("OPENRNN_TOOL does not name the tool")
    helps = {}
    for page, line in shell_lines():
        words = line.split()
        if words[0] != "openrnn":
            continue
        if words[1] not in helps:
            helps[words[1]] = subprocess.run([tool, words[1], "--help"], check=True, text=True,
                                             capture_output=True).stdout
        for flag in re.findall(r"--[a-z-]+", line):
            assert re.search(rf"{flag}\b", helps[words[1]]), f"{page}: {line}"
    assert {"train", "generate", "eval", "inspect", "doctor"} <= set(helps)
    known = " ".join(helps.values()) + subprocess.run(
        [tool, "bench", "--help"], check=True, text=True, capture_output=True).stdout
    for flag in set(re.findall(r"`(--[a-z-]+)", text_of("docs/tool.md"))):
        assert re.search(rf"{flag}\b", known), flag
