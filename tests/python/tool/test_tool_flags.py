"""What the flags refuse and take, their defaults, and that the message names the cause."""
import math
import os
import re
import shutil
from pathlib import Path

import pytest
from tool_runs import checkpoint_bytes, fault, good, small_flags, write_text


@pytest.fixture(name="text", scope="module")
def fixture_text(tmp_path_factory):
    """A text to train on."""
    return write_text(tmp_path_factory.mktemp("flags"))


@pytest.fixture(name="table", scope="module")
def fixture_table(tmp_path_factory):
    """A series to train on."""
    path = tmp_path_factory.mktemp("flags") / "table.csv"
    path.write_text("a,b\n" + "".join(f"{math.sin(t):.4f},{t % 5}\n" for t in range(90)))
    return path


@pytest.mark.parametrize("typed, meant", [
    ("trian", "train"), ("evla", "eval"), ("inspct", "inspect"), ("generat", "generate"),
    ("bnech", "bench"), ("Train", "train"),
])
def test_a_slip_names_the_nearest_subcommand(typed, meant):
    assert fault(typed) == (f"[openrnn] '{typed}' is no subcommand, expected {meant} "
                            "(see openrnn --help)")


def test_another_word_names_them_all():
    line = fault("fly")
    assert "'fly' is no subcommand, expected one of train, generate, eval, forecast, inspect" in line


def test_a_slip_names_the_nearest_flag():
    assert "'--unit' is not expected here, but --units is" in fault("train", "--unit", "5")
    assert "'--untis=5' is not expected here, but --units is" in fault("train", "--untis=5")
    assert fault("train", "--xyzzy").startswith("[train] '--xyzzy' is not expected here (see")


@pytest.mark.parametrize("flag, value, sentence", [
    ("--units", "abc", "--units 'abc' is no number, expected a whole number from 1"),
    ("--units", "1.5", "--units 1.5, expected a whole number from 1"),
    ("--units", "", "--units '' is no number"),
    ("--units", "+-5", "--units '+-5' is no number"),
    ("--units", "0x10", "--units '0x10' is no number"),
    ("--units", "5 ", "--units '5 ' is no number"),
    ("--lr", "", "--lr '' is no number, expected a finite number"),
    ("--lr", "+-5", "--lr '+-5' is no number, expected a finite number"),
    ("--lr", "++5", "--lr '++5' is no number"),
    ("--lr", "inf", "--lr inf, expected a finite number"),
    ("--clip-norm", "nan", "--clip-norm nan, expected a finite number"),
    ("--dropout", "nan", "--dropout nan, expected a finite number"),
    ("--valid-fraction", "nan", "--valid-fraction nan, expected a finite number"),
    ("--save-seconds", "nan", "--save-seconds nan, expected a finite number from 0"),
    ("--save-seconds", "-1", "--save-seconds -1, expected a finite number from 0"),
    ("--save-steps", "", "--save-steps '' is no number"),
    ("--keep", "2.5", "--keep 2.5, expected a whole number from 0"),
    ("--threads", "many", "--threads 'many' is no number, expected a whole number from 1"),
    ("--threads", "0", "--threads 0, expected a whole number from 1 to 1024"),
    ("--columns", "", "--columns with an empty name"),
    ("--cell", "", "--cell '', expected one of rnn_relu, rnn_tanh, lstm, gru"),
    ("--out", "", "--out is empty, expected a folder"),
    ("--cell-clip", "", "--cell-clip '' is no number, expected a finite number"),
    ("--cell-clip", "-3,x", "--cell-clip 'x' is no number, expected a finite number"),
    ("--cell-clip", "-3,3,3", "--cell-clip '3,3' is no number, expected a finite number"),
    ("--cell-clip", "-inf,3", "--cell-clip -inf, expected a finite number"),
    ("--forget-bias", "nan", "--forget-bias nan, expected a finite number"),
    ("--num-proj", "0.5", "--num-proj 0.5, expected a whole number"),
])
def test_a_value_that_is_none(text, tmp_path, flag, value, sentence):
    line = fault("train", "--input", text, flag, value, cwd=tmp_path)
    assert line.startswith(f"[train] {sentence}")
    assert not list(tmp_path.iterdir())


def test_a_plus_is_a_sign(text, tmp_path):
    good(*small_flags(text, tmp_path / "out", steps="+2", lr="+1e-3"))


@pytest.mark.parametrize("flag, value", [("--temperature", "nan"), ("--temperature", ""),
                                         ("--seed", "-1"), ("--length", "x"), ("--top-k", "")])
def test_numbers_of_generate(flag, value):
    assert fault("generate", "run", flag, value).startswith(f"[generate] {flag} ")


@pytest.mark.parametrize("flag, value", [("--columns", "a"), ("--horizon", "2"),
                                         ("--target", "one")])
def test_flags_of_a_series_with_a_text(text, tmp_path, flag, value):
    said = f"[train] {flag} with --task text, expected it with --task series alone"
    out = tmp_path / "out"
    assert fault("train", "--input", text, "--out", out, flag, value) == said
    assert not out.exists()
    good(*small_flags(text, out, steps=1))
    assert fault("train", "--resume", "--out", out, flag, value) == said


@pytest.mark.parametrize("flag, value", [("--level", "char"), ("--embedding", "4"),
                                         ("--valid", "table.csv")])
def test_flags_of_a_text_with_a_series(table, tmp_path, flag, value):
    said = f"[train] {flag} with --task series, expected it with --task text alone"
    out = tmp_path / "out"
    series = ["train", "--task", "series", "--input", table, "--out", out]
    assert fault(*series, flag, value) == said
    assert not out.exists()
    good(*series, "--steps", 1)
    assert fault("train", "--resume", "--out", out, flag, value) == said


def test_context_with_a_series(table, tmp_path):
    good("train", "--task", "series", "--input", table, "--out", tmp_path / "out", "--steps", 1)
    assert fault("eval", tmp_path / "out", "--input", table, "--context", table) == (
        "[eval] --context with a run of the task series, expected it with one of the task text "
        "alone")


@pytest.mark.parametrize("flags, both", [
    (["--steps", "5", "--epochs", "1"], "--steps and --epochs"),
    (["--valid", "TEXT", "--valid-fraction", "0.1"], "--valid and --valid-fraction"),
    (["--patience", "3", "--valid-every", "0"], "--patience and --valid-every 0"),
])
def test_flags_that_exclude_each_other(text, tmp_path, flags, both):
    flags = [str(text) if word == "TEXT" else word for word in flags]
    line = fault("train", "--input", text, "--out", tmp_path / "out", *flags)
    assert line == f"[train] {both}, expected one of the two"


def test_messages_quote_a_part_of_what_is_long(table, tmp_path):
    long = "x" * 5000
    wide = tmp_path / "wide.csv"
    wide.write_text(",".join(f"column{i}" for i in range(500)) + "\n" + ",".join(["1"] * 500)
                    + "\n" + ",".join(["2"] * 499 + [long]) + "\n")
    series = ["train", "--task", "series", "--out", tmp_path / "out", "--input"]
    for call in (["train", "--units", long], ["train", "--cell", long], ["train", "--" + long],
                 [long], ["bench", "--only", long], [*series, table, "--columns", long],
                 [*series, wide], [*series, wide, "--columns", "q"],
                 ["train", "--device", long, "--input", table]):
        line = fault(*call)
        assert len(line) < 400 and "..." in line, line
    assert r"a\012\033[31mb" in fault("train", "--units", "a\n\x1b[31mb")


def test_a_checkpoint_is_named_in_three_wrong_ways(text, tmp_path):
    out = tmp_path / "out"
    good(*small_flags(text, out, steps=1))
    prefix = out / "model.ckpt-1"
    asked = "expected the output folder of a run or a checkpoint's prefix"
    for call in (["inspect"], ["generate"], ["eval", "--input", text]):
        for end in (".index", ".data-00000-of-00001"):
            assert fault(*call, f"{prefix}{end}") == (
                f"[resolve_run] '{prefix}{end}' is one file of a checkpoint, expected its prefix, "
                f"'{prefix}'")
        if call == ["inspect"]:  # which takes model files, too
            continue
        assert fault(*call, tmp_path / "no") == (
            f"[resolve_run] '{tmp_path / 'no'}' does not exist, {asked}")
        assert fault(*call, text) == (
            f"[resolve_run] '{text}' is a text file and no checkpoint, {asked}")
        assert fault(*call, tmp_path) == (
            f"[resolve_run] folder '{tmp_path}' holds no checkpoint, expected the output folder of "
            "a run")
    models = "expected a model file, the output folder of a run or a checkpoint's prefix"
    assert fault("inspect", tmp_path / "no") == f"[inspect] '{tmp_path / 'no'}' does not exist, {models}"
    assert fault("inspect", text) == f"[inspect] '{text}' is a text file, {models}"
    assert fault("inspect", tmp_path).startswith(f"[inspect] '{tmp_path}' is a folder with ")
    saved = tmp_path / "saved"
    (saved / "variables").mkdir(parents=True)
    (saved / "saved_model.pb").write_bytes(b"\x08\x01")
    for end in (".index", ".data-00000-of-00001"):
        shutil.copy(f"{prefix}{end}", saved / "variables" / f"variables{end}")
    inside = saved / "variables" / "variables"
    assert "a SavedModel of TensorFlow" in good("inspect", saved).stdout
    assert fault("generate", saved) == (
        f"[resolve_run] folder '{saved}' is a SavedModel, expected the prefix of its checkpoint, "
        f"'{inside}'")
    assert "tensor" in good("inspect", inside).stdout


def test_inspect_verifies_unless_it_is_to_be_fast(text, tmp_path):
    out = tmp_path / "out"
    good(*small_flags(text, out, steps=1))
    assert "every checksum is right\n" in good("inspect", out).stdout
    _, data = checkpoint_bytes(out, 1)
    broken = data[:100] + bytes([data[100] ^ 16]) + data[101:]
    (out / "model.ckpt-1.data-00000-of-00001").write_bytes(broken)
    assert "model.ckpt-1.data" in fault("inspect", out)
    shown = good("inspect", out, "--fast").stdout
    assert "not verified\n" in shown and "opaque_kernel" in shown


MOST = 2**40
# Flags whose numbers are not taken from the table of network options: call, flag, least, most.
BOUNDS = [
    *[("train", flag, 1, MOST) for flag in ("--horizon", "--batch", "--seq-len", "--epochs")],
    *[("train", flag, 0, MOST) for flag in ("--embedding", "--steps", "--warmup", "--valid-every", "--patience",
                                            "--save-steps", "--recompute")],
    ("train", "--keep", 0, 1000000), ("train", "--save-seconds", 0, 1000000000),
    ("generate", "--length", 0, MOST), ("generate", "--top-k", 0, MOST), ("generate", "--seed", 0, 2**64 - 1),
    ("run", "--stream", 1, MOST), ("bench", "--seconds", 0.01, 3600), ("bench", "--megabytes", 1, 2**20),
    ("forecast", "--horizon", 1, MOST),
    *[(call, "--threads", 1, 1024) for call in ("train", "generate", "eval", "forecast", "check-cells", "run", "bench")],
]
# What each call says once its flags are taken.
CALLS = {
    "train": ([], "[train] no --input, expected a file to train on"),
    "generate": (["/no/run"], "[resolve_run] '/no/run' does not exist"),
    "eval": (["/no/run", "--input", __file__], "[resolve_run] '/no/run' does not exist"),
    "forecast": (["/no/run", "--input", __file__], "[resolve_run] '/no/run' does not exist"),
    "check-cells": (["/no/run", "--input", __file__], "[resolve_run] '/no/run' does not exist"),
    "run": (["/no/model", "--input", "x", "--output", "y"], "[openrnn] model '/no/model': no such file"),
    "bench": (["--only", "xyzzy"], "[bench] --only 'xyzzy' names no"),
}


def over(bound, up):
    return bound + (1 if up else -1) * (0.001 if isinstance(bound, float) else 1)


@pytest.mark.parametrize("call, flag, least, most", BOUNDS, ids=lambda value: str(value).strip("-"))
def test_both_ends_are_taken_and_none_beyond(tmp_path, call, flag, least, most):
    words, taken = CALLS[call]
    with_it = {"--megabytes": ["--load", tmp_path], "--horizon": ["--task", "series"] if call == "train" else []}
    words = [*words, *with_it.get(flag, [])]
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
    ("forecast", ["--input", "x"]), ("forecast", ["run"]),
    ("plot", ["--output", "x"]), ("check-cells", ["run"]), ("check-cells", ["--input", "x"]), ("convert", ["a"]),
    ("run", ["m", "--input", "x"]), ("run", ["m", "--output", "x"]), ("run", ["--input", "x", "--output", "y"]),
])
def test_what_a_call_cannot_do_without(call, words):
    assert re.match(rf"\[{call}\] \S+ is required \(see openrnn {call} --help\)", fault(call, *words))


@pytest.mark.parametrize("call, flag, value", [
    ("generate", "--math", "float16"), ("eval", "--math", "float16"), ("bench", "--math", "int8"),
    ("run", "--math", "tf32"), ("generate", "--weights-dtype", "float32"), ("eval", "--weights-dtype", "int4"),
    ("bench", "--weights-dtype", "float32"), ("forecast", "--math", "float16"), ("forecast", "--weights-dtype", "int4"),
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


@pytest.mark.parametrize("typed, meant", [
    ("urn", "run"), ("rnu", "run"), ("ruin", "run"), ("plat", "plot"), ("bxxch", "bench"), ("trian ", "train"),
    ("check_cell", "check-cells"), ("forcast", "forecast"),
])
def test_slips_of_one_or_two_letters(typed, meant):
    """Two that are exchanged are one slip."""
    assert fault(typed) == f"[openrnn] '{typed}' is no subcommand, expected {meant} (see openrnn --help)"


@pytest.mark.parametrize("typed", ["pxxt", "ru__", "gxxxrate", "", "inspect" * 8])
def test_words_that_are_near_none(typed):
    """Not half of the letters, no more than two, and not of any length."""
    assert " is no subcommand, expected one of train, generate, " in fault(typed)


@pytest.mark.parametrize("call, flag, kind", [
    ("train", "--units", "INT"), ("train", "--dropout", "FLOAT"), ("train", "--cell-clip", "FLOAT,FLOAT"),
    ("train", "--activation", "ACTIVATION"), ("train", "--cell", "{rnn_relu,rnn_tanh,lstm,gru}"),
    ("train", "--dtype", "{float16,bfloat16,float32,float64}"), ("train", "--lr", "FLOAT"),
    ("train", "--reduction", "{exact,fast}"), ("convert", "--to", "KIND"), ("run", "--math", "{float32,bf16,bf16x3}"),
    ("inspect", "--mode", "{rnn_tanh,rnn_relu}"), ("inspect", "--opaque-network", "JSON"),
    ("inspect", "--reset-after", "{true,false}"), ("run", "--forget-bias", "FLOAT"),
])
def test_the_help_shows_what_a_value_is(call, flag, kind):
    assert re.search(rf"^  {flag} {re.escape(kind)}(\s|$)", good(call, "--help").stdout, re.M)


def test_a_version_is_one_line():
    assert re.fullmatch(r"openrnn \d+\.\d+\.\d+\S*\n", good("--version").stdout)
    assert good("train", "--help").stderr == ""


KEPT = Path(__file__).with_name("help.txt")


def test_the_help_of_every_call_is_the_kept_one():
    """Word for word but for the library's own layout, and its lists of flags that exclude others, which have no
    order. OPENRNN_REGENERATE_DOCS=1 writes the file."""
    calls = re.findall(r"^ +([a-z-]+)  +[A-Z]", good("--help").stdout.split("Subcommands:")[1], re.M)
    assert len(calls) == 11
    found = ""
    for call in calls:
        shown = re.sub(r"Excludes: (--\S+\s+)+", "", good(call, "--help").stdout)
        head, *flags = re.split(r"\n +(?=--)", shown)
        places = re.search(r"^positionals:\n(.*?)\n\n", head, re.S | re.M | re.I)
        words = re.split(r"\n +(?=[a-z]+ TEXT)", "\n" + places.group(1))[1:] if places else []
        found += "\n".join([f"{call}: {head.strip().splitlines()[0]}",
                           *(" ".join(each.split()) for each in [*words, *flags]), ""])
    if os.environ.get("OPENRNN_REGENERATE_DOCS"):
        KEPT.write_text(found)
    assert found == KEPT.read_text()
