"""The workers whose calls are made in C++: our core, and the loop around ONNX Runtime's C API."""

import numpy as np
import pytest
from peer_checks import MODES, NATIVE, check, check_a_step, line_of, results_of, set_up, side_of, wanted_of

from peers import agreement, protocol
from peers.lines import Line, Network, Side
from peers.workers import server

pytestmark = pytest.mark.skipif(not NATIVE.is_dir(), reason="built without the workers in C++")


@pytest.mark.parametrize("worker", ["openrnn_core", "onnx_runtimes.ort_c"])
@pytest.mark.parametrize("cell", MODES)
@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("padded", [False, True])
def test_forward(worker, cell, directions, padded, pool, tmp_path):
    line = line_of(cell, directions, padded=padded)
    process, _ = set_up(pool, line, side_of(worker, padded), tmp_path)
    check(line, results_of(process, tmp_path), tmp_path)
    assert len(process.times(3, 2)) == 3 and min(process.times(2, 0)) > 0
    check(line, results_of(process, tmp_path), tmp_path)


@pytest.mark.parametrize("worker", ["openrnn_core", "onnx_runtimes.ort_c"])
@pytest.mark.parametrize("cell", MODES)
@pytest.mark.parametrize("directions", [1, 2])
def test_a_step_from_given_states(worker, cell, directions, pool, tmp_path):
    check_a_step(worker, cell, directions, pool, tmp_path)


@pytest.mark.parametrize("cell", MODES)
@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("padded", [False, True])
def test_training(cell, directions, padded, pool, tmp_path):
    line = line_of(cell, directions, "training", padded)
    process, _ = set_up(pool, line, side_of("openrnn_core", padded), tmp_path)
    check(line, results_of(process, tmp_path), tmp_path)
    process.times(2, 1)
    check(line, results_of(process, tmp_path), tmp_path)  # gradients do not add up


def test_kernels_and_versions_are_told(pool, tmp_path):
    line = line_of("gru", 1)
    core, kernel = set_up(pool, line, side_of("openrnn_core"), tmp_path)
    assert kernel.startswith("engine cpu") and kernel.endswith(", float32")
    assert core.ask("about") == "OpenRNN"
    ort, kernel = set_up(pool, line, side_of("onnx_runtimes.ort_c"), tmp_path)
    assert kernel == "GRU, CPU provider" and ort.ask("about").endswith(", C API")
    assert ort.ask("about").startswith("ONNX Runtime 1.")


@pytest.mark.parametrize("options,most", [
    ({"weights": "int8"}, 8e-2), ({"weights": "bfloat16"}, 3e-2), ({"weights": "float16"}, 5e-3),
    ({"math": "bf16"}, 3e-2),
])  # fmt: skip
def test_other_arithmetic(options, most, pool, tmp_path):
    line = line_of("lstm", 1)
    side = Side("a side", "openrnn_core", "own", tuple(options.items()))
    process, kernel = set_up(pool, line, side, tmp_path)
    found, wanted = results_of(process, tmp_path), wanted_of(line, tmp_path)
    assert 1e-5 < agreement.difference(found["y"], wanted["y"].reshape(-1)) < most
    own = "math" in options or options["weights"] == "int8"  # others compute in float32
    assert kernel.endswith(", float32") != own


def test_meters_measure_themselves(pool, tmp_path):
    line = line_of("lstm", 1)
    for options, name in (((("what", "peak"),), "fused multiply-add"),
                          ((("what", "read"), ("bytes", "1000000")), "reading")):  # fmt: skip
        process, kernel = set_up(pool, line, Side("meter", "openrnn_core", "meter", options), tmp_path)
        assert kernel == name and results_of(process, tmp_path) == {}
        for time in process.times(2, 0):  # of a GFLOP, of a GB
            assert 1e5 < time < 1e10 and time != 0.0


def test_what_core_cannot_is_refused(pool, tmp_path):
    line = line_of("lstm", 1, padded=True)
    side = Side("a side", "openrnn_core", options=(("lengths", "packed"),))
    with pytest.raises(protocol.Refusal, match="lengths are given, not packed"):
        set_up(pool, line, side, tmp_path)
    process = pool.get("openrnn_core")
    with pytest.raises(protocol.WorkerError, match="run without a job"):
        process.times(1, 0)
    with pytest.raises(protocol.Refusal, match=r"\[read\] .*/none/params.npy is no .npy file of version 1"):
        process.ask("setup folder=/none cell=lstm layers=1 units=2 input=2 batch=1 time=1")
    with pytest.raises(protocol.Refusal, match="'lsmt'"):
        process.ask("setup folder=/none cell=lsmt")


def test_the_protocol_of_core(pool, tmp_path):
    process, _ = set_up(pool, line_of("lstm", 1), side_of("openrnn_core"), tmp_path)
    with pytest.raises(protocol.WorkerError, match="unknown command dance"):
        process.ask("dance")
    with pytest.raises(protocol.WorkerError, match=r"\[choose\] pass is 'x', expected none"):
        process.ask("choose x")
    assert process.ask("mark") == process.ask("reset") == ""
    process.times(1, 0)
    assert 0 <= int(process.ask("memory")) < 1 << 28
    assert process.ask("release") == ""
    with pytest.raises(protocol.WorkerError, match="output without a job"):
        process.ask("output x")


@pytest.mark.parametrize("name,value,text", [
    ("x", np.zeros((7, 3, 5)), "expected <f4"),
    ("x", np.asfortranarray(np.ones((7, 3, 5), np.float32)), "'fortran_order': True.*expected <f4"),
    ("lengths", np.full(3, 7), "expected <i4"),
])  # fmt: skip
def test_arrays_of_other_types_are_refused(name, value, text, pool, tmp_path):
    line = line_of("lstm", 1, padded=True)
    process, _ = set_up(pool, line, side_of("openrnn_core", True), tmp_path)
    np.save(tmp_path / "work" / f"{name}.npy", value)
    words = f"setup folder={tmp_path / 'work'} cell=lstm layers=2 units=5 input=5 batch=3 time=7"
    with pytest.raises(protocol.Refusal, match=text):
        process.ask(f"{words} lengths=given")


def test_large_results_are_thinned_as_python_does(pool, tmp_path):
    network = Network("rnn_tanh", 1, 1100, 1, 2)
    line = Line("batches", network, "training", 1, ())
    process, _ = set_up(pool, line, side_of("openrnn_core"), tmp_path)
    found, wanted = results_of(process, tmp_path), wanted_of(line, tmp_path)
    buffer = server.thin(wanted["dparams"])
    assert wanted["dparams"].size > 2 * server.MOST_ELEMENTS
    assert found["dparams"].shape == buffer.shape
    assert agreement.difference(found["dparams"], buffer) < 1e-5


def test_steps_without_the_product_of_the_input(pool, tmp_path):
    """Of one layer: x is added to the gates; the buffer's tail is not read."""
    line = Line("batch 1", Network("rnn_tanh", 1, 5, 1, 6), "forward", 1, ())
    side = Side("steps alone", "openrnn_core", "own", (("skip_input", "1"),))
    process, _ = set_up(pool, line, side, tmp_path)
    found = results_of(process, tmp_path)
    x, params = (np.load(tmp_path / "work" / f"{name}.npy") for name in ("x", "params"))
    r, biases, h = params[:25].reshape(5, 5), params[25:35].reshape(2, 5).sum(axis=0), np.zeros(5)
    for step, row in enumerate(x[:, 0]):
        h = np.tanh(row + r @ h + biases)
        np.testing.assert_allclose(found["y"].reshape(6, 5)[step], h, rtol=0, atol=1e-6)
