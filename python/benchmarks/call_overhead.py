"""What a call from Python costs above the same call from C++.

Prints, for small layers, the seconds of one call by a loop in Python on a NumPy array, of one by a
loop in C++ on a tensor, and the difference. Each is the best of several rounds.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np
import openrnn


def best(rounds: int, measure: Callable[[], float]) -> float:
    """The smallest of several measurements."""
    return min(measure() for _ in range(rounds))


def python_seconds(call: Callable[[], object], calls: int) -> float:
    """Seconds of one call in a Python loop."""
    begin = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - begin) / calls


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    openrnn.set_num_threads(1)
    print("layer                      python   C++      above, microseconds a call")
    for name in ("CudnnLSTM", "CudnnGRU"):
        for training in (False, True):
            layer = getattr(openrnn.cudnn_rnn, name)(1, 64)
            x = np.ones((1, 1, 64), np.float32)
            layer(x)

            def call(layer: object = layer, x: object = x, training: bool = training) -> object:
                return layer(x, None, training)  # type: ignore[operator]

            def core(layer: openrnn.layers.Layer = layer, training: bool = training) -> float:
                return openrnn._core.rnn_seconds_per_call(layer, x, options.calls, training)

            outside = best(options.rounds, lambda: python_seconds(call, options.calls))
            inside = best(options.rounds, core)
            label = f"{name} U64 B1 T1 {'training' if training else 'inference'}"
            above = (outside - inside) * 1e6
            print(f"{label:34s} {outside * 1e6:6.2f} {inside * 1e6:6.2f} {above:6.2f}")


if __name__ == "__main__":
    main()
