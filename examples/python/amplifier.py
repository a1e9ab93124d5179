"""Plays a guitar through an amplifier that an LSTM has learnt, 64 samples at a time.

    python amplifier.py

The model is a .nam file, LSTM and dense layer in one; what PyTorch, which trained it, computes
with it lies beside it.
"""
import pathlib
import time

import numpy as np

import openrnn
import sounds

MODEL = pathlib.Path(__file__).parents[1] / "models" / "amplifier.nam"
BLOCK, RATE = 64, 24000  # samples, and how many a second


def load():
    """The whole model; each call goes on from the states of the one before."""
    loaded = openrnn.load(MODEL)
    for layer in loaded.layers:
        if layer["kind"] == "recurrent":
            layer["options"]["stateful"] = True
    return loaded.model


def play(model, signal):
    """The signal behind the amplifier, from the states that the file has."""
    model.reset_states()
    blocks = [signal[at:at + BLOCK] for at in range(0, len(signal), BLOCK)]
    return np.concatenate([model.predict(block.reshape(1, -1, 1)).ravel() for block in blocks])


def riff(random):
    """Two seconds of chords: three strings, one a little after the other."""
    chord = np.zeros(2 * RATE)
    for beat, root in enumerate((110.0, 146.8, 164.8, 110.0)):
        for string, ratio in enumerate((1.0, 1.5, 2.0)):
            at = beat * RATE // 2 + string * RATE // 50
            chord[at:] += 0.4 * sounds.pluck(root * ratio, (len(chord) - at) / RATE, RATE, random)
    return chord.astype("float32")


def main():
    model = load()
    given, wanted = np.load(MODEL.with_name("amplifier_by_torch.npy"))
    difference = np.abs(play(model, given) - wanted).max()
    print(f"largest difference from PyTorch: {difference:.1e}")

    signal = riff(np.random.default_rng(13))
    begin = time.perf_counter()
    found = play(model, signal)
    seconds = time.perf_counter() - begin
    circuit = sounds.tube(signal, RATE)
    error = 10 * np.log10(np.sum((found - circuit) ** 2) / np.sum(circuit ** 2))
    print(f"error to signal: {error:.2f} dB, of the circuit that it learnt from")
    model.reset_states()
    whole = model.predict(signal.reshape(1, -1, 1)).ravel()
    print("blocks of 64:", "the same bits" if np.array_equal(found, whole) else "OTHER BITS")
    print(f"{len(signal) / RATE / seconds:.0f} times as fast as it is played")


if __name__ == "__main__":
    main()
