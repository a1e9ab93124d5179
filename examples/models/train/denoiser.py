"""Makes denoiser_1.onnx and denoiser_2.onnx: the two stages of DTLN, with frames of 16 ms and fewer units.

    python denoiser.py [--steps 1500]
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

FRAME, SHIFT, UNITS, FEATURES, EPSILON = 128, 32, 32, 48, 1e-7
BINS = FRAME // 2 + 1


class InstantNorm(nn.Module):
    """Each frame by itself has mean 0 and deviation 1, before gamma and beta."""

    def __init__(self, size):
        super().__init__()
        self.gamma, self.beta = nn.Parameter(torch.ones(size)), nn.Parameter(torch.zeros(size))

    def forward(self, x):
        centred = x - x.mean(-1, keepdim=True)
        return centred / torch.sqrt((centred ** 2).mean(-1, keepdim=True) + EPSILON) * self.gamma + self.beta


class Separator(nn.Module):
    """A mask of x [T, B, size]: norm, two LSTMs, dense, sigmoid."""

    def __init__(self, size):
        super().__init__()
        self.norm = InstantNorm(size)
        self.lstms = nn.ModuleList([nn.LSTM(size, UNITS), nn.LSTM(UNITS, UNITS)])
        self.dense = nn.Linear(UNITS, size)

    def forward(self, x):
        x = self.norm(x)
        for lstm in self.lstms:
            x = lstm(x)[0]
        return torch.sigmoid(self.dense(x))


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = Separator(BINS), Separator(FEATURES)
        self.encoder = nn.Linear(FRAME, FEATURES, bias=False)
        self.decoder = nn.Linear(FEATURES, FRAME, bias=False)

    def forward(self, signal):
        """[B, time] to [B, time], of whole frames; and what the first stage alone would give."""
        frames = signal.unfold(1, FRAME, SHIFT).transpose(0, 1)
        spectrum = torch.fft.rfft(frames)
        magnitude = spectrum.abs()
        masked = spectrum * self.first(torch.log(magnitude + EPSILON))
        frames = torch.fft.irfft(masked, FRAME)
        features = self.encoder(frames)
        out = self.decoder(features * self.second(features))
        return joined(out, signal.shape[1]), joined(frames * SHIFT / FRAME, signal.shape[1])


def joined(frames, length):
    """The overlapping frames [T, B, FRAME] added."""
    whole = nn.functional.fold(frames.permute(1, 2, 0), (1, length), (1, FRAME), stride=(1, SHIFT))
    return whole[:, 0, 0]


def error(clean, found):
    """How far the error lies above the signal, in decibels."""
    ratio = ((clean - found) ** 2).sum(-1) / ((clean ** 2).sum(-1) + 1e-6)
    return 10 * torch.log10(ratio + 1e-6).mean()


def train(model, steps, batch=16, length=8192):
    random = np.random.default_rng(2)
    clean, _ = sounds.speech(600, random)
    other = np.concatenate([sounds.noise(6, random) for _ in range(100)])
    optimizer = torch.optim.Adam(model.parameters(), 4e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for step in range(1, steps + 1):
        starts = random.integers(0, len(clean) - length, (2, batch))
        voice, rush = (np.stack([x[s:s + length] for s in row]) for x, row in zip((clean, other), starts))
        levels = 10 ** (random.uniform([-12, -2], [6, 12], (batch, 2)) / 20)
        voice, rush = levels[:, :1] * voice, levels[:, :1] / levels[:, 1:] * rush * clean.std()
        voice, heard = (torch.tensor(x, dtype=torch.float32) for x in (voice, voice + rush))
        found, early = model(heard)
        inside = slice(FRAME, -FRAME)
        loss = error(voice[:, inside], found[:, inside])
        optimizer.zero_grad()
        (loss + 0.3 * error(voice[:, inside], early[:, inside])).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 3.0)
        optimizer.step()
        schedule.step()
        if step % 50 == 0:
            before = error(voice[:, inside], heard[:, inside])
            print(f"step {step}: noise {before.item():.2f} dB before, {loss.item():.2f} behind", flush=True)


def norm(g, name, x, module):
    centred = g.node("Sub", x, g.node("ReduceMean", x, axes=[-1], keepdims=1))
    variance = g.node("ReduceMean", g.node("Mul", centred, centred), axes=[-1], keepdims=1)
    deviation = g.node("Sqrt", g.node("Add", variance, g.weight("epsilon", np.float32(EPSILON))))
    scaled = g.node("Mul", g.node("Div", centred, deviation), g.floats(f"{name}.gamma", module.gamma))
    return g.node("Add", scaled, g.floats(f"{name}.beta", module.beta))


def mask(g, x, module):
    """The mask of x [1, 1, size], with the states [1, 2, UNITS, 2] of two LSTMs in and out."""
    x = g.node("Transpose", norm(g, "norm", x, module.norm), perm=[1, 0, 2])
    after = []
    for i, lstm in enumerate(module.lstms):
        both = g.cut("states_in", i, i + 1, 1)
        h, c = (g.squeeze(g.cut(both, k, k + 1, 3), 3) for k in range(2))
        x, h, c = g.lstm(f"lstm_{i}", lstm, x, h, c)
        after.append(g.node("Concat", g.unsqueeze(h, 3), g.unsqueeze(c, 3), axis=3))
    g.node("Concat", *after, axis=1, outputs=["states_out"])
    product = g.node("MatMul", g.node("Transpose", x, perm=[1, 0, 2]), g.floats("dense.kernel", module.dense.weight.T))
    return g.node("Sigmoid", g.node("Add", product, g.floats("dense.bias", module.dense.bias)))


def pointwise(g, name, x, module, **outputs):
    """A convolution of one tap over x [1, 1, size], as a layer of Keras becomes nodes."""
    x = g.node("Transpose", g.unsqueeze(x, 1), perm=[0, 3, 1, 2])
    y = g.node("Conv", x, g.floats(name, module.weight[:, :, None, None]), kernel_shape=[1, 1])
    return g.squeeze(g.node("Transpose", y, perm=[0, 2, 3, 1]), 1, **outputs)


def export(model, folder):
    states = [1, 2, UNITS, 2]
    g = Graph()
    loud = g.node("Log", g.node("Add", "magnitude", g.weight("epsilon", np.float32(EPSILON))))
    g.node("Identity", mask(g, loud, model.first), outputs=["mask"])
    g.save(folder / "denoiser_1.onnx", {"magnitude": [1, 1, BINS], "states_in": states},
           {"mask": [1, 1, BINS], "states_out": states})
    g = Graph()
    features = pointwise(g, "encoder", "frame", model.encoder)
    masked = g.node("Mul", features, mask(g, features, model.second))
    pointwise(g, "decoder", masked, model.decoder, outputs=["clean"])
    g.save(folder / "denoiser_2.onnx", {"frame": [1, 1, FRAME], "states_in": states},
           {"clean": [1, 1, FRAME], "states_out": states})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1500)
    arguments = parser.parse_args()
    torch.manual_seed(2)
    model = Denoiser()
    train(model, arguments.steps)
    export(model, HERE.parent)


if __name__ == "__main__":
    main()
