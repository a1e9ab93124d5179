"""The models of the examples in PyTorch itself, from the weights in their files: in one call, where
the examples go piece by piece."""

import importlib.util
import json
import pathlib
import sys

import numpy as np
import pytest
import torch

onnx = pytest.importorskip("onnx")

EXAMPLES = pathlib.Path(__file__).resolve().parents[4] / "examples"
MODELS = EXAMPLES / "models"
IFGO = [0, 2, 3, 1]  # of ONNX's blocks i o f c, in PyTorch


def program(folder, name):
    """A program as a module of a name of its own: both folders have some of the same."""
    sys.path.insert(0, str(folder))
    try:
        spec = importlib.util.spec_from_file_location(f"{folder.name}_{name}", folder / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    finally:
        sys.path.remove(str(folder))


@pytest.fixture(name="example", scope="module")
def fixture_example():
    return lambda name: program(EXAMPLES / "python", name)


@pytest.fixture(name="trainer", scope="module")
def fixture_trainer():
    return lambda name: program(MODELS / "train", name)


def initializers(name):
    graph = onnx.load(MODELS / name).graph
    return {tensor.name: torch.tensor(onnx.numpy_helper.to_array(tensor).copy()) for tensor in graph.initializer}


def fill_lstm(module, tensors, name):
    """Its parameters from W, R and B."""
    moved = lambda a: torch.cat([a.chunk(4)[k] for k in IFGO])
    w, r, b = (tensors[f"{name}.{key}"][0] for key in "WRB")
    for parameter, value in zip(module.parameters(), [w, r, *b.chunk(2)], strict=True):
        parameter.data = moved(value)


def test_voice_detector(example, trainer):
    ours, theirs = example("voice_detector"), trainer("voice_detector")
    tensors, model = initializers("voice_detector.onnx"), theirs.Detector()
    for name, parameter in model.named_parameters():
        if not name.startswith("lstm"):
            parameter.data = tensors[name]
    fill_lstm(model.lstm, tensors, "decoder.rnn")
    random = np.random.default_rng(21)
    signal = ours.sounds.noisy(ours.sounds.speech(8, random)[0], 5.0, random).astype("float32")
    with torch.no_grad():
        wanted = torch.sigmoid(model(theirs.chunks_of(torch.tensor(signal)[None]))[0][:, 0]).numpy()
    found = ours.listen(ours.openrnn.onnx.load(ours.MODEL), signal)
    assert len(found) == len(wanted) and wanted.max() > 0.9 and wanted.min() < 0.1
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5)


def test_denoiser(example, trainer):
    ours, theirs = example("denoiser"), trainer("denoiser")
    model = theirs.Denoiser()
    for stage, part in enumerate([model.first, model.second], start=1):
        tensors = initializers(f"denoiser_{stage}.onnx")
        part.norm.gamma.data, part.norm.beta.data = tensors["norm.gamma"], tensors["norm.beta"]
        for i, lstm in enumerate(part.lstms):
            fill_lstm(lstm, tensors, f"lstm_{i}")
        part.dense.weight.data, part.dense.bias.data = tensors["dense.kernel"].T.contiguous(), tensors["dense.bias"]
    model.encoder.weight.data = tensors["encoder"][:, :, 0, 0]
    model.decoder.weight.data = tensors["decoder"][:, :, 0, 0]
    random = np.random.default_rng(22)
    signal = ours.sounds.noisy(ours.sounds.speech(4, random)[0], 5.0, random).astype("float32")
    late = ours.FRAME - ours.SHIFT  # the stream begins with a frame of which one shift is heard
    with torch.no_grad():
        wanted = model(torch.tensor(np.append(np.zeros(late, "float32"), signal))[None])[0][0].numpy()
    found = ours.denoise([ours.openrnn.onnx.load(path) for path in ours.MODELS], signal)
    assert np.abs(wanted).max() > 0.1
    np.testing.assert_allclose(found, wanted[: len(found)], rtol=0, atol=1e-5)


def test_amplifier(trainer):
    theirs, numbers = trainer("amplifier"), json.loads((MODELS / "amplifier.nam").read_text())["weights"]
    model, units = theirs.Amplifier(), theirs.UNITS
    sizes = [4 * units * (1 + units), 4 * units, units, units, units, 1]
    both, bias, h, c, kernel, offset = torch.tensor(numbers).split(sizes)
    values = [both.view(4 * units, -1)[:, :1], both.view(4 * units, -1)[:, 1:], bias, torch.zeros(4 * units)]
    for parameter, value in zip(model.parameters(), [*values, kernel[None], offset], strict=True):
        parameter.data = value.contiguous()
    given, wanted = np.load(MODELS / "amplifier_by_torch.npy")
    with torch.no_grad():
        found, _ = model(torch.tensor(given)[:, None], (h.view(1, 1, -1), c.view(1, 1, -1)))
    np.testing.assert_allclose(found[:, 0].numpy(), wanted, rtol=0, atol=1e-5)


def test_characters(example, trainer):
    ours, theirs = example("char_from_torch"), trainer("characters")
    saved = torch.load(MODELS / "characters.pt", weights_only=True)
    model = theirs.Characters(len(saved["alphabet"]))
    model.load_state_dict(saved["model"])
    reader = ours.Characters(MODELS / "characters.pt")
    text = theirs.reports(20, np.random.default_rng(23))
    with torch.no_grad():
        wanted = model(torch.tensor(reader.ids(text))[:, None])[0][:, 0].numpy()
        said = model(torch.tensor(reader.ids(saved["said"]))[:, None])[0][:, 0].numpy()
    np.testing.assert_allclose(np.load(MODELS / "characters_by_torch.npy"), said, rtol=0, atol=1e-4)
    state, found = None, []
    for character in text:
        logits, state = reader.step(character, state)
        found.append(logits)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-4)
