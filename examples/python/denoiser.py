"""Takes noise away from speech with a model in the shape of DTLN, 4 ms at a time.

    python denoiser.py [--decibels 3]

Two ONNX graphs of two LSTMs each, whose states go out of one call and into the next: the first
masks the spectrum of a frame, the second what a convolution has learnt to see in the result.
"""
import argparse
import pathlib
import time

import numpy as np

import openrnn
import peer
import sounds

MODELS = [pathlib.Path(__file__).parents[1] / "models" / f"denoiser_{stage}.onnx" for stage in (1, 2)]
FRAME, SHIFT = 128, 32  # samples, at 8 kHz


def denoise(stages, signal):
    """The signal, a frame behind, from two programs that are called as OpenRNN's."""
    states = [np.zeros(stage.inputs["states_in"][1], "float32") for stage in stages]
    heard, out, found = np.zeros(FRAME, "float32"), np.zeros(FRAME, "float32"), []
    for at in range(0, len(signal) - SHIFT + 1, SHIFT):
        heard = np.append(heard[SHIFT:], signal[at:at + SHIFT])
        spectrum = np.fft.rfft(heard)
        magnitude = np.abs(spectrum).astype("float32")[None, None]
        first = stages[0]({"magnitude": magnitude, "states_in": states[0]})
        masked = np.fft.irfft(spectrum * np.asarray(first["mask"])[0, 0]).astype("float32")
        second = stages[1]({"frame": masked[None, None], "states_in": states[1]})
        states = [first["states_out"], second["states_out"]]
        out = np.append(out[SHIFT:], np.zeros(SHIFT, "float32")) + np.asarray(second["clean"])[0, 0]
        found.append(out[:SHIFT])
    return np.concatenate(found)


def noise_below(clean, signal):
    """How far what is not the clean signal lies below it, in decibels."""
    return 10 * np.log10(np.sum(clean ** 2) / np.sum((signal - clean) ** 2))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--decibels", type=float, default=3.0, help="speech above the noise")
    arguments = parser.parse_args()
    random = np.random.default_rng(12)
    clean, _ = sounds.speech(10, random)
    signal = sounds.noisy(clean, arguments.decibels, random).astype("float32")

    stages = [openrnn.onnx.load(path) for path in MODELS]
    begin = time.perf_counter()
    found = denoise(stages, signal)
    seconds = time.perf_counter() - begin
    late = FRAME - SHIFT
    before, after = (noise_below(clean[:-late], x) for x in (signal[:-late], found[late:]))
    print(f"noise below speech: {before:.2f} dB before, {after:.2f} dB behind")
    print(f"noise removed: {after - before:.2f} dB")
    print(f"{10 / seconds:.0f} times as fast as it is spoken, {FRAME * 1000 // sounds.RATE} ms late")
    peer.difference(found, lambda *stages: denoise(stages, signal), MODELS)


if __name__ == "__main__":
    main()
