"""What fit() calls, what stops it, and what it returns."""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from openrnn import _arguments
from openrnn._fit_data import positive
from openrnn.errors import ArgumentError

Logs = dict[str, float]


class Callback:
    """What fit() calls; override any of its methods. False, returned by one, ends the training.

    `model` and `optimizer` are those of fit(), set before the first call.

    Examples
    --------
    >>> class Stop(openrnn.train.Callback):
    ...     def on_epoch_end(self, epoch, logs):
    ...         return logs["loss"] > 0.1
    """

    model: Any = None
    optimizer: Any = None

    def on_train_begin(self) -> bool | None:
        """Before the first epoch."""

    def on_epoch_begin(self, epoch: int) -> bool | None:
        """Before epoch 0, 1, ..."""

    def on_batch_end(self, step: int, logs: Logs) -> bool | None:
        """After update 1, 2, ...; logs: loss, learning_rate."""

    def on_epoch_end(self, epoch: int, logs: Logs) -> bool | None:
        """After an epoch; logs: loss, learning_rate, with validation data val_loss."""

    def on_train_end(self, history: "History") -> bool | None:
        """After the last epoch, when the best weights are restored."""


class EarlyStopping:
    """Ends the training when a loss no longer falls; the best epoch's weights stay.

    Parameters
    ----------
    patience : epochs without a better value after which training ends.
    monitor : 'val_loss' or 'loss'; None: 'val_loss' with validation data.
    min_delta : how much lower a better value is at least.
    restore_best : whether the weights at the end are those of the best epoch; it makes no
        difference why the training ended.

    Examples
    --------
    >>> openrnn.train.EarlyStopping(3, min_delta=1e-4)
    EarlyStopping(patience=3, monitor=None, min_delta=0.0001, restore_best=True)
    """

    def __init__(
        self,
        patience: int,
        monitor: Literal["val_loss", "loss"] | None = None,
        min_delta: float = 0.0,
        restore_best: bool = True,
    ) -> None:
        self.patience = positive("EarlyStopping", "patience", patience)
        if monitor not in (None, "val_loss", "loss"):
            raise ArgumentError(
                f"[EarlyStopping] monitor is {monitor!r}, expected 'val_loss', 'loss' or None"
            )
        self.monitor = monitor
        self.min_delta = _arguments.as_number("EarlyStopping", "min_delta", min_delta)
        if not (math.isfinite(self.min_delta) and self.min_delta >= 0.0):
            raise ArgumentError(
                f"[EarlyStopping] min_delta is {self.min_delta}, expected a finite number of at "
                "least 0"
            )
        self.restore_best = bool(restore_best)

    def __repr__(self) -> str:
        return (
            f"EarlyStopping(patience={self.patience}, monitor={self.monitor!r}, "
            f"min_delta={self.min_delta!r}, restore_best={self.restore_best!r})"
        )


class Best:
    """The best epoch so far, and the weights that it had."""

    def __init__(self, rule: EarlyStopping, validated: bool, weights: list[Any]) -> None:
        self.monitor = rule.monitor or ("val_loss" if validated else "loss")
        if self.monitor == "val_loss" and not validated:
            raise ArgumentError(
                "[fit] early_stopping looks at 'val_loss', expected validation data"
            )
        self._rule, self._weights = rule, weights
        self.value, self.epoch, self._worse = math.inf, -1, 0
        self._kept: list[NDArray[Any]] = []

    def goes_on(self, epoch: int, logs: Mapping[str, float]) -> bool:
        """Whether the training goes on after that epoch."""
        value = logs[self.monitor]
        if self.epoch < 0 or value < self.value - self._rule.min_delta:
            self.value, self.epoch, self._worse = value, epoch, 0
            if self._rule.restore_best:
                self._kept = [np.array(variable.numpy()) for variable in self._weights]
            return True
        self._worse += 1
        return self._worse < self._rule.patience

    def restore(self) -> None:
        """Gives the model the weights of the best epoch."""
        for variable, value in zip(self._weights, self._kept):
            variable.assign(value)


class History:
    """What fit() returns.

    history : the values of each epoch by name: 'loss', 'learning_rate', and with validation data
        'val_loss'.
    epochs, steps : how many were taken.
    best_epoch : of early stopping; None without.
    stopped : why it ended: 'done', 'patience' or 'callback'.

    Examples
    --------
    >>> layer = openrnn.layers.Dense(1, kernel_initializer="zeros")
    >>> data = np.ones((4, 2), "float32"), np.ones((4, 1), "float32")
    >>> history = openrnn.train.fit(layer, data, "mean_squared_error",
    ...                             openrnn.train.GradientDescentOptimizer(0.1), progress=False)
    >>> history["loss"], history.epochs, history.steps, history.stopped
    ([1.0], 1, 1, 'done')
    """

    def __init__(self) -> None:
        self.history: dict[str, list[float]] = {}
        self.epochs = 0
        self.steps = 0
        self.best_epoch: int | None = None
        self.stopped: Literal["done", "patience", "callback"] = "done"

    def _add(self, logs: Logs) -> None:
        self.epochs += 1
        for name, value in logs.items():
            self.history.setdefault(name, []).append(value)

    def __getitem__(self, name: str) -> list[float]:
        """The values of that name, one an epoch."""
        return self.history[name]

    def __repr__(self) -> str:
        last = ", ".join(f"{name} {values[-1]:.4g}" for name, values in self.history.items())
        return f"<openrnn history of {self.epochs} epochs, {self.steps} steps: {last}>"


class Callbacks:
    """All callbacks of a fit() as one."""

    def __init__(self, given: Any, model: Any, optimizer: Any) -> None:
        if given is None:
            given = ()
        elif isinstance(given, Callback) or not isinstance(given, Iterable):
            given = (given,)
        self._all: list[Any] = []
        for one in given:
            if not (isinstance(one, Callback) or callable(one)):
                raise TypeError(
                    f"[fit] a callback is a {type(one).__name__}, expected a train.Callback or a "
                    "function (epoch, logs)"
                )
            if isinstance(one, Callback):
                one.model, one.optimizer = model, optimizer
            self._all.append(one)

    def call(self, event: str, *arguments: Any) -> bool:
        """Whether all of them want to go on."""
        said = []
        for one in self._all:
            if isinstance(one, Callback):
                said.append(getattr(one, event)(*arguments))
            elif event == "on_epoch_end":
                function: Callable[..., Any] = one
                said.append(function(*arguments))
        return all(each is None or bool(each) for each in said)
