"""Options of a cell that PyTorch has: bias=False, the nonlinearity of RNN, proj_size. In float64,
values and gradients."""

import numpy as np
import pytest
import torch

import rnn_capi
import torch_mapping
import torch_reference
from model.cells import cell_problems, cell_spec
from model.cells.cell_spec import CellSpec

# (mode, activation, PyTorch's class and arguments): both names of one plain network.
NETWORKS = [
    ("lstm", None, torch.nn.LSTM, {}),
    ("gru", None, torch.nn.GRU, {}),
    ("rnn_tanh", "relu", torch.nn.RNN, {"nonlinearity": "relu"}),
    ("rnn_relu", "tanh", torch.nn.RNN, {"nonlinearity": "tanh"}),
]


def named_tensors(spec, buffer):
    """PyTorch's names: per pseudo-layer the gates of W and of R stacked as rows, biases alike."""
    found = {}
    for pseudo, (matrices, biases, *_) in enumerate(cell_spec.split(spec, buffer)):
        of, gates = torch_mapping.suffix(spec, pseudo), spec.num_gates
        for n, side in enumerate(["ih", "hh"]):
            own = slice(n * gates, (n + 1) * gates)
            found[f"weight_{side}_{of}"] = np.concatenate(matrices[own])
            if biases:
                found[f"bias_{side}_{of}"] = np.concatenate(biases[own])
        if spec.num_proj:
            found[f"weight_hr_{of}"] = matrices[-1]
    return found


def theirs(kind, how, problem):
    spec = problem.spec
    if spec.num_proj:
        how = {**how, "proj_size": spec.num_proj}
    module = kind(
        spec.input_size, spec.num_units, spec.num_layers, bias=spec.use_bias,
        bidirectional=spec.num_dirs == 2, dtype=torch.float64, **how,
    )  # fmt: skip
    tensors = named_tensors(spec, problem.params)
    module.load_state_dict({name: torch.tensor(array) for name, array in tensors.items()})
    leaf = lambda array: torch.tensor(np.nan_to_num(array), requires_grad=True)
    x, states = leaf(problem.x), tuple(leaf(s) for s in problem.states if s is not None)
    y, last = torch_reference.call(module, x, states, problem.lengths)
    results = dict(zip("yhc", (y, *last)))
    upstream = [torch.tensor(np.nan_to_num(a)) for a in (problem.dy, problem.dh, problem.dc)]
    named = dict(module.named_parameters())
    slopes = torch.autograd.grad(
        list(results.values()), [x, *states, *named.values()], upstream[: len(results)]
    )
    results |= dict(zip(["dx", "dh0", "dc0"][: 1 + len(states)], slopes))
    results |= dict(zip(named, slopes[1 + len(states) :]))
    return {name: value.detach().numpy() for name, value in results.items()}


@pytest.mark.parametrize("network", NETWORKS, ids=[f"{m}-{a}" for m, a, *_ in NETWORKS])
@pytest.mark.parametrize("use_bias", [True, False])
@pytest.mark.parametrize("direction", ["unidirectional", "bidirectional"])
@pytest.mark.parametrize("lengths", [None, (4, 1, 3)])
@pytest.mark.parametrize("proj", [0, 2])
def test_module(network, use_bias, direction, lengths, proj):
    mode, activation, kind, how = network
    spec = CellSpec(
        mode, 2, 5, 3, direction=direction, num_proj=proj if mode == "lstm" else 0,
        activation=activation, use_bias=use_bias,
    )  # fmt: skip
    problem = cell_problems.make(spec, lengths=lengths)
    wanted = theirs(kind, how, problem)
    for engine in ["reference", "cpu"]:
        ours = rnn_capi.run(engine, problem, saving=True, backward_calls=1)
        ours |= named_tensors(spec, ours.pop("dparams"))
        cell_problems.assert_close(ours, wanted)
