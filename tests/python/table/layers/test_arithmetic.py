"""math and weights_dtype of layers: arguments, members, copies, and what cannot be."""

import copy
import inspect

import numpy as np
import openrnn
import pytest
from table.support import B, I, KINDS, L, T, U, array, assert_names, draw, error_text
from table.support import make_layer, nothing_changes

MATHS = ["float32", "bf16", "bf16x3", "tf32", "fp16"]
STORED = ["none", "float16", "bfloat16", "int8"]
HERE = [{"math": "bf16"}, {"math": "bf16x3"}, *({"weights_dtype": name} for name in STORED[1:])]
BAD = [  # (what, arguments, what the message names)
    ("math", {"math": "bfloat16"}, ["bfloat16", *MATHS]),
    ("empty math", {"math": ""}, MATHS),
    ("weights_dtype", {"weights_dtype": "int4"}, ["int4", *STORED]),
    ("both", {"math": "bf16", "weights_dtype": "int8"}, ["bf16", "int8"]),
    ("bf16 of float64", {"math": "bf16", "dtype": "float64"}, ["bf16", "float64"]),
    ("int8 of float64", {"weights_dtype": "int8", "dtype": "float64"}, ["int8", "float64"]),
]
each = pytest.mark.parametrize("arithmetic", HERE, ids=["-".join(a.values()) for a in HERE])


def test_arguments_are_keywords_after_all_others(kind):
    found = inspect.signature(kind.layer).parameters
    assert list(found)[-4:] == ["math", "weights_dtype", "device", "network"]
    assert [found[name].kind for name in ("math", "weights_dtype")] == [
        inspect.Parameter.KEYWORD_ONLY] * 2
    assert (found["math"].default, found["weights_dtype"].default) == ("float32", None)
    layer = kind.layer(L, U)
    assert (layer.math, layer.weights_dtype, layer.math_kind) == ("float32", None, "float32")
    assert kind.layer(L, U, weights_dtype="none").weights_dtype is None
    assert kind.layer(L, U, dtype="float64").math_kind == "float64"


@each
def test_members_configuration_and_copies(kind, arithmetic):
    layer = make_layer(kind, **arithmetic)
    wanted = {"math": "float32", "weights_dtype": None, **arithmetic}
    x = draw(T, B, I)
    output = array(layer(x)[0])
    for one in (layer, copy.deepcopy(layer), kind.layer.from_config(layer.get_config())):
        assert {"math": one.math, "weights_dtype": one.weights_dtype} == wanted
        assert {key: one.get_config()[key] for key in wanted} == wanted
        assert one.math_kind == openrnn.math_kind(**arithmetic) == layer.math_kind
        if one.built:
            np.testing.assert_array_equal(array(one(x)[0]), output)


@each
def test_at_once_and_symbolic_are_the_same_bits(kind, caller, direction, arithmetic):
    layer = make_layer(kind, direction, **arithmetic)
    x = draw(T, B, I)
    output, states = caller(layer, x)
    again = layer(x)
    np.testing.assert_array_equal(array(again[0]), output)
    for found, wanted in zip(again[1], states, strict=True):
        np.testing.assert_array_equal(array(found), wanted)


@pytest.mark.parametrize("row", BAD, ids=[row[0] for row in BAD])
def test_wrong_arguments(kind, row):
    _, arguments, parts = row
    with nothing_changes():
        assert_names(error_text(ValueError, lambda: kind.layer(L, U, **arguments)), *parts)


@pytest.mark.parametrize("math", ["tf32", "fp16"])
def test_arithmetic_of_gpus(kind, caller, math):
    if any(one.name == "cudnn" and one.available for one in openrnn.list_engines()):
        pytest.skip("this machine has it")
    layer = kind.layer(L, U, math=math)
    with nothing_changes(layer):
        x = caller.tensor(draw(T, B, I))
        assert_names(error_text(openrnn.errors.EngineError, layer, x), math, "bf16")
        error_text(openrnn.errors.EngineError, lambda: layer.math_kind)
    assert issubclass(openrnn.errors.EngineError, RuntimeError)


@pytest.mark.parametrize("stored", STORED[1:])
def test_stored_weights_are_for_inference(kind, stored):
    layer = make_layer(kind, weights_dtype=stored)
    x = draw(T, B, I)
    output = array(layer(x)[0])
    with openrnn.GradientTape(), nothing_changes(layer):
        message = error_text(NotImplementedError, layer, x)
        assert_names(message, stored, "inference", "with_arithmetic")
        error_text(NotImplementedError, lambda: layer(x, training=False, save=True))
    with openrnn.GradientTape():
        np.testing.assert_array_equal(array(layer(x, training=False)[0]), output)


def test_one_layer_trains_and_another_runs(kind):
    trained = make_layer(kind, math="bf16")
    trained.note = "kept"
    fast = trained.with_arithmetic(weights_dtype="int8")
    assert type(fast) is kind.layer and fast.note == "kept"
    assert (fast.math, fast.weights_dtype, trained.weights_dtype) == ("float32", "int8", None)
    assert fast.kernel.name == trained.kernel.name and len(openrnn.global_variables()) == 1
    x = draw(T, B, I)
    before = array(fast(x)[0])
    with openrnn.GradientTape() as tape:
        loss = openrnn.reduce_sum(trained(x)[0])
    gradient = tape.gradient(loss, trained.kernel)
    trained.kernel.assign(array(trained.kernel) - 0.1 * array(gradient))
    after = array(fast(x)[0])
    assert (before != after).any()
    alone = make_layer(kind, weights_dtype="int8", name="alone")
    alone.set_weights(trained.get_weights())
    np.testing.assert_array_equal(array(alone(x)[0]), after)


def test_with_arithmetic_needs_variables_and_names():
    layer = KINDS[0].layer(L, U)
    error_text(RuntimeError, layer.with_arithmetic, math="bf16")
    layer.build((None, None, I))
    assert_names(error_text(ValueError, layer.with_arithmetic, math="half"), "half", *MATHS)
    error_text(ValueError, layer.with_arithmetic, math="bf16", weights_dtype="int8")
