"""Where cuDNN and cuBLAS lie on this machine."""

import glob
import importlib.util
import os
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

# What the engine opens, and beside each what that one opens in turn.
WANTED = ("libcudnn.so.9", "libcublas.so.13")
VARIABLE = "OPENRNN_CUDA_LIBRARIES"
OLD_PATH = "GPU_CHECK_OLD_PATH"  # the user's LD_LIBRARY_PATH, where ours replaces it
USUAL = Path("/usr/local/cuda")


def loader_cache() -> str:
    """What the system's loader finds without being told; empty where nobody says."""
    for program in ("ldconfig", "/sbin/ldconfig"):
        try:
            return subprocess.run([program, "-p"], capture_output=True, text=True, check=True).stdout
        except (OSError, subprocess.CalledProcessError):
            continue
    return ""


def paths_of(variable: str, environment: Mapping[str, str]) -> list[Path]:
    """The folders of a colon list."""
    return [Path(word) for word in environment.get(variable, "").split(":") if word]


def roots(environment: Mapping[str, str]) -> list[Path]:
    """Of installations that a variable names, and the usual one."""
    found = [Path(environment[name]) for name in ("CUDNN_PATH", "CUDA_HOME", "CUDA_PATH")
             if environment.get(name)]  # fmt: skip
    return [root / sub for root in [*found, USUAL] for sub in ("lib", "lib64", "targets/x86_64-linux/lib")]


def wheel_folders() -> list[Path]:
    """Inside the packages of this Python: nvidia/*/lib and torch/lib, none of them imported."""
    found: list[Path] = []
    for package, pattern in (("nvidia", "*/lib"), ("torch", "lib")):
        spec = importlib.util.find_spec(package)
        for place in spec.submodule_search_locations or [] if spec else []:
            found += [Path(path) for path in sorted(glob.glob(os.path.join(place, pattern)))]
    return found


def first_with(name: str, folders: Iterable[Path]) -> Path | None:
    """The first folder that has the library."""
    return next((folder for folder in folders if (folder / name).exists()), None)


def find(environment: Mapping[str, str], cache: str, wheels: list[Path]) -> dict[str, str]:
    """Of each library: 'system', the folder where it lies, or '' when it is nowhere."""
    found = {}
    for name in WANTED:
        named = first_with(name, paths_of(VARIABLE, environment))
        if named is None and f"{name} " in cache:
            found[name] = "system"
            continue
        places = [*paths_of("LD_LIBRARY_PATH", environment), *roots(environment), *wheels]
        folder = named or first_with(name, places)
        found[name] = str(folder) if folder else ""
    return found


def variables(found: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """What our programs are started with: the folders in our variable, and in the loader's for what
    those libraries open in turn."""
    folders = [path for path in dict.fromkeys(found.values()) if path not in ("", "system")]
    if not folders:
        return {}
    ours = [*map(str, paths_of(VARIABLE, environment)), *folders]
    loader = [*folders, *map(str, paths_of("LD_LIBRARY_PATH", environment))]
    return {VARIABLE: ":".join(dict.fromkeys(ours)), "LD_LIBRARY_PATH": ":".join(loader)}


def without_ours(environment: Mapping[str, str]) -> dict[str, str]:
    """Of PyTorch's process: it finds its own libraries, and ours may come out of its packages."""
    found = {name: value for name, value in environment.items() if name != "LD_LIBRARY_PATH"}
    return found | ({"LD_LIBRARY_PATH": path} if (path := environment.get(OLD_PATH)) else {})
