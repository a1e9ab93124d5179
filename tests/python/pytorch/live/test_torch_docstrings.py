"""The examples in the docstrings of openrnn.torch run."""

import openrnn
import openrnn.torch
import pytest
import torch

from model.docstrings import fault, public_names

NAMES = public_names(openrnn.torch)


@pytest.mark.parametrize("name", NAMES)
def test_examples_for_torch(name):
    assert not fault(name, NAMES[name], openrnn=openrnn, torch=torch)
