"""Measures, and writes the table: see docs/benchmarks.md."""

import argparse
import dataclasses
import datetime
import fcntl
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

from peers import store
from peers.kept.record import NAME
from peers.lines import KERAS_BACKENDS, Line, four_threads_set, full_set, gate_set
from peers.measure import LineRun, measure_memory
from peers.progress import Progress
from peers.protocol import Pool

WORKERS = (
    "pytorch", "pytorch_cells", "jax_scan", "openrnn_layers", "onnx_runtimes.ort",
    "onnx_runtimes.ort_c", "onnx_runtimes.openvino_cpu", "onnx_runtimes.tract_cpu",
)  # fmt: skip
NATIVE = ("onednn", "openrnn_core")
SECONDS = 5.0
LONGEST_FLOP_RATE = 1e11  # of one side on one thread, for guessing how long a line takes


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="bench-peers", description=__doc__)
    parser.add_argument("--only", default="", help="regular expression on the names of lines")
    parser.add_argument("--full", action="store_true", help="more networks than the gate set")
    parser.add_argument("--quick", action="store_true", help="a fifth of the repetitions")
    parser.add_argument("--fresh", action="store_true", help="measure finished lines again")
    parser.add_argument("--list", action="store_true", help="print the names of the lines")
    parser.add_argument("--report", action="store_true", help="only write the table")
    parser.add_argument("--keep", default="", metavar="NAME",
                        help="write the finished run as bench/results/NAME.json")  # fmt: skip
    parser.add_argument("--results", type=Path, default=Path("bench/results"),
                        help="folder of kept runs")  # fmt: skip
    parser.add_argument("--out", type=Path, default=Path("build/peers"), help="folder of results")
    parser.add_argument("--native", type=Path, default=Path("build/peers/bin"), help="C++ workers")
    return parser.parse_args()


def lines_of(options: argparse.Namespace) -> list[Line]:
    """Those asked for, by threads."""
    lines = gate_set() + four_threads_set() + (full_set() if options.full else [])
    found = [line for line in lines if re.search(options.only, line.name, re.IGNORECASE)]
    threads = len(os.sched_getaffinity(0))
    return sorted((line for line in found if line.threads <= threads), key=lambda l: l.threads)


def commands(native: Path) -> dict[str, list[str]]:
    """How each worker is started."""
    found = {name: [sys.executable, "-m", f"peers.workers.{name}"] for name in WORKERS}
    found |= {  # a process of Keras has one backend
        f"keras_{name}": [sys.executable, "-m", "peers.workers.keras_layers", name]
        for name in KERAS_BACKENDS
    }
    found["exact"] = [sys.executable, "-m", "peers.accuracy.worker"]
    return found | {name: [str(native / name)] for name in NATIVE}


def own_files(native: Path) -> list[Path]:
    """What a change of ours changes: the package, and the workers in C++ and in Python."""
    import openrnn

    package, workers = Path(openrnn.__file__).parent, Path(__file__).parent / "workers"
    python = [*package.rglob("*.py"), *workers.rglob("*.py")]
    return [*package.glob("_core*.so"), *python, *(native / name for name in NATIVE)]


def key(line: Line, setting: dict[str, Any]) -> str:
    """Of a result: another one where anything of the line changes, its sides among it."""
    return store.key_of(line.name, {**setting, "line": dataclasses.asdict(line)})


def weight(line: Line) -> float:
    """Seconds that the line may take, roughly."""
    calls = 4 * len(line.sides) * line.network.flop(line.work) / LONGEST_FLOP_RATE / line.threads
    return SECONDS + 5.0 + calls


def measure(
    lines: list[Line], setting: dict[str, Any], options: argparse.Namespace
) -> list[dict[str, Any]]:
    """Every line, from the file where it is there."""
    kept, results = store.Store(options.out / "results.jsonl"), []
    folder = options.out / "work"
    wanted = {line.name: key(line, setting) for line in lines}
    missing = [line for line in lines if options.fresh or kept.get(wanted[line.name]) is None]
    progress = Progress([weight(line) for line in missing])
    environment = {**os.environ, "OPENRNN_ORT_LOOP": str(options.native / "libort_loop.so")}
    pool = Pool(commands(options.native), environment, options.out / "logs")
    seconds = SECONDS / 5 if options.quick else SECONDS
    try:
        for line in missing:
            progress.show(line.name)
            pool.use_threads(line.threads)
            tell = lambda what, name=line.name: progress.show(name, what)
            if line.work == "memory":
                entries = measure_memory(line, pool, folder, tell)
            else:
                entries = LineRun(line, pool, folder, seconds, tell).run()
            now = datetime.datetime.now().isoformat(timespec="seconds")
            found = {"line": line.name, "date": now, "sides": [e.as_json() for e in entries]}
            kept.add(wanted[line.name], found)
            progress.advance()
    finally:
        pool.close()
        progress.close()
        for name in ("work", "exact"):
            shutil.rmtree(options.out / name, ignore_errors=True)
    for line in lines:
        if (result := kept.get(wanted[line.name])) is not None:
            results.append(result)
    return results


def hold(folder: Path) -> int:
    """One run at a time: two would stop and time each other's processes."""
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise SystemExit(f"another run is measuring into {str(folder)!r}; wait for its end") from None
    return handle


def keep(
    lines: list[Line], found: list[dict[str, Any]], setting: dict[str, Any],
    options: argparse.Namespace,
) -> int:  # fmt: skip
    """Writes the finished run into the folder of kept runs."""
    from peers.kept import export, machine
    from peers.report.goals import goals_of
    from peers.report.results import LineResult

    if len(found) < len(lines):
        print(
            f"[keep] {len(found)} of {len(lines)} lines are measured, expected all: the same command "
            "without --report goes on", file=sys.stderr,
        )  # fmt: skip
        return 1
    by_name = {line.name: line for line in lines}
    results = [LineResult.of(by_name[each["line"]], each) for each in found]
    goals = goals_of(results, "amx_bf16" in setting["flags"])
    about = machine.describe(store.cpu_info())
    setting = {**setting, "commit": machine.commit()}
    for path in export.keep(results, goals, setting, about, options.results, options.keep):
        print(f"kept: {path}; scripts/draw_benchmarks draws it")
    return 0


def main() -> int:
    """Measures and reports."""
    options = parse()
    lines = lines_of(options)
    if options.list or not lines:
        print("\n".join(line.name for line in lines) or f"no line matches {options.only!r}")
        return 0 if lines else 2
    if re.search(r"\s", str(options.out)):
        raise SystemExit(f"--out {str(options.out)!r}: expected a path without blanks")
    if options.keep and not NAME.fullmatch(options.keep):
        raise SystemExit(f"--keep {options.keep!r}: expected lower-case words joined by '_'")
    info = store.cpu_info()
    setting = {
        "versions": store.versions(), "processor": info.get("model name", "unknown"),
        "flags": [flag for flag in ("avx512f", "avx512_bf16", "amx_bf16") if flag in
                  info.get("flags", "").split()],
        "cores": len(os.sched_getaffinity(0)), "ours": store.fingerprint(own_files(options.native)),
        "quick": options.quick,
    }  # fmt: skip
    if options.report:
        kept = store.Store(options.out / "results.jsonl")
        results = [r for line in lines if (r := kept.get(key(line, setting)))]
    else:
        hold(options.out)
        try:
            results = measure(lines, setting, options)
        except KeyboardInterrupt:
            print("interrupted: the same command goes on from here", file=sys.stderr)
            return 130
    from peers.report import write

    write(lines, results, setting, options.out)
    return keep(lines, results, setting, options) if options.keep else 0


if __name__ == "__main__":
    sys.exit(main())
