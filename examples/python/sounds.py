"""Sounds for the examples: syllables like speech, noise, a plucked string. Made by NumPy alone."""
import numpy as np

RATE = 8000  # of speech and noise, in Hz


def syllable(seconds, pitch, random):
    """A vowel: harmonics of a falling pitch under three formants; half of them begin with a hiss."""
    time = np.arange(int(seconds * RATE)) / RATE
    phase = 2 * np.pi * np.cumsum(pitch * (1 - 0.3 * time)) / RATE
    order = np.arange(1, int(3600 / pitch))[:, None]
    formants = random.uniform((300, 900, 2400), (800, 2200, 3200))
    resonance = 1 / (1 + ((order * pitch - formants) / (90, 120, 200)) ** 2)
    loudness = resonance @ [1.0, 0.7, 0.4] + 0.02
    voice = loudness @ np.sin(order * phase) * np.sin(np.pi * time / seconds) ** 0.5
    if random.random() < 0.5:
        hiss = np.diff(random.standard_normal(len(time) // 4 + 1))
        voice[:len(hiss)] += 0.4 * hiss * np.hanning(len(hiss))
    return voice / np.abs(voice).max()


def speech(seconds, random):
    """Phrases of syllables and pauses between them; and where the phrases are, both [seconds * RATE]."""
    signal, spoken = np.zeros(int(seconds * RATE)), np.zeros(int(seconds * RATE), bool)
    at = int(random.uniform(0.3, 1.0) * RATE)
    while at < len(signal):
        start, pitch = at, random.uniform(90, 220)
        for _ in range(random.integers(3, 9)):
            voice = syllable(random.uniform(0.1, 0.28), pitch * random.uniform(0.85, 1.15), random)
            room = signal[at:at + len(voice)]
            room += random.uniform(0.3, 1.0) * voice[:len(room)]
            at += len(voice)
        spoken[start:at] = True
        at += int(random.uniform(0.4, 1.4) * RATE)
    return 0.3 * signal, spoken


def noise(seconds, random):
    """Between white and brown, with some hum of the mains; of power 1."""
    size = int(seconds * RATE)
    frequency = np.fft.rfftfreq(size, 1 / RATE)
    shape = np.maximum(frequency, 60.0) ** -random.uniform(0.0, 1.0)
    rush = np.fft.irfft(np.fft.rfft(random.standard_normal(size)) * shape, size)
    hum = np.sin(2 * np.pi * random.integers(1, 4) * 50 * np.arange(size) / RATE)
    both = rush / rush.std() + random.uniform(0.0, 0.5) * hum
    return both / both.std()


def noisy(clean, decibels, random):
    """With noise whose power is so far below that of the signal."""
    return clean + noise(len(clean) / RATE, random) * clean.std() * 10 ** (-decibels / 20)


def pluck(frequency, seconds, rate, random):
    """A string of Karplus and Strong: a burst of noise goes round a delay and loses its treble."""
    period = int(rate / frequency)
    line = random.uniform(-1, 1, period)
    rounds = [line]
    for _ in range(int(seconds * rate) // period):
        line = 0.498 * (line + np.roll(line, 1))
        rounds.append(line)
    return np.concatenate(rounds)[:int(seconds * rate)]


def tube(signal, rate):
    """What an amplifier makes of a guitar: a stage that clips unevenly, whose bias follows its load."""
    out, low, bias, speaker = np.zeros(len(signal)), 0.0, 0.0, 0.0
    slow, fast, treble = (1 - np.exp(-2 * np.pi * hertz / rate) for hertz in (80, 6, 3500))
    for i, x in enumerate(signal):
        low += slow * (x - low)  # what is left of x has no bass
        stage = np.tanh(6 * (x - low) - bias + 0.2) - np.tanh(0.2)
        bias += fast * (1.5 * abs(stage) - bias)
        speaker += treble * (stage - speaker)
        out[i] = speaker
    return 0.7 * out
