"""Savers, checkpoints and optimizers, under the names of tf.train."""

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

from numpy.typing import NDArray

from openrnn import _arguments, _core
from openrnn._core import CheckpointStatus, Variable, get_or_create_global_step
from openrnn._optimizers import (
    AdagradOptimizer,
    Adam,
    AdamOptimizer,
    AdamW,
    GradientDescentOptimizer,
    MomentumOptimizer,
    Optimizer,
    RMSPropOptimizer,
)
from openrnn._communicators import Communicator, ReductionCost, nccl_communicator
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
    "Communicator",
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
    "ReductionCost",
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
    "nccl_communicator",
    "plot_history",
]


# ---- Files ---------------------------------------------------------------------------------------


class CheckpointState(NamedTuple):
    """The content of a folder's `checkpoint` file.

    Examples
    --------
    >>> w = openrnn.Variable(1.0, name="w")
    >>> saver = openrnn.train.Saver([w])
    >>> [saver.save("model", step) for step in (1, 2)]
    ['model-1', 'model-2']
    >>> openrnn.train.get_checkpoint_state(".").all_model_checkpoint_paths
    ['model-1', 'model-2']
    """

    model_checkpoint_path: str
    all_model_checkpoint_paths: list[str]


def get_checkpoint_state(checkpoint_dir: str | os.PathLike[str]) -> CheckpointState | None:
    """The content of the folder's `checkpoint` file; None when there is none.

    Examples
    --------
    >>> openrnn.train.get_checkpoint_state(".") is None
    True
    >>> w = openrnn.Variable(1.0, name="w")
    >>> prefix = openrnn.train.Saver([w]).save("model", 1)
    >>> openrnn.train.get_checkpoint_state(".").model_checkpoint_path
    'model-1'
    """
    state = _core.read_checkpoint_state(
        _arguments.as_path("get_checkpoint_state", "checkpoint_dir", checkpoint_dir)
    )
    return None if state is None else CheckpointState(*state)


def latest_checkpoint(checkpoint_dir: str | os.PathLike[str]) -> str | None:
    """The newest prefix in the folder whose files exist; None when there is none.

    Examples
    --------
    >>> w = openrnn.Variable(1.0, name="w")
    >>> saver = openrnn.train.Saver([w])
    >>> prefixes = [saver.save("model", step) for step in (1, 2)]
    >>> openrnn.train.latest_checkpoint(".")
    'model-2'
    """
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
    """(name, shape) of each tensor in a checkpoint, sorted by name.

    Examples
    --------
    >>> w = openrnn.Variable([[1.0, 2.0]], name="w")
    >>> openrnn.train.list_variables(openrnn.train.Saver([w]).save("model"))
    [('w', [1, 2])]
    """
    return _core.list_variables(_prefix("list_variables", ckpt_dir_or_file))


def load_variable(ckpt_dir_or_file: str | os.PathLike[str], name: str) -> NDArray[Any]:
    """The value of one tensor in a checkpoint.

    Examples
    --------
    >>> w = openrnn.Variable([[1.0, 2.0]], name="w")
    >>> openrnn.train.load_variable(openrnn.train.Saver([w]).save("model"), "w")
    array([[1., 2.]], dtype=float32)
    """
    return _core.load_variable(_prefix("load_variable", ckpt_dir_or_file), name)


class NetworkDescription(NamedTuple):
    """One recurrent network in a checkpoint.

    scope: prefix of the canonical names, '' or 'm1/cudnn_lstm'. modes: 'lstm' or 'gru'; both of
    'rnn_tanh' and 'rnn_relu', whose tensors have the same names, unless the file says which. spec:
    the sizes and options as keyword arguments, with which `openrnn.PackedModel(params,
    rnn_mode=modes[0], **spec)` is that network. raw_variable: the name of its opaque buffer in the
    file, or ''. text: a description.

    Examples
    --------
    >>> lstm = openrnn.cudnn_rnn.CudnnLSTM(1, 4, name="encoder")
    >>> lstm.build((None, None, 3))
    >>> prefix = openrnn.train.Saver().save("model")
    >>> network = openrnn.train.describe_network(prefix).networks[0]
    >>> network.modes, network.spec["num_units"], network.raw_variable
    (['lstm'], 4, 'encoder/opaque_kernel')
    """

    scope: str
    modes: list[str]
    spec: dict[str, Any]
    raw_variable: str
    text: str


class CheckpointContents(NamedTuple):
    """The networks of a checkpoint, and sentences about tensors that only look like one.

    Examples
    --------
    >>> w = openrnn.Variable(1.0, name="w")
    >>> openrnn.train.describe_network(openrnn.train.Saver([w]).save("model"))
    CheckpointContents(networks=[], remarks=[])
    """

    networks: list[NetworkDescription]
    remarks: list[str]


def describe_network(ckpt_dir_or_file: str | os.PathLike[str]) -> CheckpointContents:
    """The recurrent networks in a checkpoint, found from names and shapes of its tensors.

    Examples
    --------
    >>> gru = openrnn.cudnn_rnn.CudnnGRU(2, 4)
    >>> gru.build((None, None, 3))
    >>> prefix = openrnn.train.Saver().save("model")
    >>> print(openrnn.train.describe_network(prefix).networks[0].text)
    gru, 2 layers, 4 units, input size 3, unidirectional, float32
    """
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

    Examples
    --------
    >>> w = openrnn.Variable([1.0, 2.0], name="w")
    >>> saver = openrnn.train.Saver([w], max_to_keep=2)
    >>> prefix = saver.save("model", global_step=7)
    >>> w = w.assign([0.0, 0.0])
    >>> saver.restore(prefix)
    >>> prefix, w.numpy().tolist(), saver.last_checkpoints
    ('model-7', [1.0, 2.0], ['model-7'])
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

    Examples
    --------
    >>> dense = openrnn.layers.Dense(2, kernel_initializer="ones")
    >>> dense.build((None, 3))
    >>> prefix = openrnn.train.Checkpoint(layer=dense).save("model")
    >>> other = openrnn.layers.Dense(2)
    >>> status = openrnn.train.Checkpoint(layer=other).restore(prefix)
    >>> other(np.ones((1, 3), "float32")).numpy()
    array([[3., 3.]], dtype=float32)
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

    Examples
    --------
    >>> w = openrnn.Variable(1.0, name="w")
    >>> manager = openrnn.train.CheckpointManager(
    ...     openrnn.train.Saver([w]), "checkpoints", max_to_keep=2)
    >>> for step in range(3):
    ...     prefix = manager.save(step)
    >>> manager.checkpoints
    ['checkpoints/model.ckpt-1', 'checkpoints/model.ckpt-2']
    >>> manager.restore_or_initialize()
    'checkpoints/model.ckpt-2'
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
