"""The parameters of a problem in a recurrent module of PyTorch, and their gradients out of it."""

import torch

from peers.workers import layout
from peers.workers.server import Array

MODULES = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU, "rnn_tanh": torch.nn.RNN}


def suffix(part: layout.Part) -> str:
    """What the names of a layer and direction end in."""
    return f"l{part.layer}" + ("_reverse" if part.direction else "")


def fill(module: torch.nn.Module, parts: list[layout.Part]) -> None:
    """Copies the parameters, whose order of gates is PyTorch's own."""
    state = {}
    for part in parts:
        for side, matrix, bias in (("ih", part.w, part.bw), ("hh", part.r, part.br)):
            state[f"weight_{side}_{suffix(part)}"] = torch.from_numpy(matrix.copy())
            state[f"bias_{side}_{suffix(part)}"] = torch.from_numpy(bias.copy())
    module.load_state_dict(state)


def gradients(module: torch.nn.Module, parts: list[layout.Part]) -> Array:
    """Of the last backward, as the flat buffer."""
    named = {name: p.grad.float().cpu().numpy() for name, p in module.named_parameters()}
    found = []
    for part in parts:
        end = suffix(part)
        w, r, bw, br = (
            named[f"{what}_{side}_{end}"] for what in ("weight", "bias") for side in ("ih", "hh")
        )
        found.append(layout.Part(part.layer, part.direction, w, r, bw, br))
    return layout.buffer_of(found)
