"""ONNX Runtime called through its C API, as a program in C++ calls it: the loop of timed calls is
compiled (cpp/ort_loop.cc), Python only prepares them."""

from peers.workers import server

THREADS = server.pin()

import ctypes  # noqa: E402
import importlib.util  # noqa: E402
import os  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402

from peers.workers.onnx_runtimes import onnx_model  # noqa: E402

Pointer = ctypes.c_void_p
# Places of functions in the table of OrtGetApiBase, which only grows.
GET_ERROR_MESSAGE, CREATE_ENV, CREATE_SESSION_FROM_ARRAY, RUN = 2, 3, 8, 9
CREATE_SESSION_OPTIONS, SET_INTRA_OP_NUM_THREADS, SET_INTER_OP_NUM_THREADS = 10, 24, 25
CREATE_TENSOR_WITH_DATA, GET_TENSOR_MUTABLE_DATA, CREATE_CPU_MEMORY_INFO = 49, 51, 69
FLOAT, INT32 = 1, 6
WARNING, ARENA, DEFAULT_MEMORY = 2, 1, 0


class Base(ctypes.Structure):
    """OrtApiBase."""

    _fields_ = [("api", ctypes.CFUNCTYPE(Pointer, ctypes.c_uint32)),
                ("version", ctypes.CFUNCTYPE(ctypes.c_char_p))]  # fmt: skip


class Api:
    """The functions by their places; one that fails raises."""

    def __init__(self) -> None:
        spec = importlib.util.find_spec("onnxruntime")
        assert spec is not None and spec.origin is not None
        [path] = (Path(spec.origin).parent / "capi").glob("libonnxruntime.so.*")
        library = ctypes.CDLL(str(path))
        library.OrtGetApiBase.restype = ctypes.POINTER(Base)
        base = library.OrtGetApiBase().contents
        self.version = base.version().decode()
        self.table = ctypes.cast(base.api(1), ctypes.POINTER(Pointer))

    def check(self, status: int | None) -> None:
        """Raises what a status says."""
        if status:
            text = ctypes.CFUNCTYPE(ctypes.c_char_p, Pointer)(self.table[GET_ERROR_MESSAGE])
            raise RuntimeError(text(status).decode())

    def call(self, place: int, *arguments: Any) -> None:
        """A function that returns a status."""
        kinds = [type(each) for each in arguments]
        self.check(ctypes.CFUNCTYPE(Pointer, *kinds)(self.table[place])(*arguments))

    def make(self, place: int, *arguments: Any) -> Pointer:
        """What it puts behind its last argument."""
        made = Pointer()
        self.call(place, *arguments, Pointer(ctypes.addressof(made)))
        return made


class Job:
    """One session; inputs and outputs stay where they are."""

    def __init__(self, task: server.Task) -> None:
        onnx_model.refuse(task)
        self.loop = ctypes.CDLL(os.environ["OPENRNN_ORT_LOOP"])
        self.loop.ort_loop.restype = Pointer
        self.api = Api()
        model = onnx_model.model_of(task)
        environment = self.api.make(CREATE_ENV, ctypes.c_int(WARNING), ctypes.c_char_p(b"peers"))
        options = self.api.make(CREATE_SESSION_OPTIONS)
        self.api.call(SET_INTRA_OP_NUM_THREADS, options, ctypes.c_int(THREADS))
        self.api.call(SET_INTER_OP_NUM_THREADS, options, ctypes.c_int(1))
        data = model.SerializeToString()
        self.session = self.api.make(
            CREATE_SESSION_FROM_ARRAY, environment, ctypes.c_char_p(data),
            ctypes.c_size_t(len(data)), options,
        )  # fmt: skip
        self.memory = self.api.make(
            CREATE_CPU_MEMORY_INFO, ctypes.c_int(ARENA), ctypes.c_int(DEFAULT_MEMORY)
        )
        self.arrays = onnx_model.inputs_of(task)
        self.inputs = (Pointer * len(self.arrays))(*map(self.value_of, self.arrays.values()))
        self.input_names = names_of(list(self.arrays))
        self.names = [output.name for output in model.graph.output]
        self.output_names = names_of(self.names)
        self.outputs = (Pointer * len(self.names))()  # made by the first call
        directions, batch = task.number("directions", 1), task.number("batch")
        state = (directions, batch, task.number("units"))
        self.shapes = {name: state for name in self.names} | {
            "y": (task.number("time"), batch, directions * task.number("units"))
        }
        self.kernel = f"{onnx_model.OPERATORS[task.text('cell')]}, CPU provider"

    def value_of(self, array: server.Array) -> int | None:
        """An OrtValue of memory that is an array's."""
        shape = (ctypes.c_int64 * array.ndim)(*array.shape)
        element = FLOAT if array.dtype == np.float32 else INT32
        return self.api.make(
            CREATE_TENSOR_WITH_DATA, self.memory, Pointer(array.ctypes.data),
            ctypes.c_size_t(array.nbytes), Pointer(ctypes.addressof(shape)),
            ctypes.c_size_t(array.ndim), ctypes.c_int(element),
        ).value  # fmt: skip

    def times(self, count: int, warm: int) -> list[int]:
        """Nanoseconds of each call."""
        taken = (ctypes.c_int64 * max(count, 1))()
        self.api.check(
            self.loop.ort_loop(
                Pointer(self.api.table[RUN]), self.session, self.input_names, self.inputs,
                ctypes.c_size_t(len(self.inputs)), self.output_names, self.outputs,
                ctypes.c_size_t(len(self.outputs)), ctypes.c_int64(count), ctypes.c_int64(warm),
                taken,
            )
        )  # fmt: skip
        return list(taken[:count])

    def call(self) -> None:
        """One run."""
        self.times(0, 1)

    def results(self) -> dict[str, server.Array]:
        """Of the last call."""
        found = {}
        for name, value in zip(self.names, self.outputs, strict=True):
            data = self.api.make(GET_TENSOR_MUTABLE_DATA, Pointer(value)).value
            size = int(np.prod(self.shapes[name]))
            flat = np.ctypeslib.as_array((ctypes.c_float * size).from_address(data))
            found[name] = flat.reshape(self.shapes[name]).copy()
        return onnx_model.results_of(found)


def names_of(names: list[str]) -> ctypes.Array[ctypes.c_char_p]:
    """As the C API takes them."""
    return (ctypes.c_char_p * len(names))(*(name.encode() for name in names))


def about() -> str:
    """The version."""
    return f"ONNX Runtime {Api().version}, C API"


if __name__ == "__main__":
    server.main(Job, about)
