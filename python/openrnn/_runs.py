"""A whole training run: data, model, optimizer, checkpoints and events."""

import json
import os
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Literal

from openrnn import _arguments, _core
from openrnn._communicators import ReductionCost, as_communicator
from openrnn._fit_processes import as_reduction
from openrnn._core import StepReport
from openrnn._typing import DTypeLike, Math

__all__ = ["Run", "StepReport"]

Path = str | os.PathLike[str]


def _columns(columns: Sequence[str | int] | None) -> list[str] | None:
    if columns is None:
        return None
    given = _arguments.as_list("Run", "columns", columns, "names or numbers")
    return [one if isinstance(one, str) else str(_arguments.as_integer("Run", "a column", one))
            for one in given]  # fmt: skip


class Run(_core.RunBase):
    """A training run as `openrnn train` makes it; either of them resumes the other's.

    The model is an embedding (texts), recurrent layers and a dense layer. A run that was stopped and
    resumed, in any process and with any number of threads, ends with the same bits as an
    uninterrupted one. It lives in a graph of its own.

    out: folder of the checkpoints and of the TensorBoard events; one run at a time uses it.
    resume: continue the run in `out`; if there is none, a new one starts.

    The other options are those of the tool. None stands for the value of the run to resume, in a new
    run for the default.

    task: 'text', a next-symbol model, or 'series', a forecast of the columns of a CSV file. input:
    the file to train on. valid: a text to validate on, else the last part of the input, of which
    valid_fraction (0.05 of a text, 0.2 of a series) is held out. level: 'byte' or 'char', the symbols
    of a text. columns (all), horizon (1 row ahead), target ('sequence': a forecast after each row of
    a window, 'one': after its last): of a series.
    cell ('lstm', 'gru', 'rnn_tanh', 'rnn_relu'), layers (1), units (256; series 32), embedding (64,
    0 is one-hot), dropout (0), dtype ('float32'), math ('float32'), seed (0): the model. Any other
    option of a network goes by its name (openrnn.network_options()) but input_size, direction and
    weights_dtype: cell_clip, forget_bias, ...
    batch (32), seq_len (100; series 24), epochs (10, but 500 to 20000 steps) or steps, optimizer
    ('adam'), lr (0.004; 'sgd', 'momentum', 'nesterov' 0.5, 'adagrad' 0.05), lr_schedule ('cosine',
    'exponential', 'constant'), warmup (1/20 of the steps, at most 100), clip_norm (1, 0 is off),
    micro_batches (1: parts of each step's batch, to save memory), valid_every (1/20 of the steps),
    patience (0: never stop early): the optimization.
    save_steps, save_seconds: checkpoints are saved at these intervals, 0 is never, and at both ends.
    keep: how many stay, 0 is all. recompute: keep less memory for gradients and compute the rest
    again, in chunks of so many time steps, rounded up to a multiple of 32; 0 is off. device: 'cpu',
    'gpu:0', ...; a run resumes on any.
    communicator: the processes that train together, each with these options and one `out`: 'mpi',
    'nccl', a process group of torch.distributed, a communicator of mpi4py, a `Communicator`; None is
    this one alone. reduction: of their gradients, 'exact' (the same bits for any number of
    processes) or 'fast'. Each computes its share of the micro_batches, a power of two; rank 0 saves
    and validates. overlap: gradients of the last layers travel while those below are computed, by
    one more thread of each process; for 'mpi' and 'nccl'.

    Raises ArgumentError for an option out of range, for one that differs from the run to resume (it
    names the option and both values), for other data than that run's, and for an `out` that holds a
    run when `resume` is False; StateError when a run is using `out`.

    Examples
    --------
    >>> with open("text", "w") as file:
    ...     for line in range(50):
    ...         print("to be or not to be, that is the question", file=file)
    >>> with openrnn.train.Run("run", input="text", units=8, steps=3, batch=2, seq_len=10) as run:
    ...     run.train(), run.step
    ('done', 3)
    >>> with openrnn.train.Run("run", input="text", resume=True) as run:
    ...     run.resumed_from
    'run/model.ckpt-3'
    """

    def __init__(
        self,
        out: Path,
        *,
        resume: bool = False,
        task: Literal["text", "series"] | None = None,
        input: Path | None = None,
        valid: Path | None = None,
        valid_fraction: float | None = None,
        level: Literal["byte", "char"] | None = None,
        columns: Sequence[str | int] | None = None,
        horizon: int | None = None,
        target: Literal["one", "sequence"] | None = None,
        cell: Literal["lstm", "gru", "rnn_tanh", "rnn_relu"] | None = None,
        layers: int | None = None,
        units: int | None = None,
        embedding: int | None = None,
        dropout: float | None = None,
        dtype: DTypeLike | None = None,
        math: Math | None = None,
        seed: int | None = None,
        batch: int | None = None,
        seq_len: int | None = None,
        epochs: int | None = None,
        steps: int | None = None,
        optimizer: str | None = None,
        lr: float | None = None,
        lr_schedule: Literal["constant", "exponential", "cosine"] | None = None,
        warmup: int | None = None,
        clip_norm: float | None = None,
        micro_batches: int | None = None,
        valid_every: int | None = None,
        patience: int | None = None,
        save_steps: int = 0,
        save_seconds: float = 20.0,
        keep: int = 5,
        recompute: int = 0,
        device: str | None = None,
        communicator: Any = None,
        reduction: Literal["exact", "fast"] = "exact",
        overlap: bool = False,
        **network: Any,
    ) -> None:
        options = dict(locals())
        del options["self"], options["__class__"]
        named = ("cell", "layers", "units", "dropout", "dtype", "math", "seed")
        options["network"] = {**network, **{name: options.pop(name) for name in named}}
        options["out"] = _arguments.as_path("Run", "out", out)
        for name in ("input", "valid"):
            if options[name] is not None:
                options[name] = _arguments.as_path("Run", name, options[name])
        options["columns"] = _columns(columns)
        options["communicator"] = as_communicator("Run", communicator)
        options["reduction"] = as_reduction("Run", reduction)
        options["overlap"] = overlap
        super().__init__(options)

    def train(
        self, callback: Callable[[StepReport], bool | None] | None = None
    ) -> Literal["done", "patience", "callback"]:
        """Trains to the last step, or until patience or `callback` ends it; says which.

        Saves before the first step, at the intervals of save_steps and save_seconds, and at the end.
        `callback` is called after each step; False ends the run after it. So does what the callback
        raises, and Ctrl-C: the exception is raised again when the run is saved. Can be called again
        to continue. Of several processes each calls its own, and one ends the run for all.

        Raises ArgumentError for a loss or gradients that are not finite, IoError.
        """
        return self.train_core(callback)  # type: ignore[return-value]

    def save(self) -> str:
        """Saves a checkpoint; returns its prefix, OUT/model.ckpt-STEP."""
        return self.save_core()

    def validate(self) -> float:
        """The metric on all held-out data.

        Bits per byte of a text; of a series the root mean squared error in units of the columns'
        standard deviations. Does not affect training.
        """
        return self.validate_core()

    def close(self) -> None:
        """Gives `out` to others, without a save. A `with` block does it at its end."""
        self.close_core()

    def __enter__(self) -> "Run":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def reduction_cost(self) -> ReductionCost:
        """What the sums of gradients of several processes have cost this one."""
        return ReductionCost(*self.reduction_cost_core())

    @property
    def config(self) -> dict[str, Any]:
        """Everything that decides the bits of the run, as its checkpoints store it."""
        config: dict[str, Any] = json.loads(self.config_json)
        return config
