"""Makes voice_detector.onnx: the graph of Silero's detector for 8 kHz, with fewer channels.

    python voice_detector.py [--steps 500]
"""
import argparse
import pathlib
import sys

import numpy as np
import torch
from torch import nn

from graph import Graph

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parents[1] / "python"))
import sounds

CHUNK, CONTEXT, WINDOW, HOP, UNITS = 256, 32, 128, 64, 32
# Channels in and out, and the stride, of each convolution: four frames become one.
ENCODER = [(WINDOW // 2 + 1, 32, 1), (32, 16, 2), (16, 16, 2), (16, UNITS, 1)]


def basis():
    """Cosines and sines under a Hann window: the short-time transform as weights [130, 1, 128]."""
    time, order = np.arange(WINDOW), np.arange(WINDOW // 2 + 1)[:, None]
    wave = np.exp(-2j * np.pi * order * time / WINDOW) * np.hanning(WINDOW + 1)[:WINDOW]
    return torch.tensor(np.concatenate([wave.real, wave.imag])[:, None], dtype=torch.float32)


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("basis", basis())
        self.encoder = nn.ModuleList(nn.Conv1d(*size, 3, stride, padding=1) for *size, stride in ENCODER)
        self.lstm = nn.LSTM(UNITS, UNITS)
        self.decoder = nn.Conv1d(UNITS, 1, 1)

    def forward(self, chunks, states=None):
        """Logits [T, B] of chunks [T, B, CONTEXT + CHUNK], and the states."""
        x = nn.functional.pad(chunks.flatten(0, 1)[:, None], (0, CONTEXT), mode="reflect")
        parts = nn.functional.conv1d(x, self.basis, stride=HOP)
        real, imaginary = parts.chunk(2, dim=1)
        x = torch.sqrt(real ** 2 + imaginary ** 2 + 1e-12)
        for layer in self.encoder:
            x = torch.relu(layer(x))
        y, states = self.lstm(x.view(*chunks.shape[:2], UNITS), states)
        return self.decoder(torch.relu(y.flatten(0, 1))[..., None]).view(chunks.shape[:2]), states


def chunks_of(signal):
    """[B, time] to [T, B, CONTEXT + CHUNK]; before the first chunk are zeros."""
    padded = nn.functional.pad(signal, (CONTEXT, 0))
    return padded.unfold(1, CONTEXT + CHUNK, CHUNK).transpose(0, 1)


def train(model, steps, batch=32, length=100 * CHUNK):
    random = np.random.default_rng(1)
    clean, spoken = sounds.speech(600, random)
    other = np.concatenate([sounds.noise(6, random) for _ in range(100)])
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for step in range(1, steps + 1):
        starts = random.integers(0, len(clean) - length, (2, batch))
        voice, rush = (np.stack([x[s:s + length] for s in row]) for x, row in zip((clean, other), starts))
        labels = np.stack([spoken[s:s + length] for s in starts[0]]).reshape(batch, -1, CHUNK).mean(-1) > 0.5
        levels = 10 ** (random.uniform([-20, 3], [0, 25], (batch, 2)) / 20)
        heard = levels[:, :1] * (voice + rush * clean.std() / levels[:, 1:])
        logits, _ = model(chunks_of(torch.tensor(heard, dtype=torch.float32)))
        target = torch.tensor(labels.T, dtype=torch.float32)
        loss = nn.functional.binary_cross_entropy_with_logits(logits, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 50 == 0:
            right = ((logits > 0) == (target > 0.5)).float().mean()
            print(f"step {step}: loss {loss.item():.4f}, chunks right {right.item():.4f}", flush=True)


def export(model, path):
    g = Graph()
    padded = g.node("Pad", "input", g.integers(0, 0, 0, CONTEXT), mode="reflect")
    parts = g.node("Conv", g.unsqueeze(padded, 1), g.floats("stft.basis", model.basis), strides=[HOP])
    bins, two = WINDOW // 2 + 1, g.weight("two", np.float32(2))
    squares = [g.node("Pow", g.cut(parts, start, end, 1), two) for start, end in [(0, bins), (bins, 2 * bins)]]
    x = g.node("Sqrt", g.node("Add", *squares))
    for i, layer in enumerate(model.encoder):
        weights = [g.floats(f"encoder.{i}.{name}", value) for name, value in layer.named_parameters()]
        x = g.node("Relu", g.node("Conv", x, *weights, pads=[1, 1], strides=list(layer.stride)))
    states = [g.node("Gather", "state", g.weight(f"index_{i}", np.array([i])), axis=0) for i in range(2)]
    x, h, c = g.lstm("decoder.rnn", model.lstm, g.node("Transpose", x, perm=[2, 0, 1]), *states)
    g.node("Concat", h, c, axis=0, outputs=["stateN"])
    x = g.node("Transpose", g.node("Relu", x), perm=[1, 2, 0])
    weights = [g.floats(f"decoder.{name}", value) for name, value in model.decoder.named_parameters()]
    x = g.node("Sigmoid", g.node("Conv", x, *weights))
    g.node("ReduceMean", g.squeeze(x, 1), axes=[1], keepdims=1, outputs=["output"])
    size = ["batch", CONTEXT + CHUNK]
    g.save(path, {"input": size, "state": [2, "batch", UNITS]},
           {"output": ["batch", 1], "stateN": [2, "batch", UNITS]})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=500)
    arguments = parser.parse_args()
    torch.manual_seed(1)
    model = Detector()
    train(model, arguments.steps)
    export(model, HERE.parent / "voice_detector.onnx")


if __name__ == "__main__":
    main()
