"""Non-uniform random networks and data for the tests; every number depends on the seed alone."""

from dataclasses import dataclass

import numpy as np

from model import numpy_layout


@dataclass
class Problem:
    """A network with its data; sequences [T, B, width], states [L * D, B, width]."""

    spec: numpy_layout.Spec
    params: np.ndarray
    x: np.ndarray
    h0: np.ndarray
    c0: np.ndarray
    lengths: np.ndarray
    dy: np.ndarray
    dh: np.ndarray
    dc: np.ndarray

    @property
    def states(self):
        """(h0, c0), or (h0, None) for the modes without a cell state."""
        return self.h0, self.c0 if self.spec.has_cell else None

    @property
    def upstream(self):
        return self.dy, self.dh, self.dc if self.spec.has_cell else None


def random_params(spec, rng):
    """Matrices of row sums about 1 at most, so that worst-case bounds do not grow from step to
    step; biases that differ from one another."""
    weights, biases = numpy_layout.regions(spec)
    parts = []
    for region in weights:
        width = max(region.shape[1], 1)
        parts.append(rng.uniform(-1, 1, region.size) * min(1 / np.sqrt(width), 2 / width))
    parts += [rng.uniform(-0.5, 0.5, region.size) for region in biases]
    return np.concatenate(parts)


def make_problem(spec, time, batch, dtype=np.float64, lengths=None, seed=0):
    """`lengths`: None, "full", "mixed" (0 to T, unsorted) or an array."""
    rng = np.random.default_rng([seed, time, batch, spec.num_units, spec.input_size])
    draw = lambda *shape: rng.uniform(-1, 1, shape).astype(dtype)
    width, rows = spec.state_width, spec.num_pseudo
    if isinstance(lengths, str):
        lengths = {
            "full": lambda: np.full(batch, time),
            "mixed": lambda: (rng.integers(1, time + 1) + 2 * np.arange(batch)) % (time + 1),
        }[lengths]()
    return Problem(
        spec,
        random_params(spec, rng).astype(dtype),
        draw(time, batch, spec.input_size),
        draw(rows, batch, width),
        draw(rows, batch, spec.num_units),
        None if lengths is None else np.asarray(lengths, np.int32),
        draw(time, batch, spec.num_dirs * width),
        draw(rows, batch, width),
        draw(rows, batch, spec.num_units),
    )
