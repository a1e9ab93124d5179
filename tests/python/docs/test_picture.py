"""The picture of README.md shows the table of docs/benchmarks.md."""

import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[3]


def test_the_picture_is_that_of_the_table(tmp_path):
    drawn = tmp_path / "speed.svg"
    subprocess.run([ROOT / "scripts" / "draw_speed", drawn], check=True)
    text = drawn.read_text(encoding="utf-8")
    assert text == (ROOT / "docs" / "speed.svg").read_text(encoding="utf-8"), "scripts/draw_speed"
    assert text.count('r="4.5"') > 4 + 20 * 3  # the legend's, and most cells of the table
