# mypy: ignore-errors
"""RNN, LSTM and GRU of ONNX in float64: forward and gradients, from NumPy and the standard library alone.

README.md has the equations; here they are once more, one function a cell. A row of the batch is
computed alone, over its own steps, as README.md defines sequence_lens and the direction `reverse`.

Results are the same bits on every machine: sums are added term by term in one order, and exp and
log are rounded once from 40 digits (decimal), so nothing depends on a mathematical library.

A network is a dict: op, direction, activations (a list for each direction of (name, alpha, beta)),
clip or None, input_forget, linear_before_reset, and a reading of what the standard leaves open
(`READINGS`). Inputs are X [T, B, I], W [D, G*U, I], R [D, G*U, U], and, or None, B [D, 2*G*U],
P [D, 3*U], initial_h, initial_c [D, B, U] and lengths, a list of B integers.
"""

import numpy as np

import activations

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
# What the standard's text leaves open; the first of each is what README.md recommends.
READINGS = {
    "cell_clip": ["gates", "output", "cell"],  # what clip bounds besides the sums of the gates
    "coupling": ["f = 1 - i", "i = 1 - f"],
    "zero_length": ["initial state", "zeros"],
    "padding": ["zeros", "last output"],
    "threshold": ["0", "x"],  # ThresholdedRelu(x) where x is its alpha
}


class Exact:
    """The arithmetic of float64; bounds.py has another one with the same methods."""

    def number(self, array):
        return np.asarray(array, np.float64)

    def dot(self, matrix, vector):
        """Its sums are added from the first term to the last."""
        return np.add.accumulate(matrix * vector, axis=1)[:, -1]

    def outer(self, a, b):
        return a[:, None] * b[None, :]

    def apply(self, function, a):
        return activations.value(function, a)

    def slope(self, function, a, y):
        return activations.slope(function, a, y)

    def clip(self, a, limit):
        return a if limit is None else np.minimum(np.maximum(a, -limit), limit)

    def inside(self, a, limit):
        return np.ones(a.shape) if limit is None else 1.0 * (np.abs(a) <= limit)


def _gates(op, vector):
    """The blocks of a vector of all gates: i o f c, z r h, or one."""
    units = vector.shape[0] // GATES[op]
    return [vector[k * units : (k + 1) * units] for k in range(GATES[op])]


class Direction:
    """One direction: its weights and what one step computes. `keep` is what the backward step needs."""

    def __init__(self, ops, network, weights, direction):
        self.ops, self.net = ops, network
        self.functions = network["activations"][direction]
        W, R, B, P = (weights[name] for name in "WRBP")
        self.W, self.R = ops.number(W[direction]), ops.number(R[direction])
        rows = W.shape[1]
        zeros = np.zeros(2 * rows)
        bias = ops.number(zeros if B is None else B[direction])
        self.Wb, self.Rb = bias[:rows], bias[rows:]
        self.P = None if P is None else ops.number(P[direction])
        self.grads = {}

    def add(self, name, value):
        self.grads[name] = self.grads[name] + value if name in self.grads else value

    def clip(self, a):
        return self.ops.clip(a, self.net["clip"])

    def inside(self, a):
        return self.ops.inside(a, self.net["clip"])

    def sums(self, x, h):
        """Of every gate W x + R h + Wb + Rb."""
        total = self.ops.dot(self.W, x) + self.ops.dot(self.R, h) + self.Wb + self.Rb
        return _gates(self.net["op"], total)

    def through(self, function, a, y, dy):
        """The gradient of a, where y = function(clip(a))."""
        return dy * self.ops.slope(function, self.clip(a), y) * self.inside(a)

    def carry(self, da, x, h):
        """Adds what all gates' da gives to the weights; gives dx and dh."""
        self.add("W", self.ops.outer(da, x))
        self.add("R", self.ops.outer(da, h))
        self.add("Wb", da)
        self.add("Rb", da)
        return self.ops.dot(self.W.T, da), self.ops.dot(self.R.T, da)

    # RNN: H = f(clip(W x + R h + Wb + Rb))

    def rnn(self, x, h, c):
        (a,) = self.sums(x, h)
        new = self.ops.apply(self.functions[0], self.clip(a))
        return new, c, (x, h, a, new)

    def rnn_back(self, keep, dh, dc):
        x, h, a, new = keep
        dx, dh = self.carry(self.through(self.functions[0], a, new, dh), x, h)
        return dx, dh, dc

    # GRU: H = (1 - z) n + z h

    def gru(self, x, h, c):
        ops, (f, g), units = self.ops, self.functions, h.shape[0]
        az, ar, _ = self.sums(x, h)
        z, r = ops.apply(f, self.clip(az)), ops.apply(f, self.clip(ar))
        Wh, Rh = self.W[2 * units :], self.R[2 * units :]
        Wbh, Rbh = self.Wb[2 * units :], self.Rb[2 * units :]
        if self.net["linear_before_reset"]:
            linear = ops.dot(Rh, h) + Rbh
            an = ops.dot(Wh, x) + r * linear + Wbh
        else:
            linear = None
            an = ops.dot(Wh, x) + ops.dot(Rh, r * h) + Rbh + Wbh
        n = ops.apply(g, self.clip(an))
        new = (1.0 - z) * n + z * h
        return new, c, (x, h, az, ar, an, z, r, n, linear)

    def gru_back(self, keep, dh, dc):
        ops, (f, g) = self.ops, self.functions
        x, h, az, ar, an, z, r, n, linear = keep
        units = h.shape[0]
        dan = self.through(g, an, n, dh * (1.0 - z))
        daz = self.through(f, az, z, dh * (h - n))
        Rh = self.R[2 * units :]
        if self.net["linear_before_reset"]:
            dlinear = dan * r
            dr, from_n = dan * linear, ops.dot(Rh.T, dlinear)
            self.add("Rn", ops.outer(dlinear, h))
        else:
            dlinear = dan
            drh = ops.dot(Rh.T, dan)
            dr, from_n = drh * h, drh * r
            self.add("Rn", ops.outer(dan, r * h))
        dar = self.through(f, ar, r, dr)
        every = np.concatenate([daz, dar, dan])
        self.add("W", ops.outer(every, x))
        self.add("Wb", every)
        self.add("Rb", np.concatenate([daz, dar, dlinear]))
        gates = np.concatenate([daz, dar])
        self.add("Rg", ops.outer(gates, h))
        dh = ops.dot(self.R[: 2 * units].T, gates) + from_n + dh * z
        return ops.dot(self.W.T, every), dh, dc

    # LSTM: C = f c + i g, H = o h(C)

    def lstm(self, x, h, c):
        ops, (f_, g_, h_), net = self.ops, self.functions, self.net
        ai, ao, af, ac = self.sums(x, h)
        pi, po, pf = (None,) * 3 if self.P is None else self.peepholes()
        peep = lambda a, p, cell: a if p is None else a + p * cell
        gate = lambda a: ops.apply(f_, self.clip(a))
        ai, af = peep(ai, pi, c), peep(af, pf, c)
        i, f = gate(ai), gate(af)
        if net["input_forget"]:
            i, f = (i, 1.0 - i) if net["coupling"] == "f = 1 - i" else (1.0 - f, f)
        g = ops.apply(g_, self.clip(ac))
        new_c = f * c + i * g
        if net["cell_clip"] == "cell":
            new_c = self.clip(new_c)
        ao = peep(ao, po, new_c)
        o = gate(ao)
        seen = self.clip(new_c) if net["cell_clip"] == "output" else new_c
        out = ops.apply(h_, seen)
        return o * out, new_c, (x, h, c, (ai, ao, af, ac), (i, o, f, g), new_c, out)

    def peepholes(self):
        units = self.P.shape[0] // 3
        return [self.P[k * units : (k + 1) * units] for k in range(3)]

    def lstm_back(self, keep, dh, dc):
        """Of the recommended reading alone."""
        ops, (f_, g_, h_) = self.ops, self.functions
        x, h, c, (ai, ao, af, ac), (i, o, f, g), new_c, out = keep
        peep = self.P is not None
        pi, po, pf = self.peepholes() if peep else (None,) * 3
        dao = self.through(f_, ao, o, dh * out)
        dc = dc + dh * o * ops.slope(h_, new_c, out)
        if peep:
            dc = dc + dao * po
        di, df = dc * g, dc * c
        if self.net["input_forget"]:
            di, daf = di - df, 0.0 * df
        else:
            daf = self.through(f_, af, f, df)
        dai, dac = self.through(f_, ai, i, di), self.through(g_, ac, g, dc * i)
        dc = dc * f
        if peep:
            dc = dc + dai * pi + daf * pf
            self.add("P", np.concatenate([dai * c, dao * new_c, daf * c]))
        dx, dh = self.carry(np.concatenate([dai, dao, daf, dac]), x, h)
        return dx, dh, dc

    def gradients(self):
        """W, R, B and P of all steps that were added."""
        found = self.grads
        if "Rn" in found:
            found["R"] = np.concatenate([found["Rg"], found["Rn"]])
        whole = {"W": found["W"], "R": found["R"], "B": np.concatenate([found["Wb"], found["Rb"]])}
        return whole | ({"P": found["P"]} if "P" in found else {})


def _steps(network, direction, length):
    backward = network["direction"] == "reverse" or direction == 1
    return range(length - 1, -1, -1) if backward else range(length)


def _state(ops, given, direction, row, units):
    return ops.number(np.zeros(units) if given is None else given[direction, row])


def run(network, inputs, upstream=None, ops=None):
    """({Y [T, D, B, U], Y_h, Y_c [D, B, U]}, gradients of sum(upstream * outputs) by input, or None).

    The values are nested lists of what `ops` computes with, vectors of U: join() makes arrays."""
    ops = ops or Exact()
    X, R = inputs["X"], inputs["R"]
    time, batch, units = X.shape[0], X.shape[1], R.shape[2]
    lengths = inputs["lengths"] or [time] * batch
    step = network["op"].lower()
    zeros = ops.number(np.zeros(units))
    Y = [[[None] * batch for _ in R] for _ in range(time)]
    Y_h, Y_c = [[None] * batch for _ in R], [[None] * batch for _ in R]
    dX = [[ops.number(np.zeros(X.shape[2]))] * batch for _ in range(time)]
    dstates = {"initial_h": [[None] * batch for _ in R], "initial_c": [[None] * batch for _ in R]}
    weights = []
    for d in range(R.shape[0]):
        side = Direction(ops, network, inputs, d)
        weights.append(side)
        for row in range(batch):
            length = lengths[row]
            h = _state(ops, inputs["initial_h"], d, row, units)
            c = _state(ops, inputs["initial_c"], d, row, units)
            kept = []
            for t in _steps(network, d, length):
                h, c, keep = getattr(side, step)(ops.number(X[t, row]), h, c)
                kept.append((t, keep))
                Y[t][d][row] = h
            if length == 0 and network["zero_length"] == "zeros":
                h = c = zeros
            Y_h[d][row], Y_c[d][row] = h, c
            for t in range(length, time):
                Y[t][d][row] = zeros if network["padding"] == "zeros" else h
            if upstream is None:
                continue
            dh = ops.number(upstream["Y_h"][d, row])
            dc = ops.number(upstream["Y_c"][d, row])
            for t, keep in reversed(kept):
                dh = dh + ops.number(upstream["Y"][t, d, row])
                dx, dh, dc = getattr(side, step + "_back")(keep, dh, dc)
                dX[t][row] = dX[t][row] + dx
            dstates["initial_h"][d][row], dstates["initial_c"][d][row] = dh, dc
    outputs = {"Y": Y, "Y_h": Y_h} | ({"Y_c": Y_c} if step == "lstm" else {})
    if upstream is None:
        return outputs, None
    found = {"X": dX, "initial_h": dstates["initial_h"]}
    if step == "lstm":
        found["initial_c"] = dstates["initial_c"]
    for name in weights[0].gradients():
        found[name] = [side.gradients()[name] for side in weights]
    return outputs, found


def join(nested):
    """Nested lists of arrays as one array."""
    return np.array(nested, np.float64)
