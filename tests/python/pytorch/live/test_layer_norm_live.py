"""Networks with layer normalization against the published cells, as their papers and sources have
them, over PyTorch's layer_norm and its autograd in float64."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import rnn_capi
from model.cells import cell_problems, cell_spec
from model.cells.cell_spec import CellSpec

UNITS = 5


def norm(a, gain, epsilon, bias=None):
    return torch.nn.functional.layer_norm(a, a.shape[-1:], gain, bias, epsilon)


def haste_lstm(p, x, h, c, epsilon):
    """Haste's LayerNormLSTM, and that of Ba et al. 2016 with both biases in one."""
    gain = torch.cat(p["gains"][:4]), torch.cat(p["gains"][4:])
    sides = [norm(a @ torch.cat(m).T, g, epsilon) for a, m, g in zip((x, h), p["matrices"], gain)]
    i, f, g, o = (sides[0] + sides[1] + torch.cat(p["biases"])).chunk(4, 1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(norm(c, p["cell"][0], epsilon, p["cell"][1])), c


def haste_gru(p, x, h, c, epsilon):
    """Haste's LayerNormGRU."""
    gain = torch.cat(p["gains"][:3]), torch.cat(p["gains"][3:])
    bias = torch.cat(p["biases"][:3]), torch.cat(p["biases"][3:])
    sides = [
        norm(a @ torch.cat(m).T, g, epsilon) + b
        for a, m, g, b in zip((x, h), p["matrices"], gain, bias)
    ]
    (rx, zx, nx), (rh, zh, nh) = (side.chunk(3, 1) for side in sides)
    z = torch.sigmoid(zx + zh)
    return z * h + (1 - z) * torch.tanh(nx + torch.sigmoid(rx + rh) * nh), c


def ba_gru(p, x, h, c, epsilon):
    """The GRU of Ba et al. 2016, with 1 - z in the place of their z."""
    sums = []
    for n, a in enumerate((x, h)):
        m, gain, bias = p["matrices"][n], p["gains"][3 * n : 3 * n + 3], p["biases"][3 * n : 3 * n + 3]
        gates = norm(a @ torch.cat(m[:2]).T, torch.cat(gain[:2]), epsilon, torch.cat(bias[:2]))
        sums.append((gates, norm(a @ m[2].T, gain[2], epsilon, bias[2])))
    r, z = torch.sigmoid(sums[0][0] + sums[1][0]).chunk(2, 1)
    return (1 - z) * torch.tanh(sums[0][1] + r * sums[1][1]) + z * h, c


def sketch_lstm(p, x, h, c, epsilon):
    """sketch-rnn's LayerNormLSTMCell, with a forget bias of 1."""
    i, f, g, o = (
        norm(x @ w.T + h @ r.T, gain, epsilon, bias)
        for w, r, gain, bias in zip(*p["matrices"], p["gains"], p["biases"])
    )
    c = c * torch.sigmoid(f + 1) + torch.sigmoid(i) * torch.tanh(g)
    return torch.tanh(norm(c, p["cell"][0], epsilon, p["cell"][1])) * torch.sigmoid(o), c


def carrying_lstm(p, x, h, c, epsilon):
    """PyTorch's example of a LayerNormLSTMCell and that of TensorFlow Addons."""
    gain = torch.cat(p["gains"][:4]), torch.cat(p["gains"][4:])
    bias = torch.cat(p["biases"][:4]), torch.cat(p["biases"][4:])
    sides = [
        norm(a @ torch.cat(m).T, g, epsilon, b)
        for a, m, g, b in zip((x, h), p["matrices"], gain, bias)
    ]
    i, f, g, o = (sides[0] + sides[1]).chunk(4, 1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    c = norm(c, p["cell"][0], epsilon, p["cell"][1])
    return torch.sigmoid(o) * torch.tanh(c), c


CELLS = [
    (haste_lstm, "lstm", {
        "layer_norm": "products", "layer_norm_cell": "output", "single_bias": True}),
    (haste_gru, "gru", {"layer_norm": "products"}),
    (ba_gru, "gru", {"layer_norm": "split_products"}),
    (sketch_lstm, "lstm", {
        "layer_norm": "gates", "layer_norm_cell": "output", "single_bias": True,
        "forget_bias": 1.0, "layer_norm_epsilon": 1e-3}),
    (carrying_lstm, "lstm", {"layer_norm": "products", "layer_norm_cell": "carried"}),
]  # fmt: skip


def theirs(step, problem):
    """The same results as rnn_capi.run gives, of one layer in one direction."""
    leaf = lambda array: torch.tensor(np.nan_to_num(array), requires_grad=True)
    buffer, x = leaf(problem.params), leaf(problem.x)
    states = [leaf(s) for s in problem.states if s is not None]
    ((matrices, biases, _, gains, cell),) = cell_spec.split(problem.spec, buffer)
    gates = problem.spec.num_gates
    p = {"matrices": (matrices[:gates], matrices[gates:]), "biases": biases, "gains": gains,
         "cell": cell}  # fmt: skip
    h, c = states[0][0], states[1][0] if len(states) > 1 else torch.zeros(0)
    outputs = []
    for row in x:
        h, c = step(p, row, h, c, problem.spec.layer_norm_epsilon)
        outputs.append(h)
    results = {"y": torch.stack(outputs), "h": h[None], "c": c[None]}
    results = dict(list(results.items())[: 1 + len(states)])
    upstream = [torch.tensor(a) for a in (problem.dy, problem.dh, problem.dc)][: len(results)]
    slopes = torch.autograd.grad(list(results.values()), [x, *states, buffer], upstream)
    results |= dict(zip([*["dx", "dh0", "dc0"][: 1 + len(states)], "dparams"], slopes))
    return {name: value.detach().numpy() for name, value in results.items()}


@pytest.mark.parametrize("step,mode,options", CELLS, ids=[step.__name__ for step, *_ in CELLS])
def test_published_cell(step, mode, options):
    problem = cell_problems.make(CellSpec(mode, 1, UNITS, 3, **options))
    wanted = theirs(step, problem)
    for engine in ["reference", "cpu"]:
        ours = rnn_capi.run(engine, problem, saving=True, backward_calls=1)
        cell_problems.assert_close(ours, wanted)
