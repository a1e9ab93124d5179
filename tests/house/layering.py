"""A room includes only itself and rooms of a lower rank: reads every #include of ours.

Usage: layering.py ROOT checks a tree; layering.py --self-test proves that violations are found.
"""
import pathlib
import re
import sys
import tempfile

RANKS = [
    {"base", "version"},
    {"spec", "formats"},
    {"params"},
    {"engine"},
    {"reference", "cpu", "cudnn", "cudnn_absent"},
    {"runtime"},
    {"graph"},
    {"ops"},
    {"saveables", "cells"},
    {"layers", "checkpoint"},
    {"train"},
    {"cli", "python"},
]
RANK = {room: rank for rank, rooms in enumerate(RANKS) for room in rooms}
# What embedders link needs the C++ library alone, so core knows no file format.
CORE = {"base", "version", "spec", "params", "engine", "reference", "cpu", "cudnn", "cudnn_absent", "runtime"}
# The oracle shares no layout and no arithmetic; `spec` and `engine` say what it is asked for.
ONLY = {"reference": {"base", "spec", "engine", "reference"}}
# The one header that includes the rest for users.
UMBRELLA = "openrnn.h"
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.M)
THIRD_PARTY = {
    "leveldb": set(), "protozero": {"formats"}, "CLI": {"cli"},
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


def violations(root):
    """Every violation in a tree, as 'file: sentence'; and the number of files read."""
    found, files = [], 0
    for path in sorted([*(root / "src").rglob("*"), *(root / "include").rglob("*")]):
        if path.suffix not in (".h", ".cc", ".inc"):
            continue
        relative = path.relative_to(root)
        files += 1
        if relative.parts[0] == "include":
            if path.name == UMBRELLA:
                found.extend(missing_in_umbrella(path))
                continue
            room = room_of_public("/".join(relative.parts[2:]), root)
        else:
            room = relative.parts[1]
        if room not in RANK:
            found.append(f"{relative}: lies in no known room")
            continue
        for kind, target in INCLUDE.findall(path.read_text(encoding="utf-8")):
            sentence = check_include(room, kind, target, path.parent, root)
            if sentence:
                found.append(f"{relative}: {sentence}")
    return found, files


def self_test():
    """A tree with one violation of each kind, and one without any."""
    good = {
        "include/openrnn/base.h": "#include <vector>",
        "include/openrnn/params.h": '#include "openrnn/spec.h"',
        "include/openrnn/spec.h": "#include <openrnn/base.h>",
        "src/params/a.cc": '#include "params/b.h"\n#include "openrnn/params.h"',
        "src/params/b.h": "", "src/cli/main.cc": "#include <CLI/CLI.hpp>",
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
    }
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
    print(f"self-test: {len(bad)} kinds of violation found, none in the good tree")


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
