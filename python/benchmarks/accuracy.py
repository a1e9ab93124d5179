"""What each arithmetic costs in accuracy, on two trained models, as the table of docs/numerics.md.

text: the demo's language model (make demo trains it; its bf16 twin, of the same flags, is trained
beside it on the first call), in bits per byte of the held-out verses. digits: a bidirectional GRU
on scikit-learn's digits, loss and accuracy of the held-out fifth.
"""

import argparse
import pathlib
import re
import subprocess
from collections.abc import Callable, Iterator

import numpy as np
import openrnn
from openrnn.cudnn_rnn import CudnnGRU

ROOT = pathlib.Path(__file__).resolve().parents[2]
# What a trained model is run as: its name and the arguments.
CHOICES: dict[str, dict[str, str]] = {
    "float32": {"math": "float32"},
    "bf16": {"math": "bf16"},
    "bf16x3": {"math": "bf16x3"},
    "weights float16": {"weights_dtype": "float16"},
    "weights bfloat16": {"weights_dtype": "bfloat16"},
    "weights int8": {"weights_dtype": "int8"},
}
TRAINED = ["float32", "bf16"]


def demo_flags() -> list[str]:
    """The network and the training of scripts/demo."""
    script = (ROOT / "scripts" / "demo").read_text()
    found = [re.search(rf"^{name}=\((.*)\)$", script, re.M) for name in ("model", "fit")]
    return [word for match in found if match for word in match.group(1).split()]


def text_rows(tool: str, demo: pathlib.Path) -> Iterator[tuple[str, str, str]]:
    """(trained with, run as, bits per byte)."""
    train, valid = demo / "train.txt", demo / "valid.txt"
    for math in TRAINED:
        run = demo / ("run" if math == "float32" else f"run-{math}")
        subprocess.run(
            [tool, "train", "--task", "text", "--input", train, "--valid", valid, "--out", run,
             "--resume", "--math", math, *demo_flags()],
            check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        for name, arguments in CHOICES.items():
            flags = [f"--{key.replace('_', '-')}={value}" for key, value in arguments.items()]
            shown = subprocess.run(
                [tool, "eval", run, "--input", valid, "--context", train, *flags],
                check=True, capture_output=True, text=True,
            ).stdout  # fmt: skip
            yield math, name, shown.split()[1]


def digits() -> tuple[np.ndarray, np.ndarray]:
    """Images as sequences of 8 rows [T, N, I], and labels [N]."""
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    images = (pixels / 16).astype("float32").reshape(-1, 8, 8).transpose(1, 0, 2)
    return images, labels.astype("int32")


def train_digits(math: str, images: np.ndarray, labels: np.ndarray, epochs: int) -> tuple[
    CudnnGRU, Callable[..., openrnn.Tensor]
]:
    """The trained layer, and the logits [B, 10] of it, or of one like it, on images."""
    gru = CudnnGRU(2, 64, direction="bidirectional", dropout=0.5, seed=1, math=math)
    dense = openrnn.layers.Dense(10, seed=2)

    def logits(x: np.ndarray, layer: CudnnGRU, training: bool = False) -> openrnn.Tensor:
        _, (h,) = layer(x, training=training)
        return dense(openrnn.reshape(openrnn.transpose_leading(h[2:]), (-1, 128)))

    optimizer, shuffle, batch = openrnn.train.AdamOptimizer(), np.random.RandomState(3), 32
    steps, step = epochs * (len(labels) // batch), 0
    for _ in range(epochs):
        order = shuffle.permutation(len(labels))
        for start in range(0, len(order) - batch + 1, batch):
            rows = order[start : start + batch]
            with openrnn.GradientTape() as tape:
                out = logits(images[:, rows], gru, training=True)
                loss = openrnn.losses.sparse_softmax_cross_entropy(labels[rows], out)
            optimizer.learning_rate = 1.5e-2 * (1 - step / steps) ** 2
            weights = gru.trainable_weights + dense.trainable_weights
            optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
            step += 1
    return gru, logits


def digits_rows(epochs: int) -> Iterator[tuple[str, str, str]]:
    """(trained with, run as, loss and accuracy)."""
    images, labels = digits()
    split = len(labels) - len(labels) // 5
    held, wanted = images[:, split:], labels[split:]
    for math in TRAINED:
        openrnn.reset_default_graph()
        gru, logits = train_digits(math, images[:, :split], labels[:split], epochs)
        for name, arguments in CHOICES.items():
            out = logits(held, gru.with_arithmetic(**arguments))
            loss = float(openrnn.losses.sparse_softmax_cross_entropy(wanted, out))
            accuracy = float(np.mean(out.numpy().argmax(axis=-1) == wanted))
            yield math, name, f"{loss:.4f}, {accuracy:.4f}"


def print_table(model: str, rows: Iterator[tuple[str, str, str]]) -> None:
    """One line for each training, its choices side by side."""
    for trained in TRAINED:
        figures = [next(rows)[2] for _ in CHOICES]
        print(f"| {model} | {trained} | {' | '.join(figures)} |", flush=True)


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tool", default=str(ROOT / "build" / "release" / "openrnn"))
    parser.add_argument("--demo", type=pathlib.Path, default=ROOT / "demo")
    parser.add_argument("--only", choices=["text", "digits"])
    parser.add_argument("--epochs", type=int, default=40, help="of the digits")
    given = parser.parse_args()
    kinds = [f"{name}: {openrnn.math_kind(**arguments)}" for name, arguments in CHOICES.items()]
    print(f"computed here as {', '.join(kinds)}\n")
    print(f"| model | trained with | {' | '.join(CHOICES)} |\n|{'---|' * (len(CHOICES) + 2)}")
    if given.only != "digits":
        print_table("text", text_rows(given.tool, given.demo))
    if given.only != "text":
        print_table("digits", digits_rows(given.epochs))


if __name__ == "__main__":
    main()
