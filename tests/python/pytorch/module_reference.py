"""The network of module_program.py in PyTorch: its inputs, gradients, and weights after a step."""

import numpy as np
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.LSTM(3, 4), torch.nn.GRU(4, 3)])
        self.scale = torch.nn.Parameter(torch.full((3,), 0.5))

    def forward(self, x):
        for layer in self.layers:
            x, _ = layer(0.5 * x)
        return 1.5 * x + self.scale - 0.25


def flat(layer, of=lambda parameter: parameter):
    """The opaque buffer: all weights, then all biases, in the order of the parameters."""
    named = sorted(layer.named_parameters(), key=lambda pair: pair[0].startswith("bias"))
    return np.concatenate([of(p).detach().numpy().ravel() for _, p in named])


def compute():
    """dict of inputs and results."""
    torch.manual_seed(7)
    net = Net()
    x, weights = torch.randn(5, 2, 3), torch.randn(5, 2, 3)
    loss = torch.sum(weights * net(x))
    loss.backward()
    found = {"x": x.numpy(), "weights": weights.numpy(), "loss": loss.detach().numpy()}
    for i, layer in enumerate(net.layers):
        found[f"params{i}"] = flat(layer)
        found[f"gradient{i}"] = flat(layer, lambda parameter: parameter.grad)
    found["gradient_scale"] = net.scale.grad.numpy().copy()
    net.zero_grad()
    for parameter in net.layers[0].parameters():
        parameter.requires_grad_(False)
    torch.sum(weights * net(x)).backward()
    torch.optim.SGD([p for p in net.parameters() if p.requires_grad], 0.1).step()
    found["trained"] = flat(net.layers[1])
    found["trained_scale"] = net.scale.detach().numpy()
    found["output"] = net(x).detach().numpy()
    return found
