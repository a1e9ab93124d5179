"""Each test has a default graph of its own and both ways of calling a layer."""

import openrnn
import pytest
from openrnn._layer import Layer

pytest.register_assert_rewrite("table.support")

from table.support import KINDS, EagerCaller, SymbolicCaller  # noqa: E402


@pytest.fixture(autouse=True)
def fresh_graph():
    """Names, collections, scopes and seeds of one test do not reach the next."""
    openrnn.reset_default_graph()
    yield
    openrnn.reset_default_graph()


@pytest.fixture(params=KINDS, ids=[kind.mode for kind in KINDS])
def kind(request):
    """One of the four modes."""
    return request.param


@pytest.fixture(params=["unidirectional", "bidirectional"])
def direction(request):
    return request.param


@pytest.fixture(params=[EagerCaller, SymbolicCaller], ids=["eager", "symbolic"])
def caller(request):
    """Calls a layer on arrays, at once or through Input and Model; arrays come back."""
    return request.param()


@pytest.fixture(autouse=True)
def held(monkeypatch):
    """Layers and cells live as long as their test, which looks at what the graph has after a call."""
    made, make = [], Layer._make

    def keep(self, *arguments):
        made.append(self)
        make(self, *arguments)

    monkeypatch.setattr(Layer, "_make", keep)
    return made
