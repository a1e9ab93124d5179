"""scripts/mutation: every switch changes its own place alone, and none changes anything when off."""
import ast
import importlib
import pathlib
import sys
import types

import pytest

FOLDER = pathlib.Path(__file__).resolve().parents[3] / "scripts" / "mutation"
SOURCE = '''
"""A text."""
from __future__ import annotations


def total(values, start=0, twice=False):
    """Another."""
    seen = []
    for value in values:
        if value is None or value < 0:
            continue
        seen.append(value)
    whole = sum(seen) - start
    return 2 * whole if twice else whole
'''


@pytest.fixture
def part(monkeypatch):
    """One of the modules of scripts/mutation."""
    monkeypatch.syspath_prepend(FOLDER)
    yield importlib.import_module
    for name in ("openrnn_mutation", "places", "python_switches", "mutated_build"):
        sys.modules.pop(name, None)


def results(tree, part, active):
    """What the functions of a module return with one mutation switched on."""
    part("openrnn_mutation")._active = active
    module = types.ModuleType("mutated")
    exec(compile(tree, "mutated", "exec"), module.__dict__)
    try:
        return [module.total([1, None, -2, 5]), module.total([0, 3], 1, twice=True)]
    except TypeError as error:
        return str(error)


def test_each_switch_of_a_module_changes_what_it_says(part):
    switches, found = part("python_switches"), []
    tree = switches.Switches("x.py", SOURCE, found).visit(ast.parse(SOURCE))
    tree = ast.fix_missing_locations(tree)
    first = part("places").FIRST_PYTHON
    assert results(tree, part, -1) == [6, 4]
    changed = [(m["line"], m["text"], results(tree, part, first + n)) for n, m in enumerate(found)]
    condition, no_sum = "value is None or value < 0", "unsupported operand type(s) for +: 'int' and 'NoneType'"
    assert changed == [
        (6, "0 + 1", [5, 4]),
        (6, "not False", [12, 4]),
        (10, f"never if {condition}", no_sum),
        (10, f"without `value is None` of {condition}",
         "'<' not supported between instances of 'NoneType' and 'int'"),
        (10, f"without `value < 0` of {condition}", [4, 4]),
        (10, "other bound: value < 0", [6, 4]),
        (10, "0 + 1", [6, 4]),
        (11, "without continue", no_sum),
        (12, "without seen.append(value)", [0, -2]),
        (13, "plus for minus: sum(seen) - start", [6, 8]),
        (14, "swapped 2 * whole if twice else whole", [12, 2]),
        (14, "2 + 1", [6, 6]),
    ]


def test_switches_nest_and_an_operator_is_the_innermost(part):
    switched = part("mutated_build").switched
    source = b"if (a < b) f(1);"
    around = [
        {"kind": "never", "begin": 4, "end": 9, "edits": [(4, "never(@, "), (9, ")")]},
        {"kind": "operator", "begin": 4, "end": 9, "edits": [(4, "less(@, "), (6, 7, ","), (9, ")")]},
        {"kind": "number", "begin": 13, "end": 14, "edits": [(13, "(@ ? 2 : "), (14, ")")]},
        {"kind": "without", "begin": 11, "end": 16, "edits": [(11, "{ "), (16, " }")]},
    ]
    assert switched(source, list(enumerate(around, 7))) == (
        b"if (never(7, less(8, a , b))) { f((9 ? 2 : 1)); }")


def test_mutations_on_lines_that_do_not_compile_are_dropped(part):
    build, places = part("mutated_build"), part("places")
    mutations = [{"file": "src/a.cc", "line": line, "text": "x"} for line in (3, 90)]
    log = f"{places.TREE}/src/a.cc:4:7: error: no\n{places.TREE}/src/b.cc:90:1: error: no"
    assert build.drop_refused(mutations, log) == 1
    assert [m.get("dropped", False) for m in mutations] == [True, False]


def test_the_library_of_a_test_is_the_mutated_one(part):
    command = "c++ -O1 CMakeFiles/a_test.dir/tests/a/a_test.cc.o CMakeFiles/cli.dir/Unity/unity_0_cxx.cxx.o -o a_test x.a"
    assert part("mutated_build").objects(command) == (
        ["CMakeFiles/a_test.dir/tests/a/a_test.cc.o"], ["CMakeFiles/cli.dir/Unity/unity_0_cxx.cxx.o"])
