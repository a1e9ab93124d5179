"""The examples that run whole models from files give what the framework that made the file gives."""
import re
import sys

import numpy as np
import onnx
import pytest
from example_runs import ROOT, documented, figure, output
from onnx import numpy_helper

pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")

sys.path.append(str(ROOT / "examples" / "python"))
import openrnn
import peer
import sounds
import voice_detector

MODELS = ROOT / "examples" / "models"
# Between what rounding does, some 3e-7 where values are at most 1, and what an exchanged gate does,
# 0.01 and more: both are tested here.
NEAR = 1e-5


def test_files_are_small():
    sizes = [path.stat().st_size for path in MODELS.iterdir() if path.is_file()]
    assert len(sizes) == 7 and sum(sizes) < 500_000


@pytest.mark.parametrize("decibels", [10, 0])
def test_voice_detector(decibels):
    shown = output("python", "voice_detector", "--decibels", decibels)
    right = figure(shown, "chunks right")
    assert right > {10: 0.98, 0: 0.93}[decibels]
    assert figure(shown, "largest difference from ONNX Runtime") < NEAR
    if decibels != 10:
        return
    assert documented("python", "voice_detector", f"{right:.3f} of the chunks")
    found = re.findall(r"^speech from ([\d.]+) to ([\d.]+) s$", shown, re.MULTILINE)
    _, spoken = sounds.speech(30, np.random.default_rng(11))
    edges = np.flatnonzero(np.diff(np.concatenate([[0], spoken, [0]]))).reshape(-1, 2) / sounds.RATE
    assert len(found) == len(edges) > 10
    # What is heard of a phrase begins and ends softly; one edge is further off than a chunk or two.
    off = np.abs(np.array(found, float) - edges) * sounds.RATE / voice_detector.CHUNK
    assert off.max() < 6 and np.mean(off < 2) > 0.9


def test_denoiser():
    shown = output("python", "denoiser")
    before, removed = figure(shown, "noise below speech"), figure(shown, "noise removed")
    assert before == 3.0 and removed > 4.5
    assert documented("python", "denoiser", f"{removed:.1f} dB")
    assert figure(shown, "largest difference from ONNX Runtime") < NEAR
    # Clean speech stays what it is: what is taken away lies far below it.
    clean = output("python", "denoiser", "--decibels", 40)
    behind = float(re.search(r"before, ([-\d.]+) dB behind$", clean, re.MULTILINE).group(1))
    assert behind > 12


def test_amplifier():
    shown = output("python", "amplifier")
    error = figure(shown, "error to signal")
    assert error < -19
    assert documented("python", "amplifier", f"{error:.1f} dB")
    assert figure(shown, "largest difference from PyTorch") < NEAR
    assert "blocks of 64: the same bits\n" in shown


def test_characters():
    shown = output("python", "char_from_torch", "--days", 30)
    assert figure(shown, "largest difference from PyTorch") < 10 * NEAR  # logits are some tens
    line = re.compile(r"(\w+): (-?\d+) degrees, (sun|clouds|fog|wind|rain|snow)\.")
    lines = shown.splitlines()[1:]
    days = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
    assert len(lines) == 30 and len(set(lines)) > 20
    # What it must remember for a line: which day it is, and for some characters whether it freezes.
    for i, text in enumerate(lines):
        day, degrees, sky = line.fullmatch(text).groups()
        assert day == days[i % 7] and -9 <= int(degrees) <= 29, text
        assert sky != ("snow" if int(degrees) >= 0 else "rain"), text


def operators(name):
    return [node.op_type for node in onnx.load(MODELS / name).graph.node]


def test_graphs_are_those_of_the_public_models():
    """Each convolution, norm and LSTM is in its place, one node for each operation."""
    convolutions = ["Conv", "Relu"] * 4
    assert operators("voice_detector.onnx") == [
        "Pad", "Unsqueeze", "Conv", "Slice", "Pow", "Slice", "Pow", "Add", "Sqrt", *convolutions, "Gather", "Gather",
        "Transpose", "LSTM", "Squeeze", "Concat", "Relu", "Transpose", "Conv", "Sigmoid", "Squeeze", "ReduceMean",
    ]  # fmt: skip
    norm = ["ReduceMean", "Sub", "Mul", "ReduceMean", "Add", "Sqrt", "Div", "Mul", "Add"]
    lstm = ["Slice", "Slice", "Squeeze", "Slice", "Squeeze", "LSTM", "Squeeze", "Unsqueeze", "Unsqueeze", "Concat"]
    mask = [*norm, "Transpose", *lstm, *lstm, "Concat", "Transpose", "MatMul", "Add", "Sigmoid"]
    pointwise = ["Unsqueeze", "Transpose", "Conv", "Transpose", "Squeeze"]
    assert operators("denoiser_1.onnx") == ["Add", "Log", *mask, "Identity"]
    assert operators("denoiser_2.onnx") == [*pointwise, *mask, "Mul", *pointwise]


@pytest.mark.parametrize("gates", [(0, 1), (0, 2), (1, 2), (0, 3)])
def test_an_exchanged_gate_shows(tmp_path, gates):
    """What the comparisons would see of a gate in another's place."""
    clean, _ = sounds.speech(4, np.random.default_rng(1))
    signal = clean.astype("float32")
    model = onnx.load(MODELS / "voice_detector.onnx")
    for tensor in model.graph.initializer:
        if tensor.name in ("decoder.rnn.W", "decoder.rnn.R"):
            blocks = np.split(numpy_helper.to_array(tensor), 4, axis=1)
            blocks[gates[0]], blocks[gates[1]] = blocks[gates[1]], blocks[gates[0]]
            tensor.CopyFrom(numpy_helper.from_array(np.concatenate(blocks, axis=1), tensor.name))
    onnx.save(model, tmp_path / "m.onnx")
    wrong = voice_detector.listen(openrnn.onnx.load(tmp_path / "m.onnx"), signal)
    right = voice_detector.listen(peer.Program(voice_detector.MODEL), signal)
    assert np.abs(wrong - right).max() > 1000 * NEAR
