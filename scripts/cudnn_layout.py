#!/usr/bin/env python3
"""Asks NVIDIA's own cuDNN how it lays out recurrent weights, on a machine without a GPU.

cudnn_layout.py FOLDER table          prints the table of tests/golden/cudnn_layout.txt
cudnn_layout.py FOLDER compare TOOL   holds that table, cuDNN's limits and random networks against
                                      this library; TOOL is the built tool_params_layout

FOLDER is where `pip install --target FOLDER --no-deps nvidia-cudnn-cu13` put the library. Exit status:
0 as expected, 1 something differs, 2 wrong usage.

cuDNN computes the layout on the host, from the descriptor of the network: of its handle, which
only a GPU can have, it asks whether it is null. What stands for it here is an address that no
process can read, so a version that looks inside ends by a signal and never by a wrong answer.
"""

import ctypes
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

GOLDEN = Path(__file__).resolve().parents[1] / "tests/golden/cudnn_layout.txt"
HANDLE = ctypes.c_void_p(64)
BASE = 1 << 45  # a made-up address of the weights
LARGEST = 2**31 - 1
DRAWS = 2000
# Names of ours; cuDNN's number and what belongs to it.
CELLS = {"rnn_relu": (0, 1), "rnn_tanh": (1, 1), "lstm": (2, 4), "gru": (3, 3)}  # gates
TYPES = {"float16": (2, 2, 1), "float32": (0, 4, 3), "float64": (1, 8, 0)}  # bytes, math
WAYS = ("unidirectional", "bidirectional")
INPUTS = ("linear_input", "skip_input")
STANDARD, PERSIST_STATIC, SMALL_H = 0, 1, 3


class Refused(Exception):
    """cuDNN did not grant what was asked."""


@dataclass(frozen=True)
class Network:
    """As a line of the table names it."""

    cell: str
    layers: int
    units: int
    inputs: int
    projection: int
    way: str
    input_mode: str
    dtype: str

    @property
    def name(self) -> str:
        """The words before the colon."""
        sizes = f"L{self.layers} U{self.units} I{self.inputs} P{self.projection}"
        return f"{self.cell} {sizes} {self.way} {self.input_mode} {self.dtype}"

    @property
    def dirs(self) -> int:
        """Directions."""
        return 1 + WAYS.index(self.way)

    @property
    def hidden(self) -> int:
        """Width of a direction's output."""
        return self.projection or self.units

    def matrices(self, layer: int) -> Iterator[tuple[int, int] | None]:
        """Rows and columns in cuDNN's order; None for those that skip_input leaves out."""
        gates = CELLS[self.cell][1]
        below = self.inputs if layer == 0 else self.dirs * self.hidden
        skipped = layer == 0 and self.input_mode == "skip_input"
        yield from [None if skipped else (self.units, below)] * gates
        yield from [(self.units, self.hidden)] * gates
        if self.projection:
            yield (self.projection, self.units)

    @property
    def elements(self) -> int:
        """Of all matrices together."""
        layers = range(self.layers)
        found = (m for layer in layers for m in self.matrices(layer) if m)
        return self.dirs * sum(rows * columns for rows, columns in found)


def grid() -> Iterator[Network]:
    """The networks of the table, in its order."""
    for cell in CELLS:
        for way in WAYS:
            for dtype in TYPES:
                for units in (1, 7, 33, 128):
                    for layers in (1, 3):
                        for mode in INPUTS:
                            inputs = units if mode == "skip_input" else units // 2 + 3
                            net = Network(cell, layers, units, inputs, 0, way, mode, dtype)
                            yield net
                            if cell == "lstm" and units > 5:
                                yield replace(net, projection=5)


def drawn(dice: random.Random) -> Network:
    """A random one of at most LARGEST elements; sizes are even on a logarithmic scale."""
    while True:
        units = round(2 ** dice.uniform(0, 14))
        mode = dice.choice(INPUTS)
        cell = dice.choice(list(CELLS))
        inputs = units if mode == "skip_input" else round(2 ** dice.uniform(0, 16))
        projection = dice.randint(1, units - 1) if cell == "lstm" and units > 1 else 0
        net = Network(cell, dice.randint(1, 9), units, inputs, projection * dice.randint(0, 1),
                      dice.choice(WAYS), mode, dice.choice(list(TYPES)))  # fmt: skip
        if net.elements <= LARGEST:
            return net


def largest() -> Iterator[Network]:
    """Of every cell the one with the widest input that fits."""
    for cell in CELLS:
        for way in WAYS:
            net = Network(cell, 2, 1000, 1, 0, way, INPUTS[0], "float16")
            column = replace(net, inputs=2).elements - net.elements
            yield replace(net, inputs=1 + (LARGEST - net.elements) // column)


class Cudnn:
    """The functions that are asked; each of cuDNN's errors is an exception."""

    def __init__(self, folder: Path) -> None:
        path = folder / "nvidia/cudnn/lib/libcudnn.so.9"
        self.library = ctypes.CDLL(str(path if path.exists() else folder / "libcudnn.so.9"))
        self.library.cudnnGetVersion.restype = ctypes.c_size_t
        number = self.library.cudnnGetVersion()
        self.version = f"{number // 10000}.{number // 100 % 100}.{number % 100}"
        self.matrix, self.bias = self.create("Tensor"), self.create("Tensor")
        self.dropout = self.create("Dropout")
        self.ask("SetDropoutDescriptor", self.dropout, HANDLE, ctypes.c_float(0.0), None,
                 ctypes.c_size_t(0), ctypes.c_uint64(0))  # fmt: skip

    def ask(self, function: str, *arguments: object) -> None:
        """One call. Raises: Refused."""
        status = getattr(self.library, f"cudnn{function}")(*arguments)
        if status != 0:
            raise Refused(f"cudnn{function} answers {status}")

    def create(self, kind: str) -> ctypes.c_void_p:
        """A descriptor that lives as long as the process."""
        made = ctypes.c_void_p()
        self.ask(f"Create{kind}Descriptor", ctypes.byref(made))
        return made

    def describe(self, net: Network, algorithm: int = STANDARD, math: int | None = None,
                 sums: int | None = None, padded: int = 0) -> ctypes.c_void_p:  # fmt: skip
        """The network as src/cudnn/rnn/descriptors.cc sets it, but for what is named."""
        kind, _, own_math = TYPES[net.dtype]
        rnn = self.create("RNN")
        own_sums = 1 if net.dtype == "float64" else 0
        self.ask("SetRNNDescriptor_v8", rnn, algorithm, CELLS[net.cell][0], 2, net.dirs - 1,
                 INPUTS.index(net.input_mode), kind, own_sums if sums is None else sums,
                 own_math if math is None else math, net.inputs, net.units, net.hidden, net.layers,
                 self.dropout, padded)  # fmt: skip
        return rnn

    def weight_bytes(self, rnn: ctypes.c_void_p) -> int:
        """What cuDNN says."""
        size = ctypes.c_size_t()
        self.ask("GetRNNWeightSpaceSize", HANDLE, rnn, ctypes.byref(size))
        return size.value

    def region(self, tensor: ctypes.c_void_p, address: int | None) -> tuple[int, int, int] | None:
        """Byte, rows and columns; None where cuDNN has nothing."""
        if not address:
            return None
        dims, strides = (ctypes.c_int * 3)(), (ctypes.c_int * 3)()
        kind, count = ctypes.c_int(), ctypes.c_int()
        self.ask("GetTensorNdDescriptor", tensor, 3, ctypes.byref(kind), ctypes.byref(count), dims,
                 strides)  # fmt: skip
        if dims[0] != 1 or list(strides[1:]) != [dims[2], 1]:
            raise Refused(f"a matrix of dims {list(dims)} and strides {list(strides)}")
        return address - BASE, dims[1], dims[2]

    def line(self, net: Network, **how: int) -> str:
        """The network's line of the table. Raises: Refused for other shapes than ours too."""
        rnn = self.describe(net, **how)
        size, gates, width = self.weight_bytes(rnn), CELLS[net.cell][1], TYPES[net.dtype][1]
        weights, biases = [], []
        for pseudo in range(net.layers * net.dirs):
            for slot, shape in enumerate(net.matrices(pseudo // net.dirs)):
                at, bias_at = ctypes.c_void_p(), ctypes.c_void_p()
                self.ask("GetRNNWeightParams", HANDLE, rnn, pseudo, ctypes.c_size_t(size),
                         ctypes.c_void_p(BASE), slot, self.matrix, ctypes.byref(at), self.bias,
                         ctypes.byref(bias_at))  # fmt: skip
                found = self.region(self.matrix, at.value)
                bias = self.region(self.bias, bias_at.value)
                bias_shape = (net.units, 1) if slot < 2 * gates else None
                if (found and found[1:], bias and bias[1:]) != (shape, bias_shape):
                    raise Refused(f"layer {pseudo}, slot {slot} is {found} and {bias}")
                weights.append(str(found[0] // width) if found else "-")
                biases += [str(bias[0] // width)] if bias else []
        return f"{net.name}: {size // width}; {' '.join(weights + biases)}"

    def states(self, *dims: int) -> None:
        """A descriptor of states."""
        strides = (dims[1] * dims[2], dims[2], 1)
        self.ask("SetTensorNdDescriptor", self.matrix, 0, 3, (ctypes.c_int * 3)(*dims),
                 (ctypes.c_int * 3)(*strides))  # fmt: skip

    def sequence(self, layout: int, steps: int) -> None:
        """A descriptor of one row."""
        self.ask("SetRNNDataDescriptor", self.create("RNNData"), 0, layout, steps, 1, 3,
                 (ctypes.c_int * 1)(steps), ctypes.byref(ctypes.c_double(0.0)))  # fmt: skip


Fact = tuple[str, bool, Callable[[], object]]


def facts(cudnn: Cudnn) -> Iterator[Fact]:
    """What src/cudnn takes for granted: a sentence, whether cuDNN grants it, the question."""
    small = Network("lstm", 1, 8, 5, 0, WAYS[0], INPUTS[0], "float32")
    projecting = replace(small, projection=7)
    for layout, form in ((1, "packed"), (0, "padded")):
        yield f"{form} sequences of 65535 steps", True, lambda v=layout: cudnn.sequence(v, 65535)
        yield f"{form} sequences of 65536 steps", False, lambda v=layout: cudnn.sequence(v, 65536)
    yield "states of 2^31 - 1 elements", True, lambda: cudnn.states(1, 1, LARGEST)
    yield "states of 2^31 elements", False, lambda: cudnn.states(2, 1 << 15, 1 << 15)
    yield "an lstm with projection", True, lambda: cudnn.describe(projecting)
    yield "a projection wider than the units", False, lambda: cudnn.describe(
        replace(small, projection=9))
    for cell in ("gru", "rnn_tanh", "rnn_relu"):
        yield f"{cell} with projection", False, lambda v=cell: cudnn.describe(
            replace(projecting, cell=v))
    for dtype, math in (("float16", 1), ("float32", 0), ("float32", 2), ("float32", 3), ("float64", 0)):
        yield f"{dtype} by math type {math}", True, lambda d=dtype, m=math: cudnn.describe(
            replace(small, dtype=d), math=m)
    wide = replace(small, dtype="float64")
    yield "float64 summed in float32", False, lambda: cudnn.describe(wide, sums=0)
    for name, algorithm in (("persist_static", PERSIST_STATIC), ("persist_static_small_h", SMALL_H)):
        yield f"{name} with projection", False, lambda a=algorithm: cudnn.describe(
            projecting, algorithm=a)
        yield f"{name} in float64", False, lambda a=algorithm: cudnn.describe(wide, algorithm=a)
        yield f"another layout for {name}", False, lambda a=algorithm: differs(cudnn, algorithm=a)
    yield "another layout for padded sequences", False, lambda: differs(cudnn, padded=1)


def differs(cudnn: Cudnn, **how: int) -> None:
    """Raises: Refused when no network of the table has another layout."""
    for net in grid():
        persists = how.get("algorithm", STANDARD) != STANDARD
        if persists and (net.projection or net.dtype == "float64"):
            continue
        if cudnn.line(net, **how) != cudnn.line(net):
            return
    raise Refused("no network has another layout")


def wrong_facts(cudnn: Cudnn) -> Iterator[str]:
    """Sentences about what cuDNN does otherwise."""
    for sentence, expected, question in facts(cudnn):
        try:
            question()
            granted, why = True, "granted"
        except Refused as error:
            granted, why = False, str(error)
        if granted != expected:
            yield f"{sentence}: {why}, expected {'granted' if expected else 'refused'}"
    # A prime number of elements, so it is this network; its input is wider than RnnSpec allows.
    most = Network("rnn_tanh", 1, 1, LARGEST - 1, 0, WAYS[0], INPUTS[0], "float16")
    expected_line = f"{most.name}: {LARGEST + 2}; 0 {LARGEST - 1} {LARGEST} {LARGEST + 1}"
    if (line := line_of(cudnn, most)) != expected_line:
        yield f"{line}, expected {expected_line}"
    # The size of one element more has wrapped, and is said with success.
    over = replace(most, inputs=LARGEST)
    try:
        cudnn.line(over)
        yield f"{over.name}: cuDNN has a layout, expected none; check_limits may allow more"
    except Refused:
        pass


def line_of(cudnn: Cudnn, net: Network) -> str:
    """Its line, or why there is none."""
    try:
        return cudnn.line(net)
    except Refused as error:
        return f"{net.name}: {error}"


def differences(cudnn: Cudnn, nets: list[Network], tool: str) -> Iterator[str]:
    """Networks that ParamsLayout and cuDNN lay out differently."""
    words = "".join(net.name + "\n" for net in nets)
    ours = subprocess.run([tool], input=words, capture_output=True, text=True)
    if ours.returncode != 0:
        yield f"{tool}: {ours.stderr.strip()}"
    lines = ours.stdout.splitlines()
    if len(lines) != len(nets):
        yield f"{tool} printed {len(lines)} lines, expected {len(nets)}"
    for net, line in zip(nets, lines):
        if (theirs := line_of(cudnn, net)) != line:
            yield f"{net.name}\n  cuDNN {theirs[:300]}\n  ours  {line[:300]}"


def compare(cudnn: Cudnn, tool: str) -> int:
    """Prints what differs, and the counts."""
    table = [cudnn.line(net) for net in grid()]
    golden = GOLDEN.read_text("utf-8").splitlines()[1:]
    seed = random.SystemRandom().randrange(1 << 32)
    dice = random.Random(seed)
    nets = [*grid(), *largest(), *(drawn(dice) for _ in range(DRAWS))]
    found = [f"{a} is not {b} of {GOLDEN.name}" for a, b in zip(table, golden) if a != b]
    if len(table) != len(golden):
        found.append(f"{GOLDEN.name} has {len(golden)} networks, expected {len(table)}")
    found += [*wrong_facts(cudnn), *differences(cudnn, nets, tool)]
    print(*found, sep="\n", end="\n" if found else "")
    checked = f"{len(nets)} networks ({DRAWS} random by seed {seed}), {len(list(facts(cudnn)))} facts"
    print(f"cuDNN {cudnn.version}: {checked}, {len(found)} otherwise than expected")
    return 1 if found else 0


def main(arguments: list[str]) -> int:
    """The command line."""
    match arguments:
        case [folder, "table"]:
            cudnn = Cudnn(Path(folder))
            print(f"# Made by scripts/cudnn_layout.py: cuDNN {cudnn.version}, asked without a GPU")
            for net in grid():
                print(cudnn.line(net))
            return 0
        case [folder, "compare", tool]:
            return compare(Cudnn(Path(folder)), tool)
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
