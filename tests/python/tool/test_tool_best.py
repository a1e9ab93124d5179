"""The best weights of --patience are a run like any other; what is not finite is an error."""
import re

import pytest
from tool_runs import fault, good, rewrite, small_flags, tool, write_text


def figure(done):
    """The number after the first word."""
    return float(re.match(r"\w+ (\d+\.\d{4})\n", done.stdout).group(1))


@pytest.fixture(name="early", scope="module")
def fixture_early(tmp_path_factory):
    """A run that stopped early, on words of its own to validate on: folder, text, what it said."""
    folder = tmp_path_factory.mktemp("best")
    text = write_text(folder, size=1500)
    valid = folder / "valid.txt"
    valid.write_text("far dogs ran while a cat sat on the mat\n" * 12)
    done = good(*small_flags(text, folder / "out", steps=2000, lr=0.05, dropout=0, valid=valid,
                             valid_every=5, patience=4, lr_schedule="constant"))
    return folder / "out", valid, done


def test_the_best_weights_are_a_run(early):
    out, valid, done = early
    said, step = re.search(r"stopped early: best validation (\S+) at step (\d+) is in",
                           done.stderr).groups()
    best = good("eval", out / "best", "--input", valid)
    assert figure(best) == float(said)
    assert figure(best) < figure(good("eval", out, "--input", valid))
    assert f"checkpoint {out}/best\n" in best.stdout
    assert len(good("generate", out / "best", "--length", 20).stdout) == 21
    shown = good("inspect", out / "best").stdout
    assert "arithmetic: math float32" in shown and "openrnn/vocabulary" in shown
    assert good("check-cells", out / "best", "--input", valid).stdout.endswith(
        "  the same numbers\n")
    assert int(step) + 20 == int(re.findall(r"^saved .*\(step (\d+)\)$", done.stderr, re.M)[-1])


def test_the_best_of_a_series_is_a_run(tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("".join(f"{row % 7},{row * row % 11}\n" for row in range(120)))
    good("train", "--task", "series", "--input", table, "--out", tmp_path / "out", "--units", 7,
         "--seq-len", 9, "--steps", 100, "--valid-every", 5, "--patience", 3)
    best = good("eval", tmp_path / "out" / "best", "--input", table)
    assert best.stdout.startswith("rmse_normalised ")


def test_without_patience_there_is_no_best(tmp_path):
    text = write_text(tmp_path)
    good(*small_flags(text, tmp_path / "out", steps=4, valid_every=2))
    assert "does not exist" in fault("generate", tmp_path / "out" / "best")


def test_weights_that_stand_alone_say_so(early):
    out, valid, _ = early
    prefix = out.parent / "alone"
    for end in (".index", ".data-00000-of-00001"):
        (out.parent / f"alone{end}").write_bytes((out / f"best{end}").read_bytes())
    rewrite(prefix, lambda line: None if line.startswith("openrnn/") else line)
    for call in (["generate", prefix], ["eval", prefix, "--input", valid]):
        assert fault(*call) == (
            f"[TrainedModel] checkpoint '{prefix}' has no openrnn/config and so does not say what "
            "model it is of, expected one of a run of the tool, or the run's folder")


def test_a_vocabulary_that_does_not_fit_is_refused(tmp_path):
    text = write_text(tmp_path)
    good(*small_flags(text, tmp_path / "out", steps=1))
    prefix = tmp_path / "out" / "model.ckpt-1"

    def shorter(line):
        name, kind, size, values = line.split("\t")
        if name != "openrnn/vocabulary":
            return line
        return "\t".join([name, kind, str(int(size) - 1), values[8:]])

    rewrite(prefix, shorter)
    for call in (["generate", prefix], ["eval", prefix, "--input", text],
                 ["check-cells", prefix, "--input", text]):
        assert re.search(r"has a vocabulary of (\d+) symbols and a model of \d+ inputs and \d+ "
                         "outputs, expected as many of each", fault(*call))


def blown(line):
    """A dense bias of infinities in place of numbers."""
    name, kind, size, _ = line.split("\t")
    if name != "dense/bias":
        return line
    return "\t".join([name, kind, size, "0000807f" * int(size)])


def test_what_is_not_finite_is_an_error(tmp_path):
    text = write_text(tmp_path)
    good(*small_flags(text, tmp_path / "out", steps=1))
    prefix = tmp_path / "out" / "model.ckpt-1"
    rewrite(prefix, blown)
    assert "[score_text] a loss of" in fault("eval", prefix, "--input", text)
    for more in ([], ["--temperature", 0], ["--top-k", 1]):
        done = tool("generate", prefix, *more)
        assert done.returncode == 2 and "[sample_text] a logit of" in done.stderr
    assert fault("check-cells", prefix, "--input", text, code=1) == (
        "[check-cells] cells and engine differ by inf, inf times the bound, expected at most the "
        "bound")


def test_a_series_that_overflows_is_an_error(tmp_path):
    table, huge = tmp_path / "table.csv", tmp_path / "huge.csv"
    rows = [f"{row % 7},{row % 3}" for row in range(120)]
    table.write_text("x,y\n" + "\n".join(rows) + "\n")
    series = ["train", "--task", "series", "--units", 4, "--steps", 2, "--input"]
    for place in (5, 115):  # among the rows that train, and those that are held out
        broken = rows.copy()
        broken[place] = "1,1e200"
        huge.write_text("x,y\n" + "\n".join(broken) + "\n")
        line = fault(*series, huge, "--out", tmp_path / f"huge{place}")
        assert "column 'y' with a mean of" in line if place == 5 else "expected a finite" in line
    good(*series, table, "--out", tmp_path / "out")
    assert "[score_series] an error of" in fault("eval", tmp_path / "out", "--input", huge)
    rewrite(tmp_path / "out" / "model.ckpt-2", blown)
    assert "[score_series] an error of" in fault("eval", tmp_path / "out", "--input", table)
