"""Runs the tests that most probably catch a mutation, those that spend most of themselves in its file first."""
import concurrent.futures
import json
import os
import pickle
import random
import signal
import subprocess

import numpy as np
import places

CPP_SECONDS, PYTHON_SECONDS, MOST_CPP, MOST_PYTHON = 20, 8, 12, 40


class Tests:
    """The tests of one language, and which of them reach a mutation."""

    def __init__(self, name, file_of):
        self.tests = [t for t in pickle.loads((places.WORK / f"{name}_tests.pickle").read_bytes()) if t["passed"]]
        pairs = [np.stack([t["reached"], np.full(len(t["reached"]), k, np.int32)]) for k, t in enumerate(self.tests)]
        pairs = np.concatenate([np.zeros((2, 0), np.int32), *pairs], axis=1)
        pairs = pairs[:, np.argsort(pairs[0], kind="stable")]
        self.numbers, self.test_of = np.ascontiguousarray(pairs[0]), pairs[1]
        for test in self.tests:
            files = file_of[test["reached"]]
            test["share"] = np.bincount(files[files >= 0], minlength=file_of.max() + 1) / max(1, len(files))

    def reaching(self, number):
        first, last = np.searchsorted(self.numbers, np.array([number, number + 1], np.int32))
        return [self.tests[k] for k in self.test_of[first:last]]

    def chosen(self, number, file, seconds, most):
        tests = sorted(self.reaching(number), key=lambda t: -t["share"][file] / (0.3 + t["seconds"]) ** 0.5)
        chosen = []
        for test in tests[:4 * most]:
            used = sum(t["seconds"] for t in chosen)
            if len(chosen) < most and (not chosen or used + test["seconds"] <= seconds):
                chosen.append(test)
        return chosen


def fails(command, folder, variables, seconds):
    """Does the command fail, or take far longer than it should?"""
    process = subprocess.Popen(command, cwd=folder, env=variables, stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        return process.wait(seconds) != 0
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return True


class Judge:
    def __init__(self):
        self.mutations = places.mutations()
        names = sorted({m["file"] for m in self.mutations.values()})
        self.file_ids = {name: k for k, name in enumerate(names)}
        file_of = np.full(places.NUMBERS, -1)
        for number, mutation in self.mutations.items():
            file_of[number] = self.file_ids[mutation["file"]]
        self.cpp, self.python = Tests("cpp", file_of), Tests("python", file_of)

    def verdict(self, number):
        """'caught', 'survived', or 'never run'."""
        file = self.file_ids[self.mutations[number]["file"]]
        cpp = self.cpp.chosen(number, file, CPP_SECONDS, MOST_CPP)
        python = self.python.chosen(number, file, PYTHON_SECONDS, MOST_PYTHON)
        variables = {**os.environ, "OPENRNN_MUTATION": str(number)}
        for test in cpp:
            if fails(test["command"], test["folder"], {**variables, **test["environment"]}, 10 + 6 * test["seconds"]):
                return "caught"
        command = [places.ROOT / ".venv/bin/python", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
        if python and fails([*command, *(t["name"] for t in python)], places.ROOT,
                            {**variables, **places.python_environment()}, 40 + 6 * PYTHON_SECONDS):
            return "caught"
        return "survived" if cpp or python else "never run"

    def in_order(self, prefixes, seed):
        """Numbers, those that few tests reach first, in a random order among equals."""
        chance = random.Random(seed)
        reached = np.bincount(self.cpp.numbers, minlength=places.NUMBERS) * 3
        reached += np.bincount(self.python.numbers, minlength=places.NUMBERS)
        chosen = [n for n, m in self.mutations.items() if m["file"].startswith(prefixes)]
        return sorted(chosen, key=lambda n: (min(6, int(np.log2(reached[n] + 1))), chance.random()))


def judge(count, prefixes, seed=0):
    """Judges `count` more mutations of files that begin with one of `prefixes` and keeps the verdicts."""
    judged, kept = Judge(), places.load("verdicts.json", {})
    numbers = [n for n in judged.in_order(tuple(prefixes), seed) if str(n) not in kept][:count]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for done, (number, verdict) in enumerate(zip(numbers, pool.map(judged.verdict, numbers)), 1):
            kept[str(number)] = verdict
            if done % 50 == 0 or done == len(numbers):
                places.keep("verdicts.json", kept)
                print(f"[mutation] {done} of {len(numbers)} judged", flush=True)
    counts = {v: list(kept.values()).count(v) for v in ("caught", "survived", "never run")}
    print("[mutation]", json.dumps(counts))
