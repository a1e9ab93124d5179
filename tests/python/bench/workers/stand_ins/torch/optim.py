"""Adam."""

import numpy as np


class Adam:
    def __init__(self, parameters, rate, fused):
        assert fused
        self.parameters, self.rate, self.steps = parameters, rate, 0
        self.slots = [[np.zeros(p.shape), np.zeros(p.shape)] for p in parameters]

    def zero_grad(self, set_to_none):
        assert set_to_none
        for parameter in self.parameters:
            parameter.grad = None

    def step(self):
        self.steps += 1
        for parameter, slots in zip(self.parameters, self.slots, strict=True):
            gradient, corrected = parameter.grad.data, []
            for n, (beta, value) in enumerate(((0.9, gradient), (0.999, gradient**2))):
                slots[n] = beta * slots[n] + (1 - beta) * value
                corrected.append(slots[n] / (1 - beta**self.steps))
            change = self.rate * corrected[0] / (np.sqrt(corrected[1]) + 1e-8)
            parameter.data = (parameter.data - change).astype("float32")
