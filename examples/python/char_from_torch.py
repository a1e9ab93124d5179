"""Writes weather reports with a character model that PyTorch has saved, one character at a time.

    python char_from_torch.py [--days 8] [--seed 1]

PyTorch is not needed: OpenRNN reads the file. What PyTorch computes with it lies beside it.
"""
import argparse
import pathlib

import numpy as np

import openrnn

MODEL = pathlib.Path(__file__).parents[1] / "models" / "characters.pt"


class Characters:
    """nn.Embedding, nn.LSTM and nn.Linear under the names that they have in the state_dict."""

    def __init__(self, path):
        loaded = openrnn.load(path)
        self.alphabet, self.said = loaded.metadata["alphabet"], loaded.metadata["said"]
        self.embedding = loaded.tensor("model.embed.weight")
        self.kernel, self.bias = loaded.tensor("model.head.weight").T, loaded.tensor("model.head.bias")
        self.session = openrnn.InferenceSession(loaded.packed())
        self.session.prepare(max_batch=1, max_time=1)

    def ids(self, text):
        return [self.alphabet.index(character) for character in text]

    def step(self, character, state=None):
        """Logits of what follows one character, and the state after it."""
        x = self.embedding[self.ids(character)][None]  # [T, B, I], all but I of size 1
        output, state = self.session.run(x, state)
        return output[0, 0] @ self.kernel + self.bias, state

    def write(self, begin, lines, random, sharpness=1.5):
        """Goes on from `begin`, each character sampled from what the model thinks likely."""
        state = None
        for character in begin:
            logits, state = self.step(character, state)
        text = begin
        while text.count("\n") < lines:
            chances = np.exp(sharpness * (logits - logits.max()).astype("float64"))
            text += self.alphabet[random.choice(len(chances), p=chances / chances.sum())]
            logits, state = self.step(text[-1], state)
        return text


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--days", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    model = Characters(MODEL)

    wanted, state, found = np.load(MODEL.with_name("characters_by_torch.npy")), None, []
    for character in model.said:
        logits, state = model.step(character, state)
        found.append(logits)
    print(f"largest difference from PyTorch: {np.abs(found - wanted).max():.1e}")
    print(model.write("Monday: ", arguments.days, np.random.default_rng(arguments.seed)), end="")


if __name__ == "__main__":
    main()
