"""Runs the tool on small data, for the tests of this folder."""
import os
import pathlib
import random
import subprocess

DATA = pathlib.Path(__file__).resolve().parents[2] / "data"
BUILD = pathlib.Path(os.environ["OPENRNN_BUILD_DIR"])
TOOL = os.environ.get("OPENRNN_TOOL", str(BUILD / "openrnn"))
MINUTES = 5 * 60  # a bound for a hung process, far above what a run takes


def tool(*arguments, **options):
    """A finished call: returncode, stdout, stderr."""
    return subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True,
                          errors="replace", timeout=MINUTES, check=False, **options)


def good(*arguments, **options):
    """As tool(), and it must have succeeded."""
    done = tool(*arguments, **options)
    assert done.returncode == 0, (arguments, done.stdout, done.stderr)
    return done


def fault(*arguments, code=2, **options):
    """The one line on stderr of a call that must fail with this exit code."""
    done = tool(*arguments, **options)
    assert done.returncode == code, (arguments, done.returncode, done.stdout, done.stderr)
    complaints = [line for line in done.stderr.splitlines() if line.startswith("openrnn: ")]
    assert len(complaints) == 1 and done.stderr.splitlines()[-1] == complaints[0], done.stderr
    return complaints[0].removeprefix("openrnn: ")


def write_text(folder, name="text.txt", size=4000, seed=1):
    """Words in an order that a model can learn a little of."""
    words = ["the", "cat", "sat", "on", "a", "mat", "while", "dogs", "ran", "far"]
    draw, text = random.Random(seed), ""
    while len(text) < size:
        text += draw.choice(words) + ("\n" if draw.random() < 0.15 else " ")
    path = folder / name
    path.write_text(text + "\n", encoding="utf-8")
    return path


def small_flags(text, out, steps=60, **more):
    """A run of a second."""
    flags = {"--input": text, "--out": out, "--units": 9, "--layers": 2, "--embedding": 5,
             "--batch": 3, "--seq-len": 11, "--steps": steps, "--dropout": 0.2, "--seed": 7}
    flags.update({"--" + name.replace("_", "-"): value for name, value in more.items()})
    return ["train"] + [str(part) for pair in flags.items() for part in pair]


def checkpoint_bytes(out, step):
    """Everything in the checkpoint of one step: variables, slots, states, configuration."""
    prefix = pathlib.Path(out) / f"model.ckpt-{step}"
    return [(prefix.parent / (prefix.name + end)).read_bytes()
            for end in (".index", ".data-00000-of-00001")]


def rewrite(prefix, change):
    """A checkpoint with its lines of text changed, in place; None leaves a line out."""
    program = BUILD / "tool_bundle"
    lines = subprocess.run([program, "dump", prefix], capture_output=True, text=True, check=True)
    changed = [change(line) for line in lines.stdout.splitlines()]
    text = "\n".join(line for line in changed if line is not None) + "\n"
    subprocess.run([program, "write", prefix], input=text, text=True, check=True)
