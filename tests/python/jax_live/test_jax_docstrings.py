"""The examples in the docstrings of openrnn.jax run."""

import jax
import openrnn
import openrnn.jax
import pytest

from model.docstrings import fault, public_names

NAMES = public_names(openrnn.jax)


@pytest.mark.parametrize("name", NAMES)
def test_examples_for_jax(name):
    assert not fault(name, NAMES[name], openrnn=openrnn, jax=jax)
