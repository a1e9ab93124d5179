"""What the workers compute whose libraries are there: ours, ONNX Runtime's, Keras's."""

import importlib.util

import numpy as np
import pytest
from peer_checks import MODES, check, check_a_step, line_of, pool_of, results_of, set_up, side_of, wanted_of

from peers import agreement, measure, protocol
from peers.cells import CELLS
from peers.lines import Side

# Keras's numpy backend imports JAX.
BACKENDS = ("tensorflow", *(("numpy",) if importlib.util.find_spec("jax") else ()))
PEERS = ("openrnn_layers", "onnx_runtimes.ort", *(f"keras_{backend}" for backend in BACKENDS))


@pytest.mark.parametrize("worker", PEERS)
@pytest.mark.parametrize("cell", MODES)
@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("padded", [False, True])
def test_forward(worker, cell, directions, padded, pool, tmp_path):
    line = line_of(cell, directions, padded=padded)
    process, _ = set_up(pool, line, side_of(worker, padded), tmp_path)
    check(line, results_of(process, tmp_path), tmp_path)


@pytest.mark.parametrize("worker", PEERS)
@pytest.mark.parametrize("cell", MODES)
@pytest.mark.parametrize("directions", [1, 2])
def test_a_step_from_given_states(worker, cell, directions, pool, tmp_path):
    check_a_step(worker, cell, directions, pool, tmp_path)


@pytest.mark.parametrize("worker", ["openrnn_layers", "keras_tensorflow"])
@pytest.mark.parametrize("cell", MODES)
@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("padded", [False, True])
def test_training(worker, cell, directions, padded, pool, tmp_path):
    line = line_of(cell, directions, "training", padded)
    process, _ = set_up(pool, line, side_of(worker, padded), tmp_path)
    check(line, results_of(process, tmp_path), tmp_path)
    assert len(process.times(2, 1)) == 2
    check(line, results_of(process, tmp_path), tmp_path)  # gradients do not add up


@pytest.mark.parametrize("work", ["forward", "training"])
@pytest.mark.parametrize("padded", [False, True])
def test_padding_is_computed_by_who_is_not_told(work, padded, pool, tmp_path):
    """The gradients are then the same, as the loss does not see the padding."""
    line = line_of("gru", 1, work, padded)
    process, _ = set_up(pool, line, Side("a side", "openrnn_layers"), tmp_path)
    found = results_of(process, tmp_path)
    whole = np.abs(found["y"].reshape(7, 3, 5)).min()
    assert whole > 0  # no output is empty
    if work == "training":
        wanted = wanted_of(line, tmp_path)
        for name in ("dx", "dparams"):
            assert agreement.difference(found[name], wanted[name].reshape(-1)) < 2e-6


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_converted_layers_of_keras(backend, cell, pool, tmp_path):
    line = line_of(cell, 1, "forward" if backend == "numpy" else "training")
    side = Side("openrnn.keras", f"keras_{backend}", "ours", (("drop_in", "1"),))
    process, kernel = set_up(pool, line, side, tmp_path)
    assert kernel.startswith("openrnn.keras: ")
    check(line, results_of(process, tmp_path), tmp_path)


def test_kernels_and_versions_are_told(pool, tmp_path):
    line = line_of("lstm", 1)
    kernels, versions = {}, {}
    xla = Side("Keras XLA", "keras_tensorflow", options=(("jit", "1"),))
    for side in [*(Side(name, name) for name in PEERS), xla]:
        process, kernels[side.key] = set_up(pool, line, side, tmp_path)
        versions[side.key] = process.ask("about")
        if side is xla:
            check(line, results_of(process, tmp_path), tmp_path)
    assert kernels["openrnn_layers"].startswith("engine cpu: ")
    assert kernels["onnx_runtimes.ort"] == "LSTM, CPU provider"
    assert kernels["keras_tensorflow"] == "TensorFlow ops in tf.function"
    assert kernels["Keras XLA"] == "XLA (jit_compile)"
    for version, start in zip(versions.values(), ("OpenRNN ", "ONNX Runtime ", "Keras ")):
        assert version.startswith(start) and any(letter.isdigit() for letter in version)
    assert " on TensorFlow " in versions["keras_tensorflow"]
    if "numpy" in BACKENDS:
        assert kernels["keras_numpy"] == "NumPy" and " on NumPy " in versions["keras_numpy"]


# The cells again, by the options that docs/cells.md names.
OPTIONS = {
    "hard sigmoid": {"recurrent_activation": "hard_sigmoid(0.2, 0.5)"},
    "peepholes": {"use_peepholes": True},
    "cell clip": {"cell_clip": 3.0},
    "coupled gates": {"coupled_gates": True},
    "softsign": {"activation": "softsign", "output_activation": "softsign"},
    "layer norm": {"layer_norm": "gates", "layer_norm_cell": "carried", "layer_norm_epsilon": 1e-5},
    "reset before": {"reset_after": False},
}


@pytest.mark.parametrize("option", OPTIONS)
def test_cells_with_options(option, pool, tmp_path):
    from openrnn import cudnn_rnn

    assert CELLS.keys() == OPTIONS.keys()
    mode = CELLS[option].mode
    assert mode == ("gru" if option == "reset before" else "lstm")
    side, outputs = Side("OpenRNN", "openrnn_layers"), []
    for work in ("forward", "training"):
        line = line_of(mode, 1, work, option=option)
        process, _ = set_up(pool, line, side, tmp_path)
        outputs.append(results_of(process, tmp_path))
    x, params = (np.load(tmp_path / "work" / f"{name}.npy") for name in ("x", "params"))
    kind = cudnn_rnn.CudnnLSTM if mode == "lstm" else cudnn_rnn.CudnnGRU
    layer = kind(1, 5, **OPTIONS[option])
    layer.build(x.shape)
    layer.set_weights([params])  # as many as the problem has
    wanted = np.array(layer(x, training=False)[0]).reshape(-1)
    for found in outputs:
        np.testing.assert_array_equal(found["y"], wanted)
    assert outputs[1]["dparams"].size == params.size


@pytest.mark.parametrize("worker,dtype,most", [
    ("openrnn_layers", "int8", 8e-2), ("openrnn_layers", "bfloat16", 3e-2),
    ("openrnn_layers", "float16", 5e-3),
    # Its 8-bit products saturate on processors without VNNI, and are 0.11 off here.
    ("onnx_runtimes.ort", "int8", 0.3),
])  # fmt: skip
def test_smaller_weights(worker, dtype, most, pool, tmp_path):
    line = line_of("lstm", 1)
    side = Side("a side", worker, options=(("weights", dtype),))
    assert measure.worker_name(side) == f"{worker}#weights{dtype}"
    process, kernel = set_up(pool, line, side, tmp_path)
    found, wanted = results_of(process, tmp_path), wanted_of(line, tmp_path)
    assert 1e-5 < agreement.difference(found["y"], wanted["y"].reshape(-1)) < most
    if worker == "onnx_runtimes.ort":
        assert kernel == "DynamicQuantizeLSTM, CPU provider"


@pytest.mark.parametrize("work", ["forward", "training"])
def test_other_arithmetic(work, pool, tmp_path):
    line = line_of("lstm", 1, work)
    side = Side("OpenRNN bf16", "openrnn_layers", "own", (("math", "bf16"),))
    process, _ = set_up(pool, line, side, tmp_path)
    found, wanted = results_of(process, tmp_path), wanted_of(line, tmp_path)
    assert 1e-5 < agreement.difference(found["y"], wanted["y"].reshape(-1)) < 3e-2


@pytest.mark.parametrize("worker,cell,work,options,reason", [
    ("openrnn_layers", "lstm", "forward", {"lengths": "packed"}, "lengths are given, not packed"),
    ("onnx_runtimes.ort", "lstm", "training", {}, "inference alone"),
    ("onnx_runtimes.ort", "lstm", "forward", {"lengths": "packed"}, "no such option"),
    ("onnx_runtimes.ort", "lstm", "forward", {"math": "bf16"}, "no such option"),
    ("onnx_runtimes.ort", "lstm", "forward", {"weights": "float16"}, "no float16 weights"),
    ("onnx_runtimes.ort", "gru", "forward", {"weights": "int8"}, "no recurrent operator but LSTM"),
    ("keras_tensorflow", "lstm", "forward", {"math": "bf16"}, "float32 alone"),
    ("keras_tensorflow", "lstm", "forward", {"weights": "int8"}, "float32 alone"),
    ("keras_tensorflow", "lstm", "forward", {"lengths": "packed"}, "lengths are given as a mask"),
    *(row for row in [
        ("keras_numpy", "lstm", "training", {}, "has no gradients"),
        ("keras_numpy", "lstm", "model", {}, "the language model is measured on TensorFlow"),
    ] if "numpy" in BACKENDS),
])  # fmt: skip
def test_refusals(worker, cell, work, options, reason, pool, tmp_path):
    line = line_of(cell, 1, work, padded="lengths" in options)
    with pytest.raises(protocol.Refusal, match=reason):
        set_up(pool, line, Side("a side", worker, options=tuple(options.items())), tmp_path)


def test_company(tmp_path):
    """Ours after calls of another library: the threads are those of the process, or its own."""
    line, pool = line_of("lstm", 1), pool_of(tmp_path / "logs", 2)
    try:
        for options, threads in (((), 2), ((("own_threads", "1"),), 1)):
            beside = ("beside", "onnx_runtimes.ort")
            side = Side("OpenRNN", "openrnn_layers", "ours", (beside, *options))
            process, kernel = set_up(pool, line, side, tmp_path)
            assert kernel.startswith("engine cpu: ") and kernel.endswith(f"at most {threads} threads")
            assert len(process.times(3, 2)) == 3
            check(line, results_of(process, tmp_path), tmp_path)
    finally:
        pool.close()
