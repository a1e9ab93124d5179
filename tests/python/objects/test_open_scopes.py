"""What `with` holds open: closed in order, refused out of order, and let go when it is dropped."""

import gc
from concurrent.futures import ThreadPoolExecutor

import openrnn
import pytest
from openrnn import _core
from table.support import error_text


def scope_name():
    return _core.current_scope()[0]


def current():
    return _core.current_graph(), _core.current_scope()


# Of each kind of with statement: one of a name, and what it holds open.
KINDS = {
    "variable_scope": (openrnn.variable_scope, _core.OpenedScope),
    "as_default": (lambda name: openrnn.Graph().as_default(), _core.OpenedGraph),
}


def open_one(opened, name):
    """Opens a scope of the name, or a graph."""
    opened.open(*[name, False] if isinstance(opened, _core.OpenedScope) else [openrnn.Graph()])


def is_open(kind, around):
    if kind == "variable_scope":
        return scope_name().endswith("inner")
    return _core.current_graph() is not around[0]


@pytest.mark.parametrize("times", [1, 2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_one_that_is_dropped_is_closed_and_the_outer_ones_are_not(kind, times):
    make, _ = KINDS[kind]
    before = current()
    with make("outer"):
        around = current()
        for _ in range(times):
            inner = make("inner")
            inner.__enter__()
            assert is_open(kind, around)
            del inner
            gc.collect()
            assert current() == around
        with make("inner"):
            assert is_open(kind, around)
        assert current() == around
    assert current() == before


@pytest.mark.parametrize("kind", KINDS)
def test_several_that_are_dropped_together(kind):
    make, kept = KINDS[kind]
    before = current()
    with make("outer"):
        opened = kept()
        for n in range(3):
            open_one(opened, f"s{n}")
        if kind == "variable_scope":
            assert scope_name() == "outer/s0/s1/s2"
        opened.close()
        if kind == "variable_scope":
            assert scope_name() == "outer/s0/s1"
        del opened
        gc.collect()
        with make("inner"):
            pass
    assert current() == before


@pytest.mark.parametrize("kind", KINDS)
def test_one_that_is_closed_out_of_order_is_refused_and_stays_open(kind):
    _, kept = KINDS[kind]
    before, outer, inner = current(), kept(), kept()
    open_one(outer, "s0")
    open_one(inner, "s1")
    around = current()
    assert error_text(openrnn.StateError, outer.close) == (
        f"[{kind}] it is closed while one that was opened later is open, expected with statements "
        "of one thread that nest"
    )
    with ThreadPoolExecutor(1) as elsewhere:
        said = elsewhere.submit(error_text, openrnn.StateError, inner.close).result()
    assert said == (
        f"[{kind}] it is closed on another thread than the one that opened it, expected with "
        "statements of one thread that nest"
    )
    assert current() == around != before
    inner.close()
    outer.close()
    outer.close()  # there is nothing left to close
    assert current() == before


def test_an_undo_removes_what_was_made_since_unless_it_is_kept():
    first = openrnn.Variable(1.0, name="first")
    for kept in (False, True):
        undo = _core.GraphUndo()
        added = openrnn.get_variable("added", (2,))
        if kept:
            undo.keep()
        undo.undo()
        names = [v.name for v in openrnn.global_variables()]
        assert names == ["first", *["added"] * kept] and added.shape == (2,) and first is not None


def test_a_scope_that_is_opened_again_has_its_whole_name():
    with openrnn.variable_scope("a"), openrnn.variable_scope("b") as inner:
        assert _core.current_scope() == ("a/b", False)
    with openrnn.variable_scope("c"):
        opened = _core.OpenedScope()
        opened.open_again("a/b", True)
        assert _core.current_scope() == ("a/b", True)
        opened.close()
        assert _core.current_scope() == ("c", False)
        with openrnn.variable_scope(inner, reuse=True):
            assert _core.current_scope() == ("a/b", True)
