"""Recurrent networks in NumPy, forward and backward by hand: the second specification.

Arrays are float64, [T, B, width] for sequences and [L * D, B, width] for states. The same code also
runs on arrays that carry an error bound (error_bound.py), so it keeps to operators and to the
NumPy functions that those know: no assignment into slices, no in-place arithmetic.
"""

from dataclasses import dataclass, field

import numpy as np

from model import numpy_layout


def sigmoid(a):
    """Through tanh, which does not overflow."""
    return 0.5 + 0.5 * np.tanh(0.5 * a)


def _product(x, weight):
    """weight @ column for every row of x; a missing matrix is the identity."""
    return x if weight is None else x @ weight.T


@dataclass
class Cell:
    """The weights of one pseudo-layer by slot; `store` rounds what an engine keeps in memory."""

    mode: str
    input_weights: list
    recurrent_weights: list
    input_biases: list
    recurrent_biases: list
    projection: np.ndarray = None
    clip: tuple = None
    store: callable = field(default=lambda value: value)

    def parts(self, x, h):
        """Per gate W x + bW and R h + bR."""
        gates = range(len(self.input_weights))
        return (
            [_product(x, self.input_weights[k]) + self.input_biases[k] for k in gates],
            [_product(h, self.recurrent_weights[k]) + self.recurrent_biases[k] for k in gates],
        )

    def step(self, x, h, c):
        """(new h, new c, what backward needs)."""
        a, q = self.parts(x, h)
        if self.mode == "lstm":
            return self._lstm_step(a, q, x, h, c)
        if self.mode == "gru":
            r, z = sigmoid(a[0] + q[0]), sigmoid(a[1] + q[1])
            n = np.tanh(a[2] + r * q[2])
            return self.store((1.0 - z) * n + z * h), c, (x, h, r, z, n, q[2])
        new = np.tanh(a[0] + q[0]) if self.mode == "rnn_tanh" else np.maximum(a[0] + q[0], 0.0)
        new = self.store(new)
        return new, c, (x, h, a[0] + q[0], new)

    def _lstm_step(self, a, q, x, h, c):
        i, f, o = (sigmoid(a[k] + q[k]) for k in (0, 1, 3))
        g = np.tanh(a[2] + q[2])
        new_c, free = f * c + i * g, 1.0
        if self.clip is not None:
            low, high = self.clip
            free = np.heaviside(new_c - low, 1.0) * np.heaviside(high - new_c, 1.0)
            new_c = np.minimum(np.maximum(new_c, low), high)
        new_c = self.store(new_c)
        full = o * np.tanh(new_c)
        new_h = full if self.projection is None else full @ self.projection.T
        return self.store(new_h), new_c, (x, h, c, i, f, g, o, new_c, free, full)

    # Each of these takes d(loss)/dh and d(loss)/dc of one step and gives
    # (input-side gate gradients, recurrent-side ones, direct part of dh', dc', projected dh).

    def _rnn_gate_gradients(self, dh, dc, saved):
        _, _, a, h = saved
        da = dh * (1.0 - h * h) if self.mode == "rnn_tanh" else dh * np.heaviside(a, 0.0)
        return [da], [da], None, dc, None

    def _gru_gate_gradients(self, dh, dc, saved):
        _, h, r, z, n, q = saved
        dn = dh * (1.0 - z) * (1.0 - n * n)
        dz = dh * (h - n) * z * (1.0 - z)
        dr = dn * q * r * (1.0 - r)
        return [dr, dz, dn], [dr, dz, dn * r], dh * z, dc, None

    def _lstm_gate_gradients(self, dh, dc, saved):
        _, _, c, i, f, g, o, new_c, free, _ = saved
        emitted = dh
        if self.projection is not None:
            dh = dh @ self.projection
        tanh_c = np.tanh(new_c)
        do = dh * tanh_c * o * (1.0 - o)
        # A cell that was clamped passes nothing back.
        dc = (dc + dh * o * (1.0 - tanh_c * tanh_c)) * free
        di, df, dg = dc * g * i * (1.0 - i), dc * c * f * (1.0 - f), dc * i * (1.0 - g * g)
        gates = [di, df, dg, do]
        return gates, gates, None, dc * f, emitted

    def step_gradient(self, dh, dc, saved):
        """(dx, dh', dc', (input-side, recurrent-side, emitted dh)) of one step."""
        gate_gradients = {"lstm": self._lstm_gate_gradients, "gru": self._gru_gate_gradients}.get(
            self.mode, self._rnn_gate_gradients
        )
        inner, recurrent, direct, dc, emitted = gate_gradients(dh, dc, saved)
        inner = [self.store(value) for value in inner]
        recurrent = [self.store(value) for value in recurrent]
        dx, previous = None, direct
        for k, _ in enumerate(inner):
            w, r = self.input_weights[k], self.recurrent_weights[k]
            part = inner[k] if w is None else inner[k] @ w
            dx = part if dx is None else dx + part
            part = recurrent[k] @ r
            previous = part if previous is None else previous + part
        return self.store(dx), self.store(previous), self.store(dc), (inner, recurrent, emitted)


def make_cells(spec, params, store=lambda value: value):
    """One Cell per pseudo-layer of the opaque buffer."""
    cells, gates = [], spec.num_gates
    for pseudo, (weights, biases) in enumerate(numpy_layout.pseudo_layers(spec, params)):
        skipped = spec.skip and pseudo < spec.num_dirs
        cells.append(
            Cell(
                spec.mode,
                [None] * gates if skipped else weights[:gates],
                weights[gates : 2 * gates],
                biases[:gates],
                biases[gates:],
                weights[-1] if spec.num_proj else None,
                spec.cell_clip,
                store,
            )
        )
    return cells


@dataclass
class Tape:
    """Everything that forward leaves for backward; steps[pseudo][t] is what that step saved."""

    spec: numpy_layout.Spec
    cells: list
    valid: np.ndarray
    masks: list
    steps: list


def _times(length, direction):
    """The time steps in the order in which this direction takes them."""
    return range(length) if direction == 0 else range(length - 1, -1, -1)


def _run_direction(cell, direction, x, h, c, valid):
    """A row takes part in the steps before its own length only, so the backward direction starts at
    each row's own last element."""
    length = x.shape[0]
    outputs, steps = [None] * length, [None] * length
    for t in _times(length, direction):
        new_h, new_c, steps[t] = cell.step(x[t], h, c)
        outputs[t] = np.where(valid[t], new_h, 0.0)
        h, c = np.where(valid[t], new_h, h), np.where(valid[t], new_c, c)
    return outputs, h, c, steps


def forward(spec, params, x, h0=None, c0=None, lengths=None, masks=None, store=lambda v: v):
    """(y, h, c, tape). `masks`: per layer but the last an array [T, B, D * O] that multiplies its
    output on the way up, or None. c is None unless lstm. T = 0 is legal."""
    time, batch = x.shape[:2]
    if lengths is None:
        lengths = np.full(batch, time)
    valid = (np.arange(time)[:, None] < np.asarray(lengths)[None, :])[:, :, None]
    if h0 is None:
        h0 = np.zeros((spec.num_pseudo, batch, spec.state_width))
    if c0 is None:
        c0 = np.zeros((spec.num_pseudo, batch, spec.num_units))
    tape = Tape(spec, make_cells(spec, params, store), valid, masks, [])
    y = np.where(valid, x, 0.0)
    last_h, last_c = [], []
    for layer in range(spec.num_layers):
        sides = []
        for direction in range(spec.num_dirs):
            p = layer * spec.num_dirs + direction
            out, h, c, steps = _run_direction(tape.cells[p], direction, y, h0[p], c0[p], valid)
            sides.append(np.stack(out) if out else np.zeros((0, batch, spec.state_width)))
            last_h.append(h)
            last_c.append(c)
            tape.steps.append(steps)
        y = np.concatenate(sides, axis=2)
        if masks is not None and layer + 1 < spec.num_layers:
            y = store(y * masks[layer])
    return y, np.stack(last_h), np.stack(last_c) if spec.mode == "lstm" else None, tape


class _PseudoGradient:
    """Sums the weight gradients of one pseudo-layer over the time steps."""

    def __init__(self, cell):
        gates = len(cell.input_weights)
        shapes = [(0, 0) if w is None else w.shape for w in cell.input_weights]
        shapes += [w.shape for w in cell.recurrent_weights]
        if cell.projection is not None:
            shapes.append(cell.projection.shape)
        self.weights = [np.zeros(shape) for shape in shapes]
        self.biases = [np.zeros(cell.input_biases[0].shape) for _ in range(2 * gates)]
        self.skipped = cell.input_weights[0] is None

    def add(self, gradients, saved):
        inner, recurrent, emitted = gradients
        x, h, gates = saved[0], saved[1], len(inner)
        for k in range(gates):
            if not self.skipped:
                self.weights[k] = self.weights[k] + inner[k].T @ x
            self.weights[gates + k] = self.weights[gates + k] + recurrent[k].T @ h
            self.biases[k] = self.biases[k] + np.sum(inner[k], axis=0)
            self.biases[gates + k] = self.biases[gates + k] + np.sum(recurrent[k], axis=0)
        if emitted is not None and len(self.weights) > 2 * gates:
            self.weights[-1] = self.weights[-1] + emitted.T @ saved[-1]


def _direction_gradient(tape, pseudo, dy, dh, dc):
    """Back through the steps of one direction; a row that did not take part passes through."""
    cell, total = tape.cells[pseudo], _PseudoGradient(tape.cells[pseudo])
    length = len(tape.valid)
    dx = [None] * length
    for t in reversed(_times(length, pseudo % tape.spec.num_dirs)):
        valid, saved = tape.valid[t], tape.steps[pseudo][t]
        step_dh = np.where(valid, dy[t] + dh, 0.0)
        step_dc = np.where(valid, dc, 0.0)
        dx[t], previous_dh, previous_dc, gradients = cell.step_gradient(step_dh, step_dc, saved)
        total.add(gradients, saved)
        dh, dc = np.where(valid, previous_dh, dh), np.where(valid, previous_dc, dc)
    return dx, dh, dc, total


def backward(tape, dy, dh_last=None, dc_last=None):
    """(dx, dh0, dc0, dparams); dc0 is None unless lstm, missing gradients count as zeros."""
    spec, batch = tape.spec, tape.valid.shape[1]
    width = spec.state_width
    if dh_last is None:
        dh_last = np.zeros((spec.num_pseudo, batch, width))
    if dc_last is None:
        dc_last = np.zeros((spec.num_pseudo, batch, spec.num_units))
    dh0, dc0, sums = ([None] * spec.num_pseudo for _ in range(3))
    dy = np.where(tape.valid, dy, 0.0)
    for layer in reversed(range(spec.num_layers)):
        if tape.masks is not None and layer + 1 < spec.num_layers:
            dy = dy * tape.masks[layer]
        dx = None
        for direction in range(spec.num_dirs):
            p = layer * spec.num_dirs + direction
            side = dy[:, :, direction * width : (direction + 1) * width]
            steps, dh0[p], dc0[p], sums[p] = _direction_gradient(
                tape, p, side, dh_last[p], dc_last[p]
            )
            part = np.stack(steps) if steps else np.zeros((0, batch, spec.input_width(layer)))
            dx = part if dx is None else dx + part
        dy = tape.cells[0].store(dx)
    flat = [np.ravel(w) for s in sums for w in s.weights] + [
        np.ravel(b) for s in sums for b in s.biases
    ]
    dparams = np.concatenate(flat)
    return dy, np.stack(dh0), np.stack(dc0) if spec.mode == "lstm" else None, dparams
