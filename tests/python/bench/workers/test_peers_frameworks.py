"""The workers of PyTorch and JAX, over packages with the few names that they use (stand_ins/)."""

from pathlib import Path

import numpy as np
import pytest
from peer_checks import MODES, check, check_a_step, line_of, pool_of, results_of, set_up, side_of, wanted_of

from peers import agreement, protocol
from peers.cells import CELLS
from peers.lines import Side

STAND_INS = Path(__file__).parent / "stand_ins"


@pytest.fixture(scope="module")
def pool(tmp_path_factory):
    """The workers on one thread, each in one process for all tests."""
    found = pool_of(tmp_path_factory.mktemp("logs"), 1, STAND_INS, XLA_FLAGS="")
    yield found
    found.close()


def torch_side(padded=False, **options):
    options |= {"lengths": "packed"} if padded else {}
    return Side("a side", "pytorch", options=tuple(options.items()))


@pytest.mark.parametrize("work", ["forward", "training"])
@pytest.mark.parametrize("cell", MODES)
@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("padded", [False, True])
def test_modules_of_pytorch(work, cell, directions, padded, pool, tmp_path):
    line = line_of(cell, directions, work, padded)
    process, _ = set_up(pool, line, torch_side(padded), tmp_path)
    check(line, results_of(process, tmp_path), tmp_path)
    assert len(process.times(2, 1)) == 2
    check(line, results_of(process, tmp_path), tmp_path)  # gradients do not add up


@pytest.mark.parametrize("work", ["forward", "training"])
@pytest.mark.parametrize("cell", MODES)
@pytest.mark.parametrize("directions", [1, 2])
def test_scans_of_jax(work, cell, directions, pool, tmp_path):
    line = line_of(cell, directions, work)
    process, kernel = set_up(pool, line, side_of("jax_scan"), tmp_path)
    assert kernel == "XLA CPU, lax.scan"
    check(line, results_of(process, tmp_path), tmp_path)
    assert process.ask("about") == "JAX 0.0, XLA_FLAGS=--xla_cpu_multi_thread_eigen=false"


@pytest.mark.parametrize("worker", ["pytorch", "jax_scan"])
@pytest.mark.parametrize("cell", MODES)
@pytest.mark.parametrize("directions", [1, 2])
def test_a_step_from_given_states(worker, cell, directions, pool, tmp_path):
    check_a_step(worker, cell, directions, pool, tmp_path)


def test_kernels_of_pytorch(pool, tmp_path):
    """What its profiler shows: oneDNN's layer of an LSTM, unless it is switched off."""
    one, cells = "oneDNN (mkldnn_rnn_layer)", "aten cells over aten::addmm/aten::mm"
    for cell, options, kernel in (("lstm", {}, one), ("lstm", {"onednn": "0"}, cells), ("lstm", {}, one),
                                  ("gru", {}, cells), ("gru", {"onednn": "0"}, cells)):  # fmt: skip
        process, found = set_up(pool, line_of(cell, 1), torch_side(**options), tmp_path)
        assert found == kernel, (cell, options)
    assert process.ask("about") == "PyTorch 0.0, Intel oneDNN v9"


def test_a_compiled_module(pool, tmp_path):
    line = line_of("gru", 2, "training")
    process, kernel = set_up(pool, line, torch_side(compile="1"), tmp_path)
    assert kernel.startswith("aten cells")
    check(line, results_of(process, tmp_path), tmp_path)


def test_bf16_of_pytorch(pool, tmp_path):
    line = line_of("lstm", 1, "training")
    process, _ = set_up(pool, line, torch_side(math="bf16"), tmp_path)
    found, wanted = results_of(process, tmp_path), wanted_of(line, tmp_path)
    for name, most in (("y", 3e-2), ("dx", 1e-1)):
        assert 1e-5 < agreement.difference(found[name], wanted[name].reshape(-1)) < most


@pytest.mark.parametrize("worker,options,reason", [
    ("pytorch", {"math": "bf16x3"}, "not an arithmetic of PyTorch's recurrent layers"),
    ("pytorch", {"weights": "int8"}, "not an arithmetic of PyTorch's recurrent layers"),
    ("pytorch", {"lengths": "given"}, "lengths are given by packing alone"),
    ("jax_scan", {"math": "bf16"}, "float32 alone"), ("jax_scan", {"weights": "int8"}, "float32 alone"),
    ("jax_scan", {"lengths": "given"}, "lax.scan computes the padding"),
    ("jax_scan", {"lengths": "packed"}, "lax.scan computes the padding"),
])  # fmt: skip
def test_refusals(worker, options, reason, pool, tmp_path):
    line = line_of("lstm", 1, padded=True)
    with pytest.raises(protocol.Refusal, match=reason):
        set_up(pool, line, Side("a side", worker, options=tuple(options.items())), tmp_path)


@pytest.mark.parametrize("work", ["forward", "training"])
@pytest.mark.parametrize("option", CELLS)
def test_loops_of_cells_with_options(option, work, pool, tmp_path):
    """Against our layers, with the same numbers."""
    line = line_of(CELLS[option].mode, 1, work, option=option)
    loop, kernel = set_up(pool, line, side_of("pytorch_cells"), tmp_path)
    assert kernel == "a loop of steps" and loop.ask("about") == "PyTorch 0.0"
    found = results_of(loop, tmp_path)
    compiled = Side("a side", "pytorch_cells", options=(("compile", "1"),))
    process, kernel = set_up(pool, line, compiled, tmp_path)
    assert kernel == "a loop of steps under torch.compile"
    again = results_of(process, tmp_path)
    ours, _ = set_up(pool, line, side_of("openrnn_layers"), tmp_path)
    wanted = results_of(ours, tmp_path)
    assert found.keys() == wanted.keys() == again.keys()
    for name, value in wanted.items():
        np.testing.assert_array_equal(again[name], found[name])
        assert agreement.difference(found[name], value) < 5e-6, name
    loop.times(2, 1)
    for name, value in results_of(loop, tmp_path / "again").items():
        np.testing.assert_array_equal(value, found[name])
