#!/usr/bin/env python3
"""The exactness report: writes the tables of docs/exactness.md, or prints the hashes alone.

Usage: exactness.py --hashes          prints name and SHA-256 of each result; the same everywhere
       exactness.py --page FILE       measures, and writes the tables between the marks of FILE
       exactness.py --step N ...      of the float32 numbers every Nth alone (1: all of them)

Needs the package `openrnn` and NumPy. Data are made by integer arithmetic, so that they are the
same on every machine.
"""

import argparse
import datetime
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

import openrnn
from openrnn.cudnn_rnn import ops

KINDS = {
    "float32": {},
    "float16 storage": {"dtype": "float16"},
    "bfloat16 storage": {"dtype": "bfloat16"},
    "math bf16": {"math": "bf16"},
    "math bf16x3": {"math": "bf16x3"},
    "weights float16": {"weights_dtype": "float16"},
    "weights bfloat16": {"weights_dtype": "bfloat16"},
    "weights int8": {"weights_dtype": "int8"},
}
MODELS = {"lstm": ops.CudnnLSTM, "gru": ops.CudnnGRU, "tanh": ops.CudnnRNNTanh}
SIZES = [(16, 16, 8, 20), (64, 64, 8, 20), (256, 256, 8, 20), (512, 512, 8, 10)]
ISAS = ("scalar", "avx2", "avx512", "amx_emulated", "neon")


def numbers(seed, *shape):
    """Integers of a linear congruence, k / 2^15 with |k| < 2^15: exact in float32 and float64."""
    count = int(np.prod(shape))
    state = np.arange(seed * 1_000_003 + 1, seed * 1_000_003 + 1 + count, dtype=np.uint64)
    for factor in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9):
        state *= np.uint64(factor)
        state ^= state >> np.uint64(29)
    kept = (state >> np.uint64(40)).astype(np.int64) % 65535 - 32767
    return (kept / 32768.0).reshape(shape)


class Problem:
    """Weights of 1 / sqrt(U), inputs, states, and weights of the outputs in a loss."""

    def __init__(self, mode, units, width, batch, time):
        self.mode, self.units, self.width = mode, units, width
        size = MODELS[mode](1, units, width).params_size()
        # A power of two keeps the numbers exact.
        scale = 2.0 ** -round(np.log2(np.sqrt(units)))
        self.params = numbers(1, size) * scale
        self.x, self.dy = numbers(2, time, batch, width), numbers(3, time, batch, units)
        self.states = [numbers(4 + n, 1, batch, units) for n in range(2 if mode == "lstm" else 1)]

    def model(self, **how):
        return MODELS[self.mode](1, self.units, self.width, **how)


def forward(problem, how, rows=slice(None), cut=None):
    """Outputs and final states, of some rows, in two calls if the sequence is cut."""
    model, kind = problem.model(**how), how.get("dtype", "float32")
    as_kind = lambda a: openrnn.cast(openrnn.Tensor(a.astype(np.float64)), kind)
    params = as_kind(problem.params)
    states = [as_kind(s[:, rows]) for s in problem.states]
    parts = np.split(problem.x[:, rows], [cut] if cut else [])
    outputs = []
    for part in parts:
        y, *states = model(as_kind(part), *states, params, is_training=False)
        outputs.append(y.numpy())
    return [np.concatenate(outputs), *(s.numpy() for s in states)]


def gradients(problem, how):
    """dx, dh0 (, dc0), dparams of sum(dy y)."""
    model, kind = problem.model(**how), how.get("dtype", "float32")
    as_kind = lambda a: openrnn.cast(openrnn.Tensor(a.astype(np.float64)), kind)
    sources = [as_kind(a) for a in (problem.x, *problem.states, problem.params)]
    with openrnn.GradientTape() as tape:
        for source in sources:
            tape.watch(source)
        y = model(*sources, is_training=True)[0]
    return [g.numpy() for g in tape.gradient([y], sources, [as_kind(problem.dy)])]


def digest(arrays):
    found = hashlib.sha256()
    for array in arrays:
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


def trains(how):
    return "weights_dtype" not in how


def hashes():
    """{name: SHA-256} of forward and, where there are some, gradients."""
    found = {}
    for mode in MODELS:
        problem = Problem(mode, 65, 33, 5, 40)
        for name, how in {"float64": {"dtype": "float64"}, **KINDS}.items():
            found[f"{mode}, {name}, forward"] = digest(forward(problem, how))
            if trains(how):
                found[f"{mode}, {name}, gradients"] = digest(gradients(problem, how))
    return found


def of_another_process(**environment):
    """hashes() under other environment variables; None where the machine lacks what they name."""
    done = subprocess.run([sys.executable, __file__, "--hashes"], capture_output=True, text=True,
                          env={**os.environ, **environment})  # fmt: skip
    if done.returncode:
        return None
    return dict(line.rsplit("  ", 1) for line in done.stdout.splitlines())


def promises():
    """Rows (what, whether the bits are equal) of everything that docs/numerics.md promises."""
    base, rows = hashes(), []
    # Products of bfloat16 follow the machine's instruction, so they are left out across sets.
    exact = {name for name in base if "math" not in name}
    for isa in ISAS:
        other = of_another_process(OPENRNN_ISA=isa)
        if other is None:
            rows.append((f"instruction set {isa}", "not on this machine"))
        else:
            same = all(other[name] == base[name] for name in exact)
            rows.append((f"instruction set {isa}", "the same bits" if same else "DIFFERENT"))
    for threads in (1, 2, 3, 4):
        other = of_another_process(OPENRNN_NUM_THREADS=str(threads))
        rows.append((f"{threads} threads", "the same bits" if other == base else "DIFFERENT"))
    rows.append(("another run", "the same bits" if of_another_process() == base else "DIFFERENT"))
    for mode in MODELS:
        problem = Problem(mode, 65, 33, 5, 40)
        whole = forward(problem, {})
        alone = [forward(problem, {}, slice(row, row + 1)) for row in range(5)]
        joined = [np.concatenate(parts, axis=1) for parts in zip(*alone)]
        rows.append((f"{mode}: each row alone", "the same bits" if digest(joined) == digest(whole) else "DIFFERENT"))
        cut = digest(forward(problem, {}, cut=13))
        rows.append((f"{mode}: cut after 13 steps", "the same bits" if cut == digest(whole) else "DIFFERENT"))
    return rows


def errors(problem, how, wanted, slopes):
    """'y / dx / dparams', or y alone where there are no gradients."""
    error = lambda a, b: np.linalg.norm(a.astype(np.float64) - b) / np.linalg.norm(b)
    cells = [error(forward(problem, how)[0], wanted)]
    if trains(how):
        found = gradients(problem, how)
        cells += [error(found[0], slopes[0]), error(found[-1], slopes[-1])]
    return " / ".join(f"{cell:.1e}" for cell in cells)


def accuracy():
    """A head, and rows (network, arithmetic, errors against float64 by size)."""
    rows = {(mode, name): [] for mode in MODELS for name in KINDS}
    for mode in MODELS:
        for size in SIZES:
            problem = Problem(mode, *size)
            wanted = forward(problem, {"dtype": "float64"})[0]
            slopes = gradients(problem, {"dtype": "float64"})
            for name, how in KINDS.items():
                rows[mode, name].append(errors(problem, how, wanted, slopes))
    head = ["", "arithmetic", *(f"U{units} T{time}" for units, _, _, time in SIZES)]
    return head, [(*key, *cells) for key, cells in rows.items()]


FUNCTIONS = {
    "tanh": ("tanh", np.tanh),
    "sigmoid": ("sigmoid", lambda a: np.where(a < -700, 0.0, 1.0 / (1.0 + np.exp(-np.maximum(a, -700.0))))),
    "relu": ("relu", lambda a: np.maximum(a, 0.0)),
    "softsign": ("softsign", lambda a: a / (1.0 + np.abs(a))),
    "softplus": ("softplus", lambda a: np.logaddexp(0.0, a)),
    "elu": ("elu", lambda a: np.where(a > 0, a, np.expm1(np.minimum(a, 0.0)))),
    "leaky_relu(0.25)": ("leaky_relu", lambda a: np.where(a > 0, a, 0.25 * a)),
    "hard_sigmoid(0.25, 0.5)": ("hard_sigmoid", lambda a: np.clip(0.25 * a + 0.5, 0.0, 1.0)),
    "scaled_tanh(1.5, 0.5)": ("scaled_tanh", lambda a: 1.5 * np.tanh(0.5 * a)),
}


def worst_ulp(name, step, block=1 << 20):
    """(largest error in units in the last place, where) over every step-th finite float32.

    A network of one step whose input is added to its gates as it is, with weights of zero."""
    model = ops.CudnnRNNTanh(1, 1, 1, input_mode="skip_input", activation=name, use_bias=False)
    params, h0 = np.zeros(1, np.float32), np.zeros((1, block, 1), np.float32)
    function, worst, at = FUNCTIONS[name][1], 0.0, 0.0
    for sign in (0, 0x80000000):
        for first in range(0x00800000, 0x7F800000, block * step):  # normal numbers; subnormal ones count as 0
            bits = np.arange(first, min(first + block * step, 0x7F800000), step, dtype=np.uint32)
            x = (bits | np.uint32(sign)).view(np.float32)
            y = model(x.reshape(1, -1, 1), h0[:, : x.size], params, is_training=False)[0].numpy().ravel()
            wanted = function(x.astype(np.float64))
            unit = np.spacing(np.abs(wanted).astype(np.float32)).astype(np.float64)
            error = np.abs(y - wanted) / unit
            # Subnormal numbers are zero inside a call, those that a parameter makes of x too.
            error[np.abs(wanted) < 2.0**-124] = 0.0
            place = int(np.argmax(error))
            if error[place] > worst:
                worst, at = float(error[place]), float(x[place])
    return worst, at


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def hash_rows():
    """(network and arithmetic, the first 16 digits of forward's hash, those of the gradients')."""
    found = {}
    for name, value in hashes().items():
        result, what = name.rsplit(", ", 1)
        found.setdefault(result, {"forward": "-", "gradients": "-"})[what] = f"`{value[:16]}`"
    return [(result, *values.values()) for result, values in found.items()]


def page(path, step):
    every = "every" if step == 1 else f"one of {step}"
    ulps = [(name, *(f"{v:.3g}" for v in worst_ulp(name, step))) for name in FUNCTIONS]
    parts = {
        "functions": f"Over {every} finite normal float32, {datetime.date.today().isoformat()}.\n\n"
        + table(["function", "ulp at most", "at"], ulps),
        "accuracy": table(*accuracy()),
        "promises": table(["", ""], promises()),
        "hashes": table(["result", "forward", "gradients"], hash_rows()),
    }  # fmt: skip
    text = path.read_text()
    for name, content in parts.items():
        begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        before, rest = text.split(begin)
        text = before + begin + "\n" + content + "\n" + end + rest.split(end)[1]
    path.write_text(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--hashes", action="store_true")
    parser.add_argument("--page", type=Path)
    parser.add_argument("--step", type=int, default=1)
    given = parser.parse_args()
    if given.hashes:
        print("\n".join(f"{name}  {value}" for name, value in hashes().items()))
    elif given.page:
        page(given.page, given.step)
    else:
        parser.error("--hashes or --page FILE is missing")


if __name__ == "__main__":
    main()
