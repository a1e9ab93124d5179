"""Sequence to sequence: one LSTM reads a word, another spells it backwards, in one checkpoint.

The words are those of a text, of 3 to 8 letters; every tenth is held out. With --restore nothing is
trained: a new process gives the same bits.
"""
import argparse
import hashlib
import pathlib

import numpy as np

import openrnn
from openrnn import cudnn_rnn

# Symbol 0 begins and ends a spelling; 1 to 26 are letters. A label of -1 counts for nothing.
LONGEST, SYMBOLS, END, IGNORED = 8, 27, 0, -1


def words_of(text):
    """Different words, lower-case, in alphabetical order: all letters between two blanks."""
    words = {word for word in text.lower().split()
             if word.isascii() and word.isalpha() and 3 <= len(word) <= LONGEST}
    return sorted(words)


def columns(words, first, steps, fill):
    """Symbols of words as columns [T, B]: those of `first`, the letters, then `fill`."""
    symbols = np.full((steps, len(words)), fill, "int32")
    for column, word in enumerate(words):
        spelling = [*first, *(ord(letter) - ord("a") + 1 for letter in word)]
        symbols[:len(spelling), column] = spelling
    return symbols


class Speller:
    """Its variables lie under embedding/, encoder/, decoder/ and dense/."""

    def __init__(self):
        self.embedding = openrnn.layers.Embedding(SYMBOLS, 32, seed=1)
        self.encoder = cudnn_rnn.CudnnLSTM(1, 128, seed=2, name="encoder")
        self.decoder = cudnn_rnn.CudnnLSTM(1, 128, seed=3, name="decoder")
        self.dense = openrnn.layers.Dense(SYMBOLS, seed=4)

    def read(self, words, training):
        """What the encoder remembers of the words, (h, c)."""
        letters = self.embedding(columns(words, [], LONGEST, END))
        lengths = [len(word) for word in words]
        return self.encoder(letters, training=training, sequence_lengths=lengths)[1]

    def write(self, symbols, state, training):
        """Logits [T, B, symbols] of what follows the symbols [T, B], and the state after them."""
        output, state = self.decoder(self.embedding(symbols), state, training=training)
        return self.dense(output), state

    def loss(self, words):
        """Teacher forcing: the decoder is told the right spelling so far, not its own."""
        targets = [word[::-1] for word in words]
        labels = columns(targets, [], LONGEST + 1, IGNORED)
        labels[[len(word) for word in words], np.arange(len(words))] = END
        state = self.read(words, training=True)
        logits, _ = self.write(columns(targets, [END], LONGEST + 1, END), state, training=True)
        return openrnn.losses.sparse_softmax_cross_entropy(labels, logits)

    def spell(self, words):
        """Greedy decoding: the most probable symbol is the next input. Also gives all logits."""
        state = self.read(words, training=False)
        symbols, every = np.full((1, len(words)), END, "int32"), []
        written = [""] * len(words)
        ended = np.zeros(len(words), bool)
        for _ in range(LONGEST):
            logits, state = self.write(symbols, state, training=False)
            every.append(logits.numpy())
            symbols = every[-1].argmax(axis=-1).astype("int32")
            ended |= symbols[0] == END
            written = [word if end else word + chr(ord("a") + symbol - 1)
                       for word, end, symbol in zip(written, ended, symbols[0])]
        return written, np.concatenate(every)


def train(speller, words, steps, batch=128):
    random = np.random.RandomState(5)
    optimizer = openrnn.train.AdamOptimizer(3e-3)
    for step in range(1, steps + 1):
        with openrnn.GradientTape() as tape:
            loss = speller.loss([words[i] for i in random.randint(len(words), size=batch)])
        variables = openrnn.trainable_variables()
        gradients, _ = openrnn.clip_by_global_norm(tape.gradient(loss, variables), 1.0)
        optimizer.apply_gradients(zip(gradients, variables))
        if step % 100 == 0:
            print(f"step {step}: loss {float(loss):.4f}")


def report(speller, held_out):
    """Prints some words and how many are right; gives the logits."""
    written, logits = speller.spell(held_out)
    for word, spelt in list(zip(held_out, written))[::len(held_out) // 5]:
        print(f"{word} -> {spelt}")
    right = sum(spelt == word[::-1] for word, spelt in zip(held_out, written))
    print(f"held-out words right: {right} of {len(held_out)}")
    print(f"logits: {hashlib.sha256(logits.tobytes()).hexdigest()[:16]}")
    return logits


def restore_and_report(prefix, held_out):
    """New objects in a graph of their own, so that the names are those of the checkpoint."""
    with openrnn.Graph().as_default():
        speller = Speller()
        speller.spell(["first"])  # the first call makes the variables
        openrnn.train.Saver().restore(prefix)
        saveables = openrnn.get_collection(openrnn.GraphKeys.SAVEABLE_OBJECTS)
        print(f"restored {len(saveables)} saveables")
        return report(speller, held_out)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("text", type=pathlib.Path)
    parser.add_argument("prefix", help="of the checkpoint")
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--restore", action="store_true", help="train nothing")
    arguments = parser.parse_args()

    every = words_of(arguments.text.read_text(encoding="utf-8"))
    held_out = every[9::10]
    words = [word for i, word in enumerate(every) if i % 10 != 9]
    if len(held_out) < 5:
        parser.error("the text has too few words")
    print(f"{len(words)} words to train on, {len(held_out)} held out")
    if arguments.restore:
        restore_and_report(arguments.prefix, held_out)
        return
    speller = Speller()
    train(speller, words, arguments.steps)
    logits = report(speller, held_out)
    openrnn.train.Saver().save(arguments.prefix)  # two Saveables, and the variables
    same = np.array_equal(restore_and_report(arguments.prefix, held_out), logits)
    print("the same bits" if same else "OTHER BITS")


if __name__ == "__main__":
    main()
