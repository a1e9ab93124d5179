"""--math and --weights-dtype, what runs keep of them, and what doctor and inspect say."""
import json
import os
import re

import pytest
from tool_runs import checkpoint_bytes, fault, good, rewrite, small_flags, write_text

KINDS = {"dot", "amx"}  # of math bf16
STORED = ["float16", "bfloat16", "int8"]


@pytest.fixture(name="runs", scope="module")
def fixture_runs(tmp_path_factory):
    """One text and a run of each math: (text, {math: folder})."""
    folder = tmp_path_factory.mktemp("arithmetic")
    text = write_text(folder)
    runs = {}
    for math in ("float32", "bf16"):
        runs[math] = folder / math
        good(*small_flags(text, runs[math], steps=300, lr=0.01, units=33, math=math))
    return text, runs


def bits(run, text, *more):
    done = good("eval", run, "--input", text, *more)
    return float(re.match(r"bits_per_byte (\d+\.\d{4})\n", done.stdout).group(1))


def kind_of(choice):
    """What doctor says of one."""
    found = re.search(rf"^  {choice} +(.*)$", good("doctor").stdout, re.M)
    return found.group(1)


def test_doctor_names_every_choice():
    assert kind_of("float32") == "float32"
    assert kind_of("bf16") in KINDS
    has_amx = kind_of("bf16") == "amx"
    assert kind_of("bf16x3") == ("bf16x3" if has_amx else "computed as float32, no AMX")
    for stored in ("float16", "bfloat16"):
        assert kind_of(f"weights {stored}") == "float32"
    assert kind_of("weights int8") == "int8"


def test_doctor_shows_all_in_order():
    """Each title with the lines below it."""
    parts, title = {}, ""
    shown = good("doctor", env={**os.environ, "OPENRNN_NUM_THREADS": "3"}).stdout
    for line in shown.splitlines():
        if line.startswith("  "):
            parts[title].append(line[2:])
        else:
            title = line
            parts[title] = []
    titles = [re.sub(r"^(instruction set|tiles of AMX|threads|compiler): .*", r"\1", title)
              for title in parts]
    devices = [line.split()[0] for line in parts["devices:"]]
    assert devices[0] == "cpu"
    maths = [f"math on {name}:" for name in devices]
    assert titles == ["engines:", "devices:", "instruction set", *maths, "tiles of AMX", "threads",
                      "compiler", "libraries:"]
    engines = {line[:10].rstrip(): (line[11:19].rstrip(), line[20:]) for line in parts["engines:"]}
    assert set(engines) >= {"cpu", "reference"}
    assert all(state in ("ready", "absent") and detail for state, detail in engines.values())
    assert (engines.get("cudnn", ("absent", ""))[0] == "ready") == (len(devices) > 1)
    assert [line.split("  ")[0] for line in parts["math on cpu:"]] == [
        "float32", "bf16", "bf16x3", "tf32", "fp16", "weights float16", "weights bfloat16",
        "weights int8"]
    assert "tf32              not there" in parts["math on cpu:"]
    (isa,) = (title for title in parts if title.startswith("instruction set: "))
    used, has = re.fullmatch(r"instruction set: (\w+) \(this processor has ([\w, ]+); "
                             r"OPENRNN_ISA forces one\)", isa).groups()
    assert used in has.split(", ") and "scalar" in has.split(", ")
    assert "threads: 3 (OPENRNN_NUM_THREADS or --threads changes it)" in parts
    assert all("/" in line for line in parts["libraries:"]) and len(parts["libraries:"]) > 2


def test_trained_models_keep_their_math(runs):
    text, found = runs
    kind = kind_of("bf16")
    shown = good("inspect", found["bf16"]).stdout
    assert f"arithmetic: math bf16, trained as {kind}\n" in shown
    assert "note: trained" not in shown
    assert "arithmetic: math float32, trained as float32\n" in good(
        "inspect", found["float32"]).stdout
    own = bits(found["bf16"], text)
    assert own == bits(found["bf16"], text, "--math", "bf16")
    assert own == pytest.approx(bits(found["bf16"], text, "--math", "float32"), rel=0.02)


def test_cells_are_compared_in_their_own_arithmetic(runs):
    """They have float32 alone, in which a run of bf16 is computed there too."""
    text, found = runs
    assert good("check-cells", found["bf16"], "--input", text).stdout.endswith(
        "  the same numbers\n")


def test_bf16_trains_as_well(runs):
    text, found = runs
    plain, lower = (bits(found[math], text) for math in ("float32", "bf16"))
    assert lower == pytest.approx(plain, rel=0.05)
    assert bits(found["float32"], text, "--math", "bf16") == pytest.approx(plain, rel=0.02)


@pytest.mark.parametrize("stored", STORED)
def test_stored_weights_score_nearly_the_same(runs, stored):
    text, found = runs
    for run in found.values():
        plain = bits(run, text, "--math", "float32")
        # Half a step of int8 is 1 / 254 of the largest weight, of bfloat16 1 / 512 of each.
        assert bits(run, text, "--weights-dtype", stored) == pytest.approx(plain, rel=0.02)
    done = good("generate", found["bf16"], "--length", 40, "--weights-dtype", stored)
    assert len(done.stdout) == 41


def test_a_run_resumes_with_its_math(runs, tmp_path):
    text, _ = runs
    whole, halves = tmp_path / "whole", tmp_path / "halves"
    flags = {"steps": 40, "math": "bf16", "lr_schedule": "constant", "valid_every": 10,
             "warmup": 0}
    good(*small_flags(text, whole, **flags))
    good(*small_flags(text, halves, **{**flags, "steps": 20}))
    good("train", "--out", halves, "--resume", "--steps", 40)
    assert checkpoint_bytes(whole, 40) == checkpoint_bytes(halves, 40)
    said = fault("train", "--out", halves, "--resume", "--steps", 40, "--math", "float32")
    assert "--math float32 contradicts the run to resume, expected --math bf16" in said


def test_what_cannot_be(runs, tmp_path):
    text, found = runs
    assert "--math" in fault(*small_flags(text, tmp_path / "no", math="bfloat16"))
    assert "tf32" in fault(*small_flags(text, tmp_path / "no", math="tf32"), code=1)
    said = fault(*small_flags(text, tmp_path / "no", math="bf16", dtype="float64"))
    assert "math is 'bf16' with dtype float64" in said
    said = fault("eval", found["bf16"], "--input", text, "--math", "bf16", "--weights-dtype",
                 "int8")
    assert "weights_dtype is 'int8' with math 'bf16'" in said
    said = fault("generate", found["float32"], "--math", "bf16", "--weights-dtype", "int8")
    assert "weights_dtype is 'int8' with math 'bf16'" in said


def test_bench_names_the_kind(tmp_path):
    out = tmp_path / "bench.json"
    common = ["bench", "--only", "GRU L1 U64", "--seconds", 0.01, "--threads", 1, "--json", out]
    shown = good(*common, "--math", "bf16").stdout
    assert f"math bf16, weights float32: computed as {kind_of('bf16')}\n" in shown
    assert {row["pass"] for row in json.loads(out.read_text())} == {
        "forward", "forward_training", "forward_backward"}
    shown = good(*common, "--weights-dtype", "int8").stdout
    assert "math float32, weights int8: computed as int8\n" in shown
    rows = json.loads(out.read_text())
    assert [row["pass"] for row in rows] == ["forward"]
    assert (rows[0]["weights_dtype"], rows[0]["math_kind"]) == ("int8", "int8")


def test_another_kind_and_an_older_file_are_told_apart(runs, tmp_path):
    text, _ = runs
    out = tmp_path / "out"
    flags = {"steps": 4, "math": "bf16", "lr_schedule": "constant", "warmup": 0}
    good(*small_flags(text, out, **flags))
    here = kind_of("bf16")

    def elsewhere(line):
        if not line.startswith("openrnn/math_kind\t"):
            return line
        return "\t".join([*line.split("\t")[:3], b"elsewhere".hex() + ","])

    rewrite(out / "model.ckpt-4", elsewhere)
    shown = good("inspect", out).stdout
    assert "arithmetic: math bf16, trained as elsewhere\n" in shown
    assert (f"note: trained as elsewhere, which this machine computes as {here}: another order of "
            "sums\n") in shown
    resumed = good("train", "--out", out, "--resume", "--steps", 6).stderr
    assert f"note: trained as 'elsewhere' so far, this machine computes '{here}'" in resumed
    assert f"trained as elsewhere, {here}\n" in good("inspect", out).stdout

    def of_gpus(line):
        if not line.startswith("openrnn/math\t"):
            return line
        return "\t".join([*line.split("\t")[:3], b"tf32".hex() + ","])

    rewrite(out / "model.ckpt-6", of_gpus)
    assert "note: this machine has no math tf32; --math chooses another one\n" in good("inspect", out).stdout
    rewrite(out / "model.ckpt-6",
            lambda line: None if line.startswith("openrnn/math") else line)
    assert "arithmetic: " not in good("inspect", out).stdout
    assert "note: trained" not in good("train", "--out", out, "--resume", "--steps", 8).stderr


def test_an_older_order_of_sums_is_told(runs, tmp_path):
    text, _ = runs
    out = tmp_path / "out"
    good(*small_flags(text, out, steps=4, lr_schedule="constant", warmup=0))
    assert "version" not in good("inspect", out).stdout
    rewrite(out / "model.ckpt-4",
            lambda line: None if line.startswith("openrnn/arithmetic\t") else line)
    note = "note: trained with sums of version "
    assert f"{note}1, this library's are of version 3\n" in good("inspect", out).stdout
    resumed = good("train", "--out", out, "--resume", "--steps", 6).stderr
    assert f"{note}'1' so far, this library's are of version '3'; the run goes on" in resumed
    assert f"{note}1, 3, this" in good("inspect", out).stdout
