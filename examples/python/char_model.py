"""A character model of a text by the op-level API: one flat buffer of parameters in a Variable.

CudnnLSTM of `cudnn_rnn.ops` has no variables: it says how long its parameters are, and takes them at
each call. A Saveable names what lies in them, so that a Saver stores them as other programs read
them.
"""
import argparse
import pathlib
import tempfile

import numpy as np

import openrnn
from openrnn import cudnn_rnn

UNITS = 128


class CharModel:
    """One LSTM over one-hot bytes, and a softmax over what follows."""

    def __init__(self, symbols, seed=1):
        self.symbols = symbols
        self.rnn = cudnn_rnn.ops.CudnnLSTM(1, UNITS, symbols)
        random = np.random.RandomState(seed)
        self.params = openrnn.Variable(self.first_params(random), name="lstm/params")
        self.kernel = openrnn.Variable(random.uniform(-0.1, 0.1, (UNITS, symbols)),
                                       name="softmax/kernel", dtype="float32")
        self.bias = openrnn.Variable(np.zeros(symbols), name="softmax/bias", dtype="float32")
        self.variables = [self.params, self.kernel, self.bias]
        self.saveable = cudnn_rnn.CudnnLSTMSaveable(self.params, 1, UNITS, symbols, scope="lstm")

    def first_params(self, random):
        """Canonical weights, as the flat buffer holds them: small, and open forget gates."""
        zeros = openrnn.constant(np.zeros(self.rnn.params_size(), "float32"))
        shapes, biases = self.rnn.params_to_canonical(zeros)
        weights = [random.uniform(-0.1, 0.1, shape.shape).astype("float32") for shape in shapes]
        # Input biases of i f c o, then recurrent ones.
        open_gates = [np.full(UNITS, k == 1, "float32") for k in range(len(biases))]
        return self.rnn.canonical_to_params(weights, open_gates)

    def zero_state(self, batch):
        zeros = np.zeros((1, batch, UNITS), "float32")
        return zeros, zeros

    def __call__(self, ids, state, is_training):
        """Logits [T, B, symbols] of what follows ids [T, B], and the state after them."""
        inputs = openrnn.one_hot(ids, self.symbols)
        output, h, c = self.rnn(inputs, state[0], state[1], self.params, is_training)
        return openrnn.matmul(output, self.kernel) + self.bias, (h, c)

    def bits(self, ids):
        """Bits per byte that the model needs for a text, each byte from all before it."""
        logits, _ = self(ids[:-1, None], self.zero_state(1), is_training=False)
        nats = openrnn.losses.sparse_softmax_cross_entropy(ids[1:, None], logits)
        return float(nats) / np.log(2)

    def sample(self, first, length, random):
        """Bytes drawn from the model, one after another, sharpened a little."""
        written, state = [first], self.zero_state(1)
        for _ in range(length):
            logits, state = self(np.array([[written[-1]]]), state, is_training=False)
            chances = openrnn.nn.softmax(logits[0, 0] * 1.5).numpy().astype("float64")
            written.append(random.choice(self.symbols, p=chances / chances.sum()))
        return written


def train(model, ids, steps, batch=16, length=50):
    """Parallel streams through the text; the state goes on from step to step, its history not."""
    optimizer = openrnn.train.AdamOptimizer(1e-2)
    streams = ids[:len(ids) // batch * batch].reshape(batch, -1).T  # [time, B]
    state, at = model.zero_state(batch), 0
    for step in range(1, steps + 1):
        if at + length + 1 > len(streams):
            state, at = model.zero_state(batch), 0
        with openrnn.GradientTape() as tape:
            logits, state = model(streams[at:at + length], state, is_training=True)
            targets = streams[at + 1:at + length + 1]
            loss = openrnn.losses.sparse_softmax_cross_entropy(targets, logits)
        gradients, _ = openrnn.clip_by_global_norm(tape.gradient(loss, model.variables), 1.0)
        optimizer.apply_gradients(zip(gradients, model.variables))
        state, at = tuple(openrnn.stop_gradient(part) for part in state), at + length
        if step % 50 == 0:
            print(f"step {step}: {float(loss) / np.log(2):.4f} bits per byte")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("text", type=pathlib.Path)
    parser.add_argument("--steps", type=int, default=500)
    arguments = parser.parse_args()

    text = np.frombuffer(arguments.text.read_bytes(), np.uint8)
    alphabet, ids = np.unique(text, return_inverse=True)
    train_ids, held_out = np.split(ids.astype("int32"), [len(ids) * 19 // 20])
    print(f"{len(train_ids)} bytes to train on, {len(held_out)} held out, {len(alphabet)} symbols")
    counts = np.bincount(train_ids, minlength=len(alphabet)) + 1
    frequencies = -np.log2(counts / counts.sum())[held_out].mean()
    print(f"held out, by byte frequencies: {frequencies:.4f} bits per byte")

    model = CharModel(len(alphabet))
    train(model, train_ids, arguments.steps)
    print(f"held out, by the network: {model.bits(held_out):.4f} bits per byte")

    # A checkpoint, and a new model that is filled from it.
    with tempfile.TemporaryDirectory() as folder:
        prefix = openrnn.train.Saver([*model.variables, model.saveable]).save(folder + "/model")
        with openrnn.Graph().as_default():
            restored = CharModel(len(alphabet), seed=2)
            openrnn.train.Saver([*restored.variables, restored.saveable]).restore(prefix)
    same = all(np.array_equal(old.numpy(), new.numpy())
               for old, new in zip(model.variables, restored.variables))
    print("restored:", "the same bits" if same else "OTHER BITS")
    start = int(np.searchsorted(alphabet, ord("\n")))
    sample = restored.sample(min(start, len(alphabet) - 1), 300, np.random.RandomState(4))
    print(bytes(alphabet[sample]).decode("utf-8", "replace"))


if __name__ == "__main__":
    main()
