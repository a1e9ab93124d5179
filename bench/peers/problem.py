"""The inputs that all sides of a line are given, as files."""

import shutil
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from peers.cells import CELLS
from peers.lines import GATES, Line, Network

SEED = 7
SYMBOLS, EMBEDDING = 96, 64  # of the language model
STATES = {"lstm": ("h0", "c0"), "gru": ("h0",), "rnn_tanh": ("h0",)}


def weights_size(network: Network) -> int:
    """Elements of the matrices, which come before all biases."""
    rows = GATES[network.cell] * network.units
    widths = [network.units] + [network.directions * network.units] * (network.layers - 1)
    return sum(network.directions * rows * (width + network.units) for width in widths)


def params_size(network: Network) -> int:
    """Elements of the flat buffer: each layer and direction has two biases."""
    rows = GATES[network.cell] * network.units
    return weights_size(network) + network.layers * network.directions * 2 * rows


def half_lengths(network: Network, random: np.random.Generator) -> NDArray[np.int32]:
    """At random from 1 to T, of mean T / 2 as nearly as whole numbers allow; one row is full."""
    lengths = random.integers(1, network.time + 1, network.batch).astype(np.int32)
    lengths[0] = network.time
    wanted = network.batch * network.time // 2
    while (missing := wanted - int(lengths.sum())) != 0:
        row = int(random.integers(1, network.batch))
        change = int(np.clip(missing, 1 - lengths[row], network.time - lengths[row]))
        lengths[row] += change
    return lengths


def arrays_of(line: Line) -> dict[str, NDArray[np.generic]]:
    """params, x [T, B, I], r [T, B, D*U] (what the loss weighs y with); where the line has them
    lengths, and the states before the first step, h0 and of an LSTM c0 [L*D, B, U]."""
    network, random = line.network, np.random.default_rng(SEED)

    def uniform(shape: tuple[int, ...], scale: float) -> NDArray[np.float32]:
        return (random.random(shape, np.float32) * 2 - 1) * np.float32(scale)

    vectors = CELLS[line.option].vectors * network.units if line.option else 0
    x_shape = (network.time, network.batch, network.units)
    y_shape = (*x_shape[:2], network.directions * network.units)
    found: dict[str, NDArray[np.generic]] = {
        "params": uniform((params_size(network) + vectors,), line.weights or network.units**-0.5),
        "x": uniform(x_shape, 1.0),
        "r": uniform(y_shape, 1.0),
    }
    if line.weights:
        found["params"][weights_size(network) :] = 1
    if line.padded:
        lengths = half_lengths(network, random)
        past = np.arange(network.time)[:, None] >= lengths
        found["r"][past] = 0  # so that those who compute the padding have the same gradients
        found["lengths"] = lengths
    if line.carries_state:
        shape = (network.layers * network.directions, network.batch, network.units)
        found |= {name: uniform(shape, 1.0) for name in STATES[network.cell]}
    return found


def language_model_arrays(line: Line) -> dict[str, NDArray[np.generic]]:
    """Parameters of embedding, LSTM and dense layer, and ids [steps, T + 1, B]."""
    network, random = line.network, np.random.default_rng(SEED)

    def uniform(*shape: int) -> NDArray[np.float32]:
        return (random.random(shape, np.float32) * 2 - 1) * np.float32(network.units**-0.5)

    rows = GATES[network.cell] * network.units
    # Skewed as letters are, so that there is something to learn.
    chances = 1.0 / np.arange(1, SYMBOLS + 1)
    ids = random.choice(SYMBOLS, (16, network.time + 1, network.batch), p=chances / chances.sum())
    return {
        "embedding": uniform(SYMBOLS, EMBEDDING),
        "params": uniform(rows * (EMBEDDING + network.units + 2)),
        "dense": uniform(network.units, SYMBOLS),
        "bias": np.zeros(SYMBOLS, np.float32),
        "ids": ids.astype(np.int32),
    }


def write(line: Line, folder: Path) -> None:
    """Makes the folder anew with the line's inputs."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    arrays = language_model_arrays(line) if line.work == "model" else arrays_of(line)
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
