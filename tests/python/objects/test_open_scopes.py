"""What `with` holds open: closed in order, refused out of order, and let go when it is dropped."""

import gc
import threading

import openrnn
import pytest
from openrnn import _core


@pytest.fixture(autouse=True)
def own_graph():
    with openrnn.Graph().as_default():
        yield


def scope_name():
    return _core.current_scope()[0]


OUTER = [None]
KINDS = {
    "variable_scope": (
        lambda: openrnn.variable_scope("inner"),
        lambda: scope_name().endswith("inner"),
    ),
    "as_default": (
        lambda: openrnn.Graph().as_default(),
        lambda: _core.current_graph() is not OUTER[0],
    ),
}


def outer_of(kind):
    if kind == "variable_scope":
        return openrnn.variable_scope("outer")
    OUTER[0] = openrnn.Graph()
    return OUTER[0].as_default()


@pytest.mark.parametrize("times", [1, 2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_one_that_is_dropped_is_closed_and_the_outer_ones_are_not(kind, times):
    make, is_open = KINDS[kind]
    before = _core.current_graph(), _core.current_scope()
    with outer_of(kind):
        around = _core.current_graph(), _core.current_scope()
        for _ in range(times):
            inner = make()
            inner.__enter__()
            assert is_open()
            del inner
            gc.collect()
            assert (_core.current_graph(), _core.current_scope()) == around
        with make():
            assert is_open()
        assert (_core.current_graph(), _core.current_scope()) == around
    assert (_core.current_graph(), _core.current_scope()) == before


@pytest.mark.parametrize("kind", KINDS)
def test_several_that_are_dropped_together(kind):
    make, _ = KINDS[kind]
    before = _core.current_graph(), _core.current_scope()
    with outer_of(kind):
        opened = {"variable_scope": _core.OpenedScope, "as_default": _core.OpenedGraph}[kind]()
        for n in range(3):
            opened.open(*[f"s{n}", False] if kind == "variable_scope" else [openrnn.Graph()])
        if kind == "variable_scope":
            assert scope_name() == "outer/s0/s1/s2"
        opened.close()
        if kind == "variable_scope":
            assert scope_name() == "outer/s0/s1"
        del opened
        gc.collect()
        with make():
            pass
    assert (_core.current_graph(), _core.current_scope()) == before


@pytest.mark.parametrize("kind", KINDS)
def test_one_that_is_closed_out_of_order_is_refused_and_stays_open(kind):
    before = _core.current_graph(), _core.current_scope()
    make = {"variable_scope": _core.OpenedScope, "as_default": _core.OpenedGraph}[kind]
    outer, inner = make(), make()
    for n, opened in enumerate((outer, inner)):
        opened.open(*[f"s{n}", False] if kind == "variable_scope" else [openrnn.Graph()])
    around = _core.current_graph(), _core.current_scope()
    with pytest.raises(openrnn.StateError) as caught:
        outer.close()
    assert str(caught.value) == (
        f"[{kind}] it is closed while one that was opened later is open, expected with statements "
        "of one thread that nest"
    )
    said = []

    def elsewhere():
        try:
            inner.close()
        except openrnn.StateError as error:
            said.append(str(error))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert said == [
        f"[{kind}] it is closed on another thread than the one that opened it, expected with "
        "statements of one thread that nest"
    ]
    assert (_core.current_graph(), _core.current_scope()) == around != before
    inner.close()
    outer.close()
    outer.close()  # there is nothing left to close
    assert (_core.current_graph(), _core.current_scope()) == before


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
