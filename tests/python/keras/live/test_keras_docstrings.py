"""The examples in the docstrings of openrnn.keras run under each backend."""

import keras
import openrnn
import openrnn.keras
import pytest

from model.docstrings import fault, public_names

NAMES = public_names(openrnn.keras)


@pytest.mark.parametrize("name", NAMES)
def test_examples_for_keras(name):
    assert not fault(name, NAMES[name], openrnn=openrnn, keras=keras)
