"""scripts/wheel.py: wheels of a made-up package, whose library a compiler makes with the symbols asked for."""

import importlib.metadata
import importlib.util
import pathlib
import shutil
import subprocess
import sys
import zipfile

import openrnn
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
TAG = "cp312-abi3-manylinux_2_28_x86_64"
spec = importlib.util.spec_from_file_location("wheel_script", ROOT / "scripts" / "wheel.py")
script = importlib.util.module_from_spec(spec)
spec.loader.exec_module(script)

needs_compiler = pytest.mark.skipif(
    sys.platform != "linux" or not shutil.which("g++"), reason="no g++ here"
)


def compile_library(path, text, *flags):
    source = path.with_suffix(".c")
    source.write_text(text)
    subprocess.run(["g++", "-x", "c", "-shared", "-fPIC", "-nostdlib", "-o", path, source, "-x", "none", *flags],
                   check=True)
    return path


@pytest.fixture(name="library")
def library_fixture(tmp_path):
    """_core.abi3.so with one symbol, which needs a function of the version given of the library given."""

    def make(needed="libc.so.6", symbol_version="GLIBC_2.28", shown="PyInit__core"):
        versions = tmp_path / "versions"
        versions.write_text(f"{symbol_version} {{ global: wanted; }};")
        other = compile_library(tmp_path / "other.so", "void wanted(void) {}", f"-Wl,-soname,{needed}",
                                f"-Wl,--version-script={versions}")
        text = f"void wanted(void); void {shown}(void) {{ wanted(); }}"
        return compile_library(tmp_path / "_core.abi3.so", text, str(other))

    return make


@pytest.fixture(name="wheel")
def wheel_fixture(tmp_path):
    """A wheel with that library, as `wheel.py make` makes it."""

    def make(path, tag=TAG):
        folder = tmp_path / "installed"
        shutil.rmtree(folder, ignore_errors=True)
        info = folder / f"openrnn-{script.version()}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(script.metadata())
        (info / "RECORD").write_text("of cmake,,\n")
        (folder / "openrnn").mkdir()
        (folder / "openrnn" / "__init__.py").write_text("value = 1\n")
        shutil.copy(path, folder / "openrnn" / "_core.abi3.so")
        return script.make(folder, tag, tmp_path / "out", {"other.txt": ROOT / "LICENSE"})

    return make


def change(wheel, name, text):
    """The same wheel with another file of that name."""
    with zipfile.ZipFile(wheel) as archive:
        files = {member: archive.read(member) for member in archive.namelist()}
    files[name] = text
    with zipfile.ZipFile(wheel, "w") as archive:
        for member, data in files.items():
            archive.writestr(member, data)


@needs_compiler
def test_a_wheel_that_keeps_what_its_tag_says(library, wheel):
    made = wheel(library())
    assert made.name == f"openrnn-{openrnn.__version__}-{TAG}.whl"
    assert list(script.check(made)) == []
    before = made.read_bytes()
    assert wheel(library()).read_bytes() == before


@needs_compiler
@pytest.mark.parametrize(
    "given, sentence",
    [
        ({"symbol_version": "GLIBC_2.29"}, "GLIBC_2.29, newer than 2.28"),
        ({"symbol_version": "GLIBC_2.100"}, "GLIBC_2.100, newer than 2.28"),
        ({"symbol_version": "GLIBCXX_3.4"}, "needs symbols of GLIBCXX_3.4"),
        ({"needed": "libstdc++.so.6"}, "needs libstdc++.so.6"),
        ({"shown": "inflate"}, "shows the symbol inflate"),
    ],
)
def test_what_old_systems_lack_is_found(library, wheel, given, sentence):
    found = list(script.check(wheel(library(**given))))
    assert len(found) == 1 and found[0].startswith("openrnn/_core.abi3.so ")
    assert found[0].endswith(sentence)


@needs_compiler
def test_tags_that_are_not_those_of_the_library(library, wheel):
    path = library()
    found = list(script.check(wheel(path, "cp312-abi3-manylinux_2_28_aarch64")))
    assert found == ["openrnn/_core.abi3.so is not for aarch64"]
    found = list(script.check(wheel(path, "cp311-cp311-manylinux_2_28_x86_64")))
    assert len(found) == 1 and "expected openrnn/_core.cpython-311-x86_64-linux-gnu.so" in found[0]
    found = list(script.check(wheel(path, "cp312-abi3-linux_x86_64")))
    assert len(found) == 1 and found[0].startswith("is not named")


@needs_compiler
def test_files_that_were_changed_afterwards(library, wheel):
    made = wheel(library())
    change(made, "openrnn/__init__.py", "value = 2\n")
    assert list(script.check(made)) == ["openrnn/__init__.py is not as RECORD says"]
    change(made, "openrnn/more.py", "")
    assert any("more.py" in sentence for sentence in script.check(made))


def test_metadata_after_make_build():
    """What pip and importlib.metadata say of the package that CMake installed."""
    found = importlib.metadata.metadata("openrnn")
    assert found["Name"] == "openrnn"
    assert found["Version"] == importlib.metadata.version("openrnn") == openrnn.__version__
    assert found["Requires-Python"] == ">=3.10"
    extras = {"torch": "torch>=2.4", "jax": "jax>=0.4.38", "keras": "keras>=3.5,<4"}
    needed = [f"{need}; extra == '{extra}'" for extra, need in extras.items()]
    assert importlib.metadata.requires("openrnn") == ["numpy>=1.26", *needed]
    files = {str(file) for file in importlib.metadata.files("openrnn")}
    assert "openrnn/__init__.py" in files and "openrnn/_core.pyi" in files
    assert all(file.locate().exists() for file in importlib.metadata.files("openrnn"))


def test_the_package_has_the_bits_of_a_wheel():
    subprocess.run([sys.executable, ROOT / "tests" / "python" / "scripts" / "package_bits.py"], check=True)
