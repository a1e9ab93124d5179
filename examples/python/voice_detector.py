"""Finds speech in noise with a model in the shape of Silero's voice detector, 32 ms at a time.

    python voice_detector.py [--decibels 10]

The model is an ONNX graph: a short-time Fourier transform as a convolution, an encoder of four
convolutions, an LSTM whose state goes out of one call and into the next, a decoder.
"""
import argparse
import pathlib
import time

import numpy as np

import openrnn
import peer
import sounds

MODEL = pathlib.Path(__file__).parents[1] / "models" / "voice_detector.onnx"
CHUNK, CONTEXT = 256, 32  # samples, at 8 kHz; the model sees the last ones again


def listen(program, signal):
    """How likely each chunk is speech, by a program that is called as OpenRNN's."""
    shape = (2, 1, program.inputs["state"][1][-1])
    state, heard = np.zeros(shape, "float32"), np.zeros((1, CONTEXT + CHUNK), "float32")
    found = []
    for at in range(0, len(signal) - CHUNK + 1, CHUNK):
        heard = np.concatenate([heard[:, -CONTEXT:], signal[None, at:at + CHUNK]], axis=1)
        outputs = program({"input": heard, "state": state})
        state = outputs["stateN"]
        found.append(float(np.asarray(outputs["output"])[0, 0]))
    return np.array(found)


def segments(likely, begin=0.5, end=0.35, patience=6):
    """Begins and ends in seconds: speech lasts until it is unlikely for some chunks."""
    found, start, last = [], None, 0
    for i, value in enumerate([*likely, *[0.0] * patience]):
        if value >= (begin if start is None else end):
            start, last = i if start is None else start, i
        elif start is not None and i - last >= patience:
            found.append((start * CHUNK / sounds.RATE, (last + 1) * CHUNK / sounds.RATE))
            start = None
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--decibels", type=float, default=10.0, help="speech above the noise")
    arguments = parser.parse_args()
    random = np.random.default_rng(11)
    clean, spoken = sounds.speech(30, random)
    signal = sounds.noisy(clean, arguments.decibels, random).astype("float32")

    program = openrnn.onnx.load(MODEL)
    begin = time.perf_counter()
    likely = listen(program, signal)
    seconds = time.perf_counter() - begin
    truth = spoken[:len(likely) * CHUNK].reshape(-1, CHUNK).mean(axis=1) > 0.5
    for start, end in segments(likely):
        print(f"speech from {start:.2f} to {end:.2f} s")
    print(f"chunks right: {np.mean((likely > 0.5) == truth):.4f} of {len(likely)}")
    print(f"{30 / seconds:.0f} times as fast as it is spoken")
    peer.difference(likely, lambda program: listen(program, signal), [MODEL])


if __name__ == "__main__":
    main()
