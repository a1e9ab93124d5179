"""The cases of the stored vectors, and the file that holds them."""

from dataclasses import fields, replace
from pathlib import Path

import numpy as np

from model.numpy_layout import Spec
from model.rnn_data import Problem, make_problem

PATH = Path(__file__).parent / "data" / "torch_vectors.npz"
BI = {"direction": "bidirectional"}
# name: (network, time, batch, whether the rows have lengths)
CASES = {
    "lstm": (Spec("lstm", 1, 5, 3), 4, 3, False),
    "lstm_one_of_all": (Spec("lstm", 1, 1, 1), 1, 1, False),
    "lstm_two_layers": (Spec("lstm", 2, 7, 3), 5, 4, True),
    "lstm_both_ways": (Spec("lstm", 2, 3, 7, **BI), 5, 4, True),
    "lstm_projection": (Spec("lstm", 1, 17, 3, num_proj=7), 3, 3, False),
    "lstm_projection_two_layers": (Spec("lstm", 2, 7, 5, num_proj=3), 4, 3, True),
    "lstm_projection_both_ways": (Spec("lstm", 2, 5, 3, num_proj=4, **BI), 5, 4, True),
    "lstm_projection_to_one": (Spec("lstm", 3, 3, 2, num_proj=1, **BI), 1, 2, False),
    "gru": (Spec("gru", 1, 17, 7), 3, 3, False),
    "gru_both_ways": (Spec("gru", 2, 5, 3, **BI), 5, 4, True),
    "gru_three_layers": (Spec("gru", 3, 3, 5), 4, 1, False),
    "rnn_tanh": (Spec("rnn_tanh", 1, 7, 15), 4, 3, True),
    "rnn_tanh_both_ways": (Spec("rnn_tanh", 2, 5, 3, **BI), 5, 4, True),
    "rnn_relu": (Spec("rnn_relu", 1, 15, 7), 4, 3, False),
    "rnn_relu_both_ways": (Spec("rnn_relu", 2, 5, 3, **BI), 5, 4, True),
}
DTYPES = ("float32", "float64")
INPUTS = [field.name for field in fields(Problem) if field.name != "spec"]


def fresh_problem(case):
    """The data in float32; the seed is the place in the list."""
    spec, time, batch, ragged = CASES[case]
    lengths = 1 + (np.arange(batch) * 2 + 1) % time if ragged else None
    return make_problem(spec, time, batch, np.float32, lengths, list(CASES).index(case))


def in_dtype(problem, dtype):
    """The same numbers, computed with in another type."""
    floats = [name for name in INPUTS if name != "lengths"]
    return replace(problem, **{name: getattr(problem, name).astype(dtype) for name in floats})


def stored_problem(archive, case, dtype):
    """The data as they were when PyTorch saw them."""
    stored = {name: archive[f"{case}/{name}"] for name in INPUTS if f"{case}/{name}" in archive}
    return in_dtype(Problem(CASES[case][0], **{"lengths": None, **stored}), dtype)


def stored_results(archive, case, dtype):
    """dict of y h (c) dx dh0 (dc0) dparams."""
    prefix = f"{case}/{dtype}/"
    return {name[len(prefix) :]: archive[name] for name in archive if name.startswith(prefix)}
