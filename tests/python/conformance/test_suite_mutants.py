"""Mistakes that implementations make, made in the oracle: each is outside the bounds of some case that is
about it, under every reading of the text. So a backend that makes one fails."""

import numpy as np
import pytest

from openrnn.conformance.judge import _compare, cases_of
from openrnn.conformance.worker import read_tensors

import descriptions
import numbers_of
import oracle

CASES = {case.name: case for case in descriptions.every_case()}
GATES = {"GRU": "zrh", "LSTM": "iofc"}


def reordered(op, order, names="WRB"):
    """Blocks of gates as another framework has them."""
    taken = [GATES[op].index(gate) for gate in order]

    def change(network, inputs):
        found = dict(inputs)
        for name in names:
            if found[name] is None:
                continue
            sides = np.split(found[name], 2, axis=1) if name == "B" else [found[name]]
            blocks = [np.split(side, len(order), axis=1) for side in sides]
            found[name] = np.concatenate([side[k] for side in blocks for k in taken], axis=1)
        return network, found

    return change


def peepholes_as(order):
    def change(network, inputs):
        if inputs["P"] is None:
            return network, inputs
        parts = dict(zip(order, np.split(inputs["P"], 3, axis=1)))
        return network, inputs | {"P": np.concatenate([parts[gate] for gate in "iof"], axis=1)}

    return change


def without(*names):
    return lambda network, inputs: (network, inputs | dict.fromkeys(names))


def network_with(**changes):
    return lambda network, inputs: (network | changes, inputs)


def lengths_plus(number):
    def change(network, inputs):
        time = inputs["X"].shape[0]
        moved = inputs["lengths"] and [min(max(n + number, 0), time) for n in inputs["lengths"]]
        return network, inputs | {"lengths": moved}

    return change


def biases_swapped(network, inputs):
    half = None if inputs["B"] is None else np.roll(inputs["B"], inputs["B"].shape[1] // 2, axis=1)
    return network, inputs | {"B": half}


def only_first_bias(network, inputs):
    if inputs["B"] is None:
        return network, inputs
    half = inputs["B"].shape[1] // 2
    return network, inputs | {"B": np.concatenate([inputs["B"][:, :half], 0 * inputs["B"][:, half:]], axis=1)}


def functions_of(change):
    return lambda network, inputs: (network | {"activations": [change(each) for each in network["activations"]]}, inputs)


def directions_alike(network, inputs):
    return network | {"activations": [network["activations"][0]] * len(network["activations"])}, inputs


def number_is(place, value):
    return functions_of(lambda side: [tuple(value if k == place and f[k] is not None else f[k] for k in range(3)) for f in side])


def states_of_direction(network, inputs):
    """The first direction's state in both."""
    first = lambda a: None if a is None else np.repeat(a[:1], a.shape[0], axis=0)
    return network, inputs | {name: first(inputs[name]) for name in ("initial_h", "initial_c")}


class Mutant(oracle.Direction):
    """A step that is computed otherwise."""

    def __init__(self, ops, network, weights, direction):
        super().__init__(ops, network, weights, direction)
        self.how = network["mutant"]

    def clip(self, a):
        if self.how == "clip above" and self.net["clip"] is not None:
            return np.minimum(a, self.net["clip"])
        return super().clip(a)

    def sums(self, x, h):
        if self.how == "clip before bias":
            bias = self.Wb + self.Rb
            whole = self.ops.dot(self.W, x) + self.ops.dot(self.R, h)
            return oracle._gates(self.net["op"], super().clip(whole) + bias)
        return super().sums(x, h)

    def lstm(self, x, h, c):
        if self.how == "clip before peepholes":
            ops, (f, g, out), p = self.ops, self.functions, self.peepholes() if self.P is not None else [0.0] * 3
            ai, ao, af, ac = (super(Mutant, self).clip(a) for a in self.sums(x, h))
            i, j, g = ops.apply(f, ai + p[0] * c), ops.apply(f, af + p[2] * c), ops.apply(g, ac)
            new = j * c + i * g
            return ops.apply(f, ao + p[1] * new) * ops.apply(out, new), new, None
        if self.how == "o sees the old cell" and self.P is not None:
            units = h.shape[0]
            po = self.peepholes()[1]
            kept, self.P = self.P, self.P.copy()
            self.P[units : 2 * units] = 0.0
            self.Wb = self.Wb.copy()
            self.Wb[units : 2 * units] += po * c
            result = super().lstm(x, h, c)
            self.Wb[units : 2 * units] -= po * c
            self.P = kept
            return result
        return super().lstm(x, h, c)

    def gru(self, x, h, c):
        new, c, keep = super().gru(x, h, c)
        if self.how == "z of the new state":
            z, n = keep[5], keep[7]
            new = z * n + (1.0 - z) * h
        return new, c, keep


def mutant(how):
    return network_with(mutant=how)


def from_the_last_step(network, inputs):
    """The reverse direction begins at T - 1: padding is read, and no row is shorter."""
    return network, inputs | {"lengths": None}


# (operators, the group that must see it, what, the change)
MUTANTS = [
    ("LSTM", "defaults", "gates i f o c", reordered("LSTM", "ifoc")),
    ("LSTM", "defaults", "gates i f c o", reordered("LSTM", "ifco")),
    ("LSTM", "defaults", "gates i o c f", reordered("LSTM", "iocf")),
    ("LSTM", "defaults", "biases alone as i f o c", reordered("LSTM", "ifoc", "B")),
    ("GRU", "defaults", "gates r z h", reordered("GRU", "rzh")),
    ("GRU", "defaults", "recurrent blocks alone as r z h", reordered("GRU", "rzh", "R")),
    ("GRU", "defaults", "z keeps the new state", mutant("z of the new state")),
    ("GRU", "linear_before_reset", "linear_before_reset is 0", network_with(linear_before_reset=0)),
    ("GRU", "linear_before_reset", "linear_before_reset is 1", network_with(linear_before_reset=1)),
    ("GRU", "linear_before_reset", "both biases swapped", biases_swapped),
    ("RNN GRU LSTM", "defaults", "the recurrent bias is left out", only_first_bias),
    ("RNN GRU LSTM", "initial_h", "initial_h is ignored", without("initial_h")),
    ("LSTM", "initial_c", "initial_c is ignored", without("initial_c")),
    ("LSTM", "initial_c", "initial_h is initial_c", lambda n, i: (n, i | {"initial_h": i["initial_c"]})),
    ("LSTM", "P", "P is ignored", without("P")),
    ("LSTM", "P", "P as i f o", peepholes_as("ifo")),
    ("LSTM", "P", "o sees the cell before", mutant("o sees the old cell")),
    ("LSTM", "input_forget", "input_forget is ignored", network_with(input_forget=0)),
    ("RNN GRU LSTM", "clip", "clip is ignored", network_with(clip=None)),
    ("RNN GRU LSTM", "clip", "clip bounds one side", mutant("clip above")),
    ("RNN GRU LSTM", "clip", "clip before the biases", mutant("clip before bias")),
    ("LSTM", "clip", "clip before the peepholes", mutant("clip before peepholes")),
    ("RNN GRU LSTM", "direction", "reverse is forward", network_with(direction="forward")),
    ("RNN GRU LSTM", "activations", "functions in the other order", functions_of(lambda side: side[::-1])),
    ("RNN GRU LSTM", "activations", "both directions have the first one's functions", directions_alike),
    ("RNN GRU LSTM", "alpha, beta", "both directions have the first one's numbers", directions_alike),
    ("RNN GRU LSTM", "alpha, beta", "alpha is 1", number_is(1, 1.0)),
    ("RNN GRU LSTM", "alpha, beta", "alpha is 0", number_is(1, 0.0)),
    ("RNN GRU LSTM", "alpha, beta", "beta is 0", number_is(2, 0.0)),
    ("RNN GRU LSTM", "sequence_lens", "lengths are ignored", without("lengths")),
    ("RNN GRU LSTM", "sequence_lens", "lengths are one more", lengths_plus(1)),
    ("RNN GRU LSTM", "sequence_lens", "lengths are one less", lengths_plus(-1)),
    ("RNN GRU LSTM", "sequence_lens", "reverse begins at the end of the batch", from_the_last_step),
    ("RNN GRU LSTM", "layout", "the first direction's state in both", states_of_direction),
]
# A mistake in f is no mistake where an operator has one function.
ONE_FUNCTION = {("RNN", "functions in the other order")}


@pytest.fixture(scope="session")
def by_group(suite_folder):
    found = {}
    for case in cases_of(suite_folder):
        found.setdefault((case.facts["op"], case.facts["group"]), []).append(case)
    return found


def outputs_of(case, change):
    """What an implementation with the mistake computes, as its arrays would be stored."""
    described = CASES[case.name]
    inputs, _ = numbers_of.draw(described, case.facts["seed"])
    network, inputs = change(next(numbers_of.readings(described))[1] | {"mutant": ""}, inputs)
    found, _ = oracle.run(network, inputs)
    arrays = {name: oracle.join(nested) for name, nested in found.items()}
    if described.layout:
        arrays = {n: a.transpose(2, 0, 1, 3) if n == "Y" else a.swapaxes(0, 1) for n, a in arrays.items()}
    return arrays


def error_of(case, arrays):
    """The least error over its bound of any reading."""
    tensors = read_tensors(case.folder / "tensors.safetensors")
    part = lambda prefix: {n[len(prefix) :]: a for n, a in tensors.items() if n.startswith(prefix)}
    dtypes = dict.fromkeys(arrays, case.facts["dtype"])
    return min(_compare(arrays, dtypes, case.facts["dtype"], part(f"out/{n}/"), part(f"bound/{n}/"))[0]
               for n in range(len(case.facts["readings"])))  # fmt: skip


MUTATIONS = [(op, group, what, change) for ops, group, what, change in MUTANTS for op in ops.split()
             if (op, what) not in ONE_FUNCTION]  # fmt: skip


@pytest.mark.parametrize("op,group,what,change", MUTATIONS, ids=[f"{m[0]}-{m[2]}" for m in MUTATIONS])
def test_a_mistake_is_seen(monkeypatch, by_group, op, group, what, change):
    """Far outside: by a hundred bounds or more, so that no implementation is near both."""
    monkeypatch.setattr(oracle, "Direction", Mutant)
    worst = {case.name: error_of(case, outputs_of(case, change)) for case in by_group[op, group]}
    assert max(worst.values()) > 100.0, worst


@pytest.mark.parametrize("op", ["RNN", "GRU", "LSTM"])
def test_no_mistake_is_no_failure(monkeypatch, by_group, op):
    monkeypatch.setattr(oracle, "Direction", Mutant)
    for (other, group), cases in by_group.items():
        if other == op and group != "nan":
            for case in cases[:6]:
                assert error_of(case, outputs_of(case, lambda *both: both)) <= 1e-3, case.name


def test_mutants_are_many():
    assert len({what for _, _, what, _ in MUTANTS}) >= 30
