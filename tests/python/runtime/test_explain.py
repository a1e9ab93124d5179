"""openrnn.explain."""

import openrnn
import pytest


def test_it_says_what_would_run() -> None:
    found = openrnn.explain(num_units=8, input_size=3, rnn_mode="gru", reset_after=False, batch=4)
    assert found.engine == "cpu"
    assert found.kernels == "gru step with options: reset_after false"
    assert found.math_kind == "float32" and found.same_bits
    assert found.params_bytes == 4 * (3 * 8 * (3 + 8) + 6 * 8)
    assert found.saved_bytes is not None and found.saved_bytes > 0
    assert [name for name, _ in found.others] == ["cudnn", "reference"]
    assert "engine       cpu" in str(found)


def test_what_no_engine_runs_is_no_error() -> None:
    found = openrnn.explain(num_units=8, input_size=3, math="tf32")
    assert found.engine == "" and found.saved_bytes is None
    assert dict(found.others)["cpu"]


def test_options_are_checked() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'units'"):
        openrnn.explain(units=3)
    with pytest.raises(ValueError, match="num_units is 0, expected 1 to"):
        openrnn.explain(input_size=3)
    with pytest.raises(ValueError, match="name is 'tpu', expected 'cpu'"):
        openrnn.explain(num_units=8, input_size=3, device="tpu")


def test_what_a_call_keeps_is_of_its_time_and_batch() -> None:
    """States are of each row, so that many rows of few steps keep more than few rows of many."""

    def bytes_of(time: int, batch: int, save: bool | str | int) -> int:
        found = openrnn.explain(num_units=40, input_size=3, max_time=time, batch=batch, save=save)
        assert found.saved_bytes is not None
        return found.saved_bytes

    assert bytes_of(2, 50, "inputs") > 2 * bytes_of(50, 2, "inputs")
    assert bytes_of(50, 2, True) > bytes_of(50, 2, 5) >= bytes_of(50, 2, "inputs") > bytes_of(2, 2, "inputs")
    assert repr(openrnn.explain(num_units=8, input_size=3)) == "<openrnn explanation: cpu>"
    assert repr(openrnn.explain(num_units=8, input_size=3, math="tf32")) == "<openrnn explanation: no engine>"
