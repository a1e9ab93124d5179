"""The data: digits of scikit-learn, sunspots of statsmodels, words of the King James Bible."""
import subprocess

import numpy as np
import pytest
import sklearn.datasets
from statsmodels.datasets import sunspots


@pytest.fixture(scope="session")
def digits_csv(tmp_path_factory):
    """A label and 64 pixels a line."""
    pixels, labels = sklearn.datasets.load_digits(return_X_y=True)
    path = tmp_path_factory.mktemp("digits") / "digits.csv"
    np.savetxt(path, np.column_stack([labels, pixels]), fmt="%d", delimiter=",")
    return path


@pytest.fixture(scope="session")
def sunspots_csv(tmp_path_factory):
    """Yearly sunspot numbers, 1700 to 2008."""
    path = tmp_path_factory.mktemp("sunspots") / "sunspots.csv"
    sunspots.load_pandas().data.to_csv(path, index=False)
    return path


@pytest.fixture(scope="session")
def text_file(tmp_path_factory):
    """The whole text, a verse a line without its number."""
    done = subprocess.run(["bible", "-f", "gen1:1-rev22:21"], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=True, timeout=60)
    path = tmp_path_factory.mktemp("text") / "text.txt"
    verses = [line.partition(" ")[2] for line in done.stdout.splitlines()]
    path.write_text("\n".join(verses) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def short_text_file(text_file):
    """Its first 300 kB."""
    path = text_file.with_name("short.txt")
    path.write_bytes(text_file.read_bytes()[:300_000])
    return path
