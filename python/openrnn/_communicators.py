"""Communicators: what several processes that train one model talk by."""

# PyTorch and mpi4py are not there where types are checked.
# mypy: disable-error-code="import-not-found"

import atexit
import sys
from typing import Any, NamedTuple, Protocol

from numpy.typing import NDArray

from openrnn import _arguments, _core
from openrnn.errors import ArgumentError

CALLS = ("all_to_all", "all_gather", "all_reduce", "broadcast", "barrier", "abort")


class Communicator(Protocol):
    """What `communicator=` of `train.Run` and `fit` takes from any other library.

    One of `size` processes (or threads) that call the same functions in the same order. Arrays are
    of NumPy and one dimension, and those to send must not be changed. A call that fails raises.

    Examples
    --------
    >>> class Alone:
    ...     rank, size = 0, 1
    ...     def all_to_all(self, send, receive): receive[:] = send
    ...     def all_gather(self, send, receive): receive[:] = send
    ...     def all_reduce(self, values): pass
    ...     def broadcast(self, data, root): pass
    ...     def barrier(self): pass
    ...     def abort(self, why): pass
    >>> x = np.ones((4, 2), "float32")
    >>> openrnn.train.fit(openrnn.layers.Dense(1, kernel_initializer="zeros"), (x, x[:, :1]),
    ...                   "mean_squared_error", openrnn.train.Adam(0.1), progress=False,
    ...                   communicator=Alone())["loss"]
    [1.0]
    """

    @property
    def rank(self) -> int:
        """0 to size - 1."""
        ...

    @property
    def size(self) -> int:
        """The number of processes."""
        ...

    def all_to_all(self, send: NDArray[Any], receive: NDArray[Any]) -> None:
        """Bytes, `size` equal pieces each: piece i goes to and comes from rank i."""
        ...

    def all_gather(self, send: NDArray[Any], receive: NDArray[Any]) -> None:
        """Bytes: what each rank sends becomes its piece of `receive`."""
        ...

    def all_reduce(self, values: NDArray[Any]) -> None:
        """The sum over the ranks, float32 or float64, takes the place of `values`."""
        ...

    def broadcast(self, data: NDArray[Any], root: int) -> None:
        """The bytes of rank `root` take the place of those of the others."""
        ...

    def barrier(self) -> None:
        """Returns when all ranks have called it."""
        ...

    def abort(self, why: str) -> None:
        """Ends the calls of the other ranks, as far as this library can."""
        ...


class ReductionCost(NamedTuple):
    """What the sums of gradients of several processes have cost this one.

    steps; bytes: sent to the others; seconds: in messages and sums; seconds_waited: until the
    slowest process had its gradients; seconds_overlapped: of `seconds`, those while the backward
    pass went on.

    Examples
    --------
    >>> openrnn.train.ReductionCost(2, 64, 0.5, 0.25, seconds_overlapped=0.1).bytes
    64
    """

    steps: int
    bytes: int
    seconds: float
    seconds_waited: float
    seconds_overlapped: float


class _TorchGroup:
    """A process group of torch.distributed, with a backend for tensors of the host (gloo, mpi)."""

    def __init__(self, group: Any) -> None:
        import torch
        import torch.distributed as dist

        self._torch, self._dist, self._group = torch, dist, group
        self.rank: int = dist.get_rank(group)
        self.size: int = dist.get_world_size(group)

    def _tensor(self, array: NDArray[Any]) -> Any:
        if not array.flags.writeable:
            array = array.copy()  # PyTorch has no tensors that are only read
        return self._torch.from_numpy(array)

    def all_to_all(self, send: NDArray[Any], receive: NDArray[Any]) -> None:
        self._dist.all_to_all_single(self._tensor(receive), self._tensor(send), group=self._group)

    def all_gather(self, send: NDArray[Any], receive: NDArray[Any]) -> None:
        pieces = list(self._tensor(receive).chunk(self.size))
        self._dist.all_gather(pieces, self._tensor(send), group=self._group)

    def all_reduce(self, values: NDArray[Any]) -> None:
        self._dist.all_reduce(self._tensor(values), group=self._group)

    def broadcast(self, data: NDArray[Any], root: int) -> None:
        source = self._dist.get_global_rank(self._group, root)
        self._dist.broadcast(self._tensor(data), source, group=self._group)

    def barrier(self) -> None:
        self._dist.barrier(group=self._group)

    def abort(self, why: str) -> None:
        """Nothing: the others' calls fail when this process ends."""


class _Mpi4py:
    """A communicator of mpi4py."""

    def __init__(self, comm: Any) -> None:
        from mpi4py import MPI

        self._comm, self._in_place = comm, MPI.IN_PLACE
        self.rank: int = comm.Get_rank()
        self.size: int = comm.Get_size()

    def all_to_all(self, send: NDArray[Any], receive: NDArray[Any]) -> None:
        self._comm.Alltoall(send, receive)

    def all_gather(self, send: NDArray[Any], receive: NDArray[Any]) -> None:
        self._comm.Allgather(send, receive)

    def all_reduce(self, values: NDArray[Any]) -> None:
        self._comm.Allreduce(self._in_place, values)

    def broadcast(self, data: NDArray[Any], root: int) -> None:
        self._comm.Bcast(data, root)

    def barrier(self) -> None:
        self._comm.Barrier()

    def abort(self, why: str) -> None:
        print(f"openrnn: rank {self.rank}: {why}", file=sys.stderr, flush=True)
        self._comm.Abort(1)


_mpi: Any = None
_nccl: Any = None


def _of_mpi() -> Any:
    """mpirun's processes, by libopenrnn_mpi.so; MPI ends with this program unless that fails."""
    global _mpi
    if _mpi is None:
        _mpi = _core.mpi_communicator()
        failed: list[bool] = []
        before = sys.excepthook

        def note(*error: Any) -> None:
            failed.append(True)
            before(*error)

        def finish() -> None:
            global _nccl
            _nccl = None
            # The others may wait for what never comes: mpirun ends them when this one has ended.
            if not failed:
                _core.finish_mpi()

        sys.excepthook = note
        atexit.register(finish)
    return _mpi


def nccl_communicator(
    bootstrap: Any = "mpi", *, device: str | None = None, timeout: float = 1800.0
) -> Any:
    """NVIDIA's NCCL between the GPUs of several processes, for `communicator=`.

    Gradients pass between the GPUs, not through MPI or gloo; the arrays are still of the host, and
    are copied to the GPU and back. All processes call it; `"nccl"` is the one over mpirun's.

    Parameters
    ----------
    bootstrap : whatever `communicator=` takes but 'nccl': by it the processes find each other. Its
        `abort` ends the others where one fails.
    device : 'gpu:N', another one in each process; None: the number of this process among those of
        its machine, where mpirun, srun or torchrun says it, else its rank, modulo the GPUs.
    timeout : the longest wait for the other processes in one call, in seconds; those that save or
        validate meanwhile too. A process that has ended is noticed by then, often earlier.

    Raises
    ------
    EngineError, naming the driver, GPU or library (libnccl.so.2, 2.14 or newer) that is missing, or
    what NCCL said; in the others, that this one has failed.

    Examples
    --------
    >>> class Alone(openrnn.train.Communicator):
    ...     rank, size = 0, 1
    ...     def all_gather(self, send, receive): receive[:] = send
    ...     def broadcast(self, data, root): pass
    >>> def fastest(bootstrap):
    ...     try:
    ...         return openrnn.train.nccl_communicator(bootstrap)
    ...     except openrnn.EngineError:  # no GPU, say
    ...         return bootstrap
    >>> fastest(Alone()).size
    1
    """
    call = "nccl_communicator"
    found = as_communicator(call, bootstrap, "bootstrap")
    number = -1 if device is None else _gpu(call, device)
    seconds = _arguments.as_number(call, "timeout", timeout)
    return _core.nccl_communicator(found, number, seconds)


def _gpu(call: str, device: str) -> int:
    kind, _, number = str(device).partition(":")
    if kind != "gpu" or not number.isdecimal():
        raise ArgumentError(f"[{call}] device is {device!r}, expected 'gpu:N' or None")
    return int(number)


def _of_nccl() -> Any:
    global _nccl
    if _nccl is None:
        _nccl = nccl_communicator()
    return _nccl


def as_communicator(call: str, value: Any, name: str = "communicator") -> Any:
    """The communicator of the library that stands for what the argument was given."""
    if (value is None and name == "communicator") or isinstance(value, _core.CommunicatorBase):
        return value
    if isinstance(value, str):
        if value != "mpi" and (value, name) != ("nccl", "communicator"):
            raise _refused(call, repr(value), name)
        return _of_mpi() if value == "mpi" else _of_nccl()
    kind = type(value)
    if kind.__module__.startswith("torch.") and hasattr(value, "allreduce"):
        value = _TorchGroup(value)
    elif kind.__module__.startswith("mpi4py") and hasattr(value, "Alltoall"):
        value = _Mpi4py(value)
    if not all(callable(getattr(value, each, None)) for each in CALLS):
        raise _refused(call, "None" if value is None else f"a {kind.__name__}", name)
    rank, size = (_arguments.as_integer(call, f"{name}.{each}", getattr(value, each, None))
                  for each in ("rank", "size"))  # fmt: skip
    return _core.python_communicator(value, rank, size)


def _refused(call: str, given: str, name: str) -> Exception:
    nccl, none = ("'nccl', ", ", or None") if name == "communicator" else ("", "")
    return TypeError(
        f"[{call}] {name} is {given}, expected 'mpi', {nccl}a process group of torch.distributed, a "
        f"communicator of mpi4py, an object with the functions of train.Communicator{none}"
    )
