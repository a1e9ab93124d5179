"""What is watched twice, and output gradients of targets that no tape knows."""

import numpy as np
import openrnn
import pytest


def test_watching_twice_keeps_what_was_computed_before():
    x = openrnn.constant([1.0, 2.0])
    with openrnn.GradientTape() as tape:
        tape.watch(x)
        before = openrnn.square(x)
        tape.watch(x)
        loss = openrnn.reduce_sum(before + x)
    np.testing.assert_array_equal(tape.gradient(loss, x).numpy(), [3.0, 5.0])
    with openrnn.GradientTape() as later:
        later.watch([x, x])
        loss = openrnn.reduce_sum(before * x)
    assert later.gradient(loss, x).numpy().tolist() == [1.0, 4.0]


def test_output_gradients_stand_by_their_targets():
    v = openrnn.Variable([1.0, 2.0], name="v")
    plain = openrnn.constant([5.0, 5.0])
    with openrnn.GradientTape() as tape:
        double, negative = v * 2.0, -v.read_value()
    start = np.array([1.0, 10.0], "float32")
    gradient = tape.gradient(
        [plain, double, plain, negative], v, [start * 100.0, start, None, start * 3.0]
    )
    np.testing.assert_array_equal(gradient.numpy(), start * 2.0 - start * 3.0)
    assert tape.gradient([plain], [v], [start]) == [None]


def test_assign_add_and_sub():
    step = openrnn.Variable(np.int64(4), name="step")
    assert int(step.assign_add(3)) == 7 and int(step.assign_sub(2)) == 5
    assert step.dtype == "int64"
    v = openrnn.Variable([1.0, 2.0], name="v")
    seen, version = v.numpy(), v.version
    v.assign_add([0.5, 0.5]).assign_sub(v)
    np.testing.assert_array_equal(v.numpy(), [0.0, 0.0])
    assert seen.tolist() == [1.0, 2.0] and v.version > version
    with pytest.raises(ValueError, match=r"\[assign_add\] the value is float32 of shape \[1\]"):
        v.assign_add([1.0])
