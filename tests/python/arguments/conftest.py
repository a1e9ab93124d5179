"""Every test starts from an empty graph."""

import openrnn
import pytest


@pytest.fixture(autouse=True)
def empty_graph():
    openrnn.reset_default_graph()
