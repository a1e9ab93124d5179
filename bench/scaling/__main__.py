"""Tables of docs/scaling.md.

    python -m bench.scaling                     # predictions for 1 to 1024 processes
    python -m bench.scaling --check LIBRARY     # measures here with one and two processes, and compares;
                                                # LIBRARY: build/release/libopenrnn_mpi.so
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

from bench.scaling import model

COUNTS = (2, 4, 8, 16, 64, 256, 1024)
# Networks of bench-peers at 64 rows a process, which has a machine with its network for itself: 32
# cores that together compute 2 TFLOP/s of float32, from 6 B T P operations of P parameters.
SPEED, MEMORY = 2e12, 100e9
SHAPES = {"LSTM L4 U1024 B64 T40": (4, 1024, 40), "LSTM L2 U512 B64 T100": (2, 512, 100),
          "LSTM L4 U128 B64 T20": (4, 128, 20)}  # fmt: skip
# Layers, units, rows and steps of what is measured here.
CHECKED = ((2, 512, 64, 25), (2, 512, 64, 100), (2, 128, 64, 25), (1, 64, 32, 25))


def works():
    """The networks, as parts of a step."""
    found = []
    for name, (layers, units, steps) in SHAPES.items():
        parameters = layers * (8 * units * units + 8 * units)
        found.append(model.Work(name, 6 * 64 * steps * parameters / SPEED, 4 * parameters, MEMORY))
    return found


def tables():
    """Efficiency by processes, networks and reductions."""
    for work in works():
        print(f"\n### {work.name}: {work.compute * 1e3:.0f} ms a step, "
              f"{work.gradients / 1e6:.1f} MB of gradients\n")  # fmt: skip
        print("| network | sums | " + " | ".join(map(str, COUNTS)) + " | 50 % at |")
        print("|---" * (len(COUNTS) + 3) + "|")
        for network in model.NETWORKS:
            for label, options in (
                ("exact", {}), ("exact, bfloat16", {"element": 2}), ("fast", {"exact": False}),
                ("exact, overlap", {"layers": SHAPES[work.name][0]}),
            ):  # fmt: skip
                row = [f"{100 * model.efficiency(work, n, network, **options):.0f}" for n in COUNTS]
                print(f"| {network.name} | {label} | " + " | ".join(row)
                      + f" | {model.last_that_pays(work, network, **options)} |")  # fmt: skip


def measured(processes, library, folder, **options):
    """What the worker says."""
    out = os.path.join(folder, f"of{len(os.listdir(folder))}")
    os.mkdir(out)
    os.symlink(os.path.join(folder, "text"), os.path.join(out, "text"))
    command = [sys.executable, "-m", "bench.scaling.worker",
               json.dumps({**options, "folder": out})]  # fmt: skip
    if processes > 1:
        command = ["mpirun", "-n", str(processes), *command]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={
        **os.environ, "OPENRNN_MPI_LIBRARY": library, "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})  # fmt: skip
    if done.returncode != 0:
        sys.exit(done.stdout + done.stderr)
    return json.loads(done.stdout)


def check(library, steps):
    """One and two processes here, beside what the model says of two."""
    print("| network | 1 process, 2 threads | 2 processes apart, half of the rows each | 2 together | "
          "predicted | sums | waiting | speed of 2 to 1 | with overlap | sums, beside backward |\n"
          "|---|---|---|---|---|---|---|---|---|---|")  # fmt: skip
    for layers, units, batch, length in CHECKED:
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "text"), "w", encoding="utf-8") as file:
                for line in range(20000):
                    print(f"line {line * line % 9973} of a text without a meaning", file=file)
            sizes = {"layers": layers, "units": units, "seq_len": length, "steps": steps}
            one = measured(1, library, folder, threads=2, batch=batch, micro_batches=2, **sizes)
            half = measured(2, library, folder, threads=1, batch=batch // 2, apart=True, **sizes)
            both = {"threads": 1, "batch": batch, "micro_batches": 2, **sizes}
            two = measured(2, library, folder, **both)
            over = measured(2, library, folder, overlap=True, **both)
        network = model.Network("here", two["alpha"], two["beta"])
        work = model.Work("", half["step"], two["gradients"])
        said = model.step(work, 2, network)
        print(f"| L{layers} U{units} B{batch} T{length} | {1e3 * one['step']:.2f} ms | "
              f"{1e3 * half['step']:.2f} ms | {1e3 * two['step']:.2f} ms | {1e3 * said:.2f} ms | "
              f"{1e3 * two['sums']:.2f} ms, {two['bytes'] / 1e6:.2f} MB | "
              f"{1e3 * two['waited']:.2f} ms | {one['step'] / two['step']:.2f} | "
              f"{1e3 * over['step']:.2f} ms | {1e3 * over['sums']:.2f} ms, "
              f"{1e3 * over['beside']:.2f} ms |")  # fmt: skip
        print(f"  alpha {1e6 * two['alpha']:.1f} us, beta {two['beta'] / 1e9:.2f} GB/s",
              file=sys.stderr)  # fmt: skip


def main():
    """Prints the tables that the flags name."""
    parser = argparse.ArgumentParser(prog="python -m bench.scaling")
    parser.add_argument("--check", metavar="LIBRARY")
    parser.add_argument("--steps", type=int, default=60)
    flags = parser.parse_args()
    if flags.check:
        check(os.path.abspath(flags.check), flags.steps)
    else:
        tables()


if __name__ == "__main__":
    main()
