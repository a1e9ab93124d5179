"""Ratios, verdicts, goals and the table, on results that are made up."""

import math
from dataclasses import replace

import numpy as np
import pytest

from peers import stats
from peers.lines import KERAS_BACKENDS, Line, Network, Side, four_threads_set, full_set, gate_set
from peers.report import accuracy as report_accuracy
from peers.report import goals, results, table

SETTING = {
    "processor": "A processor", "cores": 2, "flags": ["avx512f"], "versions": {"torch": "2.0"},
}  # fmt: skip


def side(key, rounds, role="peer", native=False, **more):
    """A side as it lies in the file."""
    return {
        "side": key, "role": role, "native": native, "about": "1.0", "kernel": "k", "reason": "",
        "agrees": True, "difference": 0.0, "differs_in": "", "memory": 0, "rounds": rounds,
    } | more  # fmt: skip


def line_result(sides, group="batches", sizes=(4, 512, 64, 30), work="forward", cell="lstm"):
    """A finished line."""
    line = Line(group, Network(cell, *sizes), work, 2, ())
    return results.LineResult.of(line, {"date": "2030-01-01", "sides": sides})


def test_ratios_of_known_data():
    ratio = stats.ratio_of([2.0] * 20, [3.0] * 20)
    assert (ratio.value, ratio.low, ratio.high, ratio.verdict) == (1.5, 1.5, 1.5, "won")
    assert stats.ratio_of([2.0] * 9, [1.0] * 9).verdict == "lost"
    assert stats.ratio_of([None, 1.0], [1.0, None]) is None
    # A slow phase hits both sides of a round, so that the pairs do not see it.
    phases = [1.0, 5.0] * 10
    paired = stats.ratio_of(phases, [1.1 * p for p in phases])
    assert paired.low == pytest.approx(1.1) and paired.high == pytest.approx(1.1)


def test_an_interval_around_one_is_level():
    random = np.random.default_rng(3)
    ours, theirs = random.uniform(0.8, 1.2, (2, 40))
    ratio = stats.ratio_of(list(ours), list(theirs))
    assert ratio.verdict == "level" and ratio.low < 1 < ratio.high
    assert ratio.low <= ratio.value <= ratio.high
    assert ratio == stats.ratio_of(list(ours), list(theirs))  # the seed is fixed
    wide = stats.ratio_of(list(ours[:5]), list(theirs[:5]))
    assert wide.high - wide.low > ratio.high - ratio.low


def test_the_interval_covers_the_truth():
    """Of 200 samples with a true ratio of 1.05 some 95 percent of the intervals hold it."""
    random, inside = np.random.default_rng(5), 0
    for _ in range(200):
        theirs = 1.05 * np.exp(random.normal(0, 0.1, 25))
        ratio = stats.ratio_of([1.0] * 25, list(theirs))
        inside += ratio.low <= 1.05 <= ratio.high
    assert 180 <= inside <= 199


def test_quartiles_and_means():
    assert stats.quartiles([4.0, 1.0, 3.0, 2.0, 5.0]) == stats.Quartiles(2.0, 3.0, 4.0)
    assert stats.geometric_mean([1.0, 4.0]) == pytest.approx(2.0)
    assert stats.geometric_mean([]) is None


def test_ours_is_called_from_the_language_of_the_peer():
    found = line_result([
        side("OpenRNN", [2.0] * 4, "ours"), side("OpenRNN C++", [1.0] * 4, "ours", True),
        side("PyTorch", [3.0] * 4), side("oneDNN", [1.2] * 4, native=True),
        side("JAX", [0.1] * 4, agrees=False), side("Keras", [], reason="refused"),
        side("FMA peak", [1.0] * 4, "meter", True),
    ])  # fmt: skip
    ratios = {peer.key: ratio.value for peer, ratio in found.peers()}
    assert ratios == {"PyTorch": 1.5, "oneDNN": pytest.approx(1.2)}
    assert found.best()[0].key == "oneDNN"
    assert found.against("PyTorch").value == 1.5 and found.against("Keras") is None


def test_peers_of_another_arithmetic_meet_ours_in_it():
    sides = [
        side("OpenRNN C++", [4.0] * 4, "ours", True),
        side("OpenRNN C++ bf16", [1.0] * 4, "own", True),
        side("oneDNN bf16", [2.0] * 4, native=True), side("PyTorch bf16", [3.0] * 4),
    ]  # fmt: skip
    found = line_result(sides, "math")
    assert found.best()[0].key == "oneDNN bf16" and found.best()[1].value == 2.0
    assert found.against("PyTorch").value == 3.0
    assert found.speedup("OpenRNN C++ bf16", "OpenRNN C++").value == 4.0
    sides[1]["reason"] = "not built"
    assert line_result(sides, "math").best() is None


def test_roofline_is_the_best_quartile_of_rounds():
    network = Network("lstm", 4, 512, 64, 30)
    gflop = network.forward_flop * 1e-9
    # Peaks of 100 GFLOP/s; the rounds stand at 50, 60, 70, 80 and 90 percent of it.
    times = [gflop / (100 * p) * 1e9 for p in (0.5, 0.6, 0.7, 0.8, 0.9)]
    found = line_result([
        side("OpenRNN C++", times, "ours", True),
        side("FMA peak", [1e9 / 100] * 5, "meter", True),
    ])  # fmt: skip
    assert results.roofline_percent(found) == pytest.approx(80.0)
    assert network.flop("training") == 3 * network.forward_flop
    assert network.forward_flop == 2 * 4 * 4 * 512 * 1024 * 64 * 30


def test_reading_is_that_of_the_steps_alone():
    network = Network("gru", 1, 256, 1, 100)
    gigabytes = 3 * 256 * 256 * 4 * 100 * 1e-9
    found = line_result(
        [
            side("steps alone", [gigabytes / 90 * 1e9] * 3, "own", True),
            side("reading", [1e9 / 100] * 3, "meter", True),
        ],
        "batch 1", (1, 256, 1, 100), cell="gru",
    )  # fmt: skip
    assert network.recurrent_bytes == 3 * 256 * 256 * 4
    assert results.roofline_percent(found) == pytest.approx(90.0)


def goal_named(found, start):
    return next(goal for goal in found if goal.text.startswith(start))


def test_company_is_measured_against_one_thread_and_is_no_line_of_the_peers():
    sides = [side("OpenRNN", [1.3] * 5, "ours"), side("OpenRNN one thread", [1.0] * 5)]
    found = goals.goals_of([line_result(sides, "company")], amx=False)
    assert goal_named(found, "in company").found == pytest.approx(1.0 / 1.3)
    assert goal_named(found, "in company").state == "not met"
    assert goal_named(found, "lines lost").lines == 0
    assert table.GROUPS["company"] in table.render([line_result(sides, "company")], found, SETTING)


def test_goals_by_group():
    two = [side("OpenRNN C++", [1.0] * 5, "ours", True), side("oneDNN", [1.5] * 5, native=True)]
    lost = [side("OpenRNN C++", [1.0] * 5, "ours", True), side("oneDNN", [0.5] * 5, native=True)]
    memory = [
        side("OpenRNN", [], "ours", memory=90), side("OpenRNN C++", [], "ours", True, memory=80),
        side("oneDNN", [], native=True, memory=100), side("JAX", [], memory=160),
    ]  # fmt: skip
    few = (1, 64, 1, 100)
    made = [
        line_result(two, "batch 1", few), line_result(two, "streaming", (1, 64, 1, 1)),
        line_result(two, "batch 1", few, "training"), line_result(lost, "batches"),
        line_result(memory, "memory", work="memory"),
    ]  # fmt: skip
    found = goals.goals_of(made, amx=False)
    assert goal_named(found, "lines lost").found == 1.0
    assert goal_named(found, "lines lost").state == "not met"
    forward = goal_named(found, "batch 1 and streaming, forward:")
    assert (forward.found, forward.lines, forward.state) == (pytest.approx(1.5), 2, "met")
    backward = goal_named(found, "batch 1 and streaming, forward + backward")
    assert (backward.found, backward.wanted, backward.state) == (pytest.approx(1.5), 2.0, "not met")
    assert goal_named(found, "batches, forward:").found == pytest.approx(0.5)
    assert goal_named(found, "peak memory").found == 0.8
    assert goal_named(found, "peak memory").state == "met"
    assert goal_named(found, "bf16:").state == "not measurable here"
    assert goal_named(goals.goals_of(made, amx=True), "batch 1 and streaming, forward:").wanted == 1.6


def test_drop_in_goals():
    def dropin(sides, work="training", sizes=(1, 256, 16, 50), cell="lstm", padded=False):
        found = line_result(sides, "dropin", sizes, work, cell)
        return replace(found, line=replace(found.line, padded=padded))

    ours, theirs = side("openrnn.torch", [1.0] * 5, "ours"), side("PyTorch", [1.5] * 5)
    compiled, own = side("PyTorch compiled", [0.9] * 5), side("OpenRNN", [0.99] * 5, "own")
    packed = [side("openrnn.torch packed", [1.0] * 5, "ours"), side("PyTorch packed", [4.0] * 5)]
    made = [dropin([ours, theirs, compiled, own]), dropin([ours, theirs], "forward", cell="gru"),
            dropin(packed, padded=True), dropin([ours, own], sizes=(1, 64, 1, 100))]  # fmt: skip
    found = {goal.text: goal for goal in goals.drop_in_goals(made)}
    assert [(goal.found, goal.lines) for goal in found.values()] == [
        (pytest.approx(1.5), 1), (pytest.approx(1.5), 1), (pytest.approx(4.0), 1),
        (pytest.approx(0.9), 1), (pytest.approx(0.99), 1)]  # fmt: skip
    assert [goal.state for goal in found.values()] == ["met", "not met", "met", "not met", "met"]


def test_drop_in_goals_of_keras_and_jax():
    def keras(backend, ratio, work="forward"):
        sides = [side("openrnn.keras", [1.0] * 5, "ours"), side("Keras", [ratio] * 5),
                 side("Keras XLA", [0.1] * 5)]  # fmt: skip
        return line_result(sides, f"dropin keras {backend}", work=work)

    scan = [side("openrnn.jax", [1.0] * 5, "ours"), side("JAX", [1.4] * 5)]
    made = [keras("torch", 2.0), keras("torch", 4.5, "training"), keras("numpy", 1.5),
            line_result(scan, "dropin jax")]  # fmt: skip
    found = goals.goals_of(made, amx=False)
    torch = goal_named(found, "drop-in, Keras on PyTorch")
    assert (torch.found, torch.lines, torch.state) == (pytest.approx(3.0), 2, "met")
    assert goal_named(found, "drop-in, Keras on NumPy").state == "not met"
    assert goal_named(found, "drop-in, Keras on JAX").state == "not measurable here"
    assert goal_named(found, "drop-in, Keras on TensorFlow").wanted == 2.0
    jax = goal_named(found, "drop-in, JAX")
    assert (jax.found, jax.wanted, jax.state) == (pytest.approx(1.4), 1.5, "not met")


def test_drop_in_groups_show_their_means_and_few_turns():
    slow = [3e6, 3e6, *[None] * 6]
    made = [
        line_result([side("openrnn.keras", [1e6] * 8, "ours"), side("Keras", slow)],
                    "dropin keras numpy", (1, 64, 1, 100)),
        line_result([side("openrnn.keras", [1e6] * 8, "ours"), side("Keras", [12e6] * 8)],
                    "dropin keras numpy"),
    ]  # fmt: skip
    page = table.render(made, [], SETTING)
    assert "| Keras, 2 of 8 turns | 3.00 (3.00 - 3.00) |" in page
    assert "| Keras | 12.0 (12.0 - 12.0) |" in page
    assert "| Keras | 6.00 | - | 3.00, LSTM L1 U64 B1 T100, forward, 2 threads |" in page


def test_padding_is_against_those_who_compute_it():
    found = line_result([
        side("OpenRNN", [1.0] * 3, "ours"), side("PyTorch", [2.0] * 3),
        side("PyTorch packed", [1.1] * 3),
    ], "padding")  # fmt: skip
    assert goals.over_padding(found) == 2.0 and found.best()[0].key == "PyTorch packed"


def test_the_page():
    made = [
        line_result([
            side("OpenRNN C++", [1e6] * 5, "ours", True), side("oneDNN", [5e5] * 5, native=True),
            side("JAX", [2e6] * 5, agrees=False, difference=0.25, differs_in="dx"),
            side("Keras", [], reason="float32 | alone"),
        ]),
        line_result([side("OpenRNN", [2048e6 / 1000] * 3, "ours")], "model", (1, 256, 32, 64)),
        line_result([side("JAX", [], memory=160_000_000)], "memory", work="memory"),
    ]  # fmt: skip
    page = table.render(made, goals.goals_of(made, False), SETTING)
    assert "A processor, 2 cores, avx512f; 2030-01-01 to 2030-01-01." in page
    assert "| 1.00 (1.00 - 1.00) | oneDNN | 0.500 (0.500 - 0.500) | 0.50 [0.50, 0.50] |" in page
    assert "**lost**" in page and "**not met**" in page
    assert "JAX differs in dx by 2.5e-01 of its norm; its ratio is not counted." in page
    assert "2.00 !" in page and "- Keras (1 lines): float32 | alone" in page
    assert "- oneDNN (1.0): k" in page
    assert "| OpenRNN | 1000000 |" in page  # 2048 tokens in 2.048 ms
    assert "| LSTM L4 U512 B64 T30 | 160 |" in page
    rows = [line for line in page.splitlines() if line.startswith("|")]
    for first, second in zip(rows, rows[1:], strict=False):
        if set(second) <= set("|- "):
            assert first.count("|") == second.count("|")
    assert table.render([], goals.goals_of([], False), SETTING).count("not measurable here") > 15


def test_times_have_three_digits():
    cells = [table.milliseconds(ns) for ns in (123.4e6, 12.34e6, 1.234e6, 0.1234e6, 5678.0)]
    assert cells == ["123", "12.3", "1.23", "0.123", "0.00568"]


def test_the_gate_set():
    lines = gate_set()
    assert len({line.name for line in lines}) == len(lines)
    plain = [line for line in lines if line.group in ("batch 1", "batches")]
    assert len(plain) == 2 * 2 * (10 + 4) * 2
    assert sum(line.group == "streaming" for line in lines) == 12
    assert {line.network.units for line in lines if line.group == "streaming"} == {16, 64, 256}
    server = [line for line in lines if line.group == "server"]
    assert {line.name for line in server} == {
        f"{cell} L2 U256 B64 T1, forward, {threads}" for cell in ("LSTM", "GRU")
        for threads in ("1 thread", "2 threads")}  # fmt: skip
    keras = {name: [line for line in lines if line.group == f"dropin keras {name}"]
             for name in KERAS_BACKENDS}  # fmt: skip
    assert {name: len(found) for name, found in keras.items()} == {
        "tensorflow": 32, "torch": 32, "jax": 32, "numpy": 16}  # fmt: skip
    for name, found in keras.items():
        assert {s.worker for line in found for s in line.sides if s.role != "own"} == {f"keras_{name}"}
    assert {line.work for line in keras["numpy"]} == {"forward"}
    assert sum(line.group == "dropin jax" for line in lines) == 32
    company = [line for line in lines if line.group == "company"]
    assert all("in company of " in line.name and line.threads == 2 for line in company)
    beside = {dict(line.sides[0].options)["beside"] for line in company}
    assert beside == {"onnx_runtimes.ort", "pytorch"}
    for line in lines:
        assert len({side.key for side in line.sides}) == len(line.sides)
        assert any(side.role == "ours" for side in line.sides)
        assert math.isfinite(line.network.forward_flop)
    more = [*four_threads_set(), *full_set()]
    names = {line.name for line in lines} | {line.name for line in more}
    assert len(names) == len(lines) + len(more)
    assert "LSTM L5 U1024 B8 T200 bidirectional, forward + backward, 2 threads" in names
    assert isinstance(lines[0].sides[0], Side)


def errors_of(**changed):
    """Of a line: ours at 1e-7 where a test says no more."""
    values = {"OpenRNN": 1e-7, "OpenRNN C++": 1e-7, "PyTorch": 4e-7, "PyTorch aten": 2e-7,
              "oneDNN": 3e-7, "JAX": 5e-7, "float32 storage": 0.9e-7} | changed  # fmt: skip
    roles = {"OpenRNN": "ours", "OpenRNN C++": "ours", "float32 storage": "bound"}
    return [
        side(key, [], roles.get(key, "peer"), errors={"y": value, "dW": 2 * value})
        for key, value in values.items()
    ]


def test_errors_against_their_goals():
    (y, dw) = report_accuracy.aims(line_result(errors_of(), "accuracy", work="training"))
    assert (y.quantity, y.limit, y.other, y.other_key) == ("y", pytest.approx(1.6e-7), 3e-7, "oneDNN")
    assert dw.of_limit == pytest.approx(1 / 1.6) and dw.of_other == pytest.approx(1 / 3)
    # Float32 storage is what can be had: a peer below it asks for nothing that cannot be.
    lucky = line_result(errors_of(**{"PyTorch": 0.5e-7}), "accuracy")
    assert report_accuracy.aims(lucky)[0].limit == pytest.approx(0.99e-7)
    # The worse of ours counts, and of peers those alone whose numbers agree.
    sides = errors_of(**{"OpenRNN C++": 3.5e-7})
    assert report_accuracy.aims(line_result(sides))[0].of_limit == pytest.approx(3.5 / 1.6)
    sides[4] |= {"agrees": False}
    assert report_accuracy.aims(line_result(sides))[0].other_key == "JAX"
    sides[6] |= {"reason": "no NumPy"}
    assert report_accuracy.aims(line_result(sides))[0].of_limit is None
    assert report_accuracy.aims(line_result([side("OpenRNN", [1.0], "ours")])) == []


def test_goals_of_accuracy():
    good, bad = errors_of(), errors_of(**{"OpenRNN": 3.6e-7})
    texts = "error of float32, every quantity and line, over the larger", "of the other peers"

    def found(*results):
        made = goals.goals_of(results, amx=False)
        return [next(goal for goal in made if text in goal.text) for text in texts]

    limit, other = found(line_result(good), line_result(good, "accuracy"))
    assert (limit.found, limit.lines, limit.state) == (pytest.approx(1 / 1.6), 2, "met")
    assert (other.found, other.lines, other.state) == (pytest.approx(1 / 3), 2, "met")
    limit, other = found(line_result(good), line_result(bad, "accuracy"))
    assert (limit.found, limit.state) == (pytest.approx(3.6 / 1.6), "not met")
    assert (other.found, other.state) == (pytest.approx(1.2), "not met")
    assert [goal.state for goal in found(line_result(bad, "full"))] == ["not measurable here"] * 2


def test_the_page_of_errors():
    made = [
        line_result(errors_of(**{"OpenRNN": 3.6e-7}), "accuracy", work="training"),
        line_result([
            side("OpenRNN", [1e6] * 3, "ours", errors={"y": 2e-7, "hn": 1e-7}),
            side("JAX", [2e6] * 3, errors={"y": 3e-7}), side("Keras", [], reason="no"),
            side("float32 storage", [], "bound", errors={"y": 0.5e-7}),
        ]),
    ]  # fmt: skip
    page = table.render(made, goals.goals_of(made, False), SETTING)
    assert "| network | side | y | hn | cn | dx | dW | db |" in page
    assert "| LSTM L4 U512 B64 T30 | PyTorch aten | 2.0e-07 | - | - | - | 4.0e-07 | - |" in page
    assert "| LSTM L4 U512 B64 T30 | float32 storage | 9.0e-08 |" in page
    assert "| error against float64: y / dx / dW / db | OpenRNN | JAX | float32 storage |" in page
    assert "2 threads | 2.0e-07 | 3.0e-07 | 5.0e-08 |" in page
    assert "y is off by 3.60e-07, 2.25 of the larger of" in page
    assert "dW is off by 7.20e-07, 1.20 of oneDNN's." in page
    assert "float32 storage (1.0)" not in page  # it computes nothing for a user
    clean = [line_result(errors_of(), "accuracy", work="training")]
    page = table.render(clean, goals.goals_of(clean, False), SETTING)
    assert "## Farther from float64 than the goals allow\n\nNone." in page
