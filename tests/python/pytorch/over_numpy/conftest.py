"""openrnn.torch over a stand-in for PyTorch."""

import pytest
from numpy_torch import installed


@pytest.fixture(scope="module")
def ours():
    with installed():
        import openrnn

        yield openrnn
