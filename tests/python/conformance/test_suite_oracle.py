"""The oracle: its functions, its gradients by finite differences, its bounds, and mistakes that it must see."""

import dataclasses
import math

import numpy as np
import pytest

import activations
import bounds
import descriptions
import generate
import numbers_of
import oracle

CASES = {case.name: case for case in descriptions.every_case()}
SEEDS = generate.known()




@pytest.fixture
def fast(monkeypatch):
    monkeypatch.setattr(activations, "tanh", np.tanh)
    monkeypatch.setattr(activations, "sigmoid", lambda a: 0.5 + 0.5 * np.tanh(0.5 * np.asarray(a)))
    monkeypatch.setattr(activations, "softplus", lambda a: np.logaddexp(0.0, a))
    monkeypatch.setattr(activations, "expm1", np.expm1)


def problem(name):
    """(case, recommended network, inputs, upstream)."""
    case = CASES[name]
    inputs, upstream = numbers_of.draw(case, SEEDS[name][0])
    return case, next(numbers_of.readings(case))[1], inputs, upstream


def loss(network, inputs, upstream):
    outputs, _ = oracle.run(network, inputs)
    total = 0.0
    for name, nested in outputs.items():
        value = oracle.join(nested)
        if name == "Y":
            for row, length in enumerate(inputs["lengths"] or []):
                value[length:, :, row] = 0.0  # the padding's weights do not count
        total += np.sum(value * upstream[name])
    return total


def with_gradients(step, dtypes=("float32", "float64", "float16", "bfloat16")):
    names = [n for n, case in CASES.items() if numbers_of.has_gradients(case) and case.dtype in dtypes]
    return names[::step]


@pytest.mark.parametrize("name", with_gradients(6))
def test_gradients_by_finite_differences(name, fast):
    """Along a random direction of each input. The step is small beside the distance to kinks, and the
    error of central differences is of its square: 1e-5 keeps 8 digits."""
    _, network, inputs, upstream = problem(name)
    random = np.random.default_rng(1)
    _, found = oracle.run(network, inputs, upstream)
    checked = 0
    for key, nested in found.items():
        if inputs.get(key) is None:
            continue
        gradient = oracle.join(nested)
        way = random.uniform(-1.0, 1.0, gradient.shape)
        sides = [loss(network, inputs | {key: inputs[key] + h * way}, upstream) for h in (1e-5, -1e-5)]
        slope = (sides[0] - sides[1]) / 2e-5
        assert slope == pytest.approx(np.sum(gradient * way), rel=2e-6, abs=2e-6), key
        checked += 1
    assert checked >= 3


def test_every_element_of_small_gradients(fast):
    """One LSTM with everything, element by element."""
    _, network, inputs, upstream = problem("lstm_input_forget_with_peepholes")
    _, found = oracle.run(network, inputs, upstream)
    for key, nested in found.items():
        if inputs.get(key) is None:
            continue
        gradient = oracle.join(nested)
        for at in np.ndindex(gradient.shape):
            step = np.zeros(gradient.shape)
            step[at] = 1e-5
            sides = [loss(network, inputs | {key: inputs[key] + s * step}, upstream) for s in (1, -1)]
            assert (sides[0] - sides[1]) / 2e-5 == pytest.approx(gradient[at], rel=1e-6, abs=1e-8), (key, at)


FUNCTIONS = [("Tanh", None, None), ("Sigmoid", None, None), ("Softplus", None, None), ("Softsign", None, None),
             ("Elu", 0.5, None), ("ScaledTanh", 1.25, 0.5), ("HardSigmoid", 0.375, 0.25), ("Affine", 0.75, 0.125),
             ("LeakyRelu", 0.25, None), ("ThresholdedRelu", 0.25, None), ("Relu", None, None)]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function[0])
def test_functions(function):
    """Against the text of the standard in Python's own floats, and slopes by differences."""
    name, alpha, beta = function
    plain = {
        "Tanh": lambda x: (1 - math.exp(-2 * x)) / (1 + math.exp(-2 * x)),
        "Sigmoid": lambda x: 1 / (1 + math.exp(-x)),
        "Softplus": lambda x: math.log(1 + math.exp(x)),
        "Softsign": lambda x: x / (1 + abs(x)),
        "Elu": lambda x: x if x >= 0 else alpha * (math.exp(x) - 1),
        "ScaledTanh": lambda x: alpha * math.tanh(beta * x),
        "HardSigmoid": lambda x: min(max(alpha * x + beta, 0), 1),
        "Affine": lambda x: alpha * x + beta,
        "LeakyRelu": lambda x: x if x >= 0 else alpha * x,
        "ThresholdedRelu": lambda x: x if x > alpha else 0,
        "Relu": lambda x: max(0, x),
    }[name]
    a = np.linspace(-6.0, 6.0, 97) + 1 / 64
    y = activations.value(function, a)
    np.testing.assert_allclose(y, [plain(float(x)) for x in a], rtol=1e-13, atol=1e-15)
    h = 1e-5
    slope = (activations.value(function, a + h) - activations.value(function, a - h)) / (2 * h)
    np.testing.assert_allclose(activations.slope(function, a, y), slope, rtol=1e-7, atol=1e-9)
    for kink in activations.kinks(function):
        sides = [activations.slope(function, np.array([kink + s]), activations.value(function, np.array([kink + s])))
                 for s in (-1e-3, 1e-3)]  # fmt: skip
        assert abs(sides[0] - sides[1]) > 1e-4 or name == "Elu"


def chained(matrix, vector):
    """A product in float32, from the last term to the first."""
    total = np.zeros(matrix.shape[0], np.float32)
    for k in range(matrix.shape[1])[::-1]:
        total = total + np.float32(1) * matrix[:, k] * vector[k]
    return total


class Float32(oracle.Exact):
    """A float32 implementation with sums the other way round, and functions that are a few ulp off."""

    def number(self, array):
        return np.asarray(array, np.float32)

    def dot(self, matrix, vector):
        return chained(matrix, vector)

    def apply(self, function, a):
        exact = activations.value(function, a.astype(np.float64))
        off = 1.0 + 3.0 * 2.0**-24 if function[0] in ("Tanh", "Sigmoid") else 1.0
        return (exact * off).astype(np.float32)

    def slope(self, function, a, y):
        return np.asarray(super().slope(function, a, y), np.float32)

    def inside(self, a, limit):
        return super().inside(a, limit).astype(np.float32)


@pytest.mark.parametrize("name", with_gradients(10, ["float32"]))
def test_bounds_hold_and_are_near(name, fast):
    """A plain float32 implementation is inside every bound, and the bounds are not without meaning: where
    something is rounded at all, the worst error is more than a thousandth of its bound."""
    case, network, inputs, upstream = problem(name)
    outputs, gradients = oracle.run(network, inputs, upstream, Float32())
    ops = bounds.Bounding("float32")
    wanted, wanted_gradients = oracle.run(network, inputs, upstream, ops)
    worst = 0.0
    for found, exact in ((outputs, wanted), (gradients, wanted_gradients)):
        for key, nested in found.items():
            values, errors = bounds.join(exact[key], "float32")
            error = np.abs(np.array(nested, np.float64) - values)
            assert (error <= errors).all(), key
            worst = max(worst, np.max(error / np.maximum(errors, 1e-300), initial=0.0))
    assert worst > 1e-3 or case.units == 1


def test_bounds_of_a_sum():
    """By hand: three terms, each rounded at most three times."""
    ops = bounds.Bounding("float32")
    u = 2.0**-24 + 2.0**-53
    found = ops.dot(ops.number(np.array([[1.0, -2.0, 4.0]])), ops.number(np.array([0.5, 0.25, 0.125])))
    assert found.value[0] == 0.5 and found.error[0] == pytest.approx(3 * u * 1.5, rel=1e-12)
    more = found + ops.number(np.array([8.0]))
    assert more.error[0] == pytest.approx(4 * u * 9.5, rel=1e-12)
    assert ops.number(np.array([3.0])).error[0] == 0.0


def test_data_stay_away_from_kinks():
    for case in CASES.values():
        if case.question != "threshold" and case.name.endswith(("clip", "f_relu", "f_hardsigmoid")):
            solved = numbers_of.solve(case, [SEEDS[case.name][0]])
            assert solved["margin"] >= numbers_of.MARGIN
    with pytest.raises(AssertionError, match="rnn_clip: no seed keeps its data away from kinks"):
        numbers_of.solve(CASES["rnn_clip"], [])


def test_unknown_functions():
    with pytest.raises(ValueError, match="the function is 'Gelu', expected one of"):
        activations.value(("Gelu", None, None), np.zeros(1))
    with pytest.raises(ValueError, match="the function is 'Gelu', expected one of"):
        activations.slope(("Gelu", None, None), np.zeros(1), np.zeros(1))


def test_cases_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        CASES["rnn_clip"].clip = None
