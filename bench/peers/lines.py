"""What is measured: the lines of the table and the sides that stand in each."""

from dataclasses import dataclass, field

from peers.cells import CELLS

GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1}
LABELS = {"lstm": "LSTM", "gru": "GRU", "rnn_tanh": "RNN"}


@dataclass(frozen=True)
class Network:
    """Sizes of one network; its input is as wide as a layer."""

    cell: str
    layers: int
    units: int
    batch: int
    time: int
    directions: int = 1

    @property
    def name(self) -> str:
        """'LSTM L4 U1024 B64 T40'."""
        both = " bidirectional" if self.directions == 2 else ""
        sizes = f"L{self.layers} U{self.units} B{self.batch} T{self.time}"
        return f"{LABELS[self.cell]} {sizes}{both}"

    @property
    def forward_flop(self) -> float:
        """Of the products of one forward pass."""
        widths = [self.units] + [self.directions * self.units] * (self.layers - 1)
        rows = GATES[self.cell] * self.units
        per_step = sum(2 * self.directions * rows * (width + self.units) for width in widths)
        return float(per_step * self.batch * self.time)

    def flop(self, work: str) -> float:
        """Backward does the forward's products twice over."""
        return self.forward_flop * (3 if work == "training" else 1)

    @property
    def recurrent_bytes(self) -> float:
        """Of the matrices that every step reads."""
        return 4.0 * self.layers * self.directions * GATES[self.cell] * self.units**2


@dataclass(frozen=True)
class Side:
    """One competitor of a line."""

    key: str
    worker: str
    # 'ours', 'peer'; 'own' is ours in another arithmetic or another form; 'meter' the machine;
    # 'bound' what float32 storage allows.
    role: str = "peer"
    options: tuple[tuple[str, str], ...] = ()

    @property
    def native(self) -> bool:
        """Whether it is called from C++."""
        return self.worker in ("onednn", "openrnn_core", "onnx_runtimes.ort_c")


@dataclass(frozen=True)
class Line:
    """One row: a piece of work, the threads, and who does it."""

    group: str
    network: Network
    work: str  # 'forward', 'training', 'memory', 'model'
    threads: int
    sides: tuple[Side, ...]
    note: str = ""
    padded: bool = field(default=False)
    # Weights are uniform up to this with biases of 1, instead of all up to 1 / sqrt(units).
    weights: float = 0.0
    option: str = ""  # one of CELLS

    @property
    def name(self) -> str:
        """'LSTM L1 U64 B1 T100, forward, 2 threads'."""
        work = {"training": "forward + backward"}.get(self.work, self.work)
        note = f", {self.note}" if self.note else ""
        plural = "s" if self.threads > 1 else ""
        return f"{self.network.name}{note}, {work}, {self.threads} thread{plural}"

    @property
    def timed(self) -> bool:
        """Whether it is about time, too."""
        return self.group != "accuracy"

    @property
    def carries_state(self) -> bool:
        """Whether calls begin with given states: a stream's single steps do, and from states of zero
        a peer may leave the recurrent product out."""
        one_step = self.network.time == 1 and self.work == "forward"
        return one_step and not self.group.startswith("dropin")

    @property
    def against_float64(self) -> bool:
        """Whether it is float32 on all sides, whose errors are then measured."""
        return self.work in ("forward", "training") and self.group in FLOAT32_GROUPS


OURS = (Side("OpenRNN", "openrnn_layers", "ours"), Side("OpenRNN C++", "openrnn_core", "ours"))
PYTHON_OURS = OURS[:1]
ONEDNN = Side("oneDNN", "onednn")
TORCH = Side("PyTorch", "pytorch")
# Keras's backends by the names of their libraries.
KERAS_BACKENDS = {"tensorflow": "TensorFlow", "torch": "PyTorch", "jax": "JAX", "numpy": "NumPy"}
KERAS = (
    Side("Keras", "keras_tensorflow"),
    Side("Keras XLA", "keras_tensorflow", options=(("jit", "1"),)),
)
JAX = Side("JAX", "jax_scan")
ORT = Side("ONNX Runtime", "onnx_runtimes.ort")
ORT_C = Side("ONNX Runtime C", "onnx_runtimes.ort_c")
OPENVINO = Side("OpenVINO", "onnx_runtimes.openvino_cpu")
TRACT = Side("tract", "onnx_runtimes.tract_cpu")  # one thread is all that it has
FMA = Side("FMA peak", "openrnn_core", "meter", (("what", "peak"),))
GATE_SIZES = (
    (1, 64, 1, 100), (1, 128, 1, 100), (1, 256, 1, 100), (1, 512, 1, 50), (1, 1024, 1, 50),
    (1, 256, 16, 50), (1, 512, 32, 50), (4, 128, 64, 20), (4, 512, 64, 30), (4, 1024, 64, 40),
)  # fmt: skip
# Small stacks, whose layers may run on several threads.
STACK_SIZES = ((2, 64, 1, 100), (4, 64, 1, 100), (2, 256, 1, 100), (4, 256, 1, 100))
# One step a call: one stream, and a server's 64.
STEP_SIZES = ((1, 16, 1, 1), (1, 64, 1, 1), (1, 256, 1, 1), (2, 256, 64, 1))
FLOAT32_GROUPS = ("batch 1", "streaming", "server", "batches", "padding", "full", "accuracy")
# Where one chain of sums is at its worst: wide, long, and a bias that is large against its sum.
ACCURACY_SIZES = (
    ("lstm", 1, 512, 32, 50), ("lstm", 1, 1024, 16, 50), ("lstm", 1, 128, 64, 300),
    ("gru", 1, 512, 32, 50),
)  # fmt: skip
SMALL_WEIGHTS = 0.005
CELL_SIZES = (1, 256, 32, 100)
PADDED_SIZES = ((4, 512, 64, 30), (2, 256, 16, 100))
DROP_IN_SIZES = (
    (1, 64, 1, 1), (1, 64, 1, 100), (1, 256, 1, 100), (1, 128, 16, 50), (1, 256, 16, 50),
    (1, 512, 32, 50), (4, 128, 64, 20), (4, 512, 64, 30),
)  # fmt: skip
# Of Keras, by layers and directions.
KERAS_SIZES = (
    (1, 64, 1, 1), (1, 64, 1, 100), (1, 256, 1, 100), (1, 256, 16, 50), (1, 512, 32, 50),
    (4, 128, 64, 20), (1, 64, 1, 100, 2), (1, 256, 16, 50, 2),
)  # fmt: skip
COMPANY_SIZES = ((1, 64, 1, 100), (1, 256, 1, 100), (1, 512, 1, 50), (1, 256, 16, 50))
MEMORY_SIZES = ((1, 512, 32, 50), (4, 512, 64, 30), (4, 1024, 64, 40))


def peers_of(work: str, threads: int = 2) -> tuple[Side, ...]:
    """Everyone who can do such a call."""
    forward = (ORT, ORT_C, OPENVINO, *((TRACT,) if threads == 1 else ()))
    return (ONEDNN, *(forward if work == "forward" else ()), TORCH, *KERAS, JAX)


def meters_of(network: Network, work: str) -> tuple[Side, ...]:
    """The machine's own limits, where a goal is set against them."""
    if network.batch > 1:
        return (FMA,) if network.layers == 4 else ()
    if work != "forward" or network.units < 256 or network.time == 1 or network.layers > 1:
        return ()
    size = (("what", "read"), ("bytes", str(int(network.recurrent_bytes))))
    steps = Side("steps alone", "openrnn_core", "own", (("skip_input", "1"),))
    return (steps, Side("reading", "openrnn_core", "meter", size))


def plain_line(group: str, network: Network, work: str, threads: int) -> Line:
    """Everyone in float32."""
    sides = (*OURS, *peers_of(work, threads), *meters_of(network, work))
    return Line(group, network, work, threads, sides)


def padded_line(network: Network, work: str, threads: int) -> Line:
    """Half of the steps are padding: ours and some peers are told, the others compute it."""
    given, packed = (("lengths", "given"),), (("lengths", "packed"),)
    ours = tuple(Side(side.key, side.worker, "ours", given) for side in OURS)
    ort = (ORT, Side("ONNX Runtime lengths", ORT.worker, options=given))
    ort = ort if work == "forward" else ()
    peers = (ONEDNN, *ort, TORCH, Side("PyTorch packed", "pytorch", options=packed))
    masked = tuple(
        Side(f"{side.key} masked", side.worker, options=(*side.options, *given)) for side in KERAS
    )
    return Line(
        "padding", network, work, threads, (*ours, *peers, *masked), "half padding", padded=True
    )


def math_line(network: Network, work: str, threads: int) -> Line:
    """bf16 and bf16x3 against our float32 and the peers' bf16."""
    bf16 = (("math", "bf16"),)
    sides = (
        *OURS,
        Side("OpenRNN bf16", "openrnn_layers", "own", bf16),
        Side("OpenRNN C++ bf16", "openrnn_core", "own", bf16),
        Side("OpenRNN C++ bf16x3", "openrnn_core", "own", (("math", "bf16x3"),)),
        Side("oneDNN bf16", "onednn", "peer", bf16),
        Side("PyTorch bf16", "pytorch", "peer", bf16),
    )
    if work == "forward":
        sides += (Side("OpenVINO bf16", OPENVINO.worker, "peer", bf16),)
    return Line("math", network, work, threads, sides, "bf16")


def weights_line(network: Network, threads: int) -> Line:
    """Weights in smaller types against our float32."""
    own = tuple(
        Side(f"OpenRNN C++ {dtype}", "openrnn_core", "own", (("weights", dtype),))
        for dtype in ("int8", "bfloat16", "float16")
    )
    ours_python = Side("OpenRNN int8", "openrnn_layers", "own", (("weights", "int8"),))
    ort = Side("ONNX Runtime int8", ORT.worker, options=(("weights", "int8"),))
    return Line(
        "weights", network, "forward", threads, (*OURS, ours_python, *own, ort), "smaller weights"
    )


def accuracy_line(network: Network, weights: float = 0.0) -> Line:
    """The errors of a training step alone, of PyTorch's both paths where it has two."""
    plain = (Side("PyTorch aten", "pytorch", options=(("onednn", "0"),)),)
    sides = (*OURS, *peers_of("training"), *(plain if network.cell == "lstm" else ()))
    note = "accuracy, small weights, biases 1" if weights else "accuracy"
    return Line("accuracy", network, "training", 1, sides, note, weights=weights)


def accuracy_lines() -> list[Line]:
    """The table of errors."""
    small = Network("rnn_tanh", 1, 512, 16, 20)
    found = [accuracy_line(Network(*sizes)) for sizes in ACCURACY_SIZES]
    return [*found, accuracy_line(small, SMALL_WEIGHTS)]


def company_line(network: Network, worker: str, name: str) -> Line:
    """Ours on two threads against ours on one, each call after one of the other library in the same
    process, whose threads may still be spinning."""
    beside = ("beside", worker)
    sides = (
        Side("OpenRNN", "openrnn_layers", "ours", (beside,)),
        Side("OpenRNN one thread", "openrnn_layers", options=(beside, ("own_threads", "1"))),
    )
    return Line("company", network, "forward", 2, sides, f"in company of {name}")


def cell_line(option: str, work: str, threads: int) -> Line:
    """A cell with an option against the same cell as a loop over time in PyTorch."""
    network = Network(CELLS[option].mode, *CELL_SIZES)
    loop = "pytorch_cells"
    compiled = Side("PyTorch compiled loop", loop, options=(("compile", "1"),))
    sides = (*PYTHON_OURS, Side("PyTorch loop", loop), compiled)
    return Line("cells", network, work, threads, sides, option, option=option)


def drop_in_lines(cell: str) -> list[Line]:
    """A module of torch.nn that was converted, against what it was, and against our own layers."""
    works, found = ("forward", "training"), []
    ours = Side("openrnn.torch", "pytorch", "ours", (("drop_in", "1"),))
    compiled = Side("PyTorch compiled", "pytorch", options=(("compile", "1"),))
    calls = tuple(
        Side(f"openrnn.torch {how}", "pytorch", "own", (("drop_in", how),))
        for how in ("frozen", "recorded")
    )
    for sizes in DROP_IN_SIZES:
        network = Network(cell, *sizes)
        for work in works:
            own = Side("OpenRNN", "openrnn_layers", "own")
            one_step = calls if network.time == 1 and work == "forward" else ()
            sides = (ours, TORCH, compiled, own, *one_step)
            found.append(Line("dropin", network, work, 2, sides, "dropin"))
    packed = (("lengths", "packed"),)
    padded = (
        Side("openrnn.torch packed", "pytorch", "ours", (*ours.options, *packed)),
        Side("PyTorch packed", "pytorch", options=packed),
    )
    return found + [
        Line("dropin", Network(cell, *sizes), work, 2, padded, "dropin, half padding", padded=True)
        for sizes in PADDED_SIZES
        for work in works
    ]


def keras_drop_in_lines(cell: str, backend: str) -> list[Line]:
    """Layers of Keras on one backend that were converted, against what they were."""
    worker = f"keras_{backend}"
    ours = Side("openrnn.keras", worker, "ours", (("drop_in", "1"),))
    plain = KERAS if backend == "tensorflow" else (Side("Keras", worker),)
    own = Side("OpenRNN", "openrnn_layers", "own")
    note = f"dropin of Keras on {KERAS_BACKENDS[backend]}"
    works = ("forward",) if backend == "numpy" else ("forward", "training")
    return [
        Line(f"dropin keras {backend}", Network(cell, *sizes), work, 2, (ours, *plain, own), note)
        for sizes in KERAS_SIZES
        for work in works
    ]


def jax_drop_in_lines(cell: str) -> list[Line]:
    """openrnn.jax against a scan in JAX, and our own layers."""
    ours = Side("openrnn.jax", "jax_scan", "ours", (("drop_in", "1"),))
    packed = Side("openrnn.jax packed", "jax_scan", "own", (("drop_in", "packed"),))
    own, found = Side("OpenRNN", "openrnn_layers", "own"), []
    for sizes in DROP_IN_SIZES:
        for work in ("forward", "training"):
            sides = (ours, JAX, own, *((packed,) if work == "forward" else ()))
            found.append(Line("dropin jax", Network(cell, *sizes), work, 2, sides, "dropin of JAX"))
    return found


def memory_line(network: Network) -> Line:
    """Peak memory of a training step; every side in a fresh process."""
    return Line("memory", network, "memory", 2, (*OURS, *peers_of("training")))


def model_line(threads: int) -> Line:
    """Training steps of the demo's language model."""
    network = Network("lstm", 1, 256, 32, 64)
    sides = (*PYTHON_OURS, TORCH, *KERAS)
    return Line("model", network, "model", threads, sides, "language model")


def gate_set() -> list[Line]:
    """The lines that the goals speak of, by threads so that workers live long."""
    found: list[Line] = []
    for threads in (1, 2):
        for cell in ("lstm", "gru"):
            for sizes in (*GATE_SIZES, *STACK_SIZES):
                network = Network(cell, *sizes)
                group = "batch 1" if network.batch == 1 else "batches"
                found += [plain_line(group, network, w, threads) for w in ("forward", "training")]
            for sizes in STEP_SIZES:
                network = Network(cell, *sizes)
                group = "streaming" if network.batch == 1 else "server"
                found.append(plain_line(group, network, "forward", threads))
            for sizes in PADDED_SIZES:
                network = Network(cell, *sizes)
                found += [padded_line(network, w, threads) for w in ("forward", "training")]
            for sizes in GATE_SIZES:
                network = Network(cell, *sizes)
                if network.batch >= 16 and network.units >= 256:
                    works = ("forward",) if threads == 1 else ("forward", "training")
                    found += [math_line(network, work, threads) for work in works]
                if network.batch == 1 and network.units >= 256 and network.layers == 1:
                    found.append(weights_line(network, threads))
        works = ("forward", "training")
        found += [cell_line(option, work, threads) for option in CELLS for work in works]
        found.append(model_line(threads))
    for cell in ("lstm", "gru"):
        found += drop_in_lines(cell)
        for backend in KERAS_BACKENDS:
            found += keras_drop_in_lines(cell, backend)
        found += jax_drop_in_lines(cell)
    found += accuracy_lines()
    for worker, name in ((ORT.worker, "ONNX Runtime"), ("pytorch", "PyTorch")):
        found += [company_line(Network("lstm", *sizes), worker, name) for sizes in COMPANY_SIZES]
    found += [memory_line(Network(c, *sizes)) for c in ("lstm", "gru") for sizes in MEMORY_SIZES]
    return found


def four_threads_set() -> list[Line]:
    """The networks of the gate set on four threads; no goal but 'lines lost' is set for them."""
    found = []
    for cell in ("lstm", "gru"):
        for sizes in (*GATE_SIZES, *STACK_SIZES):
            works = ("forward", "training")
            found += [plain_line("four threads", Network(cell, *sizes), w, 4) for w in works]
        server = [Network(cell, *sizes) for sizes in STEP_SIZES if sizes[2] > 1]
        found += [plain_line("four threads", network, "forward", 4) for network in server]
    return found


def full_set() -> list[Line]:
    """What --full adds."""
    networks = [
        *(Network("rnn_tanh", *sizes) for sizes in GATE_SIZES),
        *(Network(c, 1, u, 8, 50) for c in ("lstm", "gru") for u in (64, 128, 256, 512, 1024)),
        *(Network(c, 1, u, 1, 100) for c in ("lstm", "gru") for u in (16, 32)),
    ]
    for cell in ("lstm", "gru"):
        networks += [
            Network(cell, 5, 1024, 8, 200, directions=2),
            Network(cell, 3, 320, 16, 400, directions=2),
            Network(cell, 2, 650, 20, 35),
            Network(cell, 3, 1150, 40, 70),
        ]
    return [
        plain_line("full", network, work, threads)
        for threads in (1, 2)
        for network in networks
        for work in ("forward", "training")
    ]
