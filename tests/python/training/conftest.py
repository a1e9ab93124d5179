"""Each test in a graph of its own."""

import openrnn
import pytest


@pytest.fixture(autouse=True)
def own_graph():
    with openrnn.Graph().as_default():
        yield
