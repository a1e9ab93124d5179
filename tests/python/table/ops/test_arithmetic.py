"""math and weights_dtype of the op-level models and functions."""

import inspect

import numpy as np
import openrnn
import pytest
from table.ops.op_support import EAGER_SYMBOLIC, call_op, make_arguments, make_op
from table.support import B, I, L, T, U, array, assert_names, error_text

HERE = [{"math": "bf16"}, {"math": "bf16x3"}, {"weights_dtype": "float16"},
        {"weights_dtype": "bfloat16"}, {"weights_dtype": "int8"}]  # fmt: skip
each = pytest.mark.parametrize("arithmetic", HERE, ids=["-".join(a.values()) for a in HERE])


def test_arguments_are_keywords_after_all_others(kind):
    for function in (kind.op, kind.function):
        found = inspect.signature(function).parameters
        newest = ["math", "weights_dtype"] + (["device", "network"] if function is kind.op else [])
        assert list(found)[-len(newest):] == newest
        assert found["math"].kind is found["weights_dtype"].kind is inspect.Parameter.KEYWORD_ONLY
        assert (found["math"].default, found["weights_dtype"].default) == ("float32", None)
    op, _ = make_op(kind)
    assert (op.math, op.weights_dtype, op.math_kind) == ("float32", None, "float32")


@each
@EAGER_SYMBOLIC
def test_models_functions_and_layers_agree(kind, arithmetic, symbolic):
    op, spec = make_op(kind, **arithmetic)
    wanted = {"math": "float32", "weights_dtype": None, **arithmetic}
    assert {"math": op.math, "weights_dtype": op.weights_dtype} == wanted
    assert op.math_kind == openrnn.math_kind(**arithmetic)
    given = make_arguments(spec)
    found = call_op(op, given, symbolic, is_training=False)
    again = call_op(kind.function, given, symbolic, is_training=False, **arithmetic)
    layer = kind.layer(L, U, **arithmetic)
    layer.build((None, None, I))
    layer.set_weights([given[-1]])
    output, states = layer(given[0], tuple(given[1:-1]), training=False)
    for one, two, three in zip(found, again, [output, *states], strict=True):
        np.testing.assert_array_equal(one, two)
        np.testing.assert_array_equal(one, array(three))


def test_wrong_arguments(kind):
    assert_names(error_text(ValueError, make_op, kind, math="fast"), "fast", "bf16x3")
    assert_names(error_text(ValueError, make_op, kind, weights_dtype="int4"), "int4", "int8")
    assert_names(error_text(ValueError, make_op, kind, math="bf16", dtype="float64"), "float64")
    _, spec = make_op(kind)
    given = make_arguments(spec)
    for wrong in ({"math": "fast"}, {"weights_dtype": "int4"}):
        error_text(ValueError, lambda wrong=wrong: kind.function(*given, **wrong))


def test_stored_weights_are_for_inference(kind):
    op, spec = make_op(kind, weights_dtype="int8")
    given = [openrnn.Tensor(value) for value in make_arguments(spec)]
    with openrnn.GradientTape() as tape:
        tape.watch(given[-1])
        assert_names(error_text(NotImplementedError, op, *given), "int8", "inference")
        op(*given, is_training=False)
    op(*given)


def test_math_kind_of_a_choice():
    assert openrnn.math_kind() == "float32"
    assert openrnn.math_kind(dtype="float64") == "float64"
    assert openrnn.math_kind("bf16", dtype=np.float16) in ("dot", "amx")
    assert openrnn.math_kind("bf16x3") in ("float32", "bf16x3")
    assert openrnn.math_kind(weights_dtype="bfloat16") == "float32"
    assert openrnn.math_kind(weights_dtype="int8") == "int8"
    assert_names(error_text(ValueError, openrnn.math_kind, "bf17"), "bf17", "bf16")
    error_text(ValueError, openrnn.math_kind, "bf16", dtype="float64")


def test_sizes_do_not_depend_on_it(kind):
    plain, _ = make_op(kind)
    stored, _ = make_op(kind, weights_dtype="int8")
    assert plain.params_size() == stored.params_size()
    assert array(plain.canonical_to_params(*stored.params_to_canonical(
        make_arguments(make_op(kind)[1], "float32", T, B)[-1]))).dtype == np.float32
