"""Cells with options in NumPy: the equations of docs/cells_reference.md, a loop over layers,
directions and time, and gradients by a complex step.

Every array may have leading axes for variants of the network that are computed at once; after them
come [T, B, width] for sequences, [L * D, B, width] for states, [rows, columns] for matrices.
"""

from dataclasses import dataclass

import numpy as np

from model.cells import cell_spec
from model.cells.cell_activations import Activation

STEP = 1e-100


def _product(matrix, rows):
    return np.einsum("...ui,...bi->...bu", matrix, rows)


def _layer_norm(a, epsilon):
    """Ba et al. 2016, without gain and bias. No mean of squares: complex steps need a * a."""
    a = a - np.mean(a, axis=-1, keepdims=True)
    return a / np.sqrt(np.mean(a * a, axis=-1, keepdims=True) + epsilon)


def _over_rows(vector):
    """A vector [..., U] beside rows [..., B, U]."""
    return vector[..., None, :]


class Functions:
    """σ, φ, ψ and the clips of a network. `margin` is how near any number came to a kink; one
    that is on it, as a clipped one may be, has the derivative that the document names."""

    def __init__(self, spec):
        plain = {"rnn_relu": "relu"}.get(spec.mode, "tanh")
        self._sigma = Activation(spec.recurrent_activation or "sigmoid")
        self._phi = Activation(spec.activation or plain)
        self._psi = Activation(spec.output_activation or "tanh")
        self.spec, self.margin = spec, np.inf

    def _near(self, a, kinks):
        for kink in kinks:
            distance = np.abs(np.real(a) - kink)
            distance = np.where(distance == 0, np.inf, distance)
            self.margin = min(self.margin, np.min(distance, initial=np.inf))

    def _activate(self, function, a):
        self._near(a, function.kinks)
        return function(a)

    def clip(self, bounds, a):
        """min(max(a, low), high), with derivative 1 at its ends."""
        if bounds is None:
            return a
        self._near(a, bounds)
        low, high = bounds
        return np.where(np.real(a) < low, low, np.where(np.real(a) > high, high, a))

    def gate(self, s):
        return self._activate(self._sigma, self.clip(self.spec.gate_clip, s))

    def candidate(self, s):
        return self._activate(self._phi, self.clip(self.spec.gate_clip, s))

    def output(self, c):
        return self._activate(self._psi, c)


@dataclass
class Weights:
    """One pseudo-layer's, by slot; W[k] is None where the layer takes x itself."""

    W: list
    R: list
    bW: list
    bR: list
    p: list
    Wp: np.ndarray
    spec: cell_spec.CellSpec
    gains: list
    cell: list

    @staticmethod
    def of(spec, pseudo, parts):
        matrices, biases, peepholes, gains, cell = parts
        gates, zero = spec.num_gates, np.zeros(spec.num_units)
        skips = spec.skip and pseudo < spec.num_dirs
        biases = biases + [zero] * (2 * gates - len(biases))
        p = dict(zip(cell_spec.PEEPHOLES, peepholes or [zero] * 3))
        return Weights(
            [None] * gates if skips else matrices[:gates],
            matrices[gates : 2 * gates],
            biases[:gates], biases[gates:], p,
            matrices[-1] if spec.num_proj else None, spec, gains, cell,
        )  # fmt: skip

    def _wx(self, k, x):
        return x if self.W[k] is None else _product(self.W[k], x)

    def _group(self, k):
        """The gates that are normalized together with gate k."""
        if self.spec.layer_norm == "gates":
            return [k]
        if self.spec.layer_norm == "split_products":
            return [2] if k == 2 else [0, 1]
        return list(range(self.spec.num_gates))

    def _normed(self, k, values, gains):
        """LN of values(j) over the gates of k's group, of which k's is returned."""
        group = self._group(k)
        every = np.concatenate([values(j) for j in group], axis=-1)
        every = _layer_norm(every, self.spec.layer_norm_epsilon)
        units = self.spec.num_units
        at = group.index(k) * units
        return every[..., at : at + units] * _over_rows(gains[k])

    def of_input(self, k, x):
        wx = self._wx(k, x)
        if self.spec.layer_norm:
            wx = self._normed(k, lambda j: self._wx(j, x), self.gains)
        return wx + _over_rows(self.bW[k])

    def of_state(self, k, h):
        rh = _product(self.R[k], h)
        if self.spec.layer_norm:
            gains = self.gains[self.spec.num_gates :]
            rh = self._normed(k, lambda j: _product(self.R[j], h), gains)
        return rh + _over_rows(self.bR[k])

    def sum(self, k, x, h):
        if self.spec.layer_norm == "gates":
            both = lambda j: self._wx(j, x) + _product(self.R[j], h)
            return self._normed(k, both, self.gains) + _over_rows(self.bW[k] + self.bR[k])
        return self.of_input(k, x) + self.of_state(k, h)

    def normed_cell(self, c):
        gain, bias = self.cell
        return _layer_norm(c, self.spec.layer_norm_epsilon) * _over_rows(gain) + _over_rows(bias)


def _project(w, f, m):
    return m if w.Wp is None else f.clip(f.spec.proj_clip, _product(w.Wp, m))


class Inside:
    """What is inside a step: the masks d of the state and of the candidate, and how much k of h and
    c is kept. `masks` has the library's, whose zeros of zoneout are what is kept; None is outside
    of training."""

    def __init__(self, spec, masks, pseudo, t):
        self.state = self.candidate = 1.0
        self.kept, self.kept_cell = spec.zoneout, spec.zoneout_cell
        if masks is None:
            return
        if "state" in masks:
            self.state = masks["state"][pseudo, 0]
        if "candidate" in masks:
            self.candidate = masks["candidate"][pseudo, t]
        self.kept = 1.0 * (masks["zoneout"][pseudo, t] == 0)
        self.kept_cell = 1.0 * (masks["zoneout_cell"][pseudo, t] == 0)


def _keep(kept, before, now):
    return kept * before + (1 - kept) * now


def _lstm(w, f, x, h, c, inside):
    spec = f.spec
    before, h = h, inside.state * h
    peep = lambda k, cell: _over_rows(w.p[k]) * cell
    i = f.gate(w.sum(0, x, h) + peep(0, c))
    if spec.coupled_gates:
        forget = 1 - i
    else:
        forget = f.gate(w.sum(1, x, h) + spec.forget_bias + peep(1, c))
    g = inside.candidate * f.candidate(w.sum(2, x, h))
    new = f.clip(spec.cell_clip, forget * c + i * g)
    seen = new if spec.layer_norm_cell is None else w.normed_cell(new)
    new = seen if spec.layer_norm_cell == "carried" else new
    o = f.gate(w.sum(3, x, h) + peep(3, new))
    h = _project(w, f, o * f.output(seen))
    return _keep(inside.kept, before, h), _keep(inside.kept_cell, c, new)


def _gru(w, f, x, h, c, inside):
    before, h = h, inside.state * h
    r, z = f.gate(w.sum(0, x, h)), f.gate(w.sum(1, x, h))
    if f.spec.reset_after:
        n = f.candidate(w.of_input(2, x) + r * w.of_state(2, h))
    else:
        n = f.candidate(w.of_input(2, x) + w.of_state(2, r * h))
    # With a projection c is the state that z interpolates, and h what enters the products.
    kept = before if w.Wp is None else c
    new = (1 - z) * (inside.candidate * n) + z * kept
    if w.Wp is None:
        return _keep(inside.kept, before, new), c
    return _keep(inside.kept, before, _project(w, f, new)), _keep(inside.kept_cell, c, new)


def _plain(w, f, x, h, c, inside):
    m = inside.candidate * f.candidate(w.sum(0, x, inside.state * h))
    return _keep(inside.kept, h, _project(w, f, m)), c


_STEPS = {"lstm": _lstm, "gru": _gru, "rnn_tanh": _plain, "rnn_relu": _plain}


def forward(spec, params, x, h0, c0, lengths=None, masks=None):
    """({y, h, c where there is one}, Functions); `masks` in training, as rnn_capi.step_masks has them."""
    functions, step = Functions(spec), _STEPS[spec.mode]
    time, batch = x.shape[-3:-1]
    lengths = np.full(batch, time) if lengths is None else np.asarray(lengths)
    last_h, last_c = [], []
    for pseudo, parts in enumerate(cell_spec.split(spec, params)):
        direction = pseudo % spec.num_dirs
        w = Weights.of(spec, pseudo, parts)
        h, c = h0[..., pseudo, :, :], c0[..., pseudo, :, :]
        outputs = [None] * time
        for t in range(time)[:: -1 if direction else 1]:
            valid = (t < lengths)[:, None]
            # A copy of the state in the place of padding keeps NaN there out of everything.
            row = np.where(valid, x[..., t, :, :], 0)
            inside = Inside(spec, masks, pseudo, t)
            new_h, new_c = step(w, functions, row, h, c, inside)
            outputs[t] = np.where(valid, new_h, 0)
            h, c = np.where(valid, new_h, h), np.where(valid, new_c, c)
        last_h.append(h)
        last_c.append(c)
        none = np.zeros((*h.shape[:-2], 0, *h.shape[-2:]))
        side = np.stack(outputs, axis=-3) if outputs else none
        sides = ([] if direction == 0 else sides) + [side]
        if direction + 1 == spec.num_dirs:
            x = np.concatenate(sides, axis=-1)
    found = {"y": x, "h": np.stack(last_h, axis=-3)}
    if spec.has_cell:
        found["c"] = np.stack(last_c, axis=-3)
    return found, functions


def gradients(problem, masks=None):
    """{dx, dh0, dc0 where there is one, dparams} of sum(dy y) + sum(dh h) + sum(dc c): each number of the
    inputs in turn gets an imaginary part, all turns at once."""
    spec, names = problem.spec, ["params", "x", "h0", "c0"]
    given = [np.nan_to_num(np.asarray(getattr(problem, name), np.float64)) for name in names]
    sizes = [array.size for array in given]
    flat = np.concatenate([array.ravel() for array in given])
    varied = flat + 1j * STEP * np.eye(flat.size)
    pieces = np.split(varied, np.cumsum(sizes)[:-1], axis=1)
    inputs = [piece.reshape(-1, *array.shape) for piece, array in zip(pieces, given)]
    found, _ = forward(spec, *inputs, problem.lengths, masks)
    upstream = {"y": problem.dy, "h": problem.dh, "c": problem.dc}
    loss = 0
    for name, value in found.items():
        weight = np.nan_to_num(np.asarray(upstream[name], np.float64))
        loss = loss + np.sum(value * weight, axis=(-3, -2, -1))
    parts = np.split(np.imag(loss) / STEP, np.cumsum(sizes)[:-1])
    wanted = dict(zip(["dparams", "dx", "dh0", "dc0"], parts))
    wanted = {n: v.reshape(g.shape) for (n, v), g in zip(wanted.items(), given)}
    if not spec.has_cell:
        del wanted["dc0"]
    return wanted
