"""The training loop: fit(), evaluate() and predict()."""

import math
import os
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from openrnn import _arguments, _core
from openrnn._core import Tensor, Variable
from openrnn._graph import GradientTape
from openrnn._layer import Layer
from openrnn._optimizers import Optimizer
from openrnn._structure import flatten, pack
from openrnn._fit_callbacks import Best, Callback, Callbacks, EarlyStopping, History, Logs
from openrnn._fit_data import (
    Arrays, Axes, Batch, BatchRows, Data, Samples, as_axes, as_data, pieces, positive,
)  # fmt: skip
from openrnn._fit_processes import Processes
from openrnn._fit_report import Progress
from openrnn._fit_schedules import Schedule, as_schedule
from openrnn.errors import ArgumentError, UnsupportedError

#: A function (labels, predictions) of openrnn.losses by name, or any that returns a scalar Tensor.
Loss = str | Callable[[Any, Any], Tensor]


def as_loss(call: str, loss: Any) -> Callable[[Any, Any], Tensor]:
    """The function of a name."""
    from openrnn import losses

    known = [name for name, one in vars(losses).items()
             if callable(one) and getattr(one, "__module__", "") == losses.__name__]  # fmt: skip
    if isinstance(loss, str):
        if loss not in known:
            raise ArgumentError(f"[{call}] loss is {loss!r}, expected one of {sorted(known)}")
        function: Callable[[Any, Any], Tensor] = getattr(losses, loss)
        return function
    if not callable(loss):
        raise TypeError(
            f"[{call}] loss is a {type(loss).__name__}, expected a name or a function of labels and "
            "predictions"
        )
    return loss  # type: ignore[no-any-return]


def _outputs(model: Any, x: Any, training: bool) -> Any:
    """What the model makes of a batch; `training` goes where call() takes it."""
    switches: dict[str, Any] = {}
    model._retrained([], switches, training)
    return model(x, **switches)


class _Trained:
    """A model with its loss."""

    def __init__(self, call: str, model: Any, loss: Any) -> None:
        if not isinstance(model, Layer):
            raise TypeError(
                f"[{call}] model is a {type(model).__name__}, expected a layer or a Model"
            )
        self._call, self._model, self._loss = call, model, as_loss(call, loss)

    def loss(self, batch: Batch, training: bool, part: bool = False) -> Tensor:
        """The loss of a batch, or a part of it; in training with the losses of the layers."""
        value = self._loss(batch.y, _outputs(self._model, batch.x, training))
        if not isinstance(value, Tensor):
            raise TypeError(
                f"[{self._call}] the loss returned a {type(value).__name__}, expected a Tensor"
            )
        if math.prod(size or 0 for size in value.shape) != 1:
            raise ArgumentError(
                f"[{self._call}] the loss has shape {tuple(value.shape)}, expected one number: the "
                "mean over the batch"
            )
        if training:
            if part and _core.layer_has_call_losses(self._model):
                # Most are sums over the samples, and a mean has no other weight.
                raise UnsupportedError(
                    "[fit] a layer adds a loss of its call (activity_regularizer, add_loss) in a "
                    "part of a batch, expected micro_batches 1, or that loss in `loss` as a mean "
                    "over the batch"
                )
            for one in self._model.losses:
                value = value + one
        return value

    def mean(self, data: Data) -> float:
        """The mean over all samples, with training off."""
        total, samples = 0.0, 0
        for batch in data.batches(None):
            total += finite(self._call, self.loss(batch, False), "of a batch") * batch.size
            samples += batch.size
        return total / samples


def finite(call: str, value: Tensor, where: str) -> float:
    """The number. Raises ArgumentError when it is NaN or infinite."""
    number = float(value)
    if not math.isfinite(number):
        raise ArgumentError(
            f"[{call}] the loss {where} is {number}, expected a finite one (a lower learning rate "
            "or clip_norm may help)"
        )
    return number


class _Updates:
    """One update of the weights from one batch, whole or in parts."""

    def __init__(
        self,
        trained: _Trained,
        model: Any,
        optimizer: Any,
        clip_norm: float,
        parts: int,
        axes: Axes,
        processes: Processes,
    ) -> None:
        self._trained, self.model, self.optimizer = trained, model, optimizer
        self._processes = processes
        self._clip_norm, self._parts, self._axes = clip_norm, parts, axes
        self.steps = 0

    def _recorded(self, batch: Batch, part: bool = False) -> tuple[GradientTape, Tensor]:
        with GradientTape() as tape:
            value = self._trained.loss(batch, True, part)
        return tape, value

    def _variables(self, value: Tensor) -> list[Variable]:
        variables: list[Variable] = self.model.trainable_weights
        if not variables:
            raise ArgumentError("[fit] the model has no trainable weights, expected some")
        if not value.is_tracked:
            names = [variable.name for variable in variables]
            raise ArgumentError(f"[fit] the loss depends on none of the weights {names}")
        return variables

    def take(self, batch: Batch) -> float:
        """An update; returns the mean loss before it."""
        if self._parts == 1:
            tape, value = self._recorded(batch)
            number = finite("fit", value, f"of step {self.steps + 1}")
            variables = self._variables(value)
            self.optimizer.minimize_core(tape._tape, value, variables, None, self._clip_norm)
        else:
            number = self._take_parts(batch)
        self.steps += 1
        return number

    def _take_parts(self, batch: Batch) -> float:
        whole, step, first = _core.PartsOfStep(), _core.new_step_of_parts(), 0
        cut, own, some = BatchRows(batch, self._axes), self._processes.own_of(self._parts), False
        # Those without rows are the last ones.
        for index in range(min(own.stop, batch.size)):
            rows = _core.rows_of_part(batch.size, self._parts, index)
            if index in own:
                with _core.PartScope(first, rows, batch.size, step):
                    tape, value = self._recorded(cut.part(first, rows), True)
                    whole.add(
                        self.optimizer, tape._tape, value, self._variables(value), rows / batch.size
                    )
                some = True
            first += rows
        if not some:
            # The layers count the step's masks all the same, as those of the other processes do.
            rows = _core.rows_of_part(batch.size, self._parts, 0)
            with _core.PartScope(0, rows, batch.size, step):
                self._trained.loss(cut.part(0, rows), True, True)
        variables: list[Variable] = self.model.trainable_weights
        total = whole.take(self._processes.group, some, variables)
        number = finite("fit", total, f"of step {self.steps + 1}")
        whole.apply(self.optimizer, variables, self._clip_norm)
        return number


class _Events:
    """TensorBoard's events of a run."""

    def __init__(self, folder: str | os.PathLike[str] | None) -> None:
        self._writer: Any = None
        if folder is not None:
            path = _arguments.as_path("fit", "tensorboard", folder)
            os.makedirs(path, exist_ok=True)
            self._writer = _core.EventWriter(path)

    def add(self, step: int, logs: Logs) -> None:
        if self._writer is None:
            return
        tags = {"loss": "train/loss", "val_loss": "valid/loss"}
        for name, value in logs.items():
            self._writer.add_scalar(tags.get(name, name), step, value)
        self._writer.flush()


def fit(
    model: Any,
    data: Any,
    loss: Loss,
    optimizer: Optimizer,
    epochs: int = 1,
    *,
    validation: Any = None,
    callbacks: Any = None,
    early_stopping: EarlyStopping | int | None = None,
    progress: bool = True,
    tensorboard: str | os.PathLike[str] | None = None,
    micro_batches: int = 1,
    clip_norm: float | None = None,
    schedule: Schedule | float | None = None,
    batch_size: int = 32,
    seed: int = 0,
    shuffle: bool = True,
    batch_axis: int | tuple[int, int] = 0,
    steps_per_epoch: int | None = None,
    communicator: Any = None,
    reduction: Literal["exact", "fast"] = "exact",
) -> History:
    """Trains any layer or model; the same arguments and weights give the same bits.

    Parameters
    ----------
    model : a layer, `Model` or loaded model, which is called on x with training on.
    data : arrays (x, y) in a tuple, a list of inputs as x where the model has several; or an
        iterable of batches (x, y), or a function that returns one for each epoch.
    loss : a function of openrnn.losses by name, or any function (y, outputs) that returns the mean
        loss of the batch as a Tensor. The losses of the layers are added.
    optimizer : of openrnn.train.
    epochs : passes over the data.
    validation : data as `data`; its loss is computed after each epoch with training off.
    callbacks : `Callback` objects or functions (epoch, logs), one or several; False ends the run.
    early_stopping : an `EarlyStopping`, or its patience in epochs.
    progress : in a notebook one line, written over; else tqdm's bar where it is installed, or a line
        an epoch on stderr; False: nothing is printed.
    tensorboard : a folder for event files: train/loss, valid/loss, learning_rate by step.
    micro_batches : parts into which each batch is cut to save memory, a divisor of batch_size; a
        batch of another size is cut into parts that differ by at most one sample. The update is that
        of the whole batch, with the same masks of layers and cells, up to the order of sums, which
        the number of parts alone decides. Not with layers that compute across the samples.
    clip_norm : gradients are clipped to this global norm; None: not.
    schedule : a learning rate for each step of this call, or one for all; None: the optimizer's.
    batch_size : samples of a batch of arrays; the last one of an epoch may have fewer.
    seed : of the order of the samples.
    shuffle : a new order of the samples of arrays in each epoch.
    batch_axis : the axis of the samples, or (of x, of y): (1, 0) for time-major x [T, B, I] and
        y [B, ..].
    steps_per_epoch : batches of an epoch from an iterator that does not end.
    communicator : the processes that train together, each with these arguments: 'mpi',
        'nccl', a process group of torch.distributed, a communicator of mpi4py, a `Communicator`;
        None: this one alone. Each computes its share of the micro_batches, a power of two, and all have the same weights
        and history. Rank 0 validates, shows the progress and writes events.
    reduction : of their gradients, 'exact': the same bits for any number of processes; 'fast': by
        the communicator's own sum.

    Returns
    -------
    History
        Its losses are means over the samples of an epoch, each before its update.

    Raises
    ------
    ArgumentError
        A loss or gradient that is not finite (that update is not taken), shapes that do not fit, no
        data.

    Examples
    --------
    >>> x = np.linspace(-1, 1, 60, dtype="float32").reshape(20, 3)
    >>> y = x.sum(axis=1, keepdims=True)
    >>> model = openrnn.layers.Dense(1, kernel_initializer="zeros")
    >>> history = openrnn.train.fit(model, (x, y), "mean_squared_error",
    ...                             openrnn.train.AdamW(0.1), epochs=60, progress=False)
    >>> history["loss"][-1] < 0.01 * history["loss"][0]
    True
    """
    axes = as_axes("fit", batch_axis)
    epochs = positive("fit", "epochs", epochs)
    batch_size = positive("fit", "batch_size", batch_size)
    parts = positive("fit", "micro_batches", micro_batches)
    steps = None if steps_per_epoch is None else positive("fit", "steps_per_epoch", steps_per_epoch)
    source = as_data("fit", data, batch_size, axes, steps, epochs)
    if parts > 1:
        _check_parts(source, parts, batch_size, axes)
    held_out = None
    if validation is not None:
        held_out = as_data("fit, validation", validation, batch_size, axes, None, epochs)
    limit = 0.0 if clip_norm is None else _arguments.as_number("fit", "clip_norm", clip_norm)
    if clip_norm is not None and not (limit > 0.0 and math.isfinite(limit)):
        raise ArgumentError(f"[fit] clip_norm is {limit}, expected a finite number above 0, or None")
    if not isinstance(optimizer, _core.OptimizerBase):
        raise TypeError(
            f"[fit] optimizer is a {type(optimizer).__name__}, expected one of openrnn.train"
        )
    order = None
    if shuffle and isinstance(source, Arrays):
        # Its stream is the same in every version of NumPy.
        order = np.random.RandomState(_arguments.as_integer("fit", "seed", seed) % 2**32)
    trained = _Trained("fit", model, loss)
    processes = Processes(communicator, reduction, parts)
    updates = _Updates(trained, model, optimizer, limit, parts, axes, processes)
    run = _Run(trained, updates, source, held_out, order, processes)
    run.rates = None if schedule is None else as_schedule("fit", schedule)
    run.callbacks = Callbacks(callbacks, model, optimizer)
    run.rule = _rule(early_stopping)
    speaks = processes.first
    events = _Events(tensorboard if speaks else None)
    shown = Progress(epochs, bool(progress) and speaks)
    try:
        with processes:
            processes.require_same_weights(model)
            return run.train(epochs, events, shown)
    finally:
        shown.close()


def _check_parts(data: Data, parts: int, batch_size: int, axes: Axes) -> None:
    if isinstance(data, Arrays) and batch_size % parts != 0:
        raise ArgumentError(
            f"[fit] micro_batches is {parts} with a batch_size of {batch_size}, expected a divisor "
            "of it"
        )
    if axes.x > 1:
        raise ArgumentError(
            f"[fit] micro_batches is {parts} with x's batch_axis {axes.x}, expected an axis of 0 or 1"
        )


def _rule(given: Any) -> EarlyStopping | None:
    if given is None or isinstance(given, EarlyStopping):
        return given
    return EarlyStopping(positive("fit", "early_stopping", given))


class _Run:
    """One call of fit()."""

    rates: Schedule | None = None
    rule: EarlyStopping | None = None
    callbacks: Callbacks

    def __init__(
        self,
        trained: _Trained,
        updates: _Updates,
        data: Data,
        held_out: Data | None,
        order: np.random.RandomState | None,
        processes: Processes,
    ) -> None:
        self._processes = processes
        self._trained, self._updates = trained, updates
        self._data, self._held_out, self._order = data, held_out, order
        self._model, self._optimizer = updates.model, updates.optimizer

    def train(self, epochs: int, events: _Events, progress: Progress) -> History:
        """All epochs."""
        history, best = History(), None
        go_on = self.callbacks.call("on_train_begin")
        for epoch in range(epochs):
            go_on = go_on and self.callbacks.call("on_epoch_begin", epoch)
            if not self._processes.goes_on(go_on):
                history.stopped = "callback"
                break
            logs, go_on = self._epoch()
            history._add(logs)
            history.steps = self._updates.steps
            events.add(history.steps, logs)
            progress.epoch(epoch, logs)
            go_on = self.callbacks.call("on_epoch_end", epoch, dict(logs)) and go_on
            go_on = self._processes.goes_on(go_on)
            if self.rule is not None:
                if best is None:
                    best = Best(self.rule, self._held_out is not None, self._model.weights)
                if not best.goes_on(epoch, logs):
                    history.stopped = "patience"
                    break
            if not go_on:
                history.stopped = "callback"
                break
        self._optimizer.finish()
        if best is not None:
            history.best_epoch = best.epoch
            best.restore()
        self.callbacks.call("on_train_end", history)
        return history

    def _epoch(self) -> tuple[Logs, bool]:
        order = None
        if self._order is not None and isinstance(self._data, Arrays):
            order = self._order.permutation(self._data.samples)
        total, samples, go_on = 0.0, 0, True
        for batch in self._data.batches(order):
            if self.rates is not None:
                self._optimizer.learning_rate = self.rates(self._updates.steps)
            value = self._updates.take(batch)
            total, samples = total + value * batch.size, samples + batch.size
            step = {"loss": value, "learning_rate": self._optimizer.learning_rate}
            said = self.callbacks.call("on_batch_end", self._updates.steps, step)
            if not self._processes.goes_on(said):
                go_on = False
                break
        logs = {"loss": total / samples, "learning_rate": self._optimizer.learning_rate}
        if self._held_out is not None:
            held_out = self._held_out
            logs["val_loss"] = self._processes.number_of_first(lambda: self._trained.mean(held_out))
        return logs, go_on


def evaluate(
    model: Any,
    data: Any,
    loss: Loss,
    *,
    batch_size: int = 32,
    batch_axis: int | tuple[int, int] = 0,
) -> float:
    """The mean loss over all samples, with training off; the losses of layers are not in it.

    data, loss, batch_axis: as of fit().

    Examples
    --------
    >>> layer = openrnn.layers.Dense(1, kernel_initializer="zeros")
    >>> x, y = np.ones((5, 2), "float32"), np.full((5, 1), 3.0, "float32")
    >>> openrnn.train.evaluate(layer, (x, y), "mean_squared_error", batch_size=2)
    9.0
    """
    axes = as_axes("evaluate", batch_axis)
    size = positive("evaluate", "batch_size", batch_size)
    source = as_data("evaluate", data, size, axes, None, 1)
    return _Trained("evaluate", model, loss).mean(source)


def predict(model: Any, x: Any, batch_size: int | None, batch_axis: int | tuple[int, int]) -> Any:
    """The outputs as NumPy arrays, with training off, computed in batches."""
    if batch_size is None:
        return _as_arrays(_outputs(model, x, False))
    axes = as_axes("predict", batch_axis)
    size = positive("predict", "batch_size", batch_size)
    samples, parts = Samples("predict", "x", x, axes.x), []
    for rows in pieces(np.arange(samples.count), size):
        part = _as_arrays(_outputs(model, samples.take(rows), False))
        for array in flatten(part):
            if array.ndim <= axes.y or array.shape[axes.y] != len(rows):
                raise ArgumentError(
                    f"[predict] an output of {len(rows)} samples has shape {array.shape}, expected "
                    f"them along axis {axes.y} (batch_axis)"
                )
        parts.append(part)
    columns = zip(*(flatten(part) for part in parts))
    return pack(parts[0], iter([np.concatenate(column, axis=axes.y) for column in columns]))


def _as_arrays(outputs: Any) -> Any:
    return pack(outputs, iter([tensor.numpy() for tensor in flatten(outputs)]))


__all__ = ["Callback", "Loss", "evaluate", "fit", "predict"]
