"""The goals: what each wants, of which lines it speaks, and what it compares."""

import numpy as np
import pytest

from peers.lines import Line, Network
from peers.report import chart, goals, results, table
from peers.stats import Ratio

# (the text, what is wanted, the same with AMX, whether it is a most).
WANTED = [
    ("lines lost", 0, 0, True),
    ("batch 1 and streaming, forward: geometric mean over the best peer", 1.35, 1.6, False),
    ("batch 1 and streaming, forward + backward: geometric mean over the best peer", 2.0, 2.0, False),
    ("batches, forward: geometric mean over the best peer", 1.0, 1.08, False),
    ("batches, forward + backward: geometric mean over the best peer", 1.08, 1.2, False),
    ("half padding: every line over any peer that computes it", 1.8, 1.8, False),
    ("batch 1: geometric mean over PyTorch", 3.0, 3.0, False),
    ("batch 1: geometric mean over Keras", 3.0, 3.0, False),
    ("batches: geometric mean over PyTorch", 1.5, 1.5, False),
    ("batches: geometric mean over Keras", 1.5, 1.5, False),
    ("L4 U1024 and L4 U512, forward: percent of the FMA peak", 92, 92, False),
    ("L4 U1024 and L4 U512, forward + backward: percent of the FMA peak", 88, 88, False),
    ("L4 U128: percent of the FMA peak", 82, 82, False),
    ("batch 1 from U256 up: percent of the read bandwidth", 85, 85, False),
    ("bf16: every line over our float32", 1.7, 4.0, False),
    ("bf16: geometric mean over oneDNN's bf16", 1.0, 1.5, False),
    ("batch 1 from U256 up: bf16 weights over our float32", 1.6, 1.6, False),
    ("batch 1 from U256 up: int8 weights over our float32", 3.0, 3.0, False),
    ("in company: every line over ours on one thread", 0.83, 0.83, False),
    ("cells with options: every line over the best loop in PyTorch", 3.0, 3.0, False),
    ("drop-in, LSTM: geometric mean over torch.nn", 1.3, 1.3, False),
    ("drop-in, GRU: geometric mean over torch.nn", 2.0, 2.0, False),
    ("drop-in, packed sequences: geometric mean over torch.nn", 3.0, 3.0, False),
    ("drop-in: every line over torch.compile", 1.0, 1.0, False),
    ("drop-in from U128 up, forward + backward: every line over our own layers", 0.97, 0.97, False),
    ("drop-in, Keras on TensorFlow: geometric mean over its own layers", 2.0, 2.0, False),
    ("drop-in, Keras on PyTorch: geometric mean over its own layers", 2.0, 2.0, False),
    ("drop-in, Keras on JAX: geometric mean over its own layers", 2.0, 2.0, False),
    ("drop-in, Keras on NumPy: geometric mean over its own layers", 2.0, 2.0, False),
    ("drop-in, JAX: geometric mean over lax.scan", 1.5, 1.5, False),
    ("peak memory of a training step over the leanest peer's, at most", 1.0, 1.0, True),
    ("error of float32, every quantity and line, over the larger of 0.8 of PyTorch's and 1.1 of "
     "float32 storage's, at most",
     1.0, 1.0, True),
    ("error of float32, every quantity and line, over the least of the other peers', at most",
     1.0, 1.0, True),
]


def side(key, ns, role="peer", native=False, **more):
    """A side of five equal rounds."""
    return {
        "side": key, "role": role, "native": native, "about": "1.0", "kernel": "k", "reason": "",
        "agrees": True, "difference": 0.0, "differs_in": "", "memory": 0, "rounds": [ns] * 5,
    } | more  # fmt: skip


def line_result(sides, group="batches", sizes=(4, 512, 64, 30), work="forward", cell="lstm", **more):
    line = Line(group, Network(cell, *sizes), work, 2, (), **more)
    return results.LineResult.of(line, {"date": "2030-01-01", "sides": sides})


def pair(ratio, **more):
    """Ours and one peer."""
    return line_result([side("OpenRNN", 1.0, "ours"), side("PyTorch", ratio)], **more)


def named(found, start):
    (goal,) = [goal for goal in found if goal.text.startswith(start)]
    return goal


@pytest.mark.parametrize("amx", [False, True])
def test_what_is_wanted(amx):
    found = goals.goals_of([], amx)
    if amx:
        bf16x3 = named(found, "bf16x3: every line over our float32")
        assert bf16x3.wanted == 2.0 and found.index(bf16x3) == 16
        found.remove(bf16x3)
    assert len(found) == len(WANTED)
    for goal, (text, plain, with_amx, most) in zip(found, WANTED, strict=True):
        assert goal.text == text
        assert (goal.wanted, goal.at_most) == (with_amx if amx else plain, most), goal.text
        assert (goal.found, goal.lines, goal.state) == (None, 0, "not measurable here")


def test_a_goal_is_met_by_what_it_wants():
    assert goals.Goal("a", 2.0, 2.0, 1).state == goals.Goal("a", 2.0, 2.0, 1, True).state == "met"
    assert goals.Goal("a", 2.0, 1.9, 1).state == goals.Goal("a", 2.0, 2.1, 1, True).state == "not met"


@pytest.mark.parametrize("group,work,start,others", [
    ("batch 1", "forward", "batch 1 and streaming, forward:", 2),
    ("streaming", "forward", "batch 1 and streaming, forward:", 2),
    ("batch 1", "training", "batch 1 and streaming, forward + backward:", 2),
    ("batches", "forward", "batches, forward:", 1),
    ("batches", "training", "batches, forward + backward:", 1),
    ("padding", "forward", "half padding:", 2), ("company", "forward", "in company:", 2),
    ("cells", "training", "cells with options:", 2),
    ("batch 1", "training", "batch 1: geometric mean over PyTorch", 2),
    ("batches", "forward", "batches: geometric mean over PyTorch", 2),
])  # fmt: skip
def test_lines_of_a_goal(group, work, start, others):
    """Two lines of the group, beside two of each group; `others` counts those of the goal."""
    works = ("forward", "training")
    every = [pair(9.0, group=g, work=w) for g in [*table.GROUPS, "another"] for w in works]
    mine = [pair(ratio, group=group, work=work) for ratio in (2.0, 4.5)]
    alone = named(goals.goals_of(mine, False), start)
    least = start in ("half padding:", "in company:", "cells with options:")
    assert (alone.found, alone.lines) == (pytest.approx(2.0 if least else 3.0), 2)
    assert named(goals.goals_of([*every, *mine], False), start).lines == 2 + others


def test_lines_lost_are_of_the_gate_set():
    lost = [pair(0.5, group=group) for group in table.GROUPS if group not in ("math", "weights")]
    found = named(goals.goals_of(lost, False), "lines lost")
    assert found.lines == found.found == len(lost) - 3  # memory, full, company
    assert found.state == "not met"
    level = goals.goals_of([pair(1.0)], False)
    assert (named(level, "lines lost").found, named(level, "lines lost").state) == (0.0, "met")


def test_the_best_of_a_library_counts():
    sides = [side("OpenRNN", 1.0, "ours"), side("Keras", 8.0), side("Keras XLA", 4.0),
             side("PyTorch", 2.0), side("PyTorch packed", 5.0)]  # fmt: skip
    made = [line_result(sides, "batch 1"), line_result(sides)]
    found = goals.goals_of(made, False)
    for group in ("batch 1", "batches"):
        assert named(found, f"{group}: geometric mean over Keras").found == pytest.approx(4.0)
        assert named(found, f"{group}: geometric mean over PyTorch").found == pytest.approx(2.0)


def test_padding_is_over_those_who_are_not_told():
    sides = [side("OpenRNN", 1.0, "ours"), side("PyTorch packed", 1.5), side("PyTorch", 3.0),
             side("ONNX Runtime lengths", 1.2), side("ONNX Runtime", 2.5)]  # fmt: skip
    assert goals.over_padding(line_result(sides, "padding")) == 2.5
    assert goals.over_padding(line_result(sides[:2], "padding")) is None


def roofs(percent, **more):
    """A line whose ours stands at so many percent of the FMA peak."""
    found = line_result([], **more)
    gflop = found.line.network.flop(found.line.work) * 1e-9
    return line_result([side("OpenRNN", gflop * 1e9, "ours"), side("FMA peak", percent * 1e7, "meter")],
                       **more)  # fmt: skip


def test_rooflines_are_those_of_their_sizes():
    made = [
        roofs(90, sizes=(4, 512, 64, 30)), roofs(80, sizes=(4, 1024, 64, 40)),
        roofs(70, sizes=(4, 512, 64, 30), work="training"), roofs(60, sizes=(4, 128, 64, 20)),
        roofs(65, sizes=(4, 128, 64, 20), work="training"), roofs(10, sizes=(3, 512, 64, 30)),
        roofs(11, sizes=(4, 256, 64, 30)), roofs(12, sizes=(4, 512, 64, 30), group="full"),
    ]  # fmt: skip
    found = goals.goals_of(made, False)
    starts = ("L4 U1024 and L4 U512, forward:", "L4 U1024 and L4 U512, forward + backward:", "L4 U128:")
    picked = [named(found, start) for start in starts]
    assert [goal.lines for goal in picked] == [2, 1, 2]
    assert [goal.found for goal in picked] == pytest.approx([80, 70, 60])

    def reading(percent, sizes, work="forward"):
        network = Network("lstm", *sizes)
        gigabytes = network.recurrent_bytes * network.time * 1e-9
        return line_result([side("steps alone", gigabytes * 1e9, "own", True),
                            side("reading", percent * 1e7, "meter", True)],
                           "batch 1", sizes, work)  # fmt: skip

    made = [reading(95, (1, 256, 1, 100)), reading(89, (1, 512, 1, 50)), reading(1, (1, 255, 1, 100)),
            reading(2, (2, 256, 1, 100)), reading(3, (1, 256, 1, 100), "training")]  # fmt: skip
    goal = named(goals.goals_of(made, False), "batch 1 from U256 up: percent")
    assert (goal.found, goal.lines, goal.state) == (pytest.approx(89), 2, "met")
    assert results.roofline_percent(pair(2.0)) is None


def test_other_arithmetics_are_over_our_float32():
    ours = [side("OpenRNN", 50.0, "ours"), side("OpenRNN C++", 12.0, "ours", True)]
    math = [*ours, side("OpenRNN C++ bf16", 4.0, "own", True), side("OpenRNN bf16", 9.0, "own"),
            side("OpenRNN C++ bf16x3", 6.0, "own", True),
            side("oneDNN bf16", 5.0, native=True)]  # fmt: skip
    weights = [*ours, side("OpenRNN C++ int8", 3.0, "own", True),
               side("OpenRNN C++ bfloat16", 8.0, "own", True)]  # fmt: skip
    found = goals.goals_of([line_result(math, "math"), line_result(weights, "weights")], True)
    wanted = [("bf16: every line", 3.0), ("bf16: geometric mean over oneDNN", 1.25), ("bf16x3:", 2.0),
              ("batch 1 from U256 up: bf16 weights", 1.5),
              ("batch 1 from U256 up: int8 weights", 4.0)]  # fmt: skip
    for start, value in wanted:
        goal = named(found, start)
        assert (goal.found, goal.lines) == (pytest.approx(value), 1), start
    page = table.speedup_group([line_result(math, "math")])
    assert page[0] == ("| times as fast as our float32 | OpenRNN C++ bf16 | OpenRNN bf16 | "
                       "OpenRNN C++ bf16x3 |")  # fmt: skip
    assert page[2] == ("| LSTM L4 U512 B64 T30, forward, 2 threads | 3.00 [3.00, 3.00] | "
                       "5.56 [5.56, 5.56] | 2.00 [2.00, 2.00] |")  # fmt: skip


def test_memory_is_of_the_leaner_of_ours_over_the_leanest_peer():
    sides = [side("OpenRNN", 1.0, "ours", memory=90), side("OpenRNN C++", 1.0, "ours", memory=60),
             side("JAX", 1.0, memory=120), side("PyTorch", 1.0, memory=40),
             side("Keras", 1.0, memory=10, reason="failed"), side("none", 1.0)]  # fmt: skip
    assert goals.memory_ratio(line_result(sides, "memory", work="memory")) == 1.5
    assert goals.memory_ratio(line_result(sides[:2], "memory", work="memory")) is None
    made = [line_result(sides, "memory", work="memory"), line_result(sides[:3], "memory", work="memory")]
    goal = named(goals.goals_of(made, False), "peak memory")
    assert (goal.found, goal.lines, goal.state) == (1.5, 2, "not met")


def test_verdicts_and_ends_of_intervals():
    assert Ratio(1.0, 0.9, 0.99).verdict == "lost" and Ratio(1.0, 1.0, 1.2).verdict == "level"
    assert Ratio(1.0, 0.9, 1.0).verdict == "level" and Ratio(1.1, 1.01, 1.2).verdict == "won"


def test_rows_without_a_peer_or_ours():
    alone = line_result([side("OpenRNN", 2e6, "ours")])
    assert table.best_row(alone) == (
        "| LSTM L4 U512 B64 T30, forward, 2 threads | 2.00 (2.00 - 2.00) | none |  |  |  |  |")
    gone = line_result([side("OpenRNN", 2e6, "ours", reason="failed"), side("JAX", 1e6)])
    assert "| not there | none |" in table.best_row(gone)
    few = line_result([side("OpenRNN", 1e6, "ours"), side("JAX", 2e6, rounds=[2e6, 2e6, None, None])])
    assert "| JAX | 2.00 (2.00 - 2.00) | 2.00 [2.00, 2.00] | won |  |" in table.best_row(few)
    roof = roofs(51.6)
    assert table.best_row(roof).endswith("|  |  | 52 % |")
    every = table.every_side([gone, few])
    assert every[0] == "| median ms | OpenRNN | JAX |"
    assert every[2:] == ["| LSTM L4 U512 B64 T30, forward, 2 threads | - | 1.00 |",
                         "| LSTM L4 U512 B64 T30, forward, 2 threads | 1.00 | 2.00 |"]  # fmt: skip
    assert table.milliseconds(0.0) == "0"


def test_a_quick_run_says_so():
    setting = {"processor": "P", "cores": 1, "flags": [], "versions": {"a": "1", "b": "2"}}
    assert table.setting_lines(setting, [])[:2] == ["P, 1 cores, ; nothing measured.", "a 1, b 2."]
    quick = table.setting_lines({**setting, "quick": True}, [pair(1.0)])
    assert quick[1] == "a 1, b 2. Measured with --quick: few repetitions."
    assert quick[0].endswith("2030-01-01 to 2030-01-01.")


def test_the_chart(tmp_path, monkeypatch):
    from matplotlib import pyplot

    figures, close = [], pyplot.close
    monkeypatch.setattr(pyplot, "close", figures.append)
    made = [pair(2.0), pair(0.5, cell="gru"), line_result([side("OpenRNN", 1.0, "ours")]), pair(1.0)]
    assert chart.draw(made, tmp_path / "a.svg") and (tmp_path / "a.svg").stat().st_size > 1000
    (figure,) = figures
    (axes,) = figure.axes
    dots = [line for line in axes.lines if line.get_marker() == "o"]
    assert [tuple(np.ravel(dot.get_data())) for dot in dots] == [(1.0, 0), (0.5, 1), (2.0, 2)]
    assert [dot.get_color() for dot in dots] == ["#555555", "#b2182b", "#1b7837"]
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert [name.split()[0] for name in names] == ["LSTM", "GRU", "LSTM"] and "forward" in names[0]
    assert axes.get_xlim() == pytest.approx((0.45, 2.8)) and axes.get_ylim() == (-0.7, 2.7)
    assert list(axes.get_xticks()) == [0.5, 0.75, 1, 1.5, 2] and axes.get_xscale() == "log"
    assert [text.get_text() for text in axes.texts] == ["PyTorch"] * 3
    close(figure)
    assert not chart.draw(made[2:3], tmp_path / "b.svg") and not (tmp_path / "b.svg").exists()
