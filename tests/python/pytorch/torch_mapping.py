"""The parameters of torch.nn.LSTM, GRU and RNN as canonical lists, and back.

PyTorch keeps cuDNN's gate order and both biases, so nothing is summed or halved: each of its tensors
is the gates of one side stacked as rows, with the names of layer k (backward direction: `_reverse`):

    weight_ih_l{k}  [G * U, in]  the input matrices, slots 0 .. G-1      (LSTM i f g o, GRU r z n)
    weight_hh_l{k}  [G * U, O]   the recurrent matrices, slots G .. 2G-1
    bias_ih_l{k}    [G * U]      the input biases
    bias_hh_l{k}    [G * U]      the recurrent biases
    weight_hr_l{k}  [P, U]       the projection, slot 8

States have the same order too: [L * D, B, .], forward before backward, and the pair is (h, c). PyTorch
knows no skip_input. With `state = {name: tensor.numpy() for name, tensor in module.state_dict()}`:

    model = openrnn.cudnn_rnn.ops.CudnnLSTM(layers, units, input_size, num_proj=proj)
    params = model.canonical_to_params(*to_canonical(spec, state))
"""

import numpy as np


def suffix(spec, pseudo):
    """What PyTorch puts after the name of a tensor of this pseudo-layer."""
    layer, direction = divmod(pseudo, spec.num_dirs)
    return f"l{layer}" + ("_reverse" if direction else "")


def to_canonical(spec, state):
    """(weights, biases): the lists that `canonical_to_params` takes, from named arrays."""
    weights, biases = [], []
    for pseudo in range(spec.num_pseudo):
        of = suffix(spec, pseudo)
        for side in ("ih", "hh"):
            weights += np.split(state[f"weight_{side}_{of}"], spec.num_gates)
            biases += np.split(state[f"bias_{side}_{of}"], spec.num_gates)
        if spec.num_proj:
            weights.append(state[f"weight_hr_{of}"])
    return weights, biases


def from_canonical(spec, weights, biases):
    """The named arrays of PyTorch from what `params_to_canonical` gives."""
    gates, state = spec.num_gates, {}
    per_weights, per_biases = len(weights) // spec.num_pseudo, 2 * gates
    for pseudo in range(spec.num_pseudo):
        of = suffix(spec, pseudo)
        matrices = weights[pseudo * per_weights : (pseudo + 1) * per_weights]
        vectors = biases[pseudo * per_biases : (pseudo + 1) * per_biases]
        for number, side in enumerate(("ih", "hh")):
            part = slice(number * gates, (number + 1) * gates)
            state[f"weight_{side}_{of}"] = np.concatenate([np.asarray(m) for m in matrices[part]])
            state[f"bias_{side}_{of}"] = np.concatenate([np.asarray(v) for v in vectors[part]])
        if spec.num_proj:
            state[f"weight_hr_{of}"] = np.asarray(matrices[-1])
    return state
