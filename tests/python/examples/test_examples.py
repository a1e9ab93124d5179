"""Every example learns what it says from real data, and its checkpoints give the same bits."""
import re

import numpy as np
import pytest
from example_runs import documented, figure, output, run

BOTH = pytest.mark.parametrize("language", ["c++", "python"])


@BOTH
def test_character_model(language, short_text_file):
    shown = output(language, "char_model", short_text_file)
    network = figure(shown, "held out, by the network")
    frequencies = figure(shown, "held out, by byte frequencies")
    assert 1.5 < network < frequencies - 1.5
    assert documented(language, "char_model", f"{frequencies:.2f} bits", f"| {network:.2f} |")
    # The text is English enough that a sample of 300 symbols has its commonest words.
    sample = shown[shown.rindex("held out, by"):]
    assert len(re.findall(r"\b(?:the|and|of|to)\b", sample)) >= 5
    if language == "python":
        assert "restored: the same bits\n" in shown


@BOTH
def test_digits(language, digits_csv):
    shown = output(language, "digits", *([digits_csv] if language == "c++" else []))
    assert "digits: 1438 to train on, 359 held out\n" in shown
    network = figure(shown, "accuracy of the network")
    assert 0.93 <= network < 1.0
    assert abs(figure(shown, "accuracy of the nearest mean image") - 305 / 359) < 1e-4
    assert documented(language, "digits", "0.850", f"| {network:.3f} |")


def test_forecast_of_sunspots(sunspots_csv):
    shown = output("c++", "forecast", sunspots_csv, "SUNACTIVITY")
    years = np.loadtxt(sunspots_csv, delimiter=",", skiprows=1)[:, 1]
    held_out = years[-61:]  # the last fifth of 309
    assert "61 forecasts of 'SUNACTIVITY', one row ahead\n" in shown

    def rmse(forecast):
        return np.sqrt(np.mean((forecast - held_out) ** 2))

    naive = figure(shown, "rmse of persistence")
    seasonal = figure(shown, "rmse of the seasonal naive forecast (11 rows)")
    np.testing.assert_allclose([naive, seasonal], [rmse(years[-62:-1]), rmse(years[-72:-11])],
                               rtol=1e-5)
    network = figure(shown, "rmse of the network")
    assert network < 0.65 * min(naive, seasonal)
    assert documented("c++", "forecast", f"{naive:.1f}", f"{seasonal:.1f}", f"| {network:.1f} |")


def test_forecast_of_carbon_dioxide():
    shown = output("python", "forecast")
    naive = [figure(shown, "mean absolute error of the seasonal naive forecast"),
             figure(shown, "mean absolute error of that with the last rise")]
    network = figure(shown, "mean absolute error of the network")
    assert network < 0.9 * min(naive)
    assert documented("python", "forecast", f"{min(naive):.3f} ppm", f"| {network:.3f} |")
    difference = re.search(r"compatible cells differ by at most (\S+) standard", shown).group(1)
    # A gate sums 33 products of norm 2 at most: 0.5 * eps * sqrt(33) * 2 = 7e-7, here and in the
    # cells, and 24 steps add no more than as many of those.
    assert float(difference) < 2 * 24 * 7e-7


@pytest.fixture(name="speller", scope="module", params=["c++", "python"])
def fixture_speller(request, text_file, tmp_path_factory):
    """A trained encoder-decoder: its language, checkpoint and output."""
    prefix = tmp_path_factory.mktemp("speller") / "model"
    return request.param, prefix, output(request.param, "encoder_decoder", text_file, prefix)


def result(shown):
    """The words that it shows, and how many are right of how many."""
    right = re.search(r"^held-out words right: (\d+) of (\d+)$", shown, re.MULTILINE)
    return re.findall(r"^(\w+) -> (\w*)$", shown, re.MULTILINE), *map(int, right.groups())


def test_encoder_decoder_spells_backwards(speller):
    language, _, shown = speller
    words, right, count = result(shown)
    assert documented(language, "encoder_decoder", f"| {right} of {count} held-out words |")
    assert count > 600 and right >= 0.85 * count
    assert sum(spelt == word[::-1] for word, spelt in words) >= 0.75 * len(words) > 0
    assert "restored 2 saveables\n" in shown and shown.endswith("\nthe same bits\n")


def test_encoder_decoder_in_a_new_process(speller, text_file):
    language, prefix, shown = speller
    again = output(language, "encoder_decoder", text_file, prefix,
                   "restore" if language == "c++" else "--restore")
    head, _, tail = shown.removesuffix("the same bits\n").partition("restored 2 saveables\n")
    assert again.endswith("restored 2 saveables\n" + tail)
    assert re.search(r"^logits: [0-9a-f]{16}$", tail, re.MULTILINE) and head.endswith(tail)


def test_encoder_decoder_in_the_other_language(speller, text_file):
    language, prefix, shown = speller
    other = (["python", "--restore"] if language == "c++" else ["c++", "restore"])
    again = output(other[0], "encoder_decoder", text_file, prefix, other[1])
    assert result(again.partition("restored 2")[2]) == result(shown.partition("restored 2")[2])


def test_streaming():
    shown = output("c++", "streaming")
    assert len(re.findall(r"^step \d: y\[0\] = -?\d[\d.e-]+$", shown, re.MULTILINE)) == 5


@BOTH
def test_same_bits_for_any_number_of_threads(language, digits_csv):
    words = [digits_csv, 1] if language == "c++" else ["--epochs", 1]
    shown = [output(language, "digits", *words, OPENRNN_NUM_THREADS=threads) for threads in "123"]
    assert shown[0] == shown[1] == shown[2] and "epoch 1: loss " in shown[0]


def test_same_bits_without_vectors(digits_csv):
    few = digits_csv.with_name("few.csv")  # plain C++ takes a hundred times as long
    few.write_text("".join(digits_csv.read_text().splitlines(keepends=True)[:120]))
    shown = [output("c++", "digits", few, 1, OPENRNN_ISA=isa) for isa in ("", "scalar")]
    assert shown[0] == shown[1] and "epoch 1: loss " in shown[0]


@pytest.mark.parametrize("words, complaint", [
    (["digits"], "usage: digits FILE.csv [EPOCHS]"),
    (["digits", "SUNSPOTS"], "2 numbers, expected a label and 64 pixels"),
    (["digits", "absent.csv"], "absent.csv"),
    (["forecast", "SUNSPOTS", "MOON"], "no column 'MOON'"),
    (["encoder_decoder", "absent.txt", "model"], "absent.txt"),
    (["encoder_decoder", "SUNSPOTS", "model"], "the text has too few words"),
])
def test_wrong_arguments(words, complaint, sunspots_csv):
    words = [sunspots_csv if word == "SUNSPOTS" else word for word in words]
    done = run("c++", words[0], *words[1:])
    assert done.returncode == 1 and complaint in done.stderr
