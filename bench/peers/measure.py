"""One line: set up every side, compare what they compute, then time them in turn."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from peers import accuracy, agreement, problem
from peers.lines import Line, Side
from peers.protocol import Pool, Refusal, Worker, WorkerError

TURN_NS, WARM_NS = 15e6, 3e6  # of calls in one turn, of untimed ones before them
MOST_CALLS, MOST_ROUNDS, FEWEST_ROUNDS = 1000, 60, 3
HOPELESS = 3.0  # so many times slower than the best after FEWEST_ROUNDS: no more turns
Tell = Callable[[str], None]
GUESSED_FLOP_PER_NS = 100.0  # of one thread
BOUND = Side("float32 storage", "exact", "bound")
SLOW_NS = 1e9  # a call as long as this of Keras or JAX: one round less, and no more
SLOW_WORKERS = ("keras_", "jax_scan")


@dataclass
class Entry:
    """What is known of one side of a line."""

    side: Side
    about: str = ""
    kernel: str = ""
    reason: str = ""  # why it is not there
    agrees: bool = True
    difference: float = 0.0
    differs_in: str = ""
    memory: int = 0
    errors: accuracy.Errors = field(default_factory=dict)  # against float64
    rounds: list[float | None] = field(default_factory=list)  # median ns of each turn
    call_ns: float = 0.0  # of the last look

    @property
    def present(self) -> bool:
        """Whether it takes part."""
        return not self.reason

    def as_json(self) -> dict[str, Any]:
        """For the file of results."""
        found = asdict(self)
        found["side"] = self.side.key
        found |= {"role": self.side.role, "native": self.side.native}
        del found["call_ns"]
        return found


def worker_name(side: Side) -> str:
    """Keras under XLA is a process of its own; so are two sides of one library in one line."""
    own_process = (
        "jit", "compile", "math", "weights", "what", "beside", "own_threads", "drop_in"
    )  # fmt: skip
    extra = [f"{key}{value}" for key, value in side.options if key in own_process]
    extra += [word for word in side.key.split() if word in ("lengths", "packed", "alone")]
    return "#".join([side.worker, "-".join(extra)]) if extra else side.worker


def setup_command(line: Line, side: Side, folder: Path, work: str) -> str:
    """What a worker is told."""
    network = line.network
    width = problem.EMBEDDING if work == "model" else network.units
    words = {
        "folder": str(folder), "cell": network.cell, "layers": network.layers,
        "units": network.units, "input": width, "batch": network.batch,
        "time": network.time, "directions": network.directions, "pass": work,
    }  # fmt: skip
    if line.option:
        words["option"] = line.option.replace(" ", "_")
    words |= dict(side.options)
    return "setup " + " ".join(f"{key}={value}" for key, value in words.items())


class LineRun:
    """The measurement of one line."""

    def __init__(
        self, line: Line, pool: Pool, folder: Path, seconds: float, tell: Tell = lambda _: None
    ) -> None:
        self.line, self.pool, self.folder = line, pool, folder
        self.seconds, self.tell = seconds, tell
        self.entries = [Entry(side) for side in line.sides]
        self.workers: dict[str, Worker] = {}
        self.exact = accuracy.Source(pool, folder.parent / "exact")

    def _attempt(self, entry: Entry, action: Callable[[], None]) -> None:
        """A side that cannot, or fails, is out with its reason."""
        try:
            action()
        except Refusal as refusal:
            entry.reason = str(refusal)
        except WorkerError as error:
            entry.reason = f"failed: {error}"

    def _set_up(self, entry: Entry) -> None:
        side, key = entry.side, entry.side.key
        worker = self.pool.get(worker_name(side))
        command = setup_command(self.line, side, self.folder, self.line.work)
        entry.about = worker.ask("about")
        entry.kernel = worker.ask(command)
        self.workers[key] = worker
        if side.role != "meter" and dict(side.options).get("skip_input") is None:
            worker.ask(f"output {self.folder / 'out' / key.replace(' ', '_')}")
        if not self.line.timed:
            return
        guess = self.line.network.flop(self.line.work) / (GUESSED_FLOP_PER_NS * self.line.threads)
        # The first turn of a long call tells as much as a look before it.
        entry.call_ns = guess if guess > SLOW_NS else min(worker.times(1, 0))
        if entry.call_ns < WARM_NS:
            entry.call_ns = min(worker.times(5, 3))

    def _folders(self) -> dict[str, Path]:
        """Where results of sides are."""
        return {
            entry.side.key: path
            for entry in self.entries
            if (path := self.folder / "out" / entry.side.key.replace(" ", "_")).exists()
        }

    def _compare(self) -> None:
        lengths = np.load(self.folder / "lengths.npy") if self.line.padded else None
        for key, found in agreement.check(self.line, self._folders(), lengths).items():
            entry = next(entry for entry in self.entries if entry.side.key == key)
            entry.agrees, entry.difference = found.within, found.difference
            entry.differs_in = found.result

    def _measure_errors(self) -> list[Entry]:
        """Of every side; of float32 storage as one more entry."""
        if not self.line.against_float64:
            return []
        bound = Entry(BOUND)

        def command(what: str) -> str:
            # Backward too: the lines of both passes share the result.
            side = Side(what, BOUND.worker, BOUND.role, (("what", what),))
            return setup_command(self.line, side, self.folder, "training")

        def find() -> None:
            mask = None
            if self.line.padded:
                lengths = np.load(self.folder / "lengths.npy")
                mask = agreement.valid_positions(self.line, lengths)
            exact = self.exact.of(self.line, self.folder, command)
            for entry in self.entries:
                if (path := self._folders().get(entry.side.key)) is not None:
                    found = agreement.read(path)
                    entry.errors = accuracy.errors(self.line, found, exact.values, mask)
            bound.errors = accuracy.errors(self.line, exact.storage, exact.values, mask)

        self._attempt(bound, find)
        return [bound]

    def _turn(self, entry: Entry) -> None:
        calls = int(np.clip(TURN_NS / entry.call_ns, 1, MOST_CALLS))
        warm = int(np.clip(WARM_NS / entry.call_ns, 0 if entry.call_ns > 2 * TURN_NS else 1, 100))
        times = self.workers[entry.side.key].times(calls, warm)
        # A meter's readings in a turn differ by what others took: the best is the machine's.
        value = min(times) if entry.side.role == "meter" else float(np.median(times))
        entry.rounds.append(value)
        entry.call_ns = value

    def _still_running(self, number: int) -> list[Entry]:
        """Who takes part in a round: not those that cannot be the best of their language."""
        present = [entry for entry in self.entries if entry.present]
        if number == 0:
            return present
        timed = [entry for entry in present if entry.side.role in ("ours", "peer") and entry.rounds]
        medians = {e.side.key: float(np.median([r for r in e.rounds if r])) for e in timed}

        def goes_on(entry: Entry) -> bool:
            median = medians.get(entry.side.key)
            # Ratios are of sides called from the same language: a call from C++ costs less.
            alike = [medians[e.side.key] for e in timed if e.side.native == entry.side.native]
            best = min(alike, default=0.0)
            if entry.side.role != "peer" or median is None:
                return True
            if median > SLOW_NS and entry.side.worker.startswith(SLOW_WORKERS):
                return number < FEWEST_ROUNDS - 1
            return number < FEWEST_ROUNDS or median <= HOPELESS * best

        return [entry for entry in present if goes_on(entry)]

    def _rounds(self) -> None:
        end = time.monotonic() + self.seconds
        for number in range(MOST_ROUNDS):
            if number >= FEWEST_ROUNDS and time.monotonic() > end:
                break
            running = self._still_running(number)
            first = number % max(1, len(running))
            for entry in running[first:] + running[:first]:
                self._attempt(entry, lambda e=entry: self._turn(e))  # type: ignore[misc]
            for entry in self.entries:
                entry.rounds += [None] * (number + 1 - len(entry.rounds))

    def run(self) -> list[Entry]:
        """All of it; the inputs are removed afterwards by the caller."""
        problem.write(self.line, self.folder)
        for entry in self.entries:
            self.tell(f"setting up {entry.side.key}")
            self._attempt(entry, lambda e=entry: self._set_up(e))  # type: ignore[misc]
        self._compare()
        self.tell("float64")
        bound = self._measure_errors()
        if self.line.timed:
            self.tell("timing")
            self._rounds()
        for worker in self.workers.values():
            if worker.alive:
                release(worker)
        return self.entries + bound


def release(worker: Worker) -> None:
    """Frees a job; a worker that cannot is started again when next asked for."""
    try:
        worker.ask("release")
    except WorkerError:
        worker.kill()


def measure_memory(line: Line, pool: Pool, folder: Path, tell: Tell) -> list[Entry]:
    """Peak memory of a training step, every side in a fresh process that has run a small one."""
    small = Line("", type(line.network)(line.network.cell, 1, 16, 2, 3), "training", 2, ())
    problem.write(small, folder / "small")
    problem.write(line, folder / "large")
    entries = [Entry(side) for side in line.sides]
    for entry in entries:
        tell(f"memory of {entry.side.key}")
        worker = pool.start(worker_name(entry.side))
        try:
            worker.ask(setup_command(small, entry.side, folder / "small", "training"))
            worker.times(1, 1)
            worker.ask("release")
            worker.ask("mark")
            entry.kernel = worker.ask(
                setup_command(line, entry.side, folder / "large", "training") + " single=1"
            )
            worker.times(1, 0)  # compilers have done their work
            worker.ask("reset")
            worker.times(2, 0)
            entry.memory = int(worker.ask("memory").split()[-1])
        except Refusal as refusal:
            entry.reason = str(refusal)
        except WorkerError as error:
            entry.reason = f"failed: {error}"
        finally:
            worker.kill()
    return entries
