"""Runs one test, as the sources have it now, under given mutations."""
import json
import os
import pathlib
import re
import shlex
import subprocess

import mutated_build
import places


def compiled(file):
    """The program of tests/room/name_test.cc, compiled anew; a new file as the next one of its room is."""
    file = pathlib.Path(file).resolve()
    below = file.relative_to(places.ROOT)
    entries = {os.path.relpath(e["file"], places.TREE): e
               for e in json.loads((places.BUILD / "compile_commands.json").read_text())
               if "_test.dir/" in e["command"]}  # some are compiled for a GPU's tests too
    room = f"tests/{below.parts[1]}/"
    like = str(below) if str(below) in entries else next(
        f for f in entries if f.startswith(room) and f.endswith("_test.cc"))
    target = f"{below.parts[1]}_{pathlib.Path(like).stem}"
    program, entry = places.WORK / f"try_{file.stem}", entries[like]
    command = shlex.split(entry["command"])
    old = command[command.index("-o") + 1]
    command[command.index("-o") + 1], command[command.index("-c") + 1] = f"{program}.o", str(file)
    command = [part.replace(f"{places.TREE}/tests", f"{places.ROOT}/tests") for part in command]
    subprocess.run(command, cwd=entry["directory"], check=True)
    link = mutated_build.run(["ninja", "-t", "commands", "-s", target], places.BUILD).stdout.strip().splitlines()[-1]
    link = re.sub(r"-o \S+", f"-o {program}", link.replace(old, f"{program}.o"), count=1)
    subprocess.run(link, cwd=places.BUILD, shell=True, check=True)
    return [program]


def try_test(test, numbers):
    """`test`: a C++ file, or arguments of pytest."""
    if test.endswith(".cc"):
        command, folder, more = compiled(test), places.BUILD, {}
    else:
        python = places.ROOT / ".venv/bin/python"
        command = [python, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *shlex.split(test)]
        folder, more = places.ROOT, places.python_environment()
    variables = {**os.environ, **more}
    if subprocess.run(command, cwd=folder, env=variables).returncode:
        raise SystemExit("[mutation] the test fails with no mutation switched on")
    for number in numbers:
        done = subprocess.run(command, cwd=folder, env={**variables, "OPENRNN_MUTATION": number},
                              capture_output=True, stdin=subprocess.DEVNULL)
        print(number, "caught" if done.returncode else "survives", flush=True)
