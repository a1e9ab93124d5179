"""The goals, each with the figure that was reached."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from peers.lines import KERAS_BACKENDS
from peers.report import accuracy
from peers.report.results import LineResult, roofline_percent
from peers.stats import geometric_mean


@dataclass(frozen=True)
class Goal:
    """One sentence, what was wanted and what was found; None: not measured here."""

    text: str
    wanted: float
    found: float | None
    lines: int
    at_most: bool = False

    @property
    def state(self) -> str:
        """'met', 'not met' or 'not measurable here'."""
        if self.found is None:
            return "not measurable here"
        met = self.found <= self.wanted if self.at_most else self.found >= self.wanted
        return "met" if met else "not met"


Pick = Callable[[LineResult], float | None]


def mean_goal(text: str, wanted: float, results: Iterable[LineResult], pick: Pick) -> Goal:
    """A geometric mean over the lines that have a figure."""
    values = [value for result in results if (value := pick(result)) is not None]
    return Goal(text, wanted, geometric_mean(values), len(values))


def least_goal(text: str, wanted: float, results: Iterable[LineResult], pick: Pick) -> Goal:
    """Every line must reach it."""
    values = [value for result in results if (value := pick(result)) is not None]
    return Goal(text, wanted, min(values, default=None), len(values))


def best_ratio(result: LineResult) -> float | None:
    """Ours against the best of all peers."""
    best = result.best()
    return best[1].value if best else None


def against(prefix: str) -> Pick:
    """Ours against one library."""

    def pick(result: LineResult) -> float | None:
        ratio = result.against(prefix)
        return ratio.value if ratio else None

    return pick


def over_padding(result: LineResult) -> float | None:
    """Ours against the best of those who compute the padding."""
    told = ("packed", "lengths")
    found = [ratio.value for side, ratio in result.peers() if not side.key.endswith(told)]
    return min(found, default=None)


def speedup(key: str, over: str) -> Pick:
    """One side of a line over another."""

    def pick(result: LineResult) -> float | None:
        ratio = result.speedup(key, over)
        return ratio.value if ratio else None

    return pick


def memory_ratio(result: LineResult) -> float | None:
    """Our peak memory over the leanest peer's, of the leaner of our two."""
    sides = [side for side in result.sides if not side.reason and side.memory > 0]
    ours = [side.memory for side in sides if side.role == "ours"]
    peers = [side.memory for side in sides if side.role == "peer"]
    return min(ours) / min(peers) if ours and peers else None


def ratio_goals(by: Callable[..., list[LineResult]], amx: bool) -> list[Goal]:
    """Against the best peers, by regime."""
    few = "batch 1", "streaming"
    wanted = {"few": 1.6, "batch": 1.08, "training": 1.2} if amx else {
        "few": 1.35, "batch": 1.0, "training": 1.08
    }  # fmt: skip
    mean = "geometric mean over the best peer"
    return [
        mean_goal(f"batch 1 and streaming, forward: {mean}", wanted["few"],
                  by(*few, work="forward"), best_ratio),
        mean_goal(f"batch 1 and streaming, forward + backward: {mean}", 2.0,
                  by(*few, work="training"), best_ratio),
        mean_goal(f"batches, forward: {mean}", wanted["batch"],
                  by("batches", work="forward"), best_ratio),
        mean_goal(f"batches, forward + backward: {mean}", wanted["training"],
                  by("batches", work="training"), best_ratio),
        least_goal("half padding: every line over any peer that computes it", 1.8, by("padding"),
                   over_padding),
        mean_goal("batch 1: geometric mean over PyTorch", 3.0, by("batch 1"), against("PyTorch")),
        mean_goal("batch 1: geometric mean over Keras", 3.0, by("batch 1"), against("Keras")),
        mean_goal("batches: geometric mean over PyTorch", 1.5, by("batches"), against("PyTorch")),
        mean_goal("batches: geometric mean over Keras", 1.5, by("batches"), against("Keras")),
    ]  # fmt: skip


def roofline_goals(by: Callable[..., list[LineResult]]) -> list[Goal]:
    """Against the machine."""
    large = [r for r in by("batches") if r.line.network.layers == 4]
    big = [r for r in large if r.line.network.units >= 512]
    small = [r for r in large if r.line.network.units == 128]
    forward = [r for r in big if r.line.work == "forward"]
    training = [r for r in big if r.line.work == "training"]
    one = [r for r in by("batch 1", work="forward")
           if r.line.network.units >= 256 and r.line.network.layers == 1]
    return [
        least_goal("L4 U1024 and L4 U512, forward: percent of the FMA peak", 92, forward,
                   roofline_percent),
        least_goal("L4 U1024 and L4 U512, forward + backward: percent of the FMA peak", 88,
                   training, roofline_percent),
        least_goal("L4 U128: percent of the FMA peak", 82, small, roofline_percent),
        least_goal("batch 1 from U256 up: percent of the read bandwidth", 85, one,
                   roofline_percent),
    ]  # fmt: skip


def arithmetic_goals(by: Callable[..., list[LineResult]], amx: bool) -> list[Goal]:
    """bf16, bf16x3 and smaller weights against our own float32."""
    ours, maths, weights = "OpenRNN C++", by("math"), by("weights")
    goals = [
        least_goal("bf16: every line over our float32", 4.0 if amx else 1.7, maths,
                   speedup(f"{ours} bf16", ours)),
        mean_goal("bf16: geometric mean over oneDNN's bf16", 1.5 if amx else 1.0, maths,
                  speedup(f"{ours} bf16", "oneDNN bf16")),
        least_goal("batch 1 from U256 up: bf16 weights over our float32", 1.6, weights,
                   speedup(f"{ours} bfloat16", ours)),
        least_goal("batch 1 from U256 up: int8 weights over our float32", 3.0, weights,
                   speedup(f"{ours} int8", ours)),
    ]  # fmt: skip
    if amx:
        goals.insert(2, least_goal("bf16x3: every line over our float32", 2.0, maths,
                                   speedup(f"{ours} bf16x3", ours)))  # fmt: skip
    return goals


def drop_in_goals(results: Sequence[LineResult]) -> list[Goal]:
    """Converted modules of torch.nn against what they were and against our own layers."""
    plain = [r for r in results if not r.line.padded]
    ours, of = "openrnn.torch", "geometric mean over torch.nn"
    wide = [r for r in plain if r.line.work == "training" and r.line.network.units >= 128]
    return [
        mean_goal(f"drop-in, LSTM: {of}", 1.3, [r for r in plain if r.line.network.cell == "lstm"],
                  speedup(ours, "PyTorch")),
        mean_goal(f"drop-in, GRU: {of}", 2.0, [r for r in plain if r.line.network.cell == "gru"],
                  speedup(ours, "PyTorch")),
        mean_goal(f"drop-in, packed sequences: {of}", 3.0, [r for r in results if r.line.padded],
                  speedup(f"{ours} packed", "PyTorch packed")),
        least_goal("drop-in: every line over torch.compile", 1.0, plain,
                   speedup(ours, "PyTorch compiled")),
        least_goal("drop-in from U128 up, forward + backward: every line over our own layers", 0.97,
                   wide, speedup(ours, "OpenRNN")),
    ]  # fmt: skip


def framework_goals(by: Callable[..., list[LineResult]]) -> list[Goal]:
    """Converted layers of Keras, and calls of openrnn.jax, against what they were."""
    goals = [
        mean_goal(f"drop-in, Keras on {name}: geometric mean over its own layers", 2.0,
                  by(f"dropin keras {backend}"), speedup("openrnn.keras", "Keras"))
        for backend, name in KERAS_BACKENDS.items()
    ]  # fmt: skip
    return [*goals, mean_goal("drop-in, JAX: geometric mean over lax.scan", 1.5, by("dropin jax"),
                              speedup("openrnn.jax", "JAX"))]  # fmt: skip


def accuracy_goals(results: Sequence[LineResult]) -> list[Goal]:
    """Float32 against float64, every quantity of every line."""
    found = [aims for result in results if (aims := accuracy.aims(result))]
    of_limit = [accuracy.worst(aim.of_limit for aim in aims) for aims in found]
    of_other = [accuracy.worst(aim.of_other for aim in aims) for aims in found]
    each = "error of float32, every quantity and line, over"
    return [
        Goal(
            f"{each} {limit}, at most", 1.0, accuracy.worst(shares),
            sum(share is not None for share in shares), True,
        )
        for limit, shares in (
            ("the larger of 0.8 of PyTorch's and 1.1 of float32 storage's", of_limit),
            ("the least of the other peers'", of_other),
        )
    ]  # fmt: skip


def goals_of(results: Sequence[LineResult], amx: bool) -> list[Goal]:
    """All of them, over the gate set."""

    def by(*groups: str, work: str = "") -> list[LineResult]:
        return [r for r in results if r.line.group in groups and work in ("", r.line.work)]

    gate = [r for r in results if r.line.group not in ("memory", "full", "company")]
    verdicts = [best[1].verdict for r in gate if (best := r.best()) is not None]
    lost = Goal(
        "lines lost", 0, float(verdicts.count("lost")) if verdicts else None, len(verdicts), True
    )
    company = least_goal(
        "in company: every line over ours on one thread", 0.83, by("company"), best_ratio
    )
    cells = least_goal(
        "cells with options: every line over the best loop in PyTorch", 3.0, by("cells"), best_ratio
    )
    memory = [v for r in by("memory") if (v := memory_ratio(r)) is not None]
    peak = Goal(
        "peak memory of a training step over the leanest peer's, at most", 1.0,
        max(memory, default=None), len(memory), True,
    )  # fmt: skip
    drop_in = [*drop_in_goals(by("dropin")), *framework_goals(by)]
    arithmetic, errors = arithmetic_goals(by, amx), accuracy_goals(gate)
    plain = [lost, *ratio_goals(by, amx), *roofline_goals(by), *arithmetic]
    return [*plain, company, cells, *drop_in, peak, *errors]
