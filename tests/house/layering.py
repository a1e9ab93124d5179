"""A room includes only itself and rooms of a lower rank, a folder of the room `cpu` only folders of
a lower rank, and no folders include each other, straight or by way of others: reads every #include
of src/, include/ and bench/, CUDA's sources too, and the imports of bench/ and python/.

Usage: layering.py ROOT checks a tree; layering.py --self-test proves that violations are found.
"""
import ast
import itertools
import pathlib
import re
import sys
import tempfile

RANKS = [
    {"base", "version"},
    {"spec", "formats"},
    {"params"},
    {"device", "engine"},
    {"reference", "cpu", "cudnn", "cudnn_absent"},
    {"runtime"},
    {"graph"},
    {"ops"},
    {"saveables", "cells"},
    {"mapping"},
    {"layers", "checkpoint", "onnx"},
    {"train"},
    {"cli", "python", "mpi"},
]
RANK = {room: rank for rank, rooms in enumerate(RANKS) for room in rooms}
# The same inside a room, for rooms whose folders have ranks; "" is the room's own folder.
FOLDER_RANKS = {
    "cpu": [
        {"tuning", "kernels/body", "kernels/cell", "memory", "threading"},
        {"kernels"},
        {"isa", "plan"},
        {"pack"},
        {"gemm", "steps"},
        {"forward", "backward", "device", "tangent"},
        {"recompute"},
        {""},
    ],
}
FOLDER_RANK = {room: {folder: rank for rank, folders in enumerate(ranks) for folder in folders}
               for room, ranks in FOLDER_RANKS.items()}
# What embedders link needs the C++ library alone, so core knows no file format.
CORE = {"base", "version", "spec", "params", "device", "engine", "reference", "cpu", "cudnn", "cudnn_absent",
        "runtime"}
# The oracle shares no layout and no arithmetic; `spec` and `engine` say what it is asked for.
ONLY = {"reference": {"base", "spec", "engine", "reference"}}
# The one header that includes the rest for users.
UMBRELLA = "openrnn.h"
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.M)
SOURCES = (".h", ".cc", ".inc", ".cu", ".cuh")
THIRD_PARTY = {
    "leveldb": set(), "mpi.h": {"mpi"}, "protozero": {"formats"}, "CLI": {"cli"},
    "nlohmann": set(RANK) - CORE, "fmt": set(RANK) - CORE,
}


def room_of_public(name, root):
    """The room of include/openrnn/<name>: X.h and its parts X_*.h belong to the room X."""
    stem = name.split("/")[0].removesuffix(".h")
    while stem and stem not in RANK:
        stem = stem.rpartition("_")[0]
    return stem or None


def room_of_include(kind, target, folder, root):
    """The room that an #include reaches; None for the C++ library, '?' for an unknown room."""
    if target.startswith("openrnn/"):
        return room_of_public(target.removeprefix("openrnn/"), root) or "?"
    if kind == '"' and (folder / target).exists():
        inside = (folder / target).resolve().relative_to(root.resolve())
        return inside.parts[1] if inside.parts[0] == "src" else room_of_public(inside.name, root)
    first = target.split("/")[0]
    if (root / "src" / target).exists() or first in RANK:
        return first if first in RANK else "?"
    return "?" if kind == '"' and first not in THIRD_PARTY else None


def check_include(room, kind, target, folder, root):
    """One sentence that says what is wrong with this #include, or None."""
    reached = room_of_include(kind, target, folder, root)
    if reached == "?":
        return f"includes {target}, which belongs to no room"
    if reached is None:
        allowed = THIRD_PARTY.get(target.split("/")[0])
        if allowed is not None and room not in allowed:
            return f"includes {target}: the room {room} may not use that library"
        return None
    if reached == room:
        return None
    if room in ONLY and reached not in ONLY[room]:
        return f"includes {target}: {room} may reach only {', '.join(sorted(ONLY[room]))}"
    if RANK[reached] >= RANK[room]:
        return f"includes {target}: {reached} (rank {RANK[reached]}) is not below {room} " \
               f"(rank {RANK[room]})"
    if room in CORE and reached not in CORE:
        return f"includes {target}: {room} is part of core and {reached} is not"
    return None


def missing_in_umbrella(path):
    """One sentence for each public header that openrnn.h leaves out; parts (_inl.h) come with theirs."""
    included = {target for _, target in INCLUDE.findall(path.read_text(encoding="utf-8"))}
    for header in sorted(path.parent.glob("*.h")):
        if header != path and "_" not in header.stem and f"openrnn/{header.name}" not in included:
            yield f"include/openrnn/{UMBRELLA}: leaves out openrnn/{header.name}"


def file_of_include(kind, target, folder, root):
    """The file of ours that an #include reads, or None."""
    places = [root / "include", root / "src", root]
    if kind == '"':
        places.insert(0, folder)
    found = next((place / target for place in places if (place / target).is_file()), None)
    return found.resolve().relative_to(root.resolve()) if found else None


def folder_in_room(path):
    """('cpu', 'kernels/body') for src/cpu/kernels/body/x.h."""
    return path.parts[1], "/".join(path.parts[2:-1])


def check_folders(relative, reached):
    """One sentence for an #include between folders of one room that have ranks, or None."""
    if relative.parts[0] != "src" or reached.parts[:2] != relative.parts[:2]:
        return None
    room, folder = folder_in_room(relative)
    ranks, other = FOLDER_RANK.get(room), folder_in_room(reached)[1]
    if ranks is None or folder == other:
        return None
    missing = next((f for f in (folder, other) if f not in ranks), None)
    if missing is not None:
        return f"includes {reached}: the folder {missing} of {room} has no rank"
    if ranks[other] >= ranks[folder]:
        return f"includes {reached}: the folder {other or room} (rank {ranks[other]}) is not below " \
               f"{folder or room} (rank {ranks[folder]})"
    return None


def imported_names(path, root):
    """Every name that a Python file imports, as its parts from the top: ('openrnn', 'nn', 'x')."""
    package = path.parent.relative_to(root).parts
    package = package[1:] if package[:1] == ("python",) else package
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (tuple(alias.name.split(".")) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = tuple(node.module.split(".")) if node.module else ()
            if node.level:
                base = package[:len(package) - node.level + 1] + base
            yield from (base + (alias.name,) for alias in node.names)


def module_of(parts, root):
    """The file of ours that is the module of that name, or None."""
    for top in (root, root / "python"):
        for name in (top.joinpath(*parts[:-1], parts[-1] + ".py"), top.joinpath(*parts, "__init__.py")):
            if name.is_file():
                return name.relative_to(root)
    return None


def imports_of(path, root):
    """The files of ours that a Python file imports, but for the parts that an __init__ gathers."""
    for parts in imported_names(path, root):
        # The last part may be a name of the module before it.
        module = module_of(parts, root) or (module_of(parts[:-1], root) if parts[1:] else None)
        own = path.name == "__init__.py" and module and path.parent.relative_to(root) in module.parents
        if module and not own:
            yield module


def knots(edges):
    """Sets of folders that reach each other: the strongly connected parts of {folder: {folder}}."""
    def reached(start):
        seen, ahead = set(), [start]
        while ahead:
            for folder in edges.get(ahead.pop(), {}):
                if folder not in seen:
                    seen.add(folder)
                    ahead.append(folder)
        return seen
    reach = {folder: reached(folder) for folder in edges}
    return {frozenset(other for other in reach[folder] if folder in reach.get(other, ()))
            for folder in edges if folder in reach[folder]}


def cycles(edges):
    """One sentence for each set of folders that include each other."""
    for knot in sorted(knots(edges), key=sorted):
        ways = [f"{edges[a][b]}" for a in sorted(knot) for b in sorted(edges[a]) if b in knot]
        yield f"{', '.join(map(str, sorted(knot)))}: include each other: {'; '.join(ways)}"


class Folders:
    """Which folder reads which, with one reading as the example: {folder: {folder: sentence}}."""

    def __init__(self):
        self.edges = {}

    def add(self, reader, read):
        """A public header stands for its room, so only private files and other trees count."""
        if reader.parent != read.parent and read.parts[0] != "include":
            self.edges.setdefault(reader.parent, {}).setdefault(
                read.parent, f"{reader} reads {read.as_posix()}")


def check_source(path, root, folders):
    """What is wrong with the includes of one C++ or CUDA file."""
    relative = path.relative_to(root)
    room = None
    if relative.parts[0] == "include":
        if path.name == UMBRELLA:
            yield from missing_in_umbrella(path)
            return
        room = room_of_public("/".join(relative.parts[2:]), root)
    elif relative.parts[0] == "src":
        room = relative.parts[1]
    if room not in RANK and relative.parts[0] != "bench":
        yield f"{relative}: lies in no known room"
        return
    for kind, target in INCLUDE.findall(path.read_text(encoding="utf-8")):
        reached = file_of_include(kind, target, path.parent, root)
        if reached:
            folders.add(relative, reached)
        sentences = []
        if room is not None:
            sentences.append(check_include(room, kind, target, path.parent, root))
        elif target.startswith("openrnn/") and not reached:
            sentences.append(f"includes {target}, which does not exist")
        if reached:
            sentences.append(check_folders(relative, reached))
        yield from (f"{relative}: {sentence}" for sentence in sentences if sentence)


def violations(root):
    """Every violation in a tree, as 'file: sentence'; and the number of files read."""
    found, files, folders = [], 0, Folders()
    for path in sorted(p for name in ("src", "include", "bench") for p in (root / name).rglob("*")):
        if path.suffix in SOURCES:
            files += 1
            found.extend(check_source(path, root, folders))
    for path in sorted(p for name in ("bench", "python") for p in (root / name).rglob("*.py")):
        files += 1
        for module in imports_of(path, root):
            folders.add(path.relative_to(root), module)
    return found + list(cycles(folders.edges)), files


def self_test():
    """A tree with one violation of each kind, and one without any."""
    good = {
        "include/openrnn/base.h": "#include <vector>",
        "include/openrnn/params.h": '#include "openrnn/spec.h"',
        "include/openrnn/spec.h": "#include <openrnn/base.h>",
        "src/params/a.cc": '#include "params/b.h"\n#include "openrnn/params.h"',
        "src/params/b.h": "", "src/cli/main.cc": "#include <CLI/CLI.hpp>",
        "src/cpu/gemm/a.cc": '#include "cpu/pack/a.h"\n#include "cpu/gemm/a.h"',
        "src/cpu/gemm/a.h": "", "src/cpu/pack/a.h": "", "src/cpu/engine.h": "",
        "src/cpu/forward/a.h": "", "src/cpu/backward/a.h": "", "src/cudnn/a.h": "",
        "src/cudnn/a.cu": '#include "cudnn/low/a.cuh"', "src/cudnn/low/a.cuh": "",
        "src/cudnn/low/b.cuh": "", "src/cudnn/last/a.h": "",
        "bench/one/main.cc": '#include "two/a.h"\n#include "bench/two/a.h"', "bench/two/a.h": "",
        "bench/a.py": "import bench.two.b", "bench/two/b.py": "import os",
        "python/openrnn/__init__.py": "from openrnn import _a, nn",
        "python/openrnn/_a.py": "from openrnn.nn import b", "python/openrnn/nn/__init__.py": "",
        "python/openrnn/nn/b.py": "", "python/openrnn/nn/c.py": "from . import b",
    }
    bad = {
        "src/base/up.cc": ('#include "spec/x.h"', "not below base"),
        "src/params/up.h": ("#include <openrnn/engine.h>", "not below params"),
        "src/cpu/beside.cc": ('#include "reference/x.h"', "not below cpu"),
        "src/params/formats.cc": ('#include "formats/x.h"', "part of core"),
        "src/reference/s.cc": ("#include <openrnn/params.h>", "may reach only"),
        "src/attic/x.cc": ("", "no known room"),
        "src/ops/x.cc": ('#include "openrnn/nowhere.h"', "no room"),
        "src/cpu/fmt.cc": ("#include <fmt/core.h>", "may not use that library"),
        "src/spec/rel.cc": ('#include "../params/b.h"', "not below spec"),
        "include/openrnn/openrnn.h": ('#include "openrnn/base.h"\n#include "openrnn/spec.h"',
                                      "leaves out openrnn/params.h"),
        "src/cpu/pack/up.cc": ('#include "cpu/forward/a.h"', "the folder forward (rank 5) is not below pack"),
        "src/cpu/forward/beside.cc": ('#include "cpu/backward/a.h"', "is not below forward"),
        "src/cpu/pack/engine.cc": ('#include "cpu/engine.h"', "the folder cpu (rank 7) is not below pack"),
        "src/cpu/attic/x.cc": ('#include "cpu/pack/a.h"', "the folder attic of cpu has no rank"),
        "src/cudnn/kernel.cu": ('#include "runtime/x.h"', "not below cudnn"),
        "src/cudnn/kernel.cuh": ('#include "runtime/x.h"', "not below cudnn"),
        "src/cudnn/low/back.cuh": ('#include "../a.h"', "src/cudnn, src/cudnn/low: include each other"),
        "bench/two/old.cc": ("#include <openrnn/nowhere.h>", "does not exist"),
        "bench/two/back.h": ('#include "bench/one/main.cc"', "bench/one, bench/two: include each"),
        "bench/two/back.py": ("from bench import a", "bench, bench/two: include each other"),
        "python/openrnn/nn/back.py": ("from .. import _a", "python/openrnn/nn: include each other"),
    }
    # Three folders, none of which includes the one that includes it.
    ring = {"src/cudnn/low/ring.h": '#include "cudnn/last/a.h"',
            "src/cudnn/last/ring.h": '#include "cudnn/ring.h"', "src/cudnn/ring.h": ""}
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)

        def write(name, text):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text + "\n")

        for name, text in good.items():
            write(name, text)
        found, files = violations(root)
        assert not found and files == len(good), found
        for name, (text, sentence) in bad.items():
            write(name, text)
            found, _ = violations(root)
            assert len(found) == 1 and name in found[0] and sentence in found[0], (name, found)
            (root / name).unlink()
        for name, text in ring.items():
            write(name, text)
        found, _ = violations(root)
        assert len(found) == 1 and "src/cudnn, src/cudnn/last, src/cudnn/low: include" in found[0], found
    print(f"self-test: {len(bad) + 1} kinds of violation found, none in the good tree")


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return 0
    found, files = violations(pathlib.Path(sys.argv[1]))
    for line in found:
        print(line)
    print(f"{files} files read, {len(found)} violations")
    return 1 if found or files == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
