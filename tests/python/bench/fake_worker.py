"""A worker that computes y = scale * x, slowly, or refuses, or dies: fake_worker.py WHAT NUMBER."""

import os
import sys
import time

import numpy as np

from peers.workers import server

WHAT, NUMBER = sys.argv[1], float(sys.argv[2])


class Job:
    """What a call takes is in milliseconds where WHAT is 'slow'."""

    kernel = f"fake {WHAT}"

    def __init__(self, task):
        if WHAT == "refuse":
            raise server.Refused("never\nheard of it")
        self.x = np.asarray(task.array("x"), np.float32)
        self.training = task.training

    def call(self):
        if WHAT == "die":
            print("last words", file=sys.stderr, flush=True)
            os._exit(3)
        if WHAT == "hang":
            time.sleep(60)
        if WHAT == "raise":
            raise RuntimeError("no such kernel")
        print("noise on stdout")  # must not reach the other side
        time.sleep(NUMBER * 1e-3 if WHAT == "slow" else 1e-4)

    def results(self):
        if WHAT == "exact":
            return {"y": self.x.astype(np.float64)}
        return {"y": self.x * np.float32(NUMBER if WHAT == "scale" else 1.0)}


if __name__ == "__main__":
    server.main(Job, lambda: "Fake 1.0")
