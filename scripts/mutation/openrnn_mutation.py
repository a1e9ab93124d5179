"""What a mutated module of the package asks: is mutation N switched on? (switches.h, in Python)"""
import mmap
import os

_active = int(os.environ.get("OPENRNN_MUTATION") or -1)
_reached = None
if os.environ.get("OPENRNN_MUTATIONS_REACHED"):
    with open(os.environ["OPENRNN_MUTATIONS_REACHED"], "r+b") as _file:
        _reached = mmap.mmap(_file.fileno(), 0)


def on(number):
    if _reached is not None:
        _reached[number] = 1
    return number == _active


def minus(number, a, b):
    return a + b if on(number) else a - b
