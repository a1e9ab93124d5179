"""One training step in PyTorch on a problem of the NumPy model."""

import numpy as np
import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import torch_mapping
from model import numpy_layout

MODULES = {
    "lstm": (torch.nn.LSTM, {}),
    "gru": (torch.nn.GRU, {}),
    "rnn_tanh": (torch.nn.RNN, {"nonlinearity": "tanh"}),
    "rnn_relu": (torch.nn.RNN, {"nonlinearity": "relu"}),
}


def make_module(spec, params, batch_first=False):
    """The module that computes what an opaque buffer of this network computes."""
    params = np.array(params)  # PyTorch warns about memory that it must not write
    kind, more = MODULES[spec.mode]
    if spec.num_proj:
        more = {**more, "proj_size": spec.num_proj}
    module = kind(
        spec.input_size, spec.num_units, spec.num_layers, batch_first=batch_first,
        bidirectional=spec.num_dirs == 2, dtype=torch.from_numpy(params).dtype, **more,
    )  # fmt: skip
    named = torch_mapping.from_canonical(spec, *numpy_layout.params_to_canonical(spec, params))
    module.load_state_dict({name: torch.from_numpy(array) for name, array in named.items()})
    return module


def buffer_of(spec, named):
    """The opaque buffer of named tensors: parameters, or gradients of parameters."""
    arrays = {name: tensor.detach().numpy() for name, tensor in named.items()}
    return numpy_layout.canonical_to_params(spec, *torch_mapping.to_canonical(spec, arrays))


def call(module, x, states, lengths):
    """(y, states): packed and padded again when there are lengths, which PyTorch wants above 0."""
    states = states if len(states) == 2 else states[0]
    if lengths is None:
        y, last = module(x, states)
    else:
        first, time = module.batch_first, x.shape[1 if module.batch_first else 0]
        packed = pack_padded_sequence(x, torch.as_tensor(lengths), first, enforce_sorted=False)
        y, last = module(packed, states)
        y = pad_packed_sequence(y, first, total_length=time)[0]
    return y, last if isinstance(last, tuple) else (last,)


def run(problem):
    """dict of y h (c) dx dh0 (dc0) dparams."""
    spec, lstm = problem.spec, problem.spec.mode == "lstm"
    leaf = lambda array: torch.from_numpy(np.ascontiguousarray(array)).requires_grad_()
    module = make_module(spec, problem.params)
    x = leaf(problem.x)
    states = tuple(leaf(each) for each in problem.states if each is not None)
    y, last = call(module, x, states, problem.lengths)
    loss = (y * torch.from_numpy(problem.dy)).sum()
    for value, upstream in zip(last, (problem.dh, problem.dc)):
        loss = loss + (value * torch.from_numpy(upstream)).sum()
    named = dict(module.named_parameters())
    sources = [x, *states, *named.values()]
    gradients = torch.autograd.grad(loss, sources)
    names = ["y", "h", "c"] if lstm else ["y", "h"]
    result = {name: value.detach().numpy() for name, value in zip(names, (y, *last))}
    names = ["dx", "dh0", "dc0"] if lstm else ["dx", "dh0"]
    result.update((name, value.numpy()) for name, value in zip(names, gradients))
    result["dparams"] = buffer_of(spec, dict(zip(named, gradients[len(names) :])))
    return result
