"""Networks by the Python package have the bits written down in tests/golden, wherever it was compiled:
needs the installed package and NumPy alone, so that a wheel can be tried on a bare machine.

package_bits.py [FILE]            compares with FILE (tests/golden/package_hashes.txt), and says the version
package_bits.py FILE --regenerate writes FILE
"""

import hashlib
import importlib.metadata
import pathlib
import sys

import numpy as np
import openrnn

FILE = pathlib.Path(__file__).parent / "../../golden/package_hashes.txt"
MODES = {"lstm": "CudnnLSTM", "gru": "CudnnGRU", "rnn_tanh": "CudnnRNNTanh"}
TIME, BATCH, INPUT, UNITS, LAYERS = 5, 7, 17, 33, 2


def numbers(dtype, seed, *shape):
    """Multiples of 2^-9 in [-1, 1), from no generator that could differ between versions of NumPy."""
    size = int(np.prod(shape))
    mixed = (np.arange(1, size + 1, dtype=np.uint64) + np.uint64(seed << 20)) * np.uint64(
        0x9E3779B97F4A7C15
    )
    return ((mixed >> np.uint64(54)).astype(float) / 512 - 1).reshape(shape).astype(dtype)


def bits(mode, dtype):
    """One hash of a forward and a backward pass: outputs, last states, gradients of data and weights."""
    model = getattr(openrnn.cudnn_rnn.ops, MODES[mode])(LAYERS, UNITS, INPUT, dtype=dtype)
    params = openrnn.Variable(numbers(dtype, 1, model.params_size()) / 4, name=f"{mode}_{dtype}")
    x = openrnn.Variable(numbers(dtype, 2, TIME, BATCH, INPUT), name=f"x_{mode}_{dtype}")
    state = numbers(dtype, 3, LAYERS, BATCH, UNITS)
    states = (state, state) if mode == "lstm" else (state,)
    with openrnn.GradientTape() as tape:
        results = model(x, *states, params)
        loss = openrnn.reduce_sum(openrnn.square(results[0]))
    arrays = [value.numpy() for value in (*results, *tape.gradient(loss, [x, params]))]
    total = hashlib.sha256()
    for array in arrays:
        total.update(f"{array.dtype.str} {array.shape} ".encode() + np.ascontiguousarray(array).tobytes())
    return total.hexdigest()[:32]


def computed():
    """The lines of the file."""
    return [f"{bits(mode, dtype)} {mode} {dtype}"
            for mode in MODES for dtype in ("float32", "float64", "float16")]


def main(file=FILE, flag=None):
    found = computed()
    if flag == "--regenerate":
        pathlib.Path(file).write_text("\n".join(found) + "\n")
        return 0
    kept = pathlib.Path(file).read_text().splitlines()
    different = sorted(set(found) ^ set(kept))
    print(*different, sep="\n", end="\n" if different else "")
    print(f"openrnn {importlib.metadata.version('openrnn')}: {len(found)} hashes, "
          f"{'others than kept' if different else 'those kept'}")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
