"""Which lines there are, and who stands in each."""

from collections import Counter

import pytest

from peers import lines
from peers.lines import Line, Network, Side, four_threads_set, full_set, gate_set

TRAINING = ["oneDNN", "PyTorch", "Keras", "Keras XLA", "JAX"]
FORWARD = ["oneDNN", "ONNX Runtime", "ONNX Runtime C", "OpenVINO", *TRAINING[1:]]
OURS = ["OpenRNN", "OpenRNN C++"]


def named(name):
    """The one line of that name."""
    (found,) = [line for line in [*gate_set(), *four_threads_set(), *full_set()] if line.name == name]
    return found


def keys(name):
    return [side.key for side in named(name).sides]


def test_numbers_of_lines():
    """Of each group by threads: two cells, the sizes, the passes."""
    found = Counter((line.group, line.threads) for line in gate_set())
    both = {"batch 1": 2 * 9 * 2, "batches": 2 * 5 * 2, "streaming": 2 * 3, "server": 2,
            "padding": 2 * 2 * 2, "weights": 2 * 3, "cells": 7 * 2, "model": 1}  # fmt: skip
    for group, count in both.items():
        assert found.pop((group, 1)) == found.pop((group, 2)) == count, group
    assert (found.pop(("math", 1)), found.pop(("math", 2))) == (2 * 4, 2 * 4 * 2)
    assert found == {
        ("dropin", 2): 2 * (8 + 2) * 2, ("dropin keras tensorflow", 2): 32,
        ("dropin keras torch", 2): 32, ("dropin keras jax", 2): 32, ("dropin keras numpy", 2): 16,
        ("dropin jax", 2): 32, ("accuracy", 1): 5, ("company", 2): 8, ("memory", 2): 6,
    }  # fmt: skip
    full = Counter(line.threads for line in full_set())
    assert full == {1: 2 * (10 + 10 + 4 + 8), 2: 2 * (10 + 10 + 4 + 8)}
    assert Counter(line.threads for line in four_threads_set()) == {4: 2 * (14 * 2 + 1)}


def test_which_lines_carry_states():
    """Those of streams and of a server: a peer may use that states are zero."""
    carried = {line.group for line in gate_set() if line.carries_state}
    assert carried == {"streaming", "server"}
    assert all(line.carries_state for line in gate_set() if line.group in carried)
    steps = [line for line in four_threads_set() if line.network.time == 1]
    assert len(steps) == 2 and all(line.carries_state for line in steps)


def test_everyone_stands_in_plain_lines():
    steps = ["steps alone", "reading"]
    assert keys("LSTM L1 U64 B1 T100, forward, 1 thread") == [
        *OURS, *FORWARD[:4], "tract", *FORWARD[4:]]  # fmt: skip
    assert keys("GRU L1 U64 B1 T100, forward, 2 threads") == OURS + FORWARD
    assert keys("LSTM L1 U64 B1 T100, forward + backward, 2 threads") == OURS + TRAINING
    assert keys("LSTM L1 U256 B1 T100, forward, 2 threads") == OURS + FORWARD + steps
    assert keys("LSTM L1 U256 B1 T100, forward + backward, 2 threads") == OURS + TRAINING
    assert keys("LSTM L2 U256 B1 T100, forward, 2 threads") == OURS + FORWARD
    assert keys("LSTM L1 U256 B1 T1, forward, 2 threads") == OURS + FORWARD
    assert keys("LSTM L4 U128 B64 T20, forward, 2 threads") == [*OURS, *FORWARD, "FMA peak"]
    assert keys("LSTM L1 U256 B16 T50, forward, 2 threads") == OURS + FORWARD
    assert keys("GRU L2 U256 B64 T1, forward, 4 threads") == OURS + FORWARD
    reading = named("GRU L1 U512 B1 T50, forward, 2 threads").sides[-1]
    assert dict(reading.options) == {"what": "read", "bytes": str(4 * 3 * 512 * 512)}
    assert (reading.role, reading.worker, reading.native) == ("meter", "openrnn_core", True)


def test_other_groups():
    padding = "LSTM L4 U512 B64 T30, half padding, "
    told = ["PyTorch packed", "Keras masked", "Keras XLA masked"]
    assert keys(padding + "forward + backward, 2 threads") == [*OURS, "oneDNN", "PyTorch", *told]
    assert keys(padding + "forward, 1 thread") == [
        *OURS, "oneDNN", "ONNX Runtime", "ONNX Runtime lengths", "PyTorch", *told]  # fmt: skip
    sides = {side.key: dict(side.options) for side in named(padding + "forward, 1 thread").sides}
    given = {key for key, options in sides.items() if options.get("lengths") == "given"}
    assert given == {*OURS, "ONNX Runtime lengths", "Keras masked", "Keras XLA masked"}
    assert sides["PyTorch packed"] == {"lengths": "packed"} and sides["Keras XLA masked"]["jit"] == "1"
    assert named(padding + "forward, 1 thread").padded
    math = [*OURS, "OpenRNN bf16", "OpenRNN C++ bf16", "OpenRNN C++ bf16x3", "oneDNN bf16", "PyTorch bf16"]
    assert keys("LSTM L1 U256 B16 T50, bf16, forward + backward, 2 threads") == math
    assert keys("LSTM L1 U256 B16 T50, bf16, forward, 1 thread") == [*math, "OpenVINO bf16"]
    assert keys("GRU L1 U256 B1 T100, smaller weights, forward, 1 thread") == [
        *OURS, "OpenRNN int8", "OpenRNN C++ int8", "OpenRNN C++ bfloat16", "OpenRNN C++ float16",
        "ONNX Runtime int8"]  # fmt: skip
    cell = named("GRU L1 U256 B32 T100, reset before, forward, 2 threads")
    assert [side.key for side in cell.sides] == ["OpenRNN", "PyTorch loop", "PyTorch compiled loop"]
    assert cell.option == "reset before" and dict(cell.sides[2].options) == {"compile": "1"}
    assert keys("LSTM L1 U256 B32 T64, language model, model, 1 thread") == [
        "OpenRNN", "PyTorch", "Keras", "Keras XLA"]  # fmt: skip
    assert keys("LSTM L1 U512 B32 T50, memory, 2 threads") == OURS + TRAINING


def test_lines_of_accuracy():
    found = [line for line in gate_set() if line.group == "accuracy"]
    assert [line.name for line in found] == [
        f"{network}, accuracy{note}, forward + backward, 1 thread" for network, note in (
            ("LSTM L1 U512 B32 T50", ""), ("LSTM L1 U1024 B16 T50", ""), ("LSTM L1 U128 B64 T300", ""),
            ("GRU L1 U512 B32 T50", ""), ("RNN L1 U512 B16 T20", ", small weights, biases 1"))]  # fmt: skip
    assert [line.weights for line in found] == [0, 0, 0, 0, lines.SMALL_WEIGHTS]
    assert [side.key for side in found[0].sides] == [*OURS, *TRAINING, "PyTorch aten"]
    assert dict(found[0].sides[-1].options) == {"onednn": "0"}
    assert [side.key for side in found[3].sides] == OURS + TRAINING


def test_drop_in_lines():
    plain = "LSTM L1 U64 B1 T100, dropin, "
    assert keys(plain + "forward, 2 threads") == ["openrnn.torch", "PyTorch", "PyTorch compiled", "OpenRNN"]
    assert keys("GRU L1 U64 B1 T1, dropin, forward, 2 threads") == [
        "openrnn.torch", "PyTorch", "PyTorch compiled", "OpenRNN", "openrnn.torch frozen",
        "openrnn.torch recorded"]  # fmt: skip
    forward = plain + "forward, 2 threads"
    assert keys("GRU L1 U64 B1 T1, dropin, forward + backward, 2 threads") == keys(forward)
    assert [side.role for side in named(forward).sides] == ["ours", "peer", "peer", "own"]
    packed = named("LSTM L2 U256 B16 T100, dropin, half padding, forward + backward, 2 threads")
    assert packed.padded and [dict(side.options) for side in packed.sides] == [
        {"drop_in": "1", "lengths": "packed"}, {"lengths": "packed"}]  # fmt: skip
    keras = "GRU L1 U64 B1 T100 bidirectional, dropin of Keras on {}, forward, 2 threads"
    assert keys(keras.format("TensorFlow")) == ["openrnn.keras", "Keras", "Keras XLA", "OpenRNN"]
    assert keys(keras.format("JAX")) == ["openrnn.keras", "Keras", "OpenRNN"]
    assert [side.worker for side in named(keras.format("NumPy")).sides] == [
        "keras_numpy", "keras_numpy", "openrnn_layers"]  # fmt: skip
    jax = "LSTM L1 U64 B1 T100, dropin of JAX, "
    assert keys(jax + "forward, 2 threads") == ["openrnn.jax", "JAX", "OpenRNN", "openrnn.jax packed"]
    assert keys(jax + "forward + backward, 2 threads") == ["openrnn.jax", "JAX", "OpenRNN"]


def test_company_is_ours_beside_another():
    one = named("LSTM L1 U256 B1 T100, in company of PyTorch, forward, 2 threads")
    assert [(side.key, side.role, dict(side.options)) for side in one.sides] == [
        ("OpenRNN", "ours", {"beside": "pytorch"}),
        ("OpenRNN one thread", "peer", {"beside": "pytorch", "own_threads": "1"})]  # fmt: skip
    other = named("LSTM L1 U256 B1 T100, in company of ONNX Runtime, forward, 2 threads")
    assert dict(other.sides[0].options) == {"beside": "onnx_runtimes.ort"}


@pytest.mark.parametrize("worker,native", [
    ("onednn", True), ("openrnn_core", True), ("onnx_runtimes.ort_c", True),
    ("openrnn_layers", False), ("onnx_runtimes.ort", False), ("pytorch", False),
])  # fmt: skip
def test_which_sides_are_called_from_cpp(worker, native):
    assert Side("a", worker).native == native and Side("a", worker).role == "peer"


def test_sizes_of_networks():
    network = Network("gru", 3, 4, 5, 6, directions=2)
    assert network.name == "GRU L3 U4 B5 T6 bidirectional"
    step = 2 * 2 * 12 * (4 + 4) + 2 * (2 * 2 * 12 * (8 + 4))
    assert network.forward_flop == step * 5 * 6
    assert network.flop("forward") == network.flop("model") == network.forward_flop
    assert network.flop("training") == 3 * network.forward_flop
    assert network.recurrent_bytes == 4 * 3 * 2 * 12 * 4
    line = Line("full", network, "training", 2, (), "a note")
    assert line.name == "GRU L3 U4 B5 T6 bidirectional, a note, forward + backward, 2 threads"
    assert line.timed and line.against_float64
    assert not Line("full", network, "model", 1, ()).against_float64
    assert not Line("four threads", network, "forward", 4, ()).against_float64
    assert not Line("accuracy", network, "training", 1, ()).timed
    assert Line("accuracy", network, "training", 1, ()).against_float64
