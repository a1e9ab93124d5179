"""The pages whose snippets need PyTorch, with those snippets."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[3] / "docs"))
import snippets  # noqa: E402
import test_snippets as pages  # noqa: E402


@pytest.mark.parametrize("page", snippets.OF_FRAMEWORKS["torch"][0])
def test_a_page(page, tmp_path, monkeypatch):
    found = snippets.of_language(pages.ROOT, page, "python")
    assert len(snippets.without("torch", page, found)) < len(found)
    pages.test_python(page, tmp_path, monkeypatch)
