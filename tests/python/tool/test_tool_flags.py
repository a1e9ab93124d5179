"""What the flags refuse, and that the message names the cause."""
import math
import shutil

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
    assert "'fly' is no subcommand, expected one of train, generate, eval, inspect" in line


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
