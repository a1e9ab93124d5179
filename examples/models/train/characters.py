"""Makes characters.pt, a character model of weather reports, and what PyTorch computes with it.

    python characters.py [--steps 2500]
"""
import argparse
import pathlib

import numpy as np
import torch
from torch import nn

HERE = pathlib.Path(__file__).resolve().parent
DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
SKIES = ["sun", "clouds", "fog", "wind"]
SAID = "Monday: 17 degrees, rain.\nTuesday: -3 degrees, snow.\nWedn"  # what PyTorch is asked about


class Characters(nn.Module):
    def __init__(self, symbols, units=52):
        super().__init__()
        self.embed = nn.Embedding(symbols, 16)
        self.lstm = nn.LSTM(16, units)
        self.head = nn.Linear(units, symbols)
        with torch.no_grad():
            self.lstm.bias_ih_l0[units:2 * units] = 1.0  # forget gates begin open: a day is long

    def forward(self, ids, states=None):
        """Logits [T, B, symbols] of what follows ids [T, B], and the states."""
        y, states = self.lstm(self.embed(ids), states)
        return self.head(y), states


def reports(count, random):
    """A line a day, in order; it snows where it freezes, and rains nowhere else."""
    lines = []
    for day in range(count):
        degrees = random.integers(-9, 30)
        sky = random.choice([*SKIES, "snow" if degrees < 0 else "rain"])
        lines.append(f"{DAYS[day % 7]}: {degrees} degrees, {sky}.\n")
    return "".join(lines)


def train(model, ids, steps, batch=64, length=64):
    """Parallel streams through the text; the states go on from step to step."""
    optimizer = torch.optim.Adam(model.parameters(), 8e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    streams = ids[:len(ids) // batch * batch].view(batch, -1).T
    states, at = None, 0
    for step in range(1, steps + 1):
        if at + length + 1 > len(streams):
            states, at = None, 0
        logits, states = model(streams[at:at + length], states)
        states, wanted = tuple(s.detach() for s in states), streams[at + 1:at + length + 1]
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), wanted.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        at += length
        if step % 50 == 0:
            print(f"step {step}: {loss.item() / np.log(2):.4f} bits per character", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=2500)
    arguments = parser.parse_args()
    torch.manual_seed(5)
    text = reports(8000, np.random.default_rng(5))
    alphabet = "".join(sorted(set(text)))
    ids = torch.tensor([alphabet.index(symbol) for symbol in text])
    model = Characters(len(alphabet))
    train(model, ids, arguments.steps)
    path = HERE.parent / "characters.pt"
    torch.save({"model": model.state_dict(), "alphabet": alphabet, "said": SAID}, path)
    said = torch.tensor([[alphabet.index(symbol)] for symbol in SAID])
    with torch.no_grad():
        np.save(path.with_name("characters_by_torch.npy"), model(said)[0][:, 0].numpy())
    print(f"{path.name}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
