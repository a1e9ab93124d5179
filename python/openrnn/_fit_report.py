"""What a training run and a model look like: progress, plots, tables, all within 80 columns."""

import math
import sys
import time
from collections.abc import Callable
from typing import Any

from openrnn._fit_callbacks import History, Logs
from openrnn.errors import ArgumentError

WIDTH = 80


class Text(str):
    """A text that a prompt and a notebook show as it is."""

    def __repr__(self) -> str:
        return str(self)


def _values(logs: Logs) -> str:
    names = {"learning_rate": "lr"}
    return "  ".join(f"{names.get(name, name)} {value:.4g}" for name, value in logs.items())


def _notebook_display() -> Callable[..., Any] | None:
    """IPython's display() where this runs in the kernel of a notebook."""
    ipython: Any = sys.modules.get("IPython")
    if ipython is None or not hasattr(ipython.get_ipython(), "kernel"):
        return None
    display: Callable[..., Any] = sys.modules["IPython.display"].display
    return display


class _Line:
    """One line of a notebook's output, written over.

    At most ten times a second: a page that repaints for each of a thousand short epochs is slower
    than the training.
    """

    def __init__(self, display: Callable[..., Any]) -> None:
        self._display = display
        self._handle: Any = None
        self._text, self._shown, self._time = Text(), Text(), -math.inf

    def show(self, line: str) -> None:
        self._text = Text(line)
        if time.monotonic() - self._time >= 0.1:
            self.flush()

    def flush(self) -> None:
        """Shows the newest line."""
        if self._text == self._shown:
            return
        if self._handle is None:
            self._handle = self._display(self._text, display_id=True)
        else:
            self._handle.update(self._text)
        self._shown, self._time = self._text, time.monotonic()


class Progress:
    """In a notebook a line that is written over; else tqdm's bar where it is installed, or a line an
    epoch on stderr."""

    def __init__(self, epochs: int, shown: bool) -> None:
        self._epochs, self._shown = epochs, shown
        self._bar: Any = None
        self._line: _Line | None = None
        if not shown:
            return
        display = _notebook_display()
        if display is not None:
            self._line = _Line(display)
            return
        try:
            from tqdm.auto import tqdm  # type: ignore[import-untyped, unused-ignore]
        except ImportError:
            return
        self._bar = tqdm(total=epochs, unit="epoch", ncols=WIDTH)

    def epoch(self, number: int, logs: Logs) -> None:
        """After epoch `number`, from 0 on."""
        if self._bar is not None:
            self._bar.set_postfix_str(_values(logs)[: WIDTH // 2], refresh=False)
            self._bar.update(1)
        elif self._shown:
            line = f"epoch {number + 1}/{self._epochs}  {_values(logs)}"[:WIDTH]
            if self._line is not None:
                self._line.show(line)
            else:
                sys.stderr.write(line + "\n")
                sys.stderr.flush()

    def close(self) -> None:
        """After the last epoch."""
        if self._bar is not None:
            self._bar.close()
        if self._line is not None:
            self._line.flush()


def summary(model: Any) -> Text:
    """A table of the layers, their outputs and parameters, 80 columns wide."""
    rule = "-" * WIDTH
    lines = [f"{_short(repr(model), WIDTH)}", rule, _row("layer", "output", "parameters"), rule]
    for layer in model.layers:
        lines.append(
            _row(f"{layer.name} ({type(layer).__name__})", _shape_of(layer), _parameters(layer))
        )
    trained, other = _size(model.trainable_weights), _size(model.non_trainable_weights)
    lines += [rule, f"trainable parameters {trained:,}, other {other:,}"]
    return Text("\n".join(lines))


def _short(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 2] + ".."


def _row(layer: str, output: str, parameters: str) -> str:
    return f"{_short(layer, 38):<38}  {_short(output, 24):<24}  {parameters:>14}"


def _size(variables: Any) -> int:
    return sum(math.prod(variable.shape) for variable in variables)


def _parameters(layer: Any) -> str:
    return f"{_size(layer.weights):,}" if layer.built else "not built"


def _shape_of(layer: Any) -> str:
    try:
        shape: Any = layer.get_output_shape_at(0)
    except Exception:  # a layer that was never called on symbolic tensors
        return ""
    if isinstance(shape, list) and shape and isinstance(shape[0], (tuple, list)):
        shape = shape[0]
    return "[" + ", ".join("?" if one is None else str(one) for one in shape) + "]"


def plot_history(history: History, *, text: bool | None = None, width: int = WIDTH) -> Any:
    """The losses of a training run by epoch.

    Parameters
    ----------
    history : what fit() returned.
    text : True: a plot of characters; False: a matplotlib Figure, whose absence is an ImportError;
        None: a Figure where matplotlib is installed, else characters.
    width : columns of a plot of characters.

    Examples
    --------
    >>> history = openrnn.train.History()
    >>> history.history["loss"] = [3.0, 2.0, 1.0]
    >>> print(openrnn.train.plot_history(history, text=True, width=40))
           3 |*
             |
             |
             |
             |              *
             |
             |
             |
           1 |                             *
             +------------------------------
              1                            3
    * loss
    """
    if not isinstance(history, History):
        raise TypeError(f"[plot_history] history is a {type(history).__name__}, expected a History")
    names = ("loss", "val_loss")
    curves: dict[str, list[float]] = {name: history[name] for name in names if name in history.history}
    if not curves:
        raise ArgumentError("[plot_history] the history has no epochs, expected some")
    if text:
        return text_plot(curves, width=width)
    try:
        from openrnn._fit_figure import HistoryFigure
    except ImportError:
        if text is None:
            return text_plot(curves, width=width)
        raise ImportError(
            "[plot_history] matplotlib is not installed, expected it with text=False"
        ) from None
    return HistoryFigure.of(curves, history.best_epoch)


def text_plot(curves: dict[str, list[float]], *, width: int = WIDTH, height: int = 9) -> Text:
    """Curves over 1, 2, ... as characters, no line longer than `width`."""
    if width < 19:
        raise ArgumentError(f"[plot_history] width is {width}, expected 19 or more")
    most = max(len(values) for values in curves.values())
    low = min(min(values) for values in curves.values())
    high = max(max(values) for values in curves.values())
    labels = {0: f"{high:.4g}", height - 1: f"{low:.4g}"}
    side = max(8, *map(len, labels.values()))
    columns = width - side - 2
    grid = [[" "] * columns for _ in range(height)]
    for mark, values in zip("*o+x", curves.values()):
        for i, value in enumerate(values):
            column = round(i * (columns - 1) / max(most - 1, 1))
            part = (high - value) / (high - low) if high > low else 0.5
            grid[round(part * (height - 1))][column] = mark
    lines = [f"{labels.get(i, ''):>{side}} |" + "".join(row).rstrip() for i, row in enumerate(grid)]
    lines.append(" " * (side + 1) + "+" + "-" * columns)
    lines.append(" " * (side + 2) + "1" + f"{most:>{columns - 1}}")
    lines.append("  ".join(f"{mark} {name}" for mark, name in zip("*o+x", curves)))
    return Text("\n".join(lines))
