"""A Flax module around openrnn.jax, trained to tell what came three steps before.

    python flax_lstm.py

The same module runs under jit, grad and vmap on a processor; JAX and Flax must be installed.
"""
import flax.linen as nn
import jax
import jax.numpy as jnp
import openrnn.jax


class LSTM(nn.Module):
    """x [B, T, I] -> y [B, T, H]; as nn.RNN(nn.OptimizedLSTMCell(H)), of one or more layers."""

    features: int
    layers: int = 1
    dropout: float = 0.0

    @nn.compact
    def __call__(self, x, lengths=None, training=False):
        params = self.param("network", lambda key: openrnn.jax.init(
            key, input_size=x.shape[-1], hidden_size=self.features, num_layers=self.layers,
            method="glorot", single_bias=True, dtype=x.dtype))
        key = self.make_rng("dropout") if training and self.dropout else None
        y, _, _ = openrnn.jax.lstm(x, None, None, params, dropout=self.dropout, key=key,
                                   sequence_lengths=lengths)
        return y


class Echo(nn.Module):
    @nn.compact
    def __call__(self, x, training=False):
        return nn.Dense(1)(LSTM(24, layers=2, dropout=0.05)(x, training=training))


def main():
    key = jax.random.key(0)
    model = Echo()
    params = model.init(key, jnp.zeros((1, 4, 1)))

    def loss(params, x, key):
        shown = model.apply(params, x, training=True, rngs={"dropout": key})
        return jnp.mean((shown[:, 3:] - x[:, :-3]) ** 2)

    @jax.jit
    def step(params, speed, key):
        x = jax.random.uniform(key, (32, 20, 1), minval=-1.0)
        value, slope = jax.value_and_grad(loss)(params, x, key)
        speed = jax.tree_util.tree_map(lambda v, s: 0.9 * v - 0.3 * s, speed, slope)
        return jax.tree_util.tree_map(jnp.add, params, speed), speed, value

    speed = jax.tree_util.tree_map(jnp.zeros_like, params)
    for count in range(601):
        params, speed, value = step(params, speed, jax.random.fold_in(key, count))
        if count % 200 == 0:
            print(f"step {count}: loss {value:.4f}")


if __name__ == "__main__":
    main()
