"""Tables as Markdown."""

from collections.abc import Sequence


def row(cells: Sequence[str]) -> str:
    """One line of a table."""
    return "| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |"


def head(cells: Sequence[str]) -> list[str]:
    """The first two lines of a table."""
    return [row(cells), row(["---"] * len(cells))]
