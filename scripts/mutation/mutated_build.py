"""The mutated build: a copy of the tree with a switch at every place, the library compiled once, and the
release build's objects of the tests linked with it."""
import concurrent.futures
import os
import re
import shutil
import subprocess

import places
import python_switches

ERROR = re.compile(re.escape(str(places.TREE)) + r"/((?:src|include)/[^:]+):(\d+):\d+: +(?:fatal error|error|required from)")
NOT_BUILT = re.compile(r"_test$|_replay$|^examples/|^openrnn_gpu|^docs_")


def run(command, folder, **options):
    return subprocess.run(command, cwd=folder, text=True, capture_output=True, **options)


def write(file, new):
    """A file that is as it should be stays: it is not compiled again."""
    target = places.TREE / file
    if not target.exists() or target.read_bytes() != new:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(new)
        shutil.copymode(places.ROOT / file, target)


def copy_tree(but):
    files = run(["git", "ls-files", "-co", "--exclude-standard"], places.ROOT).stdout.splitlines()
    for file in files:
        if file not in but and (places.ROOT / file).is_file():
            write(file, (places.ROOT / file).read_bytes())


def switched(source, numbered):
    """The bytes of a file with the switches of (number, mutation) in place. What is around others comes first
    and ends last; an operator, whose sign becomes a comma, is the innermost of its span."""
    before, after, instead = {}, {}, {}
    order = sorted(numbered, key=lambda m: (m[1]["begin"], -m[1]["end"], m[1]["kind"] == "operator", m[1]["kind"]))
    for rank, (number, mutation) in enumerate(order):
        for edit in mutation["edits"]:
            text = edit[-1].replace("@", str(number)).encode()
            if len(edit) == 3:
                instead[edit[0]] = edit[1], text
            elif edit[0] == mutation["begin"]:
                before.setdefault(edit[0], []).append(text)
            else:
                after.setdefault(edit[0], []).append((-mutation["begin"], -rank, text))
    parts, at = [], 0
    for place in sorted({*before, *after, *instead}):
        parts += [source[at:place], *(text for *_, text in sorted(after.get(place, []))), *before.get(place, [])]
        at, text = instead.get(place, (place, b""))
        parts.append(text)
    return b"".join([*parts, source[at:]])


def write_sources(mutations):
    by_file = {}
    for number, mutation in enumerate(mutations):
        numbered = by_file.setdefault(mutation["file"], [])
        if not mutation.get("dropped"):
            numbered.append((number, mutation))
    for file, numbered in by_file.items():
        write(file, switched((places.ROOT / file).read_bytes(), numbered))


def drop_refused(mutations, log):
    """Drops the mutations on lines that the compiler refuses (a constant that cannot vary, ..): how many."""
    refused = {(file, int(line)) for file, line in ERROR.findall(log)}
    dropped = 0
    for m in mutations:
        lines = range(m["line"] - 1, m["line"] + 3)  # the compiler may name another line of an expression
        if not m.get("dropped") and any((m["file"], line) in refused for line in lines):
            m["dropped"] = True
            dropped += 1
    return dropped


def configure():
    header = places.TREE / "scripts" / "mutation" / "switches.h"
    # The GPU kernels are compiled from the sources as they are.
    cudnn = places.TREE / "cmake" / "OpenrnnCudnn.cmake"
    cudnn.write_text(cudnn.read_text().replace("-I ${PROJECT_SOURCE_DIR}/src --threads",
                                               f"-I {places.ROOT}/src --threads"))
    done = run(["cmake", "--preset", "release", "-DOPENRNN_BUILD_PYTHON=ON",
                f"-DPython_EXECUTABLE={places.ROOT}/.venv/bin/python", "-DOPENRNN_CUDA_ARCHITECTURES=75",
                f"-DCMAKE_CXX_FLAGS=-include {header} -std=c++20 -Wno-narrowing -w",
                "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG"], places.TREE)
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)


def programs():
    lines = run(["ninja", "-t", "targets", "all"], places.BUILD).stdout.splitlines()
    rules = [line.split(": ") for line in lines if ": " in line and "cmake_object" not in line]
    linked = [name for name, rule in rules if "EXECUTABLE_LINKER" in rule]
    libraries = [name for name, rule in rules if "LIBRARY_LINKER" in rule]
    return linked, libraries


def link_commands():
    """{test: what links it}."""
    tests = [name for name in programs()[0] if name.endswith("_test")]
    listed = {name: run(["ninja", "-t", "commands", "-s", name], places.BUILD).stdout for name in tests}
    return {name: text.strip().splitlines()[-1] for name, text in listed.items()}


def objects(command):
    """(objects of tests, objects of the library) that a test is linked of."""
    entries = sorted(set(re.findall(r"\S+\.(?:cc|cxx)\.o(?=\s)", command)))
    return [e for e in entries if ".dir/tests/" in e], [e for e in entries if ".dir/tests/" not in e]


def compile_library(mutations, commands):
    linked, libraries = programs()
    targets = {*libraries, *(name for name in linked if not NOT_BUILT.search(name)), "openrnn_python_stub",
               *(entry for command in commands.values() for entry in objects(command)[1])}
    while True:
        done = run(["ninja", "-k", "0", *sorted(targets)], places.BUILD)
        if done.returncode == 0:
            return
        dropped = drop_refused(mutations, done.stdout)
        print(f"[mutation] {dropped} mutations do not compile", flush=True)
        if not dropped:
            raise SystemExit(done.stdout[-5000:])
        places.keep("cpp.json", mutations)
        write_sources(mutations)


def link_test(name, command):
    """What went wrong, if anything. The objects of the tests are the release build's: a mutation of a header that
    they have inlined may seem to survive, which `try` tells, as it compiles the test."""
    for entry in objects(command)[0]:
        if not (places.RELEASE / entry).exists():
            return f"{name}: {places.RELEASE / entry} is missing, expected `make test` before"
        command = command.replace(f" {entry} ", f" {places.RELEASE / entry} ")
    done = run(command, places.BUILD, shell=True)
    return done.stderr[-500:] if done.returncode else ""


def install_package():
    shutil.rmtree(places.SITE, ignore_errors=True)
    done = run(["cmake", "--install", str(places.BUILD), "--component", "python", "--prefix", str(places.SITE)],
               places.TREE)
    if done.returncode:
        raise SystemExit(done.stderr)
    python_switches.write()


def build():
    """From the list of mutations to a library, tests and a package that hold them all."""
    mutations = places.load("cpp.json")
    copy_tree({mutation["file"] for mutation in mutations})
    write_sources(mutations)
    configure()
    print("[mutation] compiling the library with its switches, some ten minutes", flush=True)
    commands = link_commands()
    compile_library(mutations, commands)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        wrong = [text for text in pool.map(link_test, commands, commands.values()) if text]
    if wrong:
        raise SystemExit("\n".join(wrong[:5]))
    install_package()
