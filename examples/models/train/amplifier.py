"""Makes amplifier.nam, an LSTM that has learnt a guitar amplifier, and what PyTorch computes with it.

    python amplifier.py [--steps 1500]
"""
import argparse
import json
import pathlib
import sys

import numpy as np
import torch
from torch import nn

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parents[1] / "python"))
import sounds

RATE, UNITS, WARM = 24000, 16, 256


class Amplifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.head = nn.LSTM(1, UNITS), nn.Linear(UNITS, 1)

    def forward(self, x, states=None):
        """[T, B] to [T, B], and the states."""
        y, states = self.lstm(x[..., None], states)
        return self.head(y)[..., 0], states


def guitar(seconds, random):
    """Plucks one after another, some of them two at once, at any loudness."""
    notes = [random.uniform(0.1, 1.0) * sum(sounds.pluck(random.uniform(80, 600), 0.25, RATE, random)
                                            for _ in range(random.integers(1, 3)))
             for _ in range(int(seconds * 4))]
    return np.concatenate(notes)


def train(model, steps, batch=24, length=1024):
    random = np.random.default_rng(3)
    signal = guitar(40, random)
    wanted = sounds.tube(signal, RATE)
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for step in range(1, steps + 1):
        starts = random.integers(0, len(signal) - WARM - length, batch)
        x, y = (torch.tensor(np.stack([a[s:s + WARM + length] for s in starts], 1), dtype=torch.float32)
                for a in (signal, wanted))
        error = (model(x)[0] - y)[WARM:]
        loss = (error ** 2).sum() / (y[WARM:] ** 2).sum()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 50 == 0:
            print(f"step {step}: {10 * np.log10(loss.item()):.2f} dB of error to signal", flush=True)


def export(model, path):
    """One list of numbers: [W R], the bias, h and c after a second of silence, the head."""
    w, r, b1, b2 = model.lstm.parameters()
    states = model(torch.zeros(RATE, 1))[1]
    parts = [torch.cat([w, r], 1), b1 + b2, *states, *model.head.parameters()]
    numbers = [str(np.float32(x)) for part in parts for x in part.detach().flatten().tolist()]
    network = {"input_size": 1, "hidden_size": UNITS, "num_layers": 1}
    text = json.dumps({"version": "0.5.4", "architecture": "LSTM", "config": network, "sample_rate": RATE})
    path.write_text(text[:-1] + ', "weights": [' + ", ".join(numbers) + "]}\n")
    signal = guitar(1, np.random.default_rng(4))[:2048].astype("float32")
    found, _ = model(torch.tensor(signal)[:, None], states)
    np.save(path.with_name("amplifier_by_torch.npy"), np.stack([signal, found[:, 0].detach().numpy()]))
    print(f"{path.name}: {path.stat().st_size} bytes")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1500)
    arguments = parser.parse_args()
    torch.manual_seed(3)
    model = Amplifier()
    train(model, arguments.steps)
    export(model, HERE.parent / "amplifier.nam")


if __name__ == "__main__":
    main()
