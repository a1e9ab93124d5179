"""Runs every test once over the mutated build, with no mutation switched on: which mutations does it reach?"""
import concurrent.futures
import json
import os
import pickle
import queue
import subprocess
import sys
import time

import numpy as np
import places

HEAVY = ("conformance_", "cpu_", "reference_")  # minutes where every loop asks its switch
SECONDS = 60


def empty(name):
    path = places.WORK / name
    path.write_bytes(bytes(places.NUMBERS))
    return str(path)


def cpp_tests():
    """name, command, folder and environment of each C++ test, the heavy ones last."""
    listed = subprocess.run(["ctest", "--test-dir", places.BUILD, "--show-only=json-v1"], capture_output=True)
    tests = []
    for test in json.loads(listed.stdout)["tests"]:
        properties = {p["name"]: p["value"] for p in test.get("properties", [])}
        command = test.get("command")
        if command and "house" not in properties.get("LABELS", []) and os.path.exists(command[0]):
            variables = dict(v.split("=", 1) for v in properties.get("ENVIRONMENT", []))
            tests.append({"name": test["name"], "command": command, "environment": variables,
                          "folder": properties.get("WORKING_DIRECTORY", str(places.BUILD))})
    return sorted(tests, key=lambda test: test["name"].startswith(HEAVY))


def run_cpp(test, files):
    file = files.get()
    empty(file)
    variables = {**os.environ, **test["environment"], "OPENRNN_MUTATIONS_REACHED": str(places.WORK / file)}
    start = time.monotonic()
    try:
        code = subprocess.run(test["command"], cwd=test["folder"], env=variables, timeout=SECONDS,
                              stdin=subprocess.DEVNULL, capture_output=True).returncode
    except subprocess.TimeoutExpired:
        code = "timeout"
    reached = np.flatnonzero(np.frombuffer((places.WORK / file).read_bytes(), dtype=np.uint8))
    files.put(file)
    return {**test, "seconds": time.monotonic() - start, "passed": code == 0, "reached": reached.astype(np.int32)}


def reach_cpp():
    files = queue.Queue()
    for worker in range(os.cpu_count()):
        files.put(f"reached_{worker}")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(lambda test: run_cpp(test, files), cpp_tests()))


def reach_python():
    """All tests, the files distributed by their sizes over as many processes as there are processors."""
    files = sorted((places.ROOT / "tests").rglob("test_*.py"), key=lambda file: -file.stat().st_size)
    shares = [files[worker::os.cpu_count()] for worker in range(os.cpu_count())]
    started, results = [], []
    for worker, share in enumerate(shares):
        result = places.WORK / f"python_{worker}.pickle"
        variables = {**os.environ, **places.python_environment(), "OPENRNN_MUTATIONS_OF_TESTS": str(result),
                     "OPENRNN_MUTATIONS_REACHED": empty(f"reached_python_{worker}")}
        others = [f"--ignore={file}" for file in files if file not in share]
        command = [places.ROOT / ".venv/bin/python", "-m", "pytest", "-q", "-p", "reach_plugin",
                   "-p", "no:cacheprovider", "tests", *others]
        log = open(places.WORK / f"python_{worker}.log", "w")
        started.append(subprocess.Popen(command, cwd=places.ROOT, env=variables, stdout=log, stderr=log,
                                        stdin=subprocess.DEVNULL))
        results.append(result)
    for process in started:
        process.wait()
    return [test for result in results for test in pickle.loads(result.read_bytes())]


def reach():
    for name, tests in (("cpp", reach_cpp()), ("python", reach_python())):
        failed = [test["name"] for test in tests if not test["passed"]]
        print(f"[mutation] {len(tests)} {name} tests; left out, as they fail here: {len(failed)}", *failed[:20])
        (places.WORK / f"{name}_tests.pickle").write_bytes(pickle.dumps(tests))
    sys.stdout.flush()
