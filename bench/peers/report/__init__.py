"""What is made of the results: ratios, goals, the table, the chart."""

from peers.report.write import write

__all__ = ["write"]
