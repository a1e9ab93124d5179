"""Finished lines, kept so that an interrupted run goes on."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = (
    "torch", "onnxruntime", "tensorflow-cpu", "keras", "jax", "jaxlib", "onednn-cpu-gomp", "numpy",
    "openvino", "tract",
)  # fmt: skip


def versions() -> dict[str, str]:
    """Of the peers that are installed."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not there"
    return found


def fingerprint(paths: Iterable[Path]) -> str:
    """Of the contents of our own files."""
    digest = hashlib.sha256()
    for path in sorted(paths):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def cpu_info() -> dict[str, str]:
    """What the first processor of /proc/cpuinfo says of itself."""
    found: dict[str, str] = {}
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if not line.strip():
            break
        key, _, value = line.partition(":")
        found[key.strip()] = value.strip()
    return found


def key_of(line: str, setting: Mapping[str, Any]) -> str:
    """Of one line measured in one setting."""
    text = json.dumps([line, setting], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:20]


class Store:
    """A file of JSON lines; the last one of a key holds."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._found: dict[str, dict[str, Any]] = {}
        if path.exists():
            for text in path.read_text("utf-8").splitlines():
                try:
                    entry = json.loads(text)
                except json.JSONDecodeError:
                    continue  # a run was ended while it wrote this
                if isinstance(entry, dict) and "key" in entry:
                    self._found[entry["key"]] = entry

    def get(self, key: str) -> dict[str, Any] | None:
        """The result of that key."""
        return self._found.get(key)

    def add(self, key: str, result: Mapping[str, Any]) -> dict[str, Any]:
        """Appends a result."""
        entry = {"key": key, **result}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # The newline first ends a line that was cut off.
        lead = "\n" if self.path.exists() and not self.path.read_bytes().endswith(b"\n") else ""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(lead + json.dumps(entry) + "\n")
        self._found[key] = entry
        return entry
