"""train.Adam and train.AdamW beside torch.optim's own, step by step."""

import numpy as np
import openrnn
import pytest
import torch

SIZE, STEPS = 23, 30


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("name", "given", "theirs"),
    [
        ("Adam", {}, {}),
        ("Adam", {"epsilon": 1e-2, "beta1": 0.5}, {"eps": 1e-2, "betas": (0.5, 0.999)}),
        ("AdamW", {}, {}),
        ("AdamW", {"weight_decay": 0.3, "beta2": 0.9}, {"weight_decay": 0.3, "betas": (0.9, 0.9)}),
    ],
)
def test_the_steps_of_torch(dtype, name, given, theirs):
    random = np.random.default_rng(4)
    start = random.normal(size=SIZE).astype(dtype)
    grads = (random.normal(size=(STEPS, SIZE)) * np.logspace(-8, 1, SIZE)).astype(dtype)
    other = torch.tensor(start, requires_grad=True)
    optimizer = getattr(torch.optim, name)([other], lr=0.02, **theirs)
    tolerance = 5e-6 if dtype == "float32" else 1e-13
    with openrnn.Graph().as_default():
        w, ours = openrnn.Variable(start), getattr(openrnn.train, name)(0.02, **given)
        for g in grads:
            ours.apply_gradients([(g, w)])
            other.grad = torch.tensor(g)
            optimizer.step()
            np.testing.assert_allclose(w.numpy(), other.detach().numpy(), rtol=tolerance, atol=tolerance)
