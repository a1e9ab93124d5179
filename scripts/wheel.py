"""Wheels of what CMake installed, and the proof of what their tags promise.

wheel.py metadata FILE                writes METADATA from pyproject.toml
wheel.py make FOLDER TAG OUT [NAME=FILE...]
                                      zips an installed package, with licences of what is inside, into OUT
wheel.py check WHEEL...               tags, RECORD, size, libraries and symbol versions
"""
import base64
import csv
import hashlib
import io
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest.mock
import zipfile

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    from pip._vendor import tomli as tomllib

ROOT = pathlib.Path(__file__).resolve().parents[1]
LARGEST = 5_000_000
# Every glibc has these; libpthread and libdl are part of libc itself from 2.34 on.
LIBRARIES = re.compile(r"lib(?:c|m)\.so\.6|libpthread\.so\.0|libdl\.so\.2|ld-linux-[\w-]+\.so\.[12]")
MACHINES = {"x86_64": "X86-64", "aarch64": "AArch64"}


def version():
    text = (ROOT / "include/openrnn/version.h").read_text()
    return re.search(r'OPENRNN_VERSION "([0-9.]+)"', text)[1]


def metadata():
    """METADATA of the core metadata 2.4."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = ["Metadata-Version: 2.4", f"Name: {project['name']}", f"Version: {version()}",
             f"Summary: {project['description']}", f"License-File: {project['license']['file']}",
             f"Requires-Python: {project['requires-python']}"]
    lines += [f"Requires-Dist: {needed}" for needed in project["dependencies"]]
    for extra, packages in project["optional-dependencies"].items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f"Requires-Dist: {needed}; extra == '{extra}'" for needed in packages]
    lines.append("Description-Content-Type: text/markdown")
    return "\n".join(lines) + "\n\n" + (ROOT / project["readme"]).read_text()


def digest(data):
    """sha256 as RECORD writes it."""
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


class Deflate:
    """A compressor as zipfile asks for one; zopfli's files are 3 percent smaller than zlib's best."""

    def __init__(self, *_):
        self.data = bytearray()

    def compress(self, data):
        self.data += data
        return b""

    def flush(self):
        import zopfli.zlib  # here: a build asks this file for METADATA, and needs no more

        return zopfli.zlib.compress(bytes(self.data))[2:-4]  # without zlib's head and checksum


def make(folder, tag, out, licences):
    """The wheel's path. The same files give the same bytes."""
    info = f"openrnn-{version()}.dist-info"
    files = {path.relative_to(folder).as_posix(): path.read_bytes()
             for path in folder.rglob("*") if path.is_file()}
    for name in ("RECORD", "INSTALLER"):  # of the installation in the folder
        files.pop(f"{info}/{name}", None)
    files[f"{info}/WHEEL"] = (f"Wheel-Version: 1.0\nGenerator: openrnn ({version()})\n"
                              f"Root-Is-Purelib: false\nTag: {tag}\n").encode()
    head, body = files[f"{info}/METADATA"].decode().split("\n\n", 1)
    for name, path in licences.items():
        files[f"{info}/licenses/{name}"] = path.read_bytes()
        head += f"\nLicense-File: {name}"
    files[f"{info}/METADATA"] = f"{head}\n\n{body}".encode()
    record = io.StringIO()
    rows = csv.writer(record, lineterminator="\n")
    rows.writerows((name, digest(data), len(data)) for name, data in sorted(files.items()))
    rows.writerow((f"{info}/RECORD", "", ""))
    # The metadata is at the end, as the specification recommends.
    order = sorted(files, key=lambda name: (name.startswith(info), name))
    out.mkdir(parents=True, exist_ok=True)
    wheel = out / f"openrnn-{version()}-{tag}.whl"
    with (unittest.mock.patch.object(zipfile, "_get_compressor", Deflate),
          zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive):
        for name in [*order, f"{info}/RECORD"]:
            entry = zipfile.ZipInfo(name)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o755 if name.endswith(".so") else 0o644) << 16 | 1 << 31
            archive.writestr(entry, files.get(name, record.getvalue().encode()))
    return wheel


def readelf(path, *flags):
    return subprocess.run(["readelf", "--wide", *flags, path], capture_output=True, text=True,
                          check=True).stdout


def check_library(path, machine, newest):
    """What the shared library `path` needs that a system with glibc `newest` may lack."""
    if f"Machine:{MACHINES[machine]}" not in re.sub(r"[ \t]", "", readelf(path, "-h")).replace(
            "AdvancedMicroDevices", ""):
        yield f"is not for {machine}"
    for name in re.findall(r"\(NEEDED\).*\[(.*)\]", readelf(path, "-d")):
        if not LIBRARIES.fullmatch(name):
            yield f"needs {name}"
    for name in sorted(set(re.findall(r"Name: (\S+)  Flags", readelf(path, "-V")))):
        numbers = re.fullmatch(r"GLIBC_(\d+(?:\.\d+)+)", name)
        if not numbers:
            yield f"needs symbols of {name}"
        elif tuple(map(int, numbers[1].split("."))) > newest:
            yield f"needs symbols of {name}, newer than {'.'.join(map(str, newest))}"
    symbols = [line.split() for line in readelf(path, "--dyn-syms").splitlines()]
    for row in symbols:
        if len(row) > 7 and row[4] in ("GLOBAL", "WEAK") and row[6] != "UND":
            if not row[7].startswith("PyInit_"):
                yield f"shows the symbol {row[7]}"


def check_record(archive, info):
    """RECORD names every file once with its hash and size."""
    rows = {row[0]: row[1:] for row in csv.reader(io.StringIO(archive.read(f"{info}/RECORD").decode()))}
    names = archive.namelist()
    if sorted(rows) != sorted(names):
        yield f"RECORD and the files differ: {sorted(set(rows) ^ set(names))}"
    for name in set(rows) & set(names) - {f"{info}/RECORD"}:
        data = archive.read(name)
        if rows[name] != [digest(data), str(len(data))]:
            yield f"{name} is not as RECORD says"


def check(wheel):
    """Sentences on what is wrong with a wheel; none if its tags hold."""
    name = re.fullmatch(r"openrnn-([0-9.]+)-(cp3\d+-\w+-manylinux_(\d+)_(\d+)_(\w+))\.whl", wheel.name)
    if not name or name[5] not in MACHINES:
        yield "is not named openrnn-VERSION-cp3N-ABI-manylinux_X_Y_MACHINE.whl"
        return
    if wheel.stat().st_size > LARGEST:
        yield f"has {wheel.stat().st_size} bytes, at most {LARGEST}"
    info, machine, newest = f"openrnn-{name[1]}.dist-info", name[5], (int(name[3]), int(name[4]))
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as folder:
        yield from check_record(archive, info)
        if f"Tag: {name[2]}\n" not in archive.read(f"{info}/WHEEL").decode():
            yield f"WHEEL does not have the tag {name[2]}"
        if f"\nVersion: {name[1]}\n" not in archive.read(f"{info}/METADATA").decode():
            yield f"METADATA does not have the version {name[1]}"
        python, abi, _ = name[2].split("-")
        suffix = ".abi3.so" if abi == "abi3" else f".cpython-{python[2:]}-{machine}-linux-gnu.so"
        libraries = [member for member in archive.namelist() if member.endswith(".so")]
        if libraries != [f"openrnn/_core{suffix}"]:
            yield f"has the libraries {libraries}, expected openrnn/_core{suffix}"
        for member in libraries:
            path = archive.extract(member, folder)
            yield from (f"{member} {sentence}" for sentence in check_library(path, machine, newest))


def main(command, *arguments):
    if command == "metadata":
        pathlib.Path(arguments[0]).write_text(metadata())
        return 0
    if command == "make":
        licences = dict(argument.split("=", 1) for argument in arguments[3:])
        print(make(pathlib.Path(arguments[0]), arguments[1], pathlib.Path(arguments[2]),
                   {name: pathlib.Path(path) for name, path in licences.items()}))
        return 0
    found = [f"{path}: {sentence}" for path in arguments for sentence in check(pathlib.Path(path))]
    print(*found, sep="\n", file=sys.stderr, end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
