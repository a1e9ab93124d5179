"""Losses of a training run, step by step, plain and converted."""

import openrnn.torch as ours
import pytest
import torch
from torch import nn

STEPS = 200


class Characters(nn.Module):
    def __init__(self, recurrent, symbols=11, units=16):
        super().__init__()
        self.embed = nn.Embedding(symbols, 8)
        self.recurrent = recurrent(8, units, 2, batch_first=True)
        self.head = nn.Linear(units, symbols)

    def forward(self, x, hx=None):
        output, last = self.recurrent(self.embed(x), hx)
        return self.head(output), last


def train(recurrent, dtype, convert):
    torch.manual_seed(0)
    model = Characters(recurrent).to(dtype)
    if convert:
        ours.convert(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    text = (torch.arange(4000) ** 2 // 3 + torch.arange(4000) // 7) % 11
    windows = text.unfold(0, 13, 5)
    hx, losses = None, []
    for step in range(STEPS):
        batch = windows[step * 2 : step * 2 + 4]
        logits, hx = model(batch[:, :-1], hx)
        hx = tuple(s.detach() for s in hx) if isinstance(hx, tuple) else hx.detach()
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return torch.tensor(losses, dtype=torch.float64)


@pytest.mark.parametrize("recurrent", [nn.LSTM, nn.GRU, nn.RNN])
def test_losses_in_float64_are_those_of_torch(recurrent):
    plain, converted = (train(recurrent, torch.float64, convert) for convert in (False, True))
    assert plain[-1] < plain[0] and not torch.equal(plain, converted)
    assert (plain - converted).abs().max() < 1e-9


def test_losses_in_float32_are_as_exact_as_those_of_torch():
    """PyTorch's LSTM has two paths, oneDNN's and its own, whose sums have other orders."""
    exact = train(nn.LSTM, torch.float64, False)

    def error(convert):
        return (train(nn.LSTM, torch.float32, convert) - exact).abs().max()

    with torch.backends.mkldnn.flags(enabled=False):
        native = error(False)
    assert error(True) <= 2 * max(native, error(False))
