"""The ratios as a picture: one dot a line with its interval, 1 marked."""

from collections.abc import Sequence
from pathlib import Path

from peers.report.results import LineResult

COLOURS = {"won": "#1b7837", "level": "#555555", "lost": "#b2182b"}


def draw(results: Sequence[LineResult], path: Path) -> bool:
    """Writes an SVG file; False without matplotlib or without a ratio."""
    try:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError:
        return False
    found = [(r.line.name, *best) for r in results if (best := r.best()) is not None]
    if not found:
        return False
    figure, axes = pyplot.subplots(figsize=(11, 1.2 + 0.22 * len(found)))
    for place, (_, peer, ratio) in enumerate(reversed(found)):
        colour = COLOURS[ratio.verdict]
        axes.plot([ratio.low, ratio.high], [place, place], color=colour, linewidth=1.5)
        axes.plot([ratio.value], [place], "o", color=colour, markersize=4)
        axes.annotate(peer.key, (ratio.high, place), xytext=(5, -2.5),
                      textcoords="offset points", fontsize=6, color="#555555")  # fmt: skip
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set_xscale("log")
    ticks = [t for t in (0.25, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 20)]
    low = min(ratio.low for _, _, ratio in found) * 0.9
    high = max(ratio.high for _, _, ratio in found) * 1.4
    axes.set_xlim(min(low, 0.9), max(high, 1.5))
    axes.set_xticks([t for t in ticks if min(low, 0.9) <= t <= max(high, 1.5)])
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter("")
    axes.set_yticks(range(len(found)), [name for name, _, _ in reversed(found)], fontsize=7)
    axes.set_ylim(-0.7, len(found) - 0.3)
    axes.set_xlabel("time of the best peer / time of OpenRNN")
    figure.tight_layout()
    figure.savefig(path)
    pyplot.close(figure)
    return True
