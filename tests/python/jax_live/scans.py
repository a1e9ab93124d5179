"""Networks in plain jnp over lax.scan, written from the equations of docs/cells_reference.md."""

import jax
import jax.numpy as jnp
import numpy as np

GATES = {"lstm": 4, "gru": 3, "rnn": 1}


def dense(w, x, b):
    out = x @ w.T
    return out if b is None else out + b


def lstm_step(p, state, x):
    h, c = state
    joined = dense(p["w_ih"], x, p.get("b_ih")) + dense(p["w_hh"], h, p.get("b_hh"))
    i, f, g, o = jnp.split(joined, 4, -1)
    c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
    h = jax.nn.sigmoid(o) * jnp.tanh(c)
    return (h @ p["w_hr"].T if "w_hr" in p else h), c


def gru_step(p, state, x, reset_after=True):
    h, c = state
    a_r, a_z, a_n = jnp.split(dense(p["w_ih"], x, p.get("b_ih")), 3, -1)
    w = jnp.split(p["w_hh"], 3)
    b = [None] * 3 if "b_hh" not in p else jnp.split(p["b_hh"], 3)
    r = jax.nn.sigmoid(a_r + dense(w[0], h, b[0]))
    z = jax.nn.sigmoid(a_z + dense(w[1], h, b[1]))
    inner = r * dense(w[2], h, b[2]) if reset_after else dense(w[2], r * h, b[2])
    return (1 - z) * jnp.tanh(a_n + inner) + z * h, c


def rnn_step(p, state, x, activation=jnp.tanh):
    h, c = state
    return activation(dense(p["w_ih"], x, p.get("b_ih")) + dense(p["w_hh"], h, p.get("b_hh"))), c


STEPS = {"lstm": lstm_step, "gru": gru_step, "rnn": rnn_step}


def layer(step, p, x, h, c, lengths, reverse):
    """x [T, B, .]; a reversed row begins at its own end."""
    steps = jnp.arange(x.shape[0])

    def one(state, now):
        t, x_t = now
        new_h, new_c = step(p, state, x_t)
        live = (t < lengths)[:, None]
        kept = (jnp.where(live, new_h, state[0]), jnp.where(live, new_c, state[1]))
        return kept, jnp.where(live, new_h, 0)

    (h, c), y = jax.lax.scan(one, (h, c), (steps, x), reverse=reverse)
    return y, h, c


def network(cell, params, x, h0, c0, lengths=None, bidirectional=False, **options):
    """Batch-major x; (y, hn, cn), cn of zeros where there is no cell."""
    directions = 2 if bidirectional else 1
    x = jnp.swapaxes(x, 0, 1)
    if lengths is None:
        lengths = jnp.full(x.shape[1], x.shape[0])

    def step(p, state, x_t):
        return STEPS[cell](p, state, x_t, **options)

    hs, cs = [], []
    for first in range(0, len(params), directions):
        ys = []
        for d in range(directions):
            at = first + d
            y, h, c = layer(step, params[at], x, h0[at], c0[at], lengths, d == 1)
            ys.append(y)
            hs.append(h)
            cs.append(c)
        x = jnp.concatenate(ys, -1)
    return jnp.swapaxes(x, 0, 1), jnp.stack(hs), jnp.stack(cs)


def values(seed, shape, dtype="float64", scale=1.0):
    """Not uniform over units, not symmetric."""
    random = np.random.default_rng(seed)
    drawn = random.normal(0.1, scale, shape) + 0.05 * np.arange(shape[-1] if shape else 1)
    return jnp.asarray(drawn * 0.7, dtype)


def data(params, cell, batch, time, input_size, dtype="float64", seed=1):
    """(x, h0, c0) for parameters."""
    count = len(params)
    units = params[0]["w_hh"].shape[0] // GATES[cell]
    out = params[0]["w_hh"].shape[1]
    return (
        values(seed, (batch, time, input_size), dtype),
        values(seed + 1, (count, batch, out), dtype, 0.5),
        values(seed + 2, (count, batch, units), dtype, 0.5),
    )


def call(cell, x, h0, c0, params, **options):
    """openrnn's (y, hn, cn), cn as given where there is none."""
    import openrnn.jax as orx

    if cell == "lstm":
        return orx.lstm(x, h0, c0, params, **options)
    y, hn = (orx.gru if cell == "gru" else orx.rnn)(x, h0, params, **options)
    return y, hn, c0


def weighted(outputs):
    """One number that every element of every output counts in, each differently."""
    total = 0.0
    for k, out in enumerate(outputs):
        w = jnp.cos(jnp.arange(out.size, dtype=out.dtype) * 0.37 + k).reshape(out.shape)
        total += (w * out * (1 + 0.3 * out)).sum()
    return total
