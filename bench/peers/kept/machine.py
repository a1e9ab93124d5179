"""What a kept run says of its machine and its sources."""

import os
import subprocess
from collections.abc import Mapping

# Families and models of /proc/cpuinfo, whose own names say little in virtual machines.
FAMILIES = {
    ("AuthenticAMD", 23): ((0x00, 0x2F, "AMD Zen"), (0x30, 0xFF, "AMD Zen 2")),
    ("AuthenticAMD", 25): (
        (0x00, 0x0F, "AMD Zen 3"), (0x10, 0x1F, "AMD Zen 4"), (0x20, 0x5F, "AMD Zen 3"),
        (0x60, 0xAF, "AMD Zen 4"),
    ),
    ("AuthenticAMD", 26): ((0x00, 0x7F, "AMD Zen 5"),),
    ("GenuineIntel", 6): (
        (0x3C, 0x3C, "Intel Haswell"), (0x3F, 0x3F, "Intel Haswell"), (0x4F, 0x4F, "Intel Broadwell"),
        (0x55, 0x55, "Intel Skylake or Cascade Lake"), (0x6A, 0x6A, "Intel Ice Lake"),
        (0x8F, 0x8F, "Intel Sapphire Rapids"), (0xAD, 0xAE, "Intel Granite Rapids"),
        (0xCF, 0xCF, "Intel Emerald Rapids"),
    ),
}  # fmt: skip
# The flags that decide which kernels run, from the oldest.
FLAGS = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16", "amx_int8", "amx_fp16")


def microarchitecture(info: Mapping[str, str]) -> str:
    """'AMD Zen 4'; the model's own name where it is not in the list."""
    try:
        family, model = int(info["cpu family"]), int(info["model"])
    except (KeyError, ValueError):
        return info.get("model name", "unknown")
    for first, last, name in FAMILIES.get((info.get("vendor_id", ""), family), ()):
        if first <= model <= last:
            return name
    return info.get("model name", "unknown")


def describe(info: Mapping[str, str]) -> dict[str, object]:
    """Of /proc/cpuinfo and the cores that this process may use."""
    has = info.get("flags", "").split()
    return {
        "name": microarchitecture(info), "model": info.get("model name", "unknown"),
        "cores": len(os.sched_getaffinity(0)), "flags": [flag for flag in FLAGS if flag in has],
    }  # fmt: skip


def commit() -> str:
    """Of the sources; a '+' says that they differ from it."""
    tell = lambda *words: subprocess.run(
        ["git", *words], capture_output=True, text=True, check=False
    ).stdout.strip()
    changed = tell("status", "--porcelain", "--untracked-files=no")
    return tell("rev-parse", "--short", "HEAD") + ("+" if changed else "")
