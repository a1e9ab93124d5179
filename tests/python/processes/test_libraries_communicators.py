"""The communicators of torch.distributed, mpi4py and mpirun, over stand-ins of those libraries."""

import sys
import types

import numpy as np
import openrnn
import pytest
from openrnn import _communicators, train

from processes.test_communicators import Threads, fitted, on_ranks

FIRST = 10  # of the ranks of this group in the whole job


@pytest.mark.parametrize(
    "missing", ["all_to_all", "all_gather", "all_reduce", "broadcast", "barrier", "abort"])
def test_an_object_that_lacks_a_call_is_no_communicator(missing):
    calls = {each: lambda *given: None for each in _communicators.CALLS if each != missing}
    given = type("Lacking", (), {"rank": 0, "size": 1, **calls})()
    x = np.ones((4, 2), np.float32)
    with pytest.raises(TypeError, match="^.fit. communicator is a Lacking, expected "):
        train.fit(openrnn.layers.Dense(1), (x, x[:, :1]), "mean_squared_error", train.Adam(), progress=False,
                  communicator=given)  # fmt: skip


class Tensor:
    """What torch.from_numpy() makes: a view of an array that may be written to."""

    def __init__(self, array):
        assert array.flags.writeable
        self.array = array

    def chunk(self, count):
        return tuple(Tensor(part) for part in np.split(self.array, count))


class Group:
    """A process group: one rank of a test."""

    def __init__(self, one):
        self.one = one

    def allreduce(self):
        raise AssertionError("the functions of torch.distributed are called, not its groups'")


Group.__module__ = "torch.distributed"


def torch_stand_in():
    torch, dist = types.ModuleType("torch"), types.ModuleType("torch.distributed")
    torch.from_numpy, torch.distributed = Tensor, dist
    dist.get_rank = lambda group: group.one.rank
    dist.get_world_size = lambda group: group.one.size
    dist.get_global_rank = lambda group, rank: FIRST + rank
    dist.all_reduce = lambda tensor, group: group.one.all_reduce(tensor.array)
    dist.barrier = lambda group: group.one.barrier()

    def all_to_all_single(output, input, group):  # noqa: A002
        input.array.flags.writeable = False  # Threads looks at it; the copy is PyTorch's own
        group.one.all_to_all(input.array, output.array)

    def all_gather(tensors, tensor, group):
        assert isinstance(tensors, list)
        for part, shown in zip(tensors, group.one._exchange(tensor.array), strict=True):
            part.array[:] = shown

    def broadcast(tensor, src, group):
        group.one.broadcast(tensor.array, src - FIRST)

    dist.all_to_all_single, dist.all_gather, dist.broadcast = all_to_all_single, all_gather, broadcast
    return {"torch": torch, "torch.distributed": dist}


class Comm:
    """A communicator of mpi4py."""

    def __init__(self, one):
        self.one, self.aborted = one, []
        self.Alltoall, self.Allgather, self.Bcast = one.all_to_all, one.all_gather, one.broadcast
        self.Barrier, self.Abort = one.barrier, self.aborted.append

    def Get_rank(self):  # noqa: N802
        return self.one.rank

    def Get_size(self):  # noqa: N802
        return self.one.size

    def Allreduce(self, send, receive):  # noqa: N802
        assert send == "in place"
        self.one.all_reduce(receive)


Comm.__module__ = "mpi4py.MPI"


def mpi4py_stand_in():
    package, mpi = types.ModuleType("mpi4py"), types.ModuleType("mpi4py.MPI")
    package.MPI, mpi.IN_PLACE = mpi, "in place"
    return {"mpi4py": package, "mpi4py.MPI": mpi}


KINDS = {"torch": (torch_stand_in, Group, "_TorchGroup"), "mpi4py": (mpi4py_stand_in, Comm, "_Mpi4py")}


@pytest.fixture(params=KINDS)
def library(request, monkeypatch):
    make, of, name = KINDS[request.param]
    for module, one in make().items():
        monkeypatch.setitem(sys.modules, module, one)
    return of, getattr(_communicators, name)


def test_every_call_reaches_the_library(library):
    of, wrapper = library

    def work(one):
        waited = []
        one.barrier = lambda: waited.append(one.rank)
        wrapped = wrapper(of(one))
        send = np.arange(6, dtype="uint8") + 10 * one.rank
        send.flags.writeable = False
        exchanged, gathered = np.zeros(6, "uint8"), np.zeros(18, "uint8")
        wrapped.all_to_all(send, exchanged)
        wrapped.all_gather(send, gathered)
        summed = np.array([0.5, one.rank], "float32")
        wrapped.all_reduce(summed)
        shown = np.array([one.rank], "uint8")
        wrapped.broadcast(shown, 2)
        wrapped.barrier()
        return (wrapped.rank, wrapped.size, send.tolist(), exchanged.tolist(), gathered.tolist(),
                summed.tolist(), shown.tolist(), waited)  # fmt: skip

    for rank, found in enumerate(on_ranks(3, work)):
        sent = [[10 * one + i for i in range(6)] for one in range(3)]
        assert found == (
            rank, 3, sent[rank],
            [number for one in sent for number in one[2 * rank : 2 * rank + 2]],
            [number for one in sent for number in one],
            [1.5, 3.0], [2], [rank],
        )  # fmt: skip


def test_fit_takes_the_library_s_own(library):
    of, _ = library
    assert on_ranks(2, lambda one: fitted(of(one))) == [fitted()] * 2
    fast = on_ranks(2, lambda one: fitted(of(one), dtype="float64", reduction="fast"))
    assert fast == on_ranks(2, lambda one: fitted(one, dtype="float64", reduction="fast"))


def test_mpi4py_ends_the_others(capfd, monkeypatch):
    for module, one in mpi4py_stand_in().items():
        monkeypatch.setitem(sys.modules, module, one)
    comm = Comm(types.SimpleNamespace(rank=1, size=2, **dict.fromkeys(
        ("all_to_all", "all_gather", "broadcast", "barrier"))))  # fmt: skip
    _communicators._Mpi4py(comm).abort("no room left")
    assert comm.aborted == [1]
    assert capfd.readouterr() == ("", "openrnn: rank 1: no room left\n")


def test_torch_s_groups_have_nothing_to_abort_by(monkeypatch):
    for module, one in torch_stand_in().items():
        monkeypatch.setitem(sys.modules, module, one)
    group = Group(types.SimpleNamespace(rank=0, size=1))
    assert _communicators._TorchGroup(group).abort("no room left") is None


class Alone(Threads):
    def __init__(self, **kw):
        self.rank, self.size = 0, 1
        self.__dict__.update(kw)


@pytest.mark.parametrize("module", ["torch.distributed.own", "mpi4py.util"])
def test_an_object_of_a_library_with_our_calls_is_asked_itself(module):
    """Neither library is installed here: it is only wrapped where it has that library's own calls."""
    own = type("Own", (Alone,), {"__module__": module})()
    found = _communicators.as_communicator("fit", own)
    assert (found.rank, found.size) == (0, 1)
    assert fitted(own) == fitted()


def test_waiting_and_ending_reach_the_object():
    calls = []
    one = Alone(rank=1, size=3, barrier=lambda: calls.append("waited"), abort=calls.append)
    found = _communicators.as_communicator("fit", one)
    assert (found.rank, found.size) == (1, 3)
    found.barrier()
    found.abort("no room left")
    assert calls == ["waited", "no room left"]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (Alone(rank=None), "[fit] communicator.rank is 'NoneType', expected an integer"),
        (Alone(size="2"), "[fit] communicator.size is 'str', expected an integer"),
        (Alone(abort=3), "[fit] communicator is a Alone, expected 'mpi', 'nccl', a process group of "
         "torch.distributed, a communicator of mpi4py, an object with the functions of "
         "train.Communicator, or None"),
        ("ring", "[fit] communicator is 'ring', expected 'mpi', 'nccl', a process group of "
         "torch.distributed, a communicator of mpi4py, an object with the functions of "
         "train.Communicator, or None"),
    ],
)  # fmt: skip
def test_what_is_no_communicator(given, text):
    with pytest.raises(TypeError) as raised:
        fitted(given)
    assert str(raised.value) == text


def test_what_nccl_s_communicator_refuses():
    expected = ("expected 'mpi', a process group of torch.distributed, a communicator of mpi4py, an "
                "object with the functions of train.Communicator")  # fmt: skip
    for given, shown in ((None, "None"), ("nccl", "'nccl'"), (3, "a int")):
        with pytest.raises(TypeError) as raised:
            train.nccl_communicator(given)
        assert str(raised.value) == f"[nccl_communicator] bootstrap is {shown}, {expected}"
    for given in ("gpu:x", "cpu:1", 3):
        with pytest.raises(openrnn.ArgumentError) as raised:
            train.nccl_communicator(Alone(), device=given)
        text = f"[nccl_communicator] device is {given!r}, expected 'gpu:N' or None"
        assert str(raised.value) == text
    with pytest.raises(TypeError, match=r"^\[nccl_communicator\] timeout is 'str', expected a number$"):
        train.nccl_communicator(Alone(), timeout="1")


def test_what_nccl_is_asked_for(monkeypatch):
    calls = []

    def made(bootstrap, number, seconds):
        calls.append((bootstrap.rank, bootstrap.size, number, seconds))
        return _communicators._core.python_communicator(Alone(), 0, 1)

    monkeypatch.setattr(_communicators._core, "nccl_communicator", made)
    monkeypatch.setattr(_communicators, "_nccl", None)
    train.nccl_communicator(Alone())
    train.nccl_communicator(Alone(), device="gpu:12", timeout=3)
    assert calls == [(0, 1, -1, 1800.0), (0, 1, 12, 3.0)]
    monkeypatch.setattr(_communicators, "_mpi", _communicators._core.python_communicator(Alone(), 0, 1))
    first = _communicators.as_communicator("fit", "nccl")
    assert _communicators.as_communicator("fit", "nccl") is first and len(calls) == 3
    assert _communicators.as_communicator("fit", first) is first


@pytest.mark.parametrize("fails", [False, True])
def test_mpi_ends_with_the_program_unless_that_fails(monkeypatch, fails):
    """The others may wait for one that fails: mpirun ends them, where MPI was not finished."""
    opened, finished, at_exit, shown = [], [], [], []
    core = _communicators._core
    alone = core.python_communicator(Alone(), 0, 1)
    monkeypatch.setattr(core, "mpi_communicator", lambda: opened.append(1) or alone)
    monkeypatch.setattr(core, "finish_mpi", lambda: finished.append(1))
    monkeypatch.setattr(_communicators.atexit, "register", at_exit.append)
    monkeypatch.setattr(sys, "excepthook", lambda *error: shown.append(error))
    monkeypatch.setattr(_communicators, "_mpi", None)
    monkeypatch.setattr(_communicators, "_nccl", alone)
    assert _communicators.as_communicator("fit", "mpi") is alone
    assert _communicators.as_communicator("fit", "mpi") is alone
    assert len(opened) == len(at_exit) == 1 and not finished
    if fails:
        sys.excepthook(OSError, "error", "trace")
    at_exit[0]()
    assert shown == ([(OSError, "error", "trace")] if fails else [])
    assert finished == ([] if fails else [1])
    assert _communicators._nccl is None  # its own end needs MPI's
