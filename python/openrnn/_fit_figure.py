"""The losses of a training run as a figure of matplotlib, which is not imported before."""

import io

from matplotlib.figure import Figure  # type: ignore[import-not-found, unused-ignore]
from matplotlib.ticker import MaxNLocator  # type: ignore[import-not-found, unused-ignore]


class HistoryFigure(Figure):  # type: ignore[misc, unused-ignore]
    """Losses by epoch.

    A notebook shows it as it is. Of matplotlib's own figures it shows the picture only once pyplot
    has drawn one, and nothing here needs pyplot.
    """

    @classmethod
    def of(cls, curves: dict[str, list[float]], best_epoch: int | None) -> "HistoryFigure":
        """With the best epoch, counted from 0, where early stopping found one."""
        figure = cls(figsize=(7, 4), layout="constrained")
        axes = figure.subplots()
        for name, values in curves.items():
            # A line through one point is invisible.
            axes.plot(range(1, len(values) + 1), values, label=name, marker="o" if len(values) == 1 else "")
        if best_epoch is not None:
            axes.axvline(best_epoch + 1, color="0.6", linestyle="--", linewidth=1, label="best epoch")
        axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True, min_n_ticks=1, steps=[1, 2, 5, 10]))
        axes.set_xlabel("epoch")
        axes.set_ylabel("loss")
        axes.grid(alpha=0.3)
        axes.legend()
        return figure

    def _repr_png_(self) -> bytes:
        picture = io.BytesIO()
        self.savefig(picture, format="png")
        return picture.getvalue()
