"""Handwritten digits as sequences: a bidirectional GRU reads an 8 x 8 image row by row.

The digits are those that scikit-learn ships; the last fifth of them is held out. The network is
made of symbolic tensors: an Input, layers called on it, and a Model of what they recorded.
"""
import argparse

import numpy as np
from sklearn.datasets import load_digits

import openrnn
from openrnn import cudnn_rnn


def make_model():
    """Logits [B, 10] of images [T, B, I]: step t of a batch is row t of every image."""
    images = openrnn.Input(batch_shape=(8, None, 8))
    gru = cudnn_rnn.CudnnGRU(2, 64, direction="bidirectional", dropout=0.5, seed=1)
    _, (h,) = gru(images)
    # Each direction's last state has seen the whole image. Those of the upper layer, the last two
    # of [L * D, B, U], become [B, D * U].
    features = openrnn.reshape(openrnn.transpose_leading(h[2:]), (-1, 2 * 64))
    return openrnn.Model(images, openrnn.layers.Dense(10, seed=2)(features))


def train(model, images, labels, epochs, batch=32):
    """One pass over all images an epoch, in a new order each time."""
    optimizer = openrnn.train.AdamOptimizer()
    steps = epochs * (len(labels) // batch)
    shuffle, step = np.random.RandomState(3), 0
    for epoch in range(epochs):
        order = shuffle.permutation(len(labels))
        losses = []
        for start in range(0, len(order) - batch + 1, batch):
            rows = order[start:start + batch]
            with openrnn.GradientTape() as tape:
                logits = model(images[:, rows], training=True)
                loss = openrnn.losses.sparse_softmax_cross_entropy(labels[rows], logits)
            optimizer.learning_rate = 1.5e-2 * (1 - step / steps) ** 2
            gradients = tape.gradient(loss, model.trainable_weights)
            optimizer.apply_gradients(zip(gradients, model.trainable_weights))
            losses.append(float(loss))
            step += 1
        print(f"epoch {epoch + 1}: loss {np.mean(losses):.4f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=40)
    arguments = parser.parse_args()

    pixels, labels = load_digits(return_X_y=True)
    pixels = (pixels / 16).astype("float32")
    images = pixels.reshape(-1, 8, 8).transpose(1, 0, 2)  # [T, N, I]
    split = len(labels) - len(labels) // 5
    print(f"digits: {split} to train on, {len(labels) - split} held out")
    means = np.stack([pixels[:split][labels[:split] == digit].mean(axis=0) for digit in range(10)])
    nearest = np.square(pixels[split:, None] - means).sum(axis=-1).argmin(axis=-1)
    print(f"accuracy of the nearest mean image: {np.mean(nearest == labels[split:]):.4f}")

    model = make_model()
    print(f"a network of {model.count_params()} parameters in {len(model.layers)} layers")
    train(model, images[:, :split], labels[:split], arguments.epochs)
    guesses = model.predict(images[:, split:]).argmax(axis=-1)
    print(f"accuracy of the network: {np.mean(guesses == labels[split:]):.4f}")


if __name__ == "__main__":
    main()
