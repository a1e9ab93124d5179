"""Savers, checkpoints and optimizers, under the names of tf.train."""

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from numpy.typing import NDArray

from openrnn import _arguments, _copies, _core
from openrnn._core import CheckpointStatus, Tensor, Variable, get_or_create_global_step
from openrnn._graph import GradientTape, trainable_variables
from openrnn._runs import Run, StepReport
from openrnn._fit_callbacks import Callback, EarlyStopping, History
from openrnn._fit_loop import evaluate, fit
from openrnn._fit_report import plot_history
from openrnn._fit_schedules import (
    ConstantSchedule,
    CosineDecay,
    ExponentialDecay,
    PiecewiseConstant,
    WarmUp,
)
from openrnn._typing import TensorLike
from openrnn.errors import ArgumentError

__all__ = [
    "AdagradOptimizer",
    "Adam",
    "AdamOptimizer",
    "AdamW",
    "Callback",
    "Checkpoint",
    "CheckpointContents",
    "CheckpointManager",
    "CheckpointState",
    "CheckpointStatus",
    "ConstantSchedule",
    "CosineDecay",
    "EarlyStopping",
    "ExponentialDecay",
    "GradientDescentOptimizer",
    "History",
    "MomentumOptimizer",
    "NetworkDescription",
    "Optimizer",
    "PiecewiseConstant",
    "RMSPropOptimizer",
    "Run",
    "Saver",
    "StepReport",
    "WarmUp",
    "describe_network",
    "evaluate",
    "fit",
    "get_checkpoint_state",
    "get_or_create_global_step",
    "latest_checkpoint",
    "list_variables",
    "load_variable",
    "plot_history",
]


# ---- Files ---------------------------------------------------------------------------------------


class CheckpointState(NamedTuple):
    """The content of a folder's `checkpoint` file."""

    model_checkpoint_path: str
    all_model_checkpoint_paths: list[str]


def get_checkpoint_state(checkpoint_dir: str | os.PathLike[str]) -> CheckpointState | None:
    """The content of the folder's `checkpoint` file; None when there is none."""
    state = _core.read_checkpoint_state(
        _arguments.as_path("get_checkpoint_state", "checkpoint_dir", checkpoint_dir)
    )
    return None if state is None else CheckpointState(*state)


def latest_checkpoint(checkpoint_dir: str | os.PathLike[str]) -> str | None:
    """The newest prefix in the folder whose files exist; None when there is none."""
    return _core.latest_checkpoint(
        _arguments.as_path("latest_checkpoint", "checkpoint_dir", checkpoint_dir)
    )


def _prefix(call: str, path: str | os.PathLike[str]) -> str:
    folder = _arguments.as_path(call, "ckpt_dir_or_file", path)
    if os.path.isdir(folder):
        latest = latest_checkpoint(folder)
        if latest is not None:
            return latest
    return folder


def list_variables(ckpt_dir_or_file: str | os.PathLike[str]) -> list[tuple[str, list[int]]]:
    """(name, shape) of each tensor in a checkpoint, sorted by name."""
    return _core.list_variables(_prefix("list_variables", ckpt_dir_or_file))


def load_variable(ckpt_dir_or_file: str | os.PathLike[str], name: str) -> NDArray[Any]:
    """The value of one tensor in a checkpoint."""
    return _core.load_variable(_prefix("load_variable", ckpt_dir_or_file), name)


class NetworkDescription(NamedTuple):
    """One recurrent network in a checkpoint.

    scope: prefix of the canonical names, '' or 'm1/cudnn_lstm'. modes: 'lstm' or 'gru'; both of
    'rnn_tanh' and 'rnn_relu', whose tensors have the same names, unless the file says which. spec:
    the sizes and options as keyword arguments, with which `openrnn.PackedModel(params,
    rnn_mode=modes[0], **spec)` is that network. raw_variable: the name of its opaque buffer in the
    file, or ''. text: a description.
    """

    scope: str
    modes: list[str]
    spec: dict[str, Any]
    raw_variable: str
    text: str


class CheckpointContents(NamedTuple):
    """The networks of a checkpoint, and sentences about tensors that only look like one."""

    networks: list[NetworkDescription]
    remarks: list[str]


def describe_network(ckpt_dir_or_file: str | os.PathLike[str]) -> CheckpointContents:
    """The recurrent networks in a checkpoint, found from names and shapes of its tensors."""
    networks, remarks = _core.describe_network(
        _prefix("describe_network", ckpt_dir_or_file)
    )
    return CheckpointContents([NetworkDescription(*network) for network in networks], remarks)


def _step(call: str, name: str, value: int | Variable) -> int:
    if isinstance(value, Variable) and value.dtype in ("int32", "int64"):
        return int(value)
    return _arguments.as_integer(call, name, value)


class Saver(_core.SaverBase):
    """Stores variables, and the canonical tensors of saveables, in TensorFlow's V2 checkpoints.

    `var_list`: a list of variables and saveables, or a dict of them by the names that they get in
    the file, or None: all variables, and the collection SAVEABLE_OBJECTS, at each save and restore.
    The newest `max_to_keep` checkpoints of this Saver are kept, all of them for None or 0.
    """

    def __init__(
        self,
        var_list: Sequence[Any] | dict[str, Any] | None = None,
        *,
        max_to_keep: int | None = 5,
    ) -> None:
        super().__init__(var_list, max_to_keep or 0)

    def save(
        self, save_path: str | os.PathLike[str], global_step: int | Variable | None = None
    ) -> str:
        """Writes SAVE_PATH, or SAVE_PATH-STEP, and names it in the folder's `checkpoint` file.

        Returns the prefix. Does not change the model.
        """
        step = None if global_step is None else _step("save", "global_step", global_step)
        return self.save_core(_arguments.as_path("save", "save_path", save_path), step)

    def restore(self, save_path: str | os.PathLike[str]) -> None:
        """Gives every variable its stored value. A failed restore changes nothing."""
        self.restore_core(_arguments.as_path("restore", "save_path", save_path))


class Checkpoint(_core.CheckpointBase):
    """Saves and restores objects under names, exchanging files with tf.train.Checkpoint.

    Objects are layers, models, cells, variables, optimizers, saveables, and lists or dicts of them.
    """

    def __init__(self, **objects: Any) -> None:
        super().__init__(objects)
        self.objects = objects

    def __getattr__(self, name: str) -> Any:
        objects = self.__dict__.get("objects", {})
        if name in objects:
            return objects[name]
        raise AttributeError(f"[Checkpoint] it has no '{name}', expected one of {list(objects)}")

    def write(self, file_prefix: str | os.PathLike[str]) -> str:
        """Writes to exactly this prefix, without counting; returns it."""
        return self.write_core(_arguments.as_path("write", "file_prefix", file_prefix))

    def save(self, file_prefix: str | os.PathLike[str]) -> str:
        """Counts, writes to FILE_PREFIX-NUMBER, names it in the `checkpoint` file; returns it."""
        return self.save_core(_arguments.as_path("save", "file_prefix", file_prefix))

    def read(self, save_path: str | os.PathLike[str]) -> CheckpointStatus:
        """Restores every variable that the file has a value for; all or nothing.

        Layers that are not built yet get their values when they are. Raises ArgumentError when
        nothing matches.
        """
        return self.read_core(_arguments.as_path("read", "save_path", save_path))

    def restore(self, save_path: str | os.PathLike[str] | None) -> CheckpointStatus:
        """read(), and the save counter. None, as latest_checkpoint() may give, does nothing."""
        if save_path is None:
            return self.restore_core(None)
        return self.restore_core(_arguments.as_path("restore", "save_path", save_path))


class CheckpointManager(_core.CheckpointManagerBase):
    """Keeps the newest checkpoints of one run in a folder, as tf.train.CheckpointManager.

    `checkpoint` is the Saver or Checkpoint that writes and restores them. Prefixes are
    DIRECTORY/CHECKPOINT_NAME-NUMBER; names of that form in the folder belong to the manager, which
    makes the folder and continues from what its `checkpoint` file lists. max_to_keep None or 0:
    all. If the process is killed, at least one checkpoint can be loaded.
    """

    def __init__(
        self,
        checkpoint: Saver | Checkpoint,
        directory: str | os.PathLike[str],
        max_to_keep: int | None = 5,
        *,
        checkpoint_name: str = "model.ckpt",
    ) -> None:
        if not isinstance(checkpoint, (Saver, Checkpoint)):
            raise TypeError(
                f"[CheckpointManager] checkpoint is a {type(checkpoint).__name__}, expected a "
                "Saver or a Checkpoint"
            )
        folder = _arguments.as_path("CheckpointManager", "directory", directory)
        super().__init__(folder, max_to_keep or 0, checkpoint_name)
        self._checkpoint = checkpoint
        self._directory = folder

    @property
    def checkpoint(self) -> Saver | Checkpoint:
        """What writes and restores."""
        return self._checkpoint

    @property
    def directory(self) -> str:
        """The folder."""
        return self._directory

    def save(self, checkpoint_number: int | Variable) -> str:
        """Writes a checkpoint of that number, names it the latest, and removes old ones.

        Returns the prefix, with a further number if one of that number is kept already.
        """
        number = _step("save", "checkpoint_number", checkpoint_number)
        if isinstance(self._checkpoint, Saver):
            return self.save_saver(self._checkpoint, number)
        return self.save_checkpoint(self._checkpoint, number)

    def restore_or_initialize(self) -> str | None:
        """Restores the latest checkpoint and returns its prefix; None when there is none."""
        latest = self.latest_checkpoint
        if latest is not None:
            self._checkpoint.restore(latest)
        return latest


# ---- Optimizers ----------------------------------------------------------------------------------

GradsAndVars = list[tuple[Tensor | None, Variable]]


class Optimizer(_core.OptimizerBase):
    """Changes variables by their gradients; slots are variables of the current graph.

    A deep copy or a pickle holds the variables that have slots as well: copied in one go with a
    model, it continues with the model's.
    """

    def __init__(self, kind: str, options: dict[str, Any]) -> None:
        super().__init__(kind, options)
        self._made = (kind, options)

    def __reduce__(self) -> tuple[Any, ...]:
        arguments = (type(self), self._made, _core.optimizer_state(self))
        return _copies.make_optimizer, arguments, dict(self.__dict__)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return _copies.deep_copy(self, memo)

    def compute_gradients(
        self, loss: Callable[[], Tensor], var_list: Sequence[Variable] | None = None
    ) -> GradsAndVars:
        """(gradient, variable) of loss() for each variable; None where it does not depend on it.

        `var_list` None: all trainable variables, those that loss() makes included.
        """
        tape, value, variables = self._record("compute_gradients", loss, var_list)
        gradients = self.compute_core(tape._tape, value, variables)
        return list(zip(gradients, variables, strict=True))

    def _record(
        self, call: str, loss: Callable[[], Tensor], var_list: Sequence[Variable] | None
    ) -> tuple[GradientTape, Tensor, list[Variable]]:
        if not callable(loss):
            raise TypeError(
                f"[{call}] loss is a {type(loss).__name__}, expected a function that returns a "
                "Tensor"
            )
        with GradientTape() as tape:
            value = loss()
        if not isinstance(value, Tensor):
            raise TypeError(
                f"[{call}] loss() returned a {type(value).__name__}, expected a Tensor"
            )
        variables = trainable_variables()
        if var_list is not None:
            variables = _arguments.as_list(call, "var_list", var_list, "variables")
        if not variables:
            raise ArgumentError(f"[{call}] there are no variables, expected some")
        return tape, value, variables

    def apply_gradients(
        self,
        grads_and_vars: Iterable[tuple[TensorLike, Variable]],
        global_step: Variable | None = None,
    ) -> None:
        """One update; a gradient None leaves its variable alone. Adds 1 to global_step."""
        pairs = [
            _arguments.as_list("apply_gradients", "an element", one, "two: gradient, variable")
            for one in _arguments.as_list("apply_gradients", "grads_and_vars", grads_and_vars, "pairs")
        ]
        if any(len(one) != 2 for one in pairs):
            raise ArgumentError(
                "[apply_gradients] an element is no pair, expected (gradient, variable)"
            )
        if not pairs:
            raise ArgumentError("[apply_gradients] there are no variables, expected some")
        if all(gradient is None for gradient, _ in pairs):
            names = [variable.name for _, variable in pairs]
            raise ArgumentError(
                f"[apply_gradients] no gradients for any variable of {names}, expected one"
            )
        self.apply_core(
            [gradient for gradient, _ in pairs], [variable for _, variable in pairs], global_step
        )

    def minimize(
        self,
        loss: Callable[[], Tensor],
        global_step: Variable | None = None,
        var_list: Sequence[Variable] | None = None,
        *,
        clip_norm: float | None = None,
    ) -> Tensor:
        """compute_gradients(), then apply_gradients(); returns the loss before the update.

        `clip_norm`: the gradients are clipped as by clip_by_global_norm in between; None: no
        clipping. With float16 variables, whose losses are scaled, a step whose gradients are not finite is skipped; else that
        is an ArgumentError, which a GPU raises at the next step or in finish().
        """
        limit = 0.0 if clip_norm is None else _arguments.as_number("minimize", "clip_norm", clip_norm)
        if clip_norm is not None and not limit > 0.0:
            raise ArgumentError(
                f"[minimize] clip_norm is {limit}, expected a number above 0, or None"
            )
        tape, value, variables = self._record("minimize", loss, var_list)
        if not value.is_tracked:
            names = [variable.name for variable in variables]
            raise ArgumentError(f"[minimize] no gradients for any variable of {names}")
        self.minimize_core(tape._tape, value, variables, global_step, limit)
        return value

    def variables(self) -> list[Variable]:
        """The slots and scalars that this optimizer has made."""
        return self.made_variables()


class GradientDescentOptimizer(Optimizer):
    """var -= lr * g."""

    def __init__(self, learning_rate: float) -> None:
        super().__init__("sgd", {"learning_rate": learning_rate})


class MomentumOptimizer(Optimizer):
    """a = momentum * a + g; var -= lr * a, with nesterov lr * g + lr * momentum * a."""

    def __init__(self, learning_rate: float, momentum: float, use_nesterov: bool = False) -> None:
        super().__init__(
            "momentum",
            {"learning_rate": learning_rate, "momentum": momentum, "use_nesterov": use_nesterov},
        )


class AdagradOptimizer(Optimizer):
    """a += g^2; var -= lr * g / sqrt(a)."""

    def __init__(self, learning_rate: float, initial_accumulator_value: float = 0.1) -> None:
        super().__init__(
            "adagrad",
            {
                "learning_rate": learning_rate,
                "initial_accumulator_value": initial_accumulator_value,
            },
        )


class RMSPropOptimizer(Optimizer):
    """ms = decay * ms + (1 - decay) * g^2; mom = momentum * mom + lr * g / sqrt(ms + epsilon);
    var -= mom. Centered: the variance in place of ms."""

    def __init__(
        self,
        learning_rate: float,
        decay: float = 0.9,
        momentum: float = 0.0,
        epsilon: float = 1e-10,
        centered: bool = False,
    ) -> None:
        super().__init__(
            "rmsprop",
            {
                "learning_rate": learning_rate,
                "decay": decay,
                "momentum": momentum,
                "epsilon": epsilon,
                "centered": centered,
            },
        )


class AdamOptimizer(Optimizer):
    """m = beta1 * m + (1 - beta1) * g; v = beta2 * v + (1 - beta2) * g^2;
    var -= lr * sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(v) + epsilon).

    TensorFlow 1's, whose epsilon stands beside the root that is not corrected ("epsilon hat" of
    Kingma and Ba). Keras's Adam is the same with epsilon 1e-7; PyTorch's is Adam.

    Examples
    --------
    >>> w = openrnn.Variable([1.0, 2.0])
    >>> openrnn.train.AdamOptimizer(0.5).apply_gradients([([3.0, -4.0], w)])
    >>> w.numpy().round(6).tolist()
    [0.5, 2.5]
    """

    def __init__(
        self,
        learning_rate: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
    ) -> None:
        super().__init__(
            "adam",
            {
                "learning_rate": learning_rate,
                "beta1": beta1,
                "beta2": beta2,
                "epsilon": epsilon,
            },
        )


class Adam(Optimizer):
    """m = beta1 * m + (1 - beta1) * g; v = beta2 * v + (1 - beta2) * g^2;
    var -= lr * m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + epsilon).

    PyTorch's torch.optim.Adam, Algorithm 1 of Kingma and Ba: epsilon stands beside the corrected
    root. AdamOptimizer, TensorFlow's, has it beside the other one.

    Examples
    --------
    >>> w = openrnn.Variable([1.0, 2.0])
    >>> openrnn.train.Adam(0.5, epsilon=3.0).apply_gradients([([3.0, -3.0], w)])
    >>> w.numpy().tolist()
    [0.75, 2.25]
    """

    def __init__(
        self,
        learning_rate: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
    ) -> None:
        super().__init__(
            "adam_w",
            {
                "learning_rate": learning_rate,
                "beta1": beta1,
                "beta2": beta2,
                "epsilon": epsilon,
                "weight_decay": 0.0,
            },
        )


class AdamW(Optimizer):
    """var *= 1 - lr * weight_decay, then an update of Adam: PyTorch's torch.optim.AdamW.

    The decay is decoupled: it is in no gradient and in neither m nor v. It is applied to every
    variable that has a gradient, biases too.

    Examples
    --------
    >>> w = openrnn.Variable([1.0, 2.0])
    >>> openrnn.train.AdamW(0.5, weight_decay=0.5).apply_gradients([([3.0, -3.0], w)])
    >>> w.numpy().tolist()
    [0.25, 2.0]
    """

    def __init__(
        self,
        learning_rate: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        weight_decay: float = 0.01,
    ) -> None:
        super().__init__(
            "adam_w",
            {
                "learning_rate": learning_rate,
                "beta1": beta1,
                "beta2": beta2,
                "epsilon": epsilon,
                "weight_decay": weight_decay,
            },
        )
