"""The table, its verdicts, and the chart."""
from peers.report.write import write
__all__=["write"]
