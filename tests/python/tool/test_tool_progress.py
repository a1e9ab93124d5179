"""What training shows: one line that fits the terminal, or plain lines where there is none."""
import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios

import pytest
from tool_runs import MINUTES, TOOL, good, small_flags, write_text

DRAWN = re.compile(rb"\r\x1b\[K([^\r\n]*)(?=[\r\n])")  # what is written over the line before


def frames_flags(text, out, **more):
    """A run that shows a line after every step, and saves at its end alone."""
    return small_flags(text, out, valid_every=1, units=4, layers=1, save_seconds=0, **more)


class Screen:
    """A run on a terminal of its own."""

    def __init__(self, columns, arguments, **environment):
        self.master, slave = pty.openpty()
        self.resize(columns)
        self.process = subprocess.Popen(
            [TOOL, *arguments], stderr=slave, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
            env={**os.environ, "TERM": "xterm", **environment})
        os.close(slave)
        self.bytes = b""

    def resize(self, columns):
        """Rows and columns, as a window does; 0: it does not say."""
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

    def read(self):
        """Some more of what is shown; False at the end."""
        try:
            more = os.read(self.master, 512)
        except OSError:  # the other side is closed
            more = b""
        self.bytes += more
        return bool(more)

    def lines(self):
        """The lines that were drawn over one another."""
        return [line.decode() for line in DRAWN.findall(self.bytes) if b"step" in line
                or b"/" in line]

    def read_until(self, true_of_lines):
        """Reads until the lines are as wanted; they must become so before the run ends."""
        while not true_of_lines(self.lines()):
            assert self.read(), "the run ended before"

    def finish(self):
        """Reads to the end of a run that succeeds."""
        while self.read():
            pass
        assert self.process.wait(MINUTES) == 0
        os.close(self.master)
        return self.lines()


@pytest.mark.parametrize("columns, shown", [(40, 39), (80, 79), (200, 110), (12, 11), (0, 79)])
def test_a_line_fits_the_terminal(tmp_path, columns, shown):
    text = write_text(tmp_path)
    lines = Screen(columns, frames_flags(text, tmp_path / "out", steps=30)).finish()
    assert len(lines) == 30
    assert max(map(len, lines)) <= shown
    assert all("30" in line for line in lines)
    if columns == 200:
        assert "[####################] step 30/30" in lines[-1] and "bits per byte" in lines[-1]
    if columns in (0, 80):
        assert re.fullmatch(r"step 30/30  +\S+ tokens/s  \d\.\d{3} bits per byte  valid \d\.\d{3}  "
                            r"left 0:00", lines[-1])
    if columns == 40:
        assert re.fullmatch(r".*30/30 .*\d\.\d\d\d.*", lines[-1])


VALID = r"valid \d\.\d{3}"
RATE = r" *\S+ tokens/s  "


@pytest.mark.parametrize("columns, last", [
    (82, rf"\[#{{6}}\] step 30/30  {RATE}\d\.\d{{3}} bits per byte  {VALID}  left 0:00"),
    (81, rf"\[#{{5}}\] step 30/30  {RATE}\d\.\d{{3}} bits per byte  {VALID}  left 0:00"),
    (73, rf"step 30/30  {RATE}\d\.\d{{3}} bits per byte  {VALID}  left 0:00"),
    (72, rf"\[#{{10}}\] step 30/30  {RATE}\d\.\d{{3}}  {VALID}  left 0:00"),
    (58, rf"step 30/30  \d\.\d{{3}} bits per byte  {VALID}  left 0:00"),
    (55, rf"\[#{{10}}\] step 30/30  \d\.\d{{3}}  {VALID}  left 0:00"),
    (41, rf"\[#{{12}}\] 30/30  \d\.\d{{3}}  {VALID}"), (25, "30/30"), (4, "30/"),
])
def test_what_a_narrow_line_leaves_out(tmp_path, columns, last):
    """The longest text that fits, behind a bar if there is room for one."""
    lines = Screen(columns, frames_flags(write_text(tmp_path), tmp_path / "out", steps=30)).finish()
    assert re.fullmatch(last, lines[-1]), lines[-1]


def test_the_bar_grows_with_the_steps(tmp_path):
    lines = Screen(200, frames_flags(write_text(tmp_path), tmp_path / "out", steps=30)).finish()
    shown = [re.match(r"\[(#*)(\.*)\] step (\d+)/30 ", line).groups() for line in lines]
    assert [(len(done), len(left), int(step)) for done, left, step in shown] == [
        (step * 20 // 30, 20 - step * 20 // 30, step) for step in range(1, 31)]


def test_a_step_that_was_skipped_says_so(tmp_path):
    """Of a run that diverges; a narrow line has a short word for it, a narrower one none."""
    text = write_text(tmp_path)

    def shown(columns):
        flags = frames_flags(text, tmp_path / str(columns), steps=30, dtype="float16", lr=300,
                             warmup=0, lr_schedule="constant")
        return Screen(columns, flags).finish()

    wide, narrow, narrower = (shown(columns) for columns in (200, 85, 60))
    end = r"  left \d+:\d\d  \(skipped"
    skipped = [bool(re.search(end + r": gradients not finite\)$", line)) for line in wide]
    assert 0 < sum(skipped) < 30 == len(skipped)
    assert [bool(re.search(end + r"\)$", line)) for line in narrow] == skipped
    assert not any("skipped" in line for line in narrower)


def test_a_message_takes_the_place_of_the_line(tmp_path):
    """And the line of the last step stays."""
    out = tmp_path / "out"
    screen = Screen(200, frames_flags(write_text(tmp_path), out, steps=12, save_steps=5))
    screen.finish()
    first, *rest = screen.bytes.decode().split("\r\n")
    assert first.startswith("cpu, ") and "\r" not in first
    over = "\r\x1b[K"

    def saved(step):
        return f"saved {out / f'model.ckpt-{step}'} (step {step})"

    def steps(text):
        """Of the lines that are drawn over one another."""
        drawn = text.split(over)
        assert drawn[0] == ""
        return [int(re.match(r"\[[#.]{20}\] step (\d+)/12 ", line).group(1)) for line in drawn[1:]]

    assert rest[0] == saved(0)
    assert rest[1].endswith(over + saved(5))
    assert steps(rest[1].removesuffix(over + saved(5))) == [1, 2, 3, 4, 5]
    assert steps(rest[2].removesuffix(over + saved(10))) == [6, 7, 8, 9, 10]
    assert steps(rest[3]) == [11, 12]
    assert rest[4:] == [saved(12), ""]


def test_a_line_follows_a_resize(tmp_path):
    text = write_text(tmp_path)
    # More than a terminal holds unread, so that the run is not over before the window changes.
    screen = Screen(200, frames_flags(text, tmp_path / "out", steps=400))
    screen.read_until(lambda lines: len(lines) > 3)
    assert min(map(len, screen.lines())) > 79
    screen.resize(50)
    screen.read_until(lambda lines: len(lines[-1]) < 50)
    narrow = len(screen.lines())
    screen.read_until(lambda lines: len(lines) > narrow + 20)
    assert max(map(len, screen.lines()[narrow:])) < 50
    screen.resize(200)
    wide = len(screen.lines())
    lines = screen.finish()
    assert len(lines[-1]) > 79
    first = next(place for place in range(wide, len(lines)) if len(lines[place]) > 79)
    assert min(map(len, lines[first:])) > 79


def test_plain_lines_in_a_pipe_and_on_a_dumb_terminal(tmp_path):
    text = write_text(tmp_path)
    flags = small_flags(text, tmp_path / "pipe", valid_every=10)
    said = good(*flags).stderr
    assert "\r" not in said and "\x1b" not in said
    steps = re.findall(r"^step (\d+)/60  .* bits per byte  valid \d\.\d+  left \d+:\d\d$", said,
                       re.M)
    assert steps == ["10", "20", "30", "40", "50", "60"]
    flags = small_flags(text, tmp_path / "dumb", valid_every=10)
    screen = Screen(40, flags, TERM="dumb")
    screen.finish()
    assert b"\x1b" not in screen.bytes
    assert len(re.findall(rb"^step \d+/60  .*\r?$", screen.bytes, re.M)) == 6


def seconds_left(line):
    """The time that a line says is left, and what its speed says: 33 tokens a step."""
    match = re.match(r"step (\d+)/(\d+) +([\d.]+)([kM]?) tokens/s .* left ([\d:]+)$", line)
    step, steps, rate, unit, clock = match.groups()
    speed = float(rate) * {"": 1, "k": 1e3, "M": 1e6}[unit]
    left = sum(int(part) * 60**power for power, part in enumerate(reversed(clock.split(":"))))
    return left, 33 * (int(steps) - int(step)) / speed


def test_the_time_left_is_that_of_the_steps_of_this_process(tmp_path):
    """Also of a run that goes on, whose earlier steps took none of its time."""
    text, out = write_text(tmp_path), tmp_path / "out"
    fixed = {"lr_schedule": "constant", "valid_every": 20}
    good(*small_flags(text, out, steps=200, **fixed))
    more = small_flags(text, out, steps=2000000, **fixed) + ["--resume"]
    with subprocess.Popen([TOOL, *more], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL,
                          text=True) as process:
        lines = [line.rstrip() for line in process.stderr if line.startswith("step ")
                 and (process.send_signal(signal.SIGINT) or True)]
    assert process.returncode == 130
    left, expected = seconds_left(lines[0])
    assert left == pytest.approx(expected, rel=0.02)
