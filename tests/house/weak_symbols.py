"""An instruction-set file leaves no weak symbol outside its own namespace, openrnn::cpu::<isa>.

The linker keeps one copy of a weak symbol. If that copy came from a file compiled for AVX-512, plain
callers would crash on an older processor. Usage: weak_symbols.py OBJECT...; weak_symbols.py
--self-test COMPILER.
"""
import contextlib
import io
import pathlib
import re
import subprocess
import sys
import tempfile

ISAS = ("scalar", "avx2", "avx512", "avx512_dot", "amx", "amx_emulated", "neon", "sve")
FLAGGED = ("avx2", "avx512", "avx512_dot", "amx", "amx_emulated", "sve")
# Pointers to the personality routine and to type information: data, the same from every file.
HARMLESS = re.compile(r"^DW\.ref\.|^_ZT[IS]")


def isa_of(path):
    """The instruction set that an object file is for, by its file or folder name."""
    words = [path.name.split(".")[0], path.parent.name]
    for word in words:
        for isa in sorted(ISAS, key=len, reverse=True):
            if re.search(rf"(^|_){isa}($|_)", word):
                return isa
    return None


def own_namespace(symbol, isa):
    """True for a mangled name inside openrnn::cpu::<isa>."""
    return re.match(rf"^_Z(T[VT]|GV|GR)?(Z?N?[KVrRO]*)+7openrnn3cpu{len(isa)}{isa}", symbol)


def weak_outside(path, isa):
    """The weak symbols that an object defines outside its namespace."""
    lines = subprocess.run(["nm", "--defined-only", "--format=posix", str(path)], check=True,
                           capture_output=True, text=True).stdout.splitlines()
    weak = [line.split()[0] for line in lines if line.split()[1] in "WVuwv"]
    return [s for s in weak if not own_namespace(s, isa) and not HARMLESS.match(s)]


def check(paths):
    """Prints every stray weak symbol; the exit code is 0 only if flagged objects were seen."""
    bad = seen = 0
    for path in map(pathlib.Path, paths):
        isa = isa_of(path)
        if "/cpu/kernels/" not in str(path) or isa is None:
            continue
        seen += isa in FLAGGED
        for symbol in weak_outside(path, isa):
            name = subprocess.run(["c++filt", symbol], capture_output=True, text=True).stdout.strip()
            print(f"{path.name}: weak {name} outside openrnn::cpu::{isa}")
            bad += 1
    print(f"{seen} instruction-set objects, {bad} stray weak symbols")
    return 0 if seen and not bad else 1


def self_test(compiler):
    """Compiles a good and a bad kernel file and looks at both."""
    good = "namespace openrnn::cpu::avx2 { template <class T> struct V { T x; T get() const { " \
           "static T n = 0; return x + n++; } }; template <class T> T f(V<T> v) { return v.get(); } " \
           "template float f(V<float>); template struct V<double>; inline int g() { return 1; } " \
           "int h() { return g(); } }"
    bad = good + "\n#include <vector>\nint grow(std::vector<int>& v) { v.push_back(1); return 0; }"
    with tempfile.TemporaryDirectory() as folder:
        kernels = pathlib.Path(folder) / "cpu" / "kernels"
        kernels.mkdir(parents=True)
        for text, expected in ((good, 0), (bad, 1)):
            source, target = kernels / "avx2.cc", kernels / "avx2.cc.o"
            source.write_text(text)
            subprocess.run([compiler, "-std=c++20", "-O0", "-c", source, "-o", target], check=True)
            with contextlib.redirect_stdout(io.StringIO()) as said:
                assert check([target]) == expected, text
        assert "push_back" in said.getvalue()
        with contextlib.redirect_stdout(io.StringIO()):
            assert check([]) == 1, "no object must not pass"
    print("self-test: the stray vector code was found")
    return 0


def main():
    if sys.argv[1:2] == ["--self-test"]:
        return self_test(sys.argv[2])
    return check(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
