# mypy: ignore-errors
"""The numbers of a case: inputs on a grid, what the oracle makes of them under every reading, bounds.

Inputs are k / 2^e with |k| < 128, so that they are exact in bfloat16, float16, float32 and float64.
Weights get smaller with the number of terms, which keeps the sums near 2 and the bounds small.
"""

from itertools import product
from math import log2

import numpy as np

import bounds
import activations
import oracle
from descriptions import DEFAULTS
from covering import Random

# How many times its bound an argument stays away from a kink.
MARGIN = 8.0
# Padded inputs are larger than any other, so that reading them shows.
PADDED = 16.0


def _draw(random, shape, exponent):
    count = int(np.prod(shape))
    values = [random.below(127) + 1 for _ in range(count)]
    signs = [1 - 2 * random.below(2) for _ in range(count)]
    return (np.array(values, np.float64) * np.array(signs, np.float64)).reshape(shape) * 2.0**-exponent


def _inputs(case, random):
    """All arrays of the case in float64, time-major; None where not given."""
    gates, dirs, units = oracle.GATES[case.op], case.directions, case.units
    terms = case.width + units * (1.0 if case.time > 1 or case.initial_h else 0.0)
    exponent = 6 + max(0, round(log2(terms * 64 / 160))) - round(log2(case.scale))
    found = {
        "X": _draw(random, (case.time, case.batch, case.width), 6),
        "W": _draw(random, (dirs, gates * units, case.width), exponent),
        "R": _draw(random, (dirs, gates * units, units), exponent),
        "B": _draw(random, (dirs, 2 * gates * units), 8) if case.bias else None,
        "P": _draw(random, (dirs, 3 * units), 7) if case.peepholes else None,
        "initial_h": _draw(random, (dirs, case.batch, units), 7) if case.initial_h else None,
        "initial_c": _draw(random, (dirs, case.batch, units), 6) if case.initial_c else None,
        "lengths": list(case.lengths) if case.lengths else None,
    }
    for row, length in enumerate(case.lengths or []):
        found["X"][length:, row] = np.nan if case.question == "nan" else PADDED * found["X"][length:, row]
    if case.question == "threshold":
        # Zero weights: the sum is the bias, which is alpha for every third unit.
        found["W"], found["R"] = 0.0 * found["W"], 0.0 * found["R"]
        side = np.resize([1.0, 0.5, 1.5], gates * units)
        found["B"] = np.stack([np.concatenate([side, 0.0 * side])] * dirs)
    return found


def _upstream(case, random):
    """Weights of the outputs in the loss; zero for outputs that the node has not."""
    shapes = {"Y": (case.time, case.directions, case.batch, case.units)}
    shapes |= {"Y_h": shapes["Y"][1:], "Y_c": shapes["Y"][1:]}
    drawn = {name: _draw(random, shape, 7) for name, shape in shapes.items()}
    return {name: a if name in case.named_outputs else 0.0 * a for name, a in drawn.items()}


def attributes_of(case):
    """activations, activation_alpha and activation_beta as the node has them."""
    found = {}
    if case.activations:
        found["activations"] = [name for name, _, _ in case.activations]
        for index, name in ((1, "activation_alpha"), (2, "activation_beta")):
            numbers = [each[index] for each in case.activations if each[index] is not None]
            if numbers:
                found[name] = numbers
    return found


def _with_numbers(case, positional, ones):
    """The functions with the numbers that a reading of the attributes gives them, or None."""
    if not case.activations:
        return [(name, *_defaults(name, [None, None], ones)) for name in DEFAULTS[case.op]] * case.directions
    given = attributes_of(case)
    lists = [list(given.get(name, [])) for name in ("activation_alpha", "activation_beta")]
    found = []
    for place, (name, _, _) in enumerate(case.activations):
        takes = activations.FACTS[name][:2]
        numbers = []
        for which, values in enumerate(lists):
            if not takes[which]:
                numbers.append(None)
            elif positional:
                numbers.append(values[place] if place < len(values) else None)
            else:
                numbers.append(values.pop(0) if values else None)
        whole = _defaults(name, numbers, ones)
        if whole is None:
            return None
        found.append((name, *whole))
    return found




def _defaults(name, numbers, ones):
    """Missing numbers: those of the operator of this name; else what the reading says; else None."""
    takes, usual = activations.FACTS[name][:2], activations.FACTS[name][2]
    whole = []
    for which in (0, 1):
        if not takes[which] or numbers[which] is not None:
            whole.append(numbers[which])
        elif usual is not None:
            whole.append(usual[which])
        elif ones is None:
            return None
        else:
            whole.append(ones[which])
    return whole


AFFINE = {"alpha 1, beta 0": (1.0, 0.0), "alpha 1, beta 1": (1.0, 1.0), "alpha 0, beta 0": (0.0, 0.0)}


def readings(case):
    """Every reading of the text that may matter here: (its words by question, the network)."""
    questions = {name: [values[0]] for name, values in oracle.READINGS.items()}
    questions |= {"numbers": ["by those that take one"], "affine": [None]}
    if case.op == "LSTM" and case.clip is not None:
        questions["cell_clip"] = oracle.READINGS["cell_clip"]
    if case.input_forget:
        questions["coupling"] = oracle.READINGS["coupling"]
    if any(each[1] is not None or each[2] is not None for each in case.activations):
        questions["numbers"] = ["by those that take one", "by position"]
    if case.question in oracle.READINGS:
        questions[case.question] = oracle.READINGS[case.question]
    if case.question == "affine":
        questions["affine"] = list(AFFINE)
    for words in product(*questions.values()):
        chosen = dict(zip(questions, words))
        ones = AFFINE.get(chosen["affine"])
        flat = _with_numbers(case, chosen["numbers"] == "by position", ones)
        if flat is None:
            continue
        if chosen["threshold"] == "x":
            flat = [("ThresholdedRelu from" if n == "ThresholdedRelu" else n, a, b) for n, a, b in flat]
        half = len(DEFAULTS[case.op])
        network = {
            "op": case.op, "direction": case.direction, "clip": case.clip,
            "activations": [flat[d * half : (d + 1) * half] for d in range(case.directions)],
            "input_forget": case.input_forget, "linear_before_reset": case.linear_before_reset,
        }  # fmt: skip
        words_ = {name: word for name, word in chosen.items() if len(questions[name]) > 1}
        yield words_, network | {name: chosen[name] for name in oracle.READINGS}


def has_gradients(case):
    return case.question not in ("threshold", "affine", "nan")


def _ignored(case):
    """Where Y has no defined value: padding, but where that is the question."""
    ignored = np.zeros((case.time, case.directions, case.batch, case.units), bool)
    if case.question != "padding":
        for row, length in enumerate(case.lengths or []):
            ignored[length:, :, row] = True
    return ignored


def _evaluate(case, network, inputs, upstream):
    """Outputs and gradients as {name: (values, bounds)}, and the margin."""
    ops = bounds.Bounding(case.dtype)
    outputs, gradients = oracle.run(network, inputs, upstream, ops)
    join = lambda nested: bounds.join(nested, case.dtype)
    outputs = {name: join(nested) for name, nested in outputs.items()}
    values, errors = outputs["Y"]
    outputs["Y"] = (values, np.where(_ignored(case), np.inf, errors))
    outputs = {name: outputs[name] for name in case.named_outputs}
    given = lambda name: inputs.get(name) is not None
    gradients = {n: join(a) for n, a in (gradients or {}).items() if given(n)}
    return outputs, gradients, ops.margin


def draw(case, seed):
    """(inputs, upstream) of a seed; names differ in their data."""
    random = Random(sum(ord(c) * 31**k for k, c in enumerate(case.name)) + seed)
    return _inputs(case, random), _upstream(case, random)


def _same(a, b):
    return all(np.array_equal(a[name][0], b[name][0]) for name in a)


def _shows_clip(case, network, inputs, outputs):
    """Whether the clip changes a result by far more than the bound; where it is meant to."""
    if case.clip is None or case.clip > 8.0:
        return True
    without, _, _ = _evaluate(case, network | {"clip": None}, inputs, None)
    return any(
        (np.abs(without[n][0] - v) > 100.0 * e).any() for n, (v, e) in outputs.items()
    )  # fmt: skip


def solve(case, seeds=range(1, 400)):
    """{inputs, upstream, readings: [(words, {output: (values, bounds)})], gradients, seed, margin}.

    The first seed whose data stay away from kinks is taken."""
    for seed in seeds:
        inputs, upstream = draw(case, seed)
        every = list(readings(case))
        words, network = every[0]
        outputs, gradients, margin = _evaluate(
            case, network, inputs, upstream if has_gradients(case) else None
        )
        if case.question != "threshold" and margin < MARGIN:
            continue
        if not _shows_clip(case, network, inputs, outputs):
            continue
        found = [(words, outputs)]
        for words, network in every[1:]:
            other, _, _ = _evaluate(case, network, inputs, None)
            if not any(_same(other, known) for _, known in found):
                found.append((words, other))
        return {
            "inputs": inputs, "upstream": upstream, "readings": found, "gradients": gradients,
            "seed": seed, "margin": margin,
        }  # fmt: skip
    raise AssertionError(f"{case.name}: no seed keeps its data away from kinks")
