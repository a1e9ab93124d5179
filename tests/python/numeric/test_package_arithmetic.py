"""math and weights_dtype against NumPy, one step at a time.

Every step starts from the states that the package itself gave, which are float32 numbers both sides
round alike: so nothing is carried on, and the bound is that of float32 sums alone.
"""

import numpy as np
import openrnn
import pytest

from model import numpy_arithmetic, package_run
from model.numpy_layout import Spec, params_to_canonical

EPS = 2.0**-23
CASES = [
    Spec("lstm", 1, 1, 3), Spec("lstm", 2, 17, 33), Spec("lstm", 2, 15, 7, num_proj=7),
    Spec("lstm", 1, 33, 33, "skip_input"), Spec("gru", 1, 7, 1), Spec("gru", 2, 33, 17),
    Spec("gru", 2, 15, 15, "skip_input"), Spec("rnn_tanh", 3, 17, 15), Spec("rnn_relu", 1, 33, 7),
]  # fmt: skip
TIME, BATCH = 5, 3


def label(value):
    if isinstance(value, dict):
        return numpy_arithmetic.name(value)
    proj = f"-P{value.num_proj}" if value.num_proj else ""
    return f"{value.mode}-L{value.num_layers}-U{value.num_units}-I{value.input_size}{proj}"


both = pytest.mark.parametrize("spec", CASES, ids=label)
each = pytest.mark.parametrize("arithmetic", numpy_arithmetic.ALL, ids=label)


def sigmoid(a):
    return 1.0 / (1.0 + np.exp(-a))


class Products:
    """The sums of one layer: of float64 products of what the arithmetic makes of the operands."""

    def __init__(self, arithmetic, matrices, biases, gates):
        self.arithmetic, self.gates = arithmetic, gates
        self.w = [numpy_arithmetic.weights(arithmetic, m) for m in matrices]
        self.b = [b.astype(np.float64) for b in biases]

    def side(self, first, rows):
        """(sums, sums of the absolute terms) of each gate; a missing matrix takes the row."""
        seen = numpy_arithmetic.activations(self.arithmetic, rows)
        sums, sizes = [], []
        for gate in range(first, first + self.gates):
            w, b = self.w[gate], self.b[gate]
            plain = rows.astype(np.float64)
            product, size = (seen @ w.T, abs(seen) @ abs(w.T)) if w.size else (plain, abs(plain))
            sums.append(product + b)
            sizes.append(size + abs(b))
        return sums, sizes


def one_step(spec, products, x, h, c):
    """(h, c, bound of h, bound of c) of one layer's step from float32 states."""
    ins, in_sizes = products.side(0, x)
    outs, out_sizes = products.side(spec.num_gates, h)
    # A chain of k terms is off by at most k / 2 eps times their absolute sum; two more for the
    # scales of int8, and an activation is within 2 ulp.
    terms = x.shape[1] + h.shape[1] + 6
    a = [i + o for i, o in zip(ins, outs, strict=True)]
    e = [terms / 2 * EPS * (i + o) for i, o in zip(in_sizes, out_sizes, strict=True)]
    h, c = h.astype(np.float64), None if c is None else c.astype(np.float64)
    few = 8 * EPS
    if spec.mode == "lstm":
        i, f, g, o = sigmoid(a[0]), sigmoid(a[1]), np.tanh(a[2]), sigmoid(a[3])
        new = f * c + i * g
        off = abs(c) * e[1] / 4 + e[0] / 4 + e[2] + few * (abs(c) + 1)
        m, off_m = o * np.tanh(new), e[3] / 4 + off + few
        return *projected(spec, products, m, off_m), new, off
    if spec.mode == "gru":
        r, z = sigmoid(a[0]), sigmoid(a[1])
        n = np.tanh(ins[2] + r * outs[2])
        off_n = e[2] + abs(outs[2]) * (e[0] / 4 + few) + few
        return (1 - z) * n + z * h, off_n + (1 + abs(h)) * (e[1] / 4 + few), None, None
    if spec.mode == "rnn_tanh":
        return np.tanh(a[0]), e[0] + few, None, None
    return np.maximum(a[0], 0), e[0] + few * abs(a[0]), None, None


def projected(spec, products, m, off):
    """Wp m, where m is known within `off`: the operand may be that of either end."""
    if not spec.num_proj:
        return m, off
    w = products.w[-1]
    seen, low, high = (
        numpy_arithmetic.activations(products.arithmetic, at) for at in (m, m - off, m + off)
    )
    moved = np.maximum(abs(high - seen), abs(low - seen)) + off
    return seen @ w.T, (moved + (m.shape[1] + 4) / 2 * EPS * abs(seen)) @ abs(w.T) + 1e-7


def make(spec, arithmetic, seed=5):
    """(layer, x, states, canonical parameters)."""
    draw = np.random.default_rng([seed, spec.num_units, spec.input_size])
    layer = package_run.make_layer(spec, np.float32, **arithmetic)
    layer.build((None, None, spec.input_size))
    scale = 1 / np.sqrt(spec.num_units)
    params = draw.uniform(-scale, 1.2 * scale, layer.count_params()).astype(np.float32)
    layer.set_weights([params])
    x = draw.uniform(-1.0, 1.2, (TIME, BATCH, spec.input_size)).astype(np.float32)
    states = tuple(
        draw.uniform(-0.9, 0.8, shape).astype(np.float32) for shape in layer.state_shape(BATCH)
    )
    return layer, x, states, params_to_canonical(spec, params)


def differences(spec, arithmetic):
    """|package - NumPy| / bound of every output and cell, for what `arithmetic` says; the package
    runs what the layer was made with."""
    layer, x, states, (matrices, biases) = make(spec, arithmetic["run"])
    _, _, every = layer(x, states, training=False, return_all=True)
    outputs = [y.numpy() for y in every.outputs]
    cells = [c.numpy() for c in every.cells]
    count, gates = len(matrices) // spec.num_layers, spec.num_gates
    ratios = []
    for at in range(spec.num_layers):
        products = Products(
            arithmetic["model"], matrices[at * count : (at + 1) * count],
            biases[2 * gates * at : 2 * gates * (at + 1)], gates,
        )  # fmt: skip
        below = x if at == 0 else outputs[at - 1]
        for t in range(TIME):
            before = states[0][at] if t == 0 else outputs[at][t - 1]
            cell = None
            if spec.mode == "lstm":
                cell = states[1][at] if t == 0 else cells[at][t - 1]
            h, off_h, c, off_c = one_step(spec, products, below[t], before, cell)
            ratios.append(abs(outputs[at][t] - h) / off_h)
            if c is not None:
                ratios.append(abs(cells[at][t] - c) / off_c)
    return max(ratio.max() for ratio in ratios)


@both
def test_float32_is_inside_the_bound(spec):
    assert differences(spec, {"run": {}, "model": {}}) < 1


@both
@each
def test_is_what_it_says(spec, arithmetic):
    assert differences(spec, {"run": arithmetic, "model": arithmetic}) < 1


@each
def test_the_bound_tells_it_from_float32(arithmetic):
    spec = CASES[5]
    assert differences(spec, {"run": {}, "model": arithmetic}) > 2


@both
def test_gradients_of_bf16_are_near_those_of_float32_and_are_others(spec):
    found = []
    for arithmetic in ({}, numpy_arithmetic.BF16):
        layer, x, states, _ = make(spec, arithmetic)
        source = openrnn.Tensor(x)
        with openrnn.GradientTape() as tape:
            tape.watch(source)
            y, _ = layer(source, states)
            loss = openrnn.reduce_sum(y * y)
        found.append([g.numpy() for g in tape.gradient(loss, [source, layer.kernel])])
    for plain, lower in zip(*found, strict=True):
        # 2^-9 of each operand, in some places of a chain of steps and layers.
        off = np.linalg.norm(plain - lower) / np.linalg.norm(plain)
        assert 1e-5 < off < 0.03


@each
def test_rows_and_threads_change_no_bit(arithmetic):
    for spec in CASES:
        layer, x, states, _ = make(spec, arithmetic)
        whole = layer(x, states, training=False)[0].numpy()
        threads = openrnn.get_num_threads()
        for row in range(BATCH):
            alone = tuple(s[:, row : row + 1] for s in states)
            openrnn.set_num_threads(1)
            found = layer(x[:, row : row + 1], alone, training=False)[0].numpy()
            openrnn.set_num_threads(threads)
            np.testing.assert_array_equal(found[:, 0], whole[:, row])
