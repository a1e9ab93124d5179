"""The sizes of every group of lines, and what each side is."""

from peers.lines import four_threads_set, full_set, gate_set

# Layers/units/batch/time/directions.
SIZES = {
    "batch 1":
        "1/64/1/100 1/128/1/100 1/256/1/100 1/512/1/50 1/1024/1/50 2/64/1/100 2/256/1/100 "
        "4/64/1/100 4/256/1/100",
    "batches": "1/256/16/50 1/512/32/50 4/128/64/20 4/512/64/30 4/1024/64/40",
    "streaming": "1/16/1/1 1/64/1/1 1/256/1/1",
    "server": "2/256/64/1",
    "padding": "2/256/16/100 4/512/64/30",
    "weights": "1/256/1/100 1/512/1/50 1/1024/1/50",
    "math": "1/256/16/50 1/512/32/50 4/512/64/30 4/1024/64/40",
    "cells": "1/256/32/100",
    "model": "1/256/32/64",
    "dropin":
        "1/64/1/1 1/64/1/100 1/128/16/50 1/256/1/100 1/256/16/50 1/512/32/50 2/256/16/100 "
        "4/128/64/20 4/512/64/30",
    "dropin keras tensorflow":
        "1/64/1/1 1/64/1/100 1/64/1/100/2 1/256/1/100 1/256/16/50 1/256/16/50/2 1/512/32/50 "
        "4/128/64/20",
    "dropin jax":
        "1/64/1/1 1/64/1/100 1/128/16/50 1/256/1/100 1/256/16/50 1/512/32/50 4/128/64/20 "
        "4/512/64/30",
    "accuracy": "1/128/64/300 1/512/16/20 1/512/32/50 1/1024/16/50",
    "company": "1/64/1/100 1/256/1/100 1/256/16/50 1/512/1/50",
    "memory": "1/512/32/50 4/512/64/30 4/1024/64/40",
    "four threads":
        "1/64/1/100 1/128/1/100 1/256/1/100 1/256/16/50 1/512/1/50 1/512/32/50 1/1024/1/50 "
        "2/64/1/100 2/256/1/100 2/256/64/1 4/64/1/100 4/128/64/20 4/256/1/100 4/512/64/30 "
        "4/1024/64/40",
    "full":
        "1/16/1/100 1/32/1/100 1/64/1/100 1/64/8/50 1/128/1/100 1/128/8/50 1/256/1/100 1/256/8/50 "
        "1/256/16/50 1/512/1/50 1/512/8/50 1/512/32/50 1/1024/1/50 1/1024/8/50 2/650/20/35 "
        "3/320/16/400/2 3/1150/40/70 4/128/64/20 4/512/64/30 4/1024/64/40 5/1024/8/200/2",
}  # fmt: skip

# Worker, role, options.
SIDES = """
oneDNN: onednn peer
ONNX Runtime: onnx_runtimes.ort peer
ONNX Runtime C: onnx_runtimes.ort_c peer
OpenVINO: onnx_runtimes.openvino_cpu peer
tract: onnx_runtimes.tract_cpu peer
PyTorch: pytorch peer
Keras XLA: keras_tensorflow peer jit=1
JAX: jax_scan peer
steps alone: openrnn_core own skip_input=1
FMA peak: openrnn_core meter what=peak
ONNX Runtime lengths: onnx_runtimes.ort peer lengths=given
PyTorch packed: pytorch peer lengths=packed
Keras masked: keras_tensorflow peer lengths=given
Keras XLA masked: keras_tensorflow peer jit=1 lengths=given
OpenRNN int8: openrnn_layers own weights=int8
OpenRNN C++ int8: openrnn_core own weights=int8
OpenRNN C++ bfloat16: openrnn_core own weights=bfloat16
OpenRNN C++ float16: openrnn_core own weights=float16
ONNX Runtime int8: onnx_runtimes.ort peer weights=int8
OpenRNN bf16: openrnn_layers own math=bf16
OpenRNN C++ bf16: openrnn_core own math=bf16
OpenRNN C++ bf16x3: openrnn_core own math=bf16x3
oneDNN bf16: onednn peer math=bf16
PyTorch bf16: pytorch peer math=bf16
OpenVINO bf16: onnx_runtimes.openvino_cpu peer math=bf16
PyTorch loop: pytorch_cells peer
PyTorch compiled loop: pytorch_cells peer compile=1
openrnn.torch: pytorch ours drop_in=1
PyTorch compiled: pytorch peer compile=1
openrnn.torch frozen: pytorch own drop_in=frozen
openrnn.torch recorded: pytorch own drop_in=recorded
openrnn.torch packed: pytorch ours drop_in=1 lengths=packed
openrnn.jax: jax_scan ours drop_in=1
openrnn.jax packed: jax_scan own drop_in=packed
PyTorch aten: pytorch peer onednn=0
"""
# Those that differ from line to line.
OTHERS = {"OpenRNN", "OpenRNN C++", "OpenRNN one thread", "Keras", "openrnn.keras", "reading"}


def every_line():
    return [*gate_set(), *four_threads_set(), *full_set()]


def test_sizes_of_every_group():
    found = {}
    for line in every_line():
        network = line.network
        sizes = (network.layers, network.units, network.batch, network.time)
        found.setdefault(line.group, set()).add(sizes + (2,) * (network.directions == 2))
    for backend in ("torch", "jax", "numpy"):
        assert found.pop(f"dropin keras {backend}") == found["dropin keras tensorflow"]
    text = lambda group: " ".join("/".join(map(str, sizes)) for sizes in sorted(group))
    assert {name: text(group) for name, group in found.items()} == SIZES


def test_what_each_side_is():
    found = {}
    for line in every_line():
        for side in line.sides:
            options = [f"{name}={value}" for name, value in side.options]
            found.setdefault(side.key, set()).add(" ".join([side.worker, side.role, *options]))
    several = {key: found.pop(key) for key in OTHERS}
    wanted = (row.split(": ", 1) for row in SIDES.strip().splitlines())
    assert found == {key: {words} for key, words in wanted}
    backends = ("tensorflow", "torch", "jax", "numpy")
    assert several["Keras"] == {f"keras_{backend} peer" for backend in backends}
    assert several["openrnn.keras"] == {f"keras_{backend} ours drop_in=1" for backend in backends}
    read = "openrnn_core meter what=read bytes="
    assert several["reading"] == {f"{read}{gates * 4 * units**2}" for gates in (1, 3, 4)
                                  for units in (256, 512, 1024)}  # fmt: skip
    assert several["OpenRNN C++"] == {f"openrnn_core ours{more}" for more in ("", " lengths=given")}
    beside = [f"beside={worker}" for worker in ("pytorch", "onnx_runtimes.ort")]
    assert several["OpenRNN one thread"] == {
        f"openrnn_layers peer {other} own_threads=1" for other in beside}  # fmt: skip
    assert several["OpenRNN"] == {
        "openrnn_layers ours", "openrnn_layers ours lengths=given", "openrnn_layers own",
        *(f"openrnn_layers ours {other}" for other in beside)}  # fmt: skip
