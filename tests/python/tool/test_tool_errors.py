"""Bad input and faults of the machine: one line, the right exit code, and nothing lost."""
import pathlib
import re
import resource
import subprocess

import pytest
from tool_runs import MINUTES, TOOL, checkpoint_bytes, fault, good, small_flags, write_text


@pytest.fixture(name="run", scope="module")
def fixture_run(tmp_path_factory):
    """A finished run: folder and text."""
    folder = tmp_path_factory.mktemp("errors")
    text = write_text(folder)
    good(*small_flags(text, folder / "out", steps=3))
    return folder / "out", text


@pytest.mark.parametrize("arguments, sentence", [
    ([], "[openrnn] A subcommand is required"),
    (["train", "--units", "many"], "[train] --units"),
    (["train", "--units", "0"], "[train] --units"),
    (["train", "--units", "-3"], "[train] --units"),
    (["train", "--cell", "transformer"], "[train] --cell"),
    (["train", "--no-such-flag"], "[train] "),
    (["train"], "[train] no --input, expected a file to train on"),
    (["eval", "run"], "[eval] --input is required"),
    (["generate", "/no/such/run"], "'/no/such/run' does not exist"),
    (["inspect", "/no/such/run"], "'/no/such/run' does not exist"),
    (["bench", "--only", "LSTM L9"], "--only 'LSTM L9' names no configuration"),
    (["plot", "/", "--output", "x.svg"], "'/' holds no event files"),
])
def test_bad_flags_exit_2(arguments, sentence):
    assert sentence in fault(*arguments)


def test_a_device_that_does_not_exist(run, tmp_path):
    for call in (["generate", run[0]], ["eval", run[0], "--input", run[1]], ["bench", "--only", "LSTM L1 U64 B1"],
                 ["train", "--input", run[1], "--out", tmp_path / "out"]):
        assert "nowhere:7" in fault(*call, "--device", "nowhere:7")


@pytest.mark.parametrize("flag, value, sentence", [
    ("--lr", "-1", "learning_rate -1, expected a finite number of at least 0"),
    ("--dropout", "1.5", "1.5"),
    ("--clip-norm", "-1", "clip_norm -1, expected a finite number"),
    ("--micro-batches", "5", "--micro-batches 5 with --batch 32, expected a divisor of it: parts are"),
    ("--batch", "100000", "expected at least 100001 for 100000 parallel streams"),
    ("--valid-fraction", "1", "valid_fraction 1, expected more than 0 and less than 1"),
])
def test_bad_values_exit_2_and_leave_nothing(run, tmp_path, flag, value, sentence):
    line = fault("train", "--input", run[1], "--out", tmp_path / "out", flag, value)
    assert sentence in line
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("content, level, sentence", [
    (b"", "byte", "is empty, expected a text"),
    (b"only one line\n", "byte", "has 1 line, expected at least 2"),
    (b"a\nb\n", "byte", "expected at least 33 for 32 parallel streams"),
    (b"good\nbad \xff\n" * 50, "char", "byte 9 is not UTF-8"),
])
def test_bad_texts_exit_2(tmp_path, content, level, sentence):
    text = tmp_path / "text.txt"
    text.write_bytes(content)
    line = fault("train", "--input", text, "--out", tmp_path / "out", "--level", level)
    assert sentence in line


@pytest.mark.parametrize("content, sentence", [
    ("", "is empty, expected rows of numbers"),
    ("x,y\n1,2\n3,\n", "row 3, column 'y': a missing cell, expected a number"),
    ("x,y\n1,2\n3,oops\n", "row 3, column 'y': 'oops', expected a number"),
    ("x,y\n1,2\n3,4,5\n", "row 3 has 3 cells, expected 2"),
    ("x\n1\n2\n3\n", "3 rows, expected at least 25"),
])
def test_bad_tables_exit_2(tmp_path, content, sentence):
    table = tmp_path / "table.csv"
    table.write_text(content)
    line = fault("train", "--task", "series", "--input", table, "--out", tmp_path / "out")
    assert sentence in line


def test_a_missing_input_is_one_line(tmp_path):
    line = fault("train", "--input", tmp_path / "no.txt", "--out", tmp_path / "out")
    assert line == f"[openrnn] --input '{tmp_path / 'no.txt'}': no such file, expected one"


def test_a_folder_that_holds_a_run_is_refused(run):
    out, text = run
    before = checkpoint_bytes(out, 3)
    line = fault(*small_flags(text, out, steps=5))
    assert f"--out '{out}' holds a run ('{out}/model.ckpt-3'), expected another folder" in line
    assert checkpoint_bytes(out, 3) == before


@pytest.mark.parametrize("flag, given, of_run", [
    ("--units", "10", "9"), ("--cell", "gru", "lstm"), ("--lr", "0.5", "0.004"),
    ("--task", "series", "text"), ("--steps", "9", "3"), ("--seed", "1", "7"),
    ("--dtype", "float64", "float32"), ("--optimizer", "sgd", "adam"), ("--batch", "4", "3"),
    ("--level", "char", "byte"), ("--layers", "1", "2"), ("--embedding", "0", "5"),
    ("--dropout", "0.5", "0.2"), ("--math", "bf16", "float32"), ("--valid-fraction", "0.1", "0.05"),
    ("--seq-len", "12", "11"), ("--lr-schedule", "constant", "cosine"), ("--warmup", "9", "0"),
    ("--clip-norm", "2", "1"), ("--micro-batches", "3", "1"), ("--valid-every", "2", "1"), ("--patience", "4", "0"),
    ("--epochs", "1", "0"),
])
def test_contradicting_flags_name_both_values(run, flag, given, of_run):
    line = fault("train", "--out", run[0], "--resume", flag, given)
    assert line == (f"[train] {flag} {given} contradicts the run to resume, "
                    f"expected {flag} {of_run}")


@pytest.mark.parametrize("more", [[], ["--horizon", 2], ["--input"]])
def test_another_task_is_refused_before_its_flags_and_data_are(run, tmp_path, more):
    table = tmp_path / "table.csv"
    table.write_text("a,b\n" + "1,2\n" * 90)
    more = more if more != ["--input"] else ["--input", table]
    line = fault("train", "--task", "series", "--out", run[0], "--resume", *more)
    assert line == "[train] --task series contradicts the run to resume, expected --task text"


def test_a_file_is_no_folder_for_a_run(run, tmp_path):
    out = tmp_path / "out"
    out.write_text("mine")
    for more in ([], ["--resume"]):
        assert fault("train", "--input", run[1], "--out", out, *more) == (
            f"[train] --out '{out}' is a file, expected a folder or nothing")
    assert out.read_text() == "mine"


@pytest.mark.parametrize("flag, given, of_run", [
    ("--columns", "a", "a,b"), ("--horizon", "2", "1"), ("--target", "one", "sequence"),
    ("--task", "text", "series"),
])
def test_contradicting_flags_of_a_series(tmp_path, flag, given, of_run):
    table = tmp_path / "table.csv"
    table.write_text("a,b\n" + "".join(f"{row % 7},{row % 3}\n" for row in range(90)))
    out = tmp_path / "out"
    good("train", "--task", "series", "--input", table, "--out", out, "--steps", 1)
    line = fault("train", "--out", out, "--resume", flag, given)
    assert line == (f"[train] {flag} {given} contradicts the run to resume, "
                    f"expected {flag} {of_run}")


def test_other_data_is_refused_on_resume(run, tmp_path):
    other = write_text(tmp_path, seed=2)
    line = fault("train", "--out", run[0], "--resume", "--input", other)
    assert f"--input '{other}' has other data" in line and str(run[1]) in line


def test_another_text_to_validate_on_is_refused_on_resume(run, tmp_path):
    text, other = run[1], write_text(tmp_path, seed=2)
    line = fault("train", "--out", run[0], "--resume", "--valid", other)
    assert line.startswith(f"[train] --valid '{other}' contradicts the run to resume, expected none")
    out, valid = tmp_path / "out", write_text(tmp_path, "valid.txt", seed=3)
    good(*small_flags(text, out, steps=1, valid=valid))
    line = fault("train", "--out", out, "--resume", "--valid", other)
    assert f"--valid '{other}' has other data" in line and str(valid) in line
    moved = valid.rename(tmp_path / "moved.txt")
    good("train", "--out", out, "--resume", "--valid", moved)


@pytest.mark.parametrize("damage", ["truncate", "flip", "no run", "empty"])
def test_broken_checkpoints_are_refused(run, tmp_path, damage):
    prefix = tmp_path / "model.ckpt-3"
    index, data = checkpoint_bytes(run[0], 3)
    if damage == "truncate":
        data = data[:len(data) // 2]
    elif damage == "flip":
        data = data[:1000] + bytes([data[1000] ^ 16]) + data[1001:]
    elif damage == "empty":
        index = b""
    else:
        index = b"no checkpoint at all" * 10
    pathlib.Path(f"{prefix}.index").write_bytes(index)
    pathlib.Path(f"{prefix}.data-00000-of-00001").write_bytes(data)
    line = fault("eval", prefix, "--input", run[1])
    assert str(prefix) in line


def limited(size):
    """Makes every write beyond `size` bytes of a file fail, as a full disk does."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def test_a_full_disk_exits_1_and_loses_nothing(tmp_path):
    text = write_text(tmp_path)
    out = tmp_path / "out"
    flags = ["--lr-schedule", "constant", "--valid-every", "10", "--warmup", "2"]
    good(*small_flags(text, out, steps=20), *flags)
    before = checkpoint_bytes(out, 20)
    size = len(before[1])
    line = fault(*small_flags(text, out, steps=40), *flags, "--resume", code=1,
                 preexec_fn=limited(size // 2))
    assert str(out) in line
    assert checkpoint_bytes(out, 20) == before
    assert good("eval", out, "--input", text).stdout.startswith("bits_per_byte ")
    assert not [path for path in out.iterdir() if "model.ckpt-40" in path.name]
    good(*small_flags(text, out, steps=40), *flags, "--resume")
    good(*small_flags(text, tmp_path / "whole", steps=40), *flags)
    assert checkpoint_bytes(out, 40) == checkpoint_bytes(tmp_path / "whole", 40)


def test_memory_that_ends_says_how_much_was_asked_for(run, tmp_path):
    def limit_memory():
        resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))

    flags = small_flags(run[1], tmp_path / "out", units=30000, layers=1, threads=1)
    line = fault(*flags, code=1, preexec_fn=limit_memory)
    assert re.match(r"\[allocate\] \d{11} bytes are asked for, expected no more than", line)


def test_an_unwritable_folder_exits_1(run):
    line = fault(*small_flags(run[1], "/proc/openrnn"), code=1)
    assert "/proc/openrnn" in line


def test_output_that_does_not_arrive_exits_1(run):
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run([TOOL, "generate", str(run[0])], stdout=full, stderr=subprocess.PIPE,
                              text=True, check=False, timeout=MINUTES)
    assert done.returncode == 1
    assert done.stderr == ("openrnn: [stdout] not all output could be written, expected a writable "
                           "output\n")
