# mypy: ignore-errors
"""The descriptions of the cases: which attributes, inputs and sizes each has. No numbers yet.

`alone`: one attribute or input differs from the defaults, so that a failure names it. `pairs`: rows
of a covering array, every pair of values of two attributes is in some row. `open_`: what the
standard leaves open, one question a case.
"""

from dataclasses import dataclass

from covering import cover
from oracle import GATES

FUNCTIONS = {"RNN": 1, "GRU": 2, "LSTM": 3}
DEFAULTS = {"RNN": ("Tanh",), "GRU": ("Sigmoid", "Tanh"), "LSTM": ("Sigmoid", "Tanh", "Tanh")}
# An activation with its numbers; None is not given.
NUMBERS = {
    "Affine": (0.75, 0.125), "LeakyRelu": (0.25, None), "ThresholdedRelu": (0.25, None),
    "ScaledTanh": (1.25, 0.5), "HardSigmoid": (0.375, 0.25), "Elu": (0.5, None),
}  # fmt: skip
PLAIN = ["Relu", "Tanh", "Sigmoid", "Softsign", "Softplus"]
WITH_DEFAULTS = ["LeakyRelu", "ThresholdedRelu", "HardSigmoid", "Elu"]


@dataclass(frozen=True)
class Case:
    """One node. `activations`, flat over directions as ONNX has them, is empty where not given."""

    op: str
    name: str
    kind: str  # alone, pairs, open
    group: str  # the attribute that it is about
    opset: int = 14
    dtype: str = "float32"
    time: int = 3
    batch: int = 2
    width: int = 2
    units: int = 3
    direction: str = "forward"
    activations: tuple = ()  # (name, alpha, beta), a number None where not given
    clip: float | None = None
    input_forget: int = 0
    linear_before_reset: int = 0
    layout: int = 0
    lengths: tuple | None = None
    bias: bool = True
    peepholes: bool = False
    initial_h: bool = False
    initial_c: bool = False
    outputs: tuple = ("Y", "Y_h", "Y_c")
    weights: str = "constant"  # or input
    hidden_size: bool = True
    question: str = ""  # which of oracle.READINGS, or alpha, affine, nan
    scale: float = 1.0  # of the weights

    @property
    def output_sequence(self):
        """Version 1 puts out Y for sure only with it."""
        return self.opset == 1 and "Y" in self.outputs

    @property
    def directions(self):
        return 2 if self.direction == "bidirectional" else 1

    @property
    def size(self):
        return self.time * self.batch * self.units * self.directions

    @property
    def has_cell(self):
        return self.op == "LSTM"

    @property
    def named_outputs(self):
        every = ("Y", "Y_h", "Y_c")[: 2 + self.has_cell]
        return tuple(name for name in every if name in self.outputs)


def acts(*names, numbers=True):
    return tuple((n, *(NUMBERS.get(n, (None, None)) if numbers else (None, None))) for n in names)


def _sets(op):
    """Activations of the covering arrays for one direction, by a word."""
    count = FUNCTIONS[op]
    return {
        "plain": acts(*["Softsign", "Relu", "Softplus"][:count]),
        # No h with a kink at 0, where C stays if a gate that is saturated meets a state of zeros.
        "numbers": acts(*{1: ["HardSigmoid"], 2: ["HardSigmoid", "LeakyRelu"],
                          3: ["HardSigmoid", "LeakyRelu", "ScaledTanh"]}[count]),
        "more": acts(*["Affine", "Elu", "Sigmoid"][:count]),
    }


def _alone(op):
    """(group, label, changes) of every attribute and optional input by itself."""
    count, lstm = FUNCTIONS[op], op == "LSTM"
    both = {"direction": "bidirectional"}
    yield "defaults", "defaults", {}
    yield "defaults", "one_step", {"time": 1}
    yield "defaults", "one_row", {"batch": 1}
    for direction in ("reverse", "bidirectional"):
        yield "direction", direction, {"direction": direction}
    yield "B", "without_bias", {"bias": False}
    yield "initial_h", "initial_h", {"initial_h": True}
    if lstm:
        yield "initial_c", "initial_c", {"initial_c": True}
        yield "initial_c", "initial_h_and_c", {"initial_h": True, "initial_c": True}
        yield "P", "peepholes", {"peepholes": True}
        yield "P", "peepholes_of_a_state", {"peepholes": True, "initial_c": True}
        yield "P", "peepholes_bidirectional", {"peepholes": True, **both}
        yield "input_forget", "input_forget", {"input_forget": 1}
        yield "input_forget", "input_forget_of_a_state", {"input_forget": 1, "initial_c": True}
        yield "input_forget", "input_forget_with_peepholes", {"input_forget": 1, "peepholes": True, "initial_c": True}
    if op == "GRU":
        yield "linear_before_reset", "linear_before_reset", {"linear_before_reset": 1, "initial_h": True}
        yield "linear_before_reset", "reset_before_linear", {"initial_h": True}
        yield "linear_before_reset", "linear_before_reset_one_step", {"linear_before_reset": 1, "time": 1}
        yield "linear_before_reset", "linear_before_reset_without_bias", {
            "linear_before_reset": 1, "bias": False, "initial_h": True}  # fmt: skip
    yield "clip", "clip", {"clip": 0.5, "time": 2}
    yield "clip", "clip_bidirectional", {"clip": 0.5, "time": 2, **both}
    yield "clip", "clip_that_is_not_reached", {"clip": 64.0}
    if lstm:
        yield "clip", "clip_with_peepholes", {"clip": 0.5, "peepholes": True, "initial_c": True, "time": 2}
    if op == "GRU":
        yield "clip", "clip_with_linear_before_reset", {"clip": 0.5, "linear_before_reset": 1, "initial_h": True}
    yield from _functions_alone(op, count, both)
    yield from _lengths_alone(lstm, both)
    for layout in _layouts(lstm, both):
        yield "layout", layout[0], {"layout": 1, **layout[1]}
    yield "outputs", "only_Y", {"outputs": ("Y",)}
    yield "outputs", "only_states", {"outputs": ("Y_h", "Y_c")}
    yield "weights as inputs", "weights_as_inputs", {"weights": "input", "initial_h": True}
    yield "hidden_size", "without_hidden_size", {"hidden_size": False}
    for units in (1, 7, 15, 17, 33):
        odd = {1: 33, 7: 15, 15: 1, 17: 7, 33: 17}[units]
        yield "sizes", f"units_{units}", {"units": units, "width": odd, "time": 2, "initial_h": True}
    yield "sizes", "batch_5", {"batch": 5, "units": 7, "width": 3, "time": 2}
    yield "sizes", "time_7", {"time": 7, "batch": 1, "units": 3, "width": 1, "scale": 0.5}
    yield "opset", "opset_1", {"opset": 1, "outputs": ("Y_h", "Y_c")}
    yield "opset", "opset_1_output_sequence", {"opset": 1}
    for opset in (7, 22):
        yield "opset", f"opset_{opset}", {"opset": opset}
    for dtype in ("float64", "float16"):
        yield "dtype", dtype, {"dtype": dtype, "time": 1, "initial_h": True}
    yield "dtype", "bfloat16", {"dtype": "bfloat16", "opset": 22, "time": 1, "initial_h": True}


def _functions_alone(op, count, both):
    """Each function in each place, then what is said of their numbers and of directions."""
    usual = acts(*DEFAULTS[op])
    for place in range(count):
        for name in [*PLAIN, *NUMBERS]:
            if name == DEFAULTS[op][place]:
                continue
            chosen = usual[:place] + acts(name) + usual[place + 1 :]
            yield "activations", f"{'fgh'[place]}_{name.lower()}", {"activations": chosen, "initial_h": True}
    for name in WITH_DEFAULTS:
        chosen = acts(name, numbers=False) + usual[1:]
        yield "alpha, beta", f"{name.lower()}_without_numbers", {"activations": chosen, "scale": 2.0, "time": 2}
    numbers = {
        1: acts("HardSigmoid"), 2: acts("HardSigmoid", "ScaledTanh"),
        3: acts("HardSigmoid", "ScaledTanh", "Elu"),
    }[count]  # fmt: skip
    yield "alpha, beta", "numbers_of_every_function", {"activations": numbers}
    other = acts(*["ScaledTanh", "Affine", "LeakyRelu"][:count])
    yield "alpha, beta", "numbers_by_direction", {"activations": numbers + other, **both}
    yield "activations", "activations_twice", {"activations": usual + usual, **both}
    second = acts(*["Softsign", "Sigmoid", "Softsign"][:count])
    yield "activations", "activations_by_direction", {"activations": usual + second, **both}


def _lengths_alone(lstm, both):
    states = {"initial_h": True} | ({"initial_c": True} if lstm else {})
    yield "sequence_lens", "lengths_full", {"lengths": (3, 3)}
    yield "sequence_lens", "lengths", {"lengths": (2, 3, 1), "batch": 3, **states}
    yield "sequence_lens", "lengths_reverse", {"lengths": (2, 3, 1), "batch": 3, "direction": "reverse", **states}
    yield "sequence_lens", "lengths_bidirectional", {"lengths": (2, 3, 1), "batch": 3, **both, **states}
    yield "sequence_lens", "lengths_below_time", {"lengths": (2, 1), **states}
    yield "sequence_lens", "lengths_one_row", {"lengths": (2,), "batch": 1}


def _layouts(lstm, both):
    states = {"initial_h": True} | ({"initial_c": True} if lstm else {})
    yield "layout_1", {}
    yield "layout_1_states", states
    yield "layout_1_reverse", {"direction": "reverse"}
    yield "layout_1_bidirectional", both | states
    yield "layout_1_lengths", {"lengths": (2, 3, 1), "batch": 3, **both, **states}


def _open(op):
    usual, lstm = acts(*DEFAULTS[op]), op == "LSTM"
    states = {"initial_h": True} | ({"initial_c": True} if lstm else {})
    yield "zero_length", "zero_length", {"lengths": (2, 0, 3), "batch": 3, **states}
    yield "zero_length", "zero_length_reverse", {"lengths": (0, 3), "direction": "reverse", **states}
    yield "padding", "padded_outputs", {"lengths": (1, 3, 2), "batch": 3, **states}
    yield "padding", "padded_outputs_reverse", {"lengths": (1, 3, 2), "batch": 3, "direction": "reverse"}
    yield "nan", "padded_inputs_are_nan", {"lengths": (1, 3, 2), "batch": 3}
    # f, or g where there is one: their argument can be made exactly alpha.
    place = min(1, len(usual) - 1)
    chosen = usual[:place] + (("ThresholdedRelu", 1.0, None),) + usual[place + 1 :]
    yield "threshold", "thresholdedrelu_at_alpha", {"activations": chosen, "time": 1}
    for name in ("Affine", "ScaledTanh"):
        yield "affine", f"{name.lower()}_without_numbers", {"activations": acts(name, numbers=False) + usual[1:]}
    if op != "RNN":
        chosen = usual[:1] + (("LeakyRelu", 0.25, None),) + usual[2:]
        yield "alpha", "alpha_of_the_second_function", {"activations": chosen}
    if lstm:
        big = {"clip": 0.25, "initial_c": True}
        yield "cell_clip", "clip_and_the_cell", big
        yield "cell_clip", "clip_and_the_cell_with_peepholes", big | {"peepholes": True}
        chosen = (("Sigmoid", None, None), ("Tanh", None, None), ("Affine", 1.0, 0.0))
        yield "cell_clip", "clip_and_a_linear_h", big | {"activations": chosen}
        yield "coupling", "input_forget_of_which_gate", {"input_forget": 1, "initial_c": True}


def _pairs(op):
    """A covering array over all attributes at once."""
    lstm, sets = op == "LSTM", _sets(op)
    factors = {
        "direction": ["forward", "reverse", "bidirectional"],
        "activations": ["default", *sets, "by direction"],
        "clip": [None, 0.5],
        "lengths": ["none", "full", "mixed"],
        "initial_h": [False, True],
        "bias": [True, False],
        "layout": [0, 1],
        "opset": [1, 7, 14, 22],
        "sizes": [(1, 1, 1, 1), (4, 3, 3, 7), (3, 4, 7, 3), (2, 3, 1, 15), (2, 2, 5, 17), (2, 1, 3, 33)],
        "outputs": ["all", "Y", "states"],
        "weights": ["constant", "input"],
    }
    if lstm:
        factors |= {"initial_c": [False, True], "peepholes": [False, True], "input_forget": [0, 1]}
    if op == "GRU":
        factors["linear_before_reset"] = [0, 1]

    def allowed(row):
        if row["layout"] and row["opset"] < 14:
            return False
        if row.get("linear_before_reset") and row["opset"] < 3:
            return False
        if row["opset"] == 1 and row["outputs"] == "Y":  # there Y_h is not optional
            return False
        return row["activations"] != "by direction" or row["direction"] == "bidirectional"

    for number, row in enumerate(cover(factors, allowed)):
        time, batch, width, units = row.pop("sizes")
        twice = 2 if row["direction"] == "bidirectional" else 1
        word = row["activations"]
        if word == "default":
            row["activations"] = ()
        elif word == "by direction":
            row["activations"] = sets["numbers"] + sets["plain"]
        else:
            row["activations"] = sets[word] * twice
        mixed = tuple(1 + (time - 1) * ((b + 1) % 3) // 2 for b in range(batch))
        row["lengths"] = {"none": None, "full": (time,) * batch, "mixed": mixed}[row["lengths"]]
        row["outputs"] = {"all": ("Y", "Y_h", "Y_c"), "Y": ("Y",), "states": ("Y_h", "Y_c")}[row["outputs"]]
        yield number, row | {"time": time, "batch": batch, "width": width, "units": units}


def every_case():
    """All cases, in order: by operator, each kind."""
    found = []
    for op in GATES:
        low = op.lower()
        for group, label, changes in _alone(op):
            found.append(Case(op, f"{low}_{label}", "alone", group, **changes))
        for number, changes in _pairs(op):
            found.append(Case(op, f"{low}_pair_{number:02}", "pairs", "pairs", **changes))
        for question, label, changes in _open(op):
            found.append(Case(op, f"{low}_open_{label}", "open", question, question=question, **changes))
    names = [case.name for case in found]
    assert len(names) == len(set(names)), "two cases have one name"
    return found
