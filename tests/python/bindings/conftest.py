"""Each test in a graph and a folder of its own."""

import openrnn
import pytest


@pytest.fixture(autouse=True)
def alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with openrnn.Graph().as_default():
        yield
