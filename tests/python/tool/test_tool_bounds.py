"""The least and the most that each flag takes, what flags exclude, and the defaults that the help shows."""
import re

import pytest
from tool_runs import fault, good, small_flags, write_text

MOST = 2**40
# Flags whose numbers are not taken from the table of network options: call, flag, least, most.
BOUNDS = [
    *[("train", flag, 1, MOST) for flag in ("--horizon", "--batch", "--seq-len", "--epochs")],
    *[("train", flag, 0, MOST) for flag in ("--embedding", "--steps", "--warmup", "--valid-every", "--patience",
                                            "--save-steps", "--recompute")],
    ("train", "--keep", 0, 1000000), ("train", "--save-seconds", 0, 1000000000),
    ("generate", "--length", 0, MOST), ("generate", "--top-k", 0, MOST), ("generate", "--seed", 0, 2**64 - 1),
    ("run", "--stream", 1, MOST), ("bench", "--seconds", 0.01, 3600), ("bench", "--megabytes", 1, 2**20),
    *[(call, "--threads", 1, 1024) for call in ("train", "generate", "eval", "check-cells", "run", "bench")],
]
# What each call says once its flags are taken.
CALLS = {
    "train": ([], "[train] no --input, expected a file to train on"),
    "generate": (["/no/run"], "[resolve_run] '/no/run' does not exist"),
    "eval": (["/no/run", "--input", __file__], "[resolve_run] '/no/run' does not exist"),
    "check-cells": (["/no/run", "--input", __file__], "[resolve_run] '/no/run' does not exist"),
    "run": (["/no/model", "--input", "x", "--output", "y"], "[openrnn] model '/no/model': no such file"),
    "bench": (["--only", "xyzzy"], "[bench] --only 'xyzzy' names no"),
}


def over(bound, up):
    return bound + (1 if up else -1) * (0.001 if isinstance(bound, float) else 1)


@pytest.mark.parametrize("call, flag, least, most", BOUNDS, ids=lambda value: str(value).strip("-"))
def test_both_ends_are_taken_and_none_beyond(tmp_path, call, flag, least, most):
    words, taken = CALLS[call]
    words = [*words, *{"--megabytes": ["--load", tmp_path], "--horizon": ["--task", "series"]}.get(flag, [])]
    for value in (least, most):
        assert fault(call, *words, f"{flag}={value}").startswith(taken), value
    for value in (over(least, False), over(most, True)):
        line = fault(call, *words, f"{flag}={value}")
        wanted = f"of at least {least}" if flag == "--seed" else f"from {least} to {most}"
        assert re.fullmatch(rf"\[{call}\] {flag} {value}, expected a (whole|finite) number {wanted}", line)


@pytest.mark.parametrize("flag, least", [("--layers", 1), ("--units", 1), ("--seed", 0)])
def test_the_least_of_the_options_of_a_network(flag, least):
    assert fault("train", f"{flag}={least}") == "[train] no --input, expected a file to train on"
    assert fault("train", f"{flag}={least - 1}").startswith(f"[train] {flag} {least - 1}, expected a whole number from {least} ")


ALONE = ("--cells", "--gradients", "--load")
WORDS = {"--load": ["/no/folder"], "--seconds": ["1"], "--math": ["bf16"], "--weights-dtype": ["int8"],
         "--device": ["cpu"]}


@pytest.mark.parametrize("alone", ALONE)
@pytest.mark.parametrize("other", ["--company", "--seconds", "--math", "--weights-dtype", "--device", *ALONE])
def test_the_other_benchmarks_take_no_flags_of_layers(alone, other):
    if alone == other:
        return
    line = fault("bench", "--only", "xyzzy", alone, *WORDS.get(alone, []), other, *WORDS.get(other, []))
    first, second = re.match(r"\[bench\] (\S+) excludes (\S+) \(see", line).groups()
    assert {first, second} == {alone, other}


@pytest.mark.parametrize("call, words", [
    ("generate", []), ("eval", ["--input", "x"]), ("eval", ["run"]), ("inspect", []), ("plot", ["run"]),
    ("plot", ["--output", "x"]), ("check-cells", ["run"]), ("check-cells", ["--input", "x"]), ("convert", ["a"]),
    ("run", ["m", "--input", "x"]), ("run", ["m", "--output", "x"]), ("run", ["--input", "x", "--output", "y"]),
])
def test_what_a_call_cannot_do_without(call, words):
    assert re.match(rf"\[{call}\] \S+ is required \(see openrnn {call} --help\)", fault(call, *words))


@pytest.mark.parametrize("call, flag, value", [
    ("generate", "--math", "float16"), ("eval", "--math", "float16"), ("bench", "--math", "int8"),
    ("run", "--math", "tf32"), ("generate", "--weights-dtype", "float32"), ("eval", "--weights-dtype", "int4"),
    ("bench", "--weights-dtype", "float32"),
])
def test_words_of_an_arithmetic(call, flag, value):
    words, _ = CALLS[call]
    assert fault(call, *words, flag, value).startswith(f"[{call}] {flag} '{value}', expected one of ")


@pytest.fixture(name="run", scope="module")
def fixture_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bounds")
    text = write_text(folder)
    good(*small_flags(text, folder / "out", steps=12, save_steps=1, valid_every=0, save_seconds=0))
    return folder / "out", text


DEFAULTS = {"--length": 500, "--temperature": 0.8, "--top-k": 0, "--seed": 0}


def test_the_defaults_of_generate_are_those_that_its_help_shows(run):
    shown = good("generate", "--help").stdout
    for flag, value in DEFAULTS.items():
        assert re.search(rf"^  {flag} (INT|FLOAT)={value} ", shown, re.M), flag
    plain = good("generate", run[0]).stdout
    assert len(plain) == 500 + 1
    given = [str(word) for pair in DEFAULTS.items() for word in pair]
    assert good("generate", run[0], *given).stdout == plain
    assert good("generate", run[0], *given, "--prime", "\n").stdout == "\n" + plain
    for flag, value in (("--temperature", 0.7), ("--top-k", 2), ("--seed", 1), ("--prime", "the")):
        assert good("generate", run[0], flag, value).stdout != plain, flag


def test_five_checkpoints_are_kept_unless_told_otherwise(run, tmp_path):
    shown = good("train", "--help").stdout
    assert re.search(r"^  --keep INT=5 ", shown, re.M) and re.search(r"^  --save-seconds FLOAT=20 ", shown, re.M)
    assert re.search(r"^  --out TEXT=out ", shown, re.M)

    def kept(out):
        return sorted(int(path.stem.split("-")[1]) for path in out.glob("model.ckpt-*.index"))

    assert kept(run[0]) == [8, 9, 10, 11, 12]
    for keep, steps in ((2, [5, 6]), (0, [0, 1, 2, 3, 4, 5, 6])):
        out = tmp_path / str(keep)
        good(*small_flags(run[1], out, steps=6, save_steps=1, valid_every=0, save_seconds=0, keep=keep))
        assert kept(out) == steps
    good(*small_flags(run[1], tmp_path / "other", steps=6, save_steps=3, valid_every=0, save_seconds=0))
    assert kept(tmp_path / "other") == [0, 3, 6]


def test_a_folder_named_out_is_the_default(run, tmp_path):
    flags = small_flags(run[1], "out", steps=1)
    at = flags.index("--out")
    good(*flags[:at], *flags[at + 2:], cwd=tmp_path)
    assert (tmp_path / "out" / "model.ckpt-1.index").exists()


@pytest.mark.parametrize("threads", [1, 2])
def test_a_run_names_its_threads(run, tmp_path, threads):
    said = good(*small_flags(run[1], tmp_path / "out", steps=1, threads=threads)).stderr
    assert f"cpu, {threads} threads, 1 steps, " in said
