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
    assert model.notices(2, NETWORK) == pytest.approx(3 * (10e-6 + 64 / 1e9))


@pytest.mark.parametrize("processes", [2, 8, 1024])
def test_what_is_less_costs_less(processes):
    exact = model.reduction(WORK, processes, NETWORK)
    assert model.reduction(WORK, processes, NETWORK, exact=False) <= exact
    assert model.reduction(WORK, processes, NETWORK, element=2) < exact
    assert model.step(WORK, processes, NETWORK, overlap=0.5) <= model.step(WORK, processes, NETWORK)
    assert model.efficiency(WORK, processes, NETWORK) < 1.0


def test_where_it_stops_paying():
    free = model.Network("", 0.0, 1e30)
    assert model.last_that_pays(WORK._replace(memory=1e30), free) == 1024
    slow = model.Network("", 1.0, 1.0)
    assert model.last_that_pays(WORK, slow) == 1
