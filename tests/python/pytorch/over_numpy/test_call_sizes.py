"""Calls of every small size and order of memory below openrnn.torch, against plain loops in NumPy.

A batch of one row, one layer and one step each have ways of their own: memory is then the same in
either order, and nothing is moved.
"""

import itertools

import numpy as np
import pytest
from numpy_torch import DTYPES, Tensor
from problems import Rows, module_of

from model import numpy_layout, numpy_rnn
from model.numpy_layout import Spec

SPECS = {
    "one layer": Spec("lstm", 1, 3, 2),
    "projected": Spec("lstm", 2, 3, 4, num_proj=2),
    "both directions": Spec("lstm", 1, 3, 2, direction="bidirectional", num_proj=1),
    "two layers": Spec("gru", 2, 4, 1),
    "both directions of two": Spec("gru", 2, 2, 3, direction="bidirectional"),
    "tanh": Spec("rnn_tanh", 1, 1, 1),
    "relu": Spec("rnn_relu", 2, 3, 3, direction="bidirectional"),
}
ORDERS = ["time first", "batch first", "packed"]
# Lengths of the rows, where they are packed: the longest first, last, all one, all the same.
LENGTHS = {(1, 1): [[1]], (4, 1): [[4]], (1, 3): [[1, 1, 1]], (3, 2): [[3, 1], [1, 3], [3, 3]],
           (5, 3): [[5, 2, 2], [1, 4, 5], [2, 5, 1]]}  # fmt: skip


def drawn(random, *shape):
    return random.normal(size=shape)


class Problem:
    """Values of one call, time first, and what the loops make of them."""

    def __init__(self, spec, time, batch, lengths, with_states, seed=7):
        self.spec, random = spec, np.random.default_rng(seed)
        self.params = drawn(random, numpy_layout.params_size(spec)) / 2
        self.rows = None if lengths is None else Rows(lengths, time)
        self.x = drawn(random, time, batch, spec.input_size)
        widths = [spec.state_width, spec.num_units][: 2 if spec.has_cell else 1]
        self.states = [drawn(random, spec.num_pseudo, batch, width) for width in widths]
        self.states += [None] * (2 - len(self.states))
        self.dy = drawn(random, time, batch, spec.num_dirs * spec.state_width)
        self.dlast = [None if one is None else drawn(random, *one.shape) for one in self.states]
        if not with_states:
            self.states = [None, None]
        self.y, h, c, tape = numpy_rnn.forward(
            spec, self.params, self.x, *self.states, lengths=lengths
        )
        self.last = [h, c]
        dx, dh, dc, dparams = numpy_rnn.backward(tape, self.dy, *self.dlast)
        self.gradients = [dx, dh, dc, dparams]


class Ordered:
    """The same as PyTorch's tensors in one order of memory; states of packed rows in theirs."""

    def __init__(self, problem, order):
        self.problem, self.order = problem, order

    def sequence(self, padded):
        if self.order == "packed":
            return Tensor(self.problem.rows.flat(padded))
        axes = (1, 0, 2) if self.order == "batch first" else (0, 1, 2)
        return Tensor(np.ascontiguousarray(padded.transpose(axes)))

    def state(self, values):
        if values is None:
            return None
        sorted_ = values[:, self.problem.rows.order] if self.order == "packed" else values
        return Tensor(np.ascontiguousarray(sorted_))

    def padded(self, tensor):
        values = tensor.numpy()
        if self.order == "packed":
            return self.problem.rows.padded(values)
        return values.swapaxes(0, 1) if self.order == "batch first" else values

    def unsorted(self, tensor):
        if tensor is None:
            return None
        values = tensor.numpy()
        return values[:, np.argsort(self.problem.rows.order)] if self.order == "packed" else values


def compared(found, wanted, what):
    assert (found is None) == (wanted is None), what
    if wanted is not None:
        assert found.shape == wanted.shape, what
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-11, err_msg=str(what))


def place_of(ours, problem, order):
    """(engine, place, weights) of the problem's module."""
    from openrnn.torch import _calls, _forward

    batch_first = order == "batch first"
    module = module_of(ours.torch, problem.spec, problem.params, batch_first=batch_first)
    weights = list(module.to(DTYPES["float64"])._parameters.values())
    engine = _forward.engine_of(module, DTYPES["float64"])
    return engine, _calls.Place(engine.net, 0, batch_first, True), weights


def run(ours, problem, order, what):
    """Both kinds of call, each gradient by itself, and each of the gradients given by itself."""
    from openrnn.torch import _calls

    given = Ordered(problem, order)
    engine, place, weights = place_of(ours, problem, order)
    sizes = Tensor(problem.rows.sizes) if order == "packed" else None
    inputs = [given.sequence(problem.x), *map(given.state, problem.states)]
    outputs = {}
    for saving in (False, True):
        *outputs[saving], token = _calls.forward(
            place, engine.held, *inputs, weights, sizes, saving
        )
        assert (token is None) == (not saving)
        y, hn, cn = outputs[saving]
        compared(given.padded(y), problem.y, what)
        compared(given.unsorted(hn), problem.last[0], what)
        compared(given.unsorted(cn), problem.last[1], what)
    upstream = [given.sequence(problem.dy), *map(given.state, problem.dlast)]

    def gradients(grads, wanted=(True, True, True, True)):
        found = _calls.backward(place, token, grads, inputs, weights, sizes, wanted)
        dx, dh, dc, dparams = found
        return [None if dx is None else given.padded(dx), given.unsorted(dh), given.unsorted(dc),
                None if dparams is None else dparams.numpy()]  # fmt: skip

    whole = gradients(upstream)
    for n, right in enumerate(problem.gradients):
        compared(whole[n], right, (what, ("dx", "dh0", "dc0", "dparams")[n]))
    for n in range(4):
        alone = gradients(upstream, tuple(i == n for i in range(4)))
        assert [one is None for one in alone] == [i != n or whole[n] is None for i in range(4)]
        if whole[n] is not None:
            np.testing.assert_array_equal(alone[n], whole[n], err_msg=str((what, n)))
    parts = [gradients([g if i == n else None for i, g in enumerate(upstream)]) for n in range(3)]
    for n, right in enumerate(problem.gradients):
        if right is not None:
            compared(sum(part[n] for part in parts), right, (what, "sum", n))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", SPECS)
def test_calls_of_every_small_size(ours, name, order):
    for (time, batch), with_states in itertools.product(LENGTHS, (True, False)):
        for lengths in LENGTHS[time, batch] if order == "packed" else [None]:
            problem = Problem(SPECS[name], time, batch, lengths, with_states)
            run(ours, problem, order, (time, batch, lengths, with_states))


@pytest.mark.parametrize("order", ORDERS[:2])
@pytest.mark.parametrize("name", SPECS)
def test_gradients_of_each_row_add_up(ours, name, order):
    from openrnn.torch import _calls

    for time, batch in LENGTHS:
        problem = Problem(SPECS[name], time, batch, None, True)
        given = Ordered(problem, order)
        engine, place, weights = place_of(ours, problem, order)
        inputs = [given.sequence(problem.x), *map(given.state, problem.states)]
        token = _calls.forward(place, engine.held, *inputs, weights, None, True)[3]
        upstream = [given.sequence(problem.dy), *map(given.state, problem.dlast)]
        *rest, rows = _calls.row_gradients(place, token, upstream, inputs, weights, [True] * 3)
        compared(given.padded(rest[0]), problem.gradients[0], name)
        assert rows.numpy().shape == (batch, problem.params.size)
        compared(rows.numpy().sum(0), problem.gradients[3], name)
        for row in range(batch):
            x, dy = problem.x[:, [row]], problem.dy[:, [row]]
            states, dlast = ([None if s is None else s[:, [row]] for s in group]
                             for group in (problem.states, problem.dlast))  # fmt: skip
            *_, tape = numpy_rnn.forward(problem.spec, problem.params, x, *states)
            *_, right = numpy_rnn.backward(tape, dy, *dlast)
            compared(rows.numpy()[row], right, (name, row))
