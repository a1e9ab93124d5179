"""JAX, compiled by `jit`: the cells written out and `lax.scan` over time, or openrnn.jax."""

import os
from typing import Any

from peers.workers import server

server.pin()
server.set_up_jax()

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402

from peers.workers import layout  # noqa: E402

Params = tuple[jax.Array, jax.Array, jax.Array, jax.Array]
State = tuple[jax.Array, ...]


def lstm_cell(state: State, gates: jax.Array, params: Params) -> State:
    """One step from the input's part of the gates; state (h, c)."""
    h, c = state
    i, f, g, o = jnp.split(gates + h @ params[1].T, 4, axis=-1)
    c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
    return jax.nn.sigmoid(o) * jnp.tanh(c), c


def gru_cell(state: State, gates: jax.Array, params: Params) -> State:
    """The reset gate after the recurrent product; `gates` lacks the recurrent bias."""
    (h,) = state
    xr, xz, xn = jnp.split(gates, 3, axis=-1)
    hr, hz, hn = jnp.split(h @ params[1].T + params[3], 3, axis=-1)
    z = jax.nn.sigmoid(xz + hz)
    n = jnp.tanh(xn + jax.nn.sigmoid(xr + hr) * hn)
    return ((1 - z) * n + z * h,)


def tanh_cell(state: State, gates: jax.Array, params: Params) -> State:
    """A plain network's step."""
    return (jnp.tanh(gates + state[0] @ params[1].T),)


CELLS = {"lstm": lstm_cell, "gru": gru_cell, "rnn_tanh": tanh_cell}


def one_direction(
    cell: str, params: Params, x: jax.Array, start: State, reverse: bool
) -> tuple[jax.Array, State]:
    """(y [T, B, U], last state). The input's products of all steps are one product."""
    w, _, bw, br = params
    gates = x @ w.T + (bw if cell == "gru" else bw + br)

    def step(state: State, now: jax.Array) -> tuple[State, jax.Array]:
        state = CELLS[cell](state, now, params)
        return state, state[0]

    last, y = lax.scan(step, start, gates, reverse=reverse)
    return y, last


def network(
    cell: str, directions: int, params: list[Params], x: jax.Array, start: State = ()
) -> tuple[jax.Array, list[State]]:
    """All layers, from `start` ([L*D, B, U] each) or zero; states by layer and direction."""
    states, batch = [], x.shape[1]
    for layer in range(len(params) // directions):
        outputs = []
        for direction in range(directions):
            place = layer * directions + direction
            mine = params[place]
            zeros = jnp.zeros((batch, mine[1].shape[1]), x.dtype)
            kinds = (zeros, zeros) if cell == "lstm" else (zeros,)
            first = tuple(state[place] for state in start) or kinds
            y, last = one_direction(cell, mine, x, first, direction == 1)
            outputs.append(y)
            states.append(last)
        x = outputs[0] if directions == 1 else jnp.concatenate(outputs, axis=-1)
    return x, states


def drop_in(cell: str, directions: int, params: Any, x: jax.Array) -> tuple[jax.Array, State]:
    """The same by openrnn.jax, which only these sides need; states by layer and direction, too."""
    import openrnn.jax

    both = {} if not isinstance(params, list) else {"bidirectional": directions == 2}
    if cell == "lstm":
        y, *states = openrnn.jax.lstm(x, None, None, params, time_major=True, **both)
    else:
        call = openrnn.jax.gru if cell == "gru" else openrnn.jax.rnn
        y, *states = call(x, None, params, time_major=True, **both)
    return y, tuple(states)


def pack(cell: str, directions: int, params: Any) -> Any:
    """Once, for inference."""
    import openrnn.jax

    name = "rnn" if cell == "rnn_tanh" else cell
    return openrnn.jax.pack(params, name, bidirectional=directions == 2)


NAMES = ("w_ih", "w_hh", "b_ih", "b_hh")  # of openrnn.jax, in the order of Params


class Job:
    """One compiled network and its input."""

    def __init__(self, task: server.Task) -> None:
        if {task.text("math", "float32"), task.text("weights", "float32")} != {"float32"}:
            raise server.Refused("float32 alone")
        if task.lengths_kind in ("given", "packed"):
            raise server.Refused("lax.scan computes the padding")
        self.training, cell, states = task.training, task.text("cell"), task.states()
        directions = task.number("directions", 1)
        self.parts = layout.parts_of(task)
        params = [tuple(map(jnp.asarray, (p.w, p.r, p.bw, p.br))) for p in self.parts]
        self.x = jnp.asarray(task.array("x"))
        self.kernel = "XLA CPU, lax.scan"
        self.drop_in, compute = task.text("drop_in"), network
        if self.drop_in:
            params = [dict(zip(NAMES, each, strict=True)) for each in params]
            compute, self.kernel = drop_in, "openrnn.jax"
        self.params = pack(cell, directions, params) if self.drop_in == "packed" else params
        # States are arguments: the compiler may use what it knows of a constant.
        self.start = (tuple(map(jnp.asarray, states)),) if states else ()
        forward = lambda params, x, *start: compute(cell, directions, params, x, *start)
        if not self.training:
            self.forward = jax.jit(forward)
            return
        self.r = jnp.asarray(task.array("r"))

        def step(params: list[Params], x: jax.Array, r: jax.Array) -> tuple[object, object]:
            values, backward = jax.vjp(forward, params, x)
            zeros = jax.tree.map(jnp.zeros_like, values[1])
            return values, backward((r, zeros))

        self.step = jax.jit(step)

    def call(self) -> None:
        """Until the results are there."""
        self.values = self.gradients = None  # frees the last ones first
        if self.training:
            result = self.step(self.params, self.x, self.r)
            self.values, self.gradients = jax.block_until_ready(result)
        else:
            self.values = jax.block_until_ready(self.forward(self.params, self.x, *self.start))

    def results(self) -> dict[str, server.Array]:
        """Of the last call."""
        y, states = self.values
        found = {"y": np.asarray(y)}
        if self.drop_in:
            found |= {n: np.asarray(s) for n, s in zip(("hn", "cn"), states, strict=False)}
        else:
            for place, name in enumerate(("hn", "cn")[: len(states[0])]):
                found[name] = np.stack([np.asarray(state[place]) for state in states])
        if self.training:
            by_part, dx = self.gradients
            if self.drop_in:
                by_part = [tuple(each[name] for name in NAMES) for each in by_part]
            parts = [
                layout.Part(part.layer, part.direction, *map(np.asarray, gradients))
                for part, gradients in zip(self.parts, by_part, strict=True)
            ]
            found |= {"dx": np.asarray(dx), "dparams": layout.buffer_of(parts)}
        return found


def about() -> str:
    """The version."""
    flags = os.environ.get("XLA_FLAGS", "")
    return f"JAX {jax.__version__}{', XLA_FLAGS=' if flags else ''}{flags}"


if __name__ == "__main__":
    server.main(Job, about)
