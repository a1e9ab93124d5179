"""Modules and calls of the problems whose results PyTorch once stored."""

import numpy as np
import torch_mapping
from numpy_torch import Parameter, Tensor
from numpy_torch.modules import PackedSequence

from model import numpy_layout

CLASSES = {"lstm": "LSTM", "gru": "GRU", "rnn_tanh": "RNN", "rnn_relu": "RNN"}


def fill(module, spec, params):
    """Parameters from the opaque buffer."""
    canonical = numpy_layout.params_to_canonical(spec, params)
    for name, array in torch_mapping.from_canonical(spec, *canonical).items():
        assert module._parameters[name].shape == array.shape
        module._parameters[name] = Parameter(Tensor(np.ascontiguousarray(array)))


def module_of(place, spec, params, **options):
    kind = {"nonlinearity": spec.mode[4:]} if spec.mode.startswith("rnn") else {}
    more = {"proj_size": spec.num_proj} if spec.num_proj else {}
    module = getattr(place, CLASSES[spec.mode])(
        spec.input_size, spec.num_units, spec.num_layers, bidirectional=spec.num_dirs == 2,
        **kind, **more, **options,
    )  # fmt: skip
    fill(module, spec, params)
    return module


def joined(spec, gradients):
    """The opaque buffer of gradients by name."""
    arrays = {name: gradient.numpy() for name, gradient in gradients.items()}
    return numpy_layout.canonical_to_params(spec, *torch_mapping.to_canonical(spec, arrays))


def ones(*shape, dtype="float32"):
    return Tensor(np.ones(shape, dtype))


def drawn(*shape, dtype="float32"):
    return Tensor(np.random.default_rng(3).normal(size=shape).astype(dtype))


def leaf(array):
    return Tensor(np.ascontiguousarray(array), requires_grad=True)


class Rows:
    """The order of a PackedSequence's rows, from [T, B, .] and back."""

    def __init__(self, lengths, steps):
        self.lengths, self.steps = np.asarray(lengths), steps
        self.order = np.argsort(-self.lengths, kind="stable")
        self.sizes = np.array([(self.lengths > t).sum() for t in range(self.lengths.max())])

    def flat(self, padded):
        return np.concatenate([padded[t, self.order[:n]] for t, n in enumerate(self.sizes)])

    def padded(self, flat):
        made, at = np.zeros((self.steps, len(self.order), flat.shape[-1]), flat.dtype), 0
        for t, n in enumerate(self.sizes):
            made[t, self.order[:n]] = flat[at : at + n]
            at += n
        return made

    def packed(self, data):
        back = Tensor(np.argsort(self.order))
        return PackedSequence(data, Tensor(self.sizes), Tensor(self.order), back)
