"""The model of several processes, and that its page shows what it predicts."""

import contextlib
import io
from pathlib import Path

import pytest
from bench.scaling import __main__ as program
from bench.scaling import model

PAGE = Path(__file__).parents[3] / "docs" / "scaling.md"
WORK = model.Work("", compute=0.01, gradients=20e6, memory=50e9)
NETWORK = model.Network("", alpha=10e-6, beta=1e9)


def test_the_page_has_the_tables():
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        program.tables()
    assert said.getvalue().strip() in PAGE.read_text(encoding="utf-8")


def test_one_process_computes_alone():
    assert model.step(WORK, 1, NETWORK) == WORK.compute
    assert model.reduction(WORK, 1, NETWORK) == 0.0


def test_two_processes_by_hand():
    # 2 pieces of 2 messages; half of the bytes twice; 7 times through the memory.
    expected = 2 * 2 * 10e-6 + 20e6 / 1e9 + 7 * 20e6 / 50e9
    assert model.reduction(WORK, 2, NETWORK) == pytest.approx(expected)
    assert model.notice(2, NETWORK) == pytest.approx(10e-6 + 64 / 1e9)
    assert model.step(WORK, 2, NETWORK) == pytest.approx(0.01 + expected + 3 * (10e-6 + 64 / 1e9))


def test_overlap_by_hand():
    # 0.01 s, two thirds of it backward: the last of 2 layers is ready at 0.02 / 3, the first at 0.01.
    notice = 10e-6 + 64 / 1e9
    long = 2 * 10e-6 + 10e6 / 1e9 + 7 * 10e6 / 50e9
    assert model.step(WORK, 2, NETWORK, layers=2) == pytest.approx(0.02 / 3 + 2 * long + 5 * notice)
    slow = WORK._replace(compute=1.0)
    assert model.step(slow, 2, NETWORK, layers=2) == pytest.approx(1.0 + long + 4 * notice)
    small = WORK._replace(gradients=2e5)  # one message
    short = 2 * 10e-6 + 2e5 / 1e9 + 7 * 2e5 / 50e9
    assert model.step(small, 2, NETWORK, layers=2) == pytest.approx(0.01 + short + 4 * notice)


@pytest.mark.parametrize("processes", [2, 8, 1024])
def test_what_is_less_costs_less(processes):
    exact = model.reduction(WORK, processes, NETWORK)
    assert model.reduction(WORK, processes, NETWORK, exact=False) <= exact
    assert model.reduction(WORK, processes, NETWORK, element=2) < exact
    # Among many processes a message is latency, and more messages are more of it.
    whole = model.step(WORK, processes, NETWORK)
    assert (model.step(WORK, processes, NETWORK, layers=4) < whole) == (processes < 1024)
    assert model.efficiency(WORK, processes, NETWORK) < 1.0


def test_where_it_stops_paying():
    free = model.Network("", 0.0, 1e30)
    assert model.last_that_pays(WORK._replace(memory=1e30), free) == 1024
    slow = model.Network("", 1.0, 1.0)
    assert model.last_that_pays(WORK, slow) == 1
