"""This library and ONNX Runtime on every case of the suite."""

import os

import pytest

pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")

from openrnn.conformance.judge import cases_of, judge, judge_gradients
from openrnn.conformance.lanes import ISAS, lanes_of
from openrnn.conformance.process import Backend

WHOLE = os.environ.get("OPENRNN_GRIDS") == "whole"
LANES = lanes_of("openrnn", {}, list(ISAS), ["reference", "cpu"])


@pytest.mark.parametrize("lane", LANES, ids=lambda lane: lane.name.split()[1])
def test_openrnn_passes_everything(suite_folder, lane):
    """Forward and backward, by the readings that the suite recommends; what is open may be refused where
    that is what it recommends. The plainest instruction set runs the pairs alone, all with OPENRNN_GRIDS=whole."""
    with Backend(lane.adapter, lane.python, environment=lane.environment) as backend:
        answer = backend.version()
        if not answer["ok"]:
            pytest.skip(f"{lane.name}: {answer['text']}")
        failures = []
        for case in cases_of(suite_folder):
            if lane.name == "openrnn scalar" and case.facts["kind"] != "pairs" and not WHOLE:
                continue
            verdict = judge(backend, case)
            wanted = "refused" if case.facts["group"] == "affine" else "pass"
            if verdict.status != wanted or verdict.number != 0:
                failures.append((case.name, verdict))
            verdict = judge_gradients(backend, case)
            if verdict.status != ("pass" if case.facts["gradients"] else "none"):
                failures.append((case.name, "gradients", verdict))
        assert not failures


def test_onnxruntime(suite_folder):
    """A second implementation: what it computes is inside the bounds, but for what docs/conformance.md
    says; so the oracle is not alone with its equations."""
    (lane,) = lanes_of("onnxruntime", {}, [], [])
    wrong, passed = set(), 0
    with Backend(lane.adapter) as backend:
        for case in cases_of(suite_folder):
            verdict = judge(backend, case)
            passed += verdict.status == "pass"
            if verdict.status not in ("pass", "refused"):
                wrong.add(case.name)
    assert wrong <= {f"{op}_thresholdedrelu_without_numbers" for op in ("rnn", "gru", "lstm")}
    assert passed >= 200
