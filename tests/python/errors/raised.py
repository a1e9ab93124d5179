"""What an error says."""

import pytest


def said(error, call):
    """The message of the error that `call` raises."""
    with pytest.raises(error) as raised:
        call()
    return str(raised.value)
