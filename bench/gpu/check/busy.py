"""How busy a training loop keeps the GPU: python3 -m gpu.check.busy PROGRAM [--reduced]

nvidia-smi gives the percent of its last sample in which a kernel ran; the samples between the
program's lines 'begin' and 'end' are averaged. Without it there is what the program's events say: how
long the GPU had work of it, gaps inside a call included.
"""

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Mapping

GOAL = 90.0  # percent
SECONDS, SETTLE = 6.0, 1.0  # of the loop; before the first sample that counts
SAMPLE = ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits", "-lms", "200"]
Samples = list[tuple[float, float]]  # when, percent


def first_gpu(environment: Mapping[str, str]) -> str:
    """What nvidia-smi calls the GPU that CUDA counts as 0, the order being PCI_BUS_ID."""
    return environment.get("CUDA_VISIBLE_DEVICES", "").split(",")[0].strip() or "0"


def sample(samples: Samples) -> "subprocess.Popen[str] | None":
    """Starts sampling gpu:0 alone; None without nvidia-smi."""
    command = [*SAMPLE, "-i", first_gpu(os.environ)]
    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    except OSError:
        return None

    def read() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            if line.strip().isdigit():
                samples.append((time.monotonic(), float(line)))

    threading.Thread(target=read, daemon=True).start()
    return process


def mean_between(samples: Samples, begin: float, end: float) -> float | None:
    """Of the samples of the loop; None when there is none."""
    found = [percent for when, percent in samples if begin + SETTLE <= when <= end]
    return sum(found) / len(found) if found else None


def sentence(busy: float | None, had_work: float | None) -> str:
    """The goal, and what was found."""
    goal = f"a training step of L4 U1024 B64 T40 keeps the GPU busy over {GOAL:.0f} percent"
    found, by = (busy, "nvidia-smi") if busy is not None else (had_work, "events")
    if found is None:
        return f"not measured: {goal}"
    return f"{'met' if found > GOAL else 'not met'}: {goal}: {found:.0f} by {by}"


def main() -> int:
    """Runs the program beside the sampler."""
    samples: Samples = []
    reduced = "--reduced" in sys.argv
    sampler = sample(samples)
    command = [sys.argv[1], "step", "gpu:0", "0.2" if reduced else str(SECONDS)]
    marks: dict[str, float] = {}
    had_work = None
    with subprocess.Popen(
        command + (["reduced"] if reduced else []), stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout is not None
        for line in program.stdout:
            if line.strip() in ("begin", "end"):
                marks[line.strip()] = time.monotonic()
            else:
                print(line.rstrip(), flush=True)
                if told := re.search(r"had work for ([\d.]+) percent", line):
                    had_work = float(told.group(1))
    if sampler:
        sampler.kill()
    if program.returncode == 0 and len(marks) == 2 and not reduced:
        busy = mean_between(samples, marks["begin"], marks["end"])
        print(sentence(busy, had_work))
    return program.returncode


if __name__ == "__main__":
    sys.exit(main())
