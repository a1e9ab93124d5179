"""The snippets of the pages: *.md and docs/*.md.

What stands between ```LANGUAGE and ``` is a snippet; what stands between <!-- LANGUAGE and --> is one
that readers do not see, for what they would make themselves (data, a model). Snippets of one language
on one page are one program. <!-- not run: REASON --> before a snippet leaves it out.

As a program, snippets.py ROOT OUT writes OUT/PAGE.cc for each page with C++ on it, and OUT/main.cc,
which runs them one after another.
"""

import pathlib
import re
import sys
from typing import NamedTuple

OPENING = re.compile(r"^(?:```|<!-- )(\w+)$")
NOT_RUN = re.compile(r"^<!-- not run: (.+) -->$")
# Pages whose C++ another test compiles and runs, and holds against the page.
RUN_ELSEWHERE = {"docs/embedding.md": "tests/runtime/embedding_test.cc",
                 "README.md": "tests/install/consumer/CMakeLists.txt"}
# Pages with Python that needs another framework, which runs in `make test-torch`, `make test-keras`
# and `make test-jax`: the snippets that name it.
OF_FRAMEWORKS = {
    "torch": (("README.md", "docs/coming_from_pytorch.md"), re.compile(r"\btorch\.")),
    "keras": (("docs/coming_from_keras.md",), re.compile("")),
    "jax": (("docs/coming_from_jax.md",), re.compile("")),
}


class Snippet(NamedTuple):
    """One snippet, and the line of its first code."""

    language: str
    line: int
    code: str
    hidden: bool = False
    not_run: str = ""


def pages(root):
    """Paths of the pages, relative to the root."""
    found = [*sorted(root.glob("*.md")), *sorted((root / "docs").glob("*.md"))]
    return [path.relative_to(root).as_posix() for path in found]


def snippets(text):
    """Every snippet of a page, in order. Raises ValueError for one that does not end."""
    found, lines, number = [], text.split("\n"), 0
    while number < len(lines):
        opening = OPENING.match(lines[number])
        if not opening:
            number += 1
            continue
        hidden = lines[number].startswith("<!--")
        reason = NOT_RUN.match(lines[number - 1]) if number else None
        end = "-->" if hidden else "```"
        start = number + 1
        while number < len(lines) and lines[number] != end:
            number += 1
        if number == len(lines):
            raise ValueError(f"the snippet at line {start} has no end")
        found.append(Snippet(opening[1], start + 1, "\n".join(lines[start:number]) + "\n", hidden,
                             reason[1] if reason else ""))
        number += 1
    return found


def of_language(root, page, language):
    """What is to be run on a page."""
    text = (root / page).read_text(encoding="utf-8")
    return [one for one in snippets(text) if one.language == language and not one.not_run]


def without(framework, page, found):
    """Those that run where that framework is not."""
    its_pages, names = OF_FRAMEWORKS[framework]
    if page not in its_pages:
        return found
    return [one for one in found if not names.search(one.code)]


def cpp_source(page, name, found):
    """One translation unit: the includes, then all snippets as the body of one function."""
    includes, body = ["#include <openrnn/openrnn.h>", "#include <cassert>"], []
    for one in found:
        body.append(f'#line {one.line} "{page}"')
        for line in one.code.split("\n"):
            is_include = line.startswith("#include ")
            if is_include:
                includes.append(line)
            body.append("" if is_include else line)
    unique = "\n".join(dict.fromkeys(includes))
    return f"{unique}\nvoid {name}() {{\n" + "\n".join(body) + "\n}\n"


MAIN = """#include <openrnn/graph.h>
#include <cstdio>
#include <exception>
#include <filesystem>
{declarations}
int main(int, char** arguments) {{
  const struct {{ const char* name; void (*run)(); }} pages[] = {{{table}}};
  const std::filesystem::path folder = arguments[1];
  for (const auto& page : pages) try {{
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    std::filesystem::current_path(folder);
    openrnn::Graph graph;
    const openrnn::Graph::AsDefault as_default(graph);
    page.run();
    std::printf("%s: ok\\n", page.name);
  }} catch (const std::exception& error) {{
    std::printf("%s: %s\\n", page.name, error.what());
    return 1;
  }}
}}
"""


def write_cpp(root, out):
    """Writes the C++ of all pages; a file that would stay the same is left alone."""
    named = {}
    out.mkdir(parents=True, exist_ok=True)

    def write(path, text):
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")

    for page in pages(root):
        found = of_language(root, page, "cpp")
        if found and page not in RUN_ELSEWHERE:
            name = "page_" + pathlib.Path(page).stem.lower()
            named[page] = name
            write(out / f"{name}.cc", cpp_source(page, name, found))
    write(out / "main.cc", MAIN.format(
        declarations="\n".join(f"void {name}();" for name in named.values()),
        table=", ".join(f'{{"{page}", {name}}}' for page, name in named.items())))
    for path in out.glob("page_*.cc"):
        if path.stem not in named.values():
            path.unlink()


if __name__ == "__main__":
    write_cpp(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
