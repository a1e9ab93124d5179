"""scripts/test_long over a fake tool and a fake ctest, which know what is asked of them."""

import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
LINE = "100% tests passed, 0 tests failed out of 7"
TOOL = """#!/bin/sh
case "$OPENRNN_ISA" in
  amx) echo 'openrnn: no tiles here' >&2; echo 'engines:'; exit 1 ;;
  neon) kill -SEGV $$ ;;
esac
"""
CTEST = f"""#!/bin/sh
echo "$OPENRNN_ISA $*" >>"$SEEN"
[ "$OPENRNN_ISA" = avx2 ] && echo '86% tests passed, 1 tests failed out of 7' && exit 8
echo '{LINE}'
"""


def write_program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture(name="test_long")
def test_long_fixture(tmp_path):
    """Runs the script with the sets named; gives the exit code, its lines of summary, ctest's calls."""
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "test_long", tmp_path / "scripts")
    write_program(tmp_path / "build/release/openrnn", TOOL)
    write_program(tmp_path / "bin/ctest", CTEST)
    seen = tmp_path / "seen"

    def run(*isas):
        done = subprocess.run(
            [tmp_path / "scripts" / "test_long", *isas],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}", "SEEN": str(seen)},
        )
        summary = done.stdout.split("\n\n")[-1].splitlines()
        calls = seen.read_text().splitlines() if seen.exists() else []
        return done.returncode, summary, calls

    return run


def test_each_set_is_forced_and_has_its_line(test_long):
    code, summary, calls = test_long("scalar", "avx512", "amx_emulated")
    assert code == 0
    assert [call.split()[0] for call in calls] == ["scalar", "avx512", "amx_emulated"]
    assert all("--test-dir build/release" in call and "-LE house" in call for call in calls)
    assert [line.split(":")[0] for line in summary] == [
        "[test-long] scalar", "[test-long] avx512", "[test-long] amx_emulated"]
    assert all(LINE in line for line in summary)


def test_a_set_that_the_processor_lacks_is_skipped_with_the_reason(test_long):
    code, summary, calls = test_long("scalar", "amx")
    assert code == 0
    assert len(calls) == 1
    assert summary[1] == "[test-long] amx: skipped: openrnn: no tiles here"


def test_a_failure_is_told_after_the_other_sets_have_run(test_long):
    code, summary, calls = test_long("avx2", "scalar")
    assert code == 1
    assert len(calls) == 2
    assert "86% tests passed" in summary[0] and LINE in summary[1]


@pytest.mark.parametrize("isas", [["amx"], ["scalar", "neon"]], ids=["nothing_ran", "tool_crashed"])
def test_what_proves_nothing_fails(test_long, isas):
    assert test_long(*isas)[0] == 1
