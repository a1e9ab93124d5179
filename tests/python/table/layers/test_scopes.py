"""Names: variable scopes, reuse, uniquing, and what a shared variable means."""

import numpy as np
import openrnn
import pytest
from table.support import (
    GRU, B, I, L, T, U, array, assert_names, draw, error_text, make_layer, nothing_changes,
)  # fmt: skip


def saveables():
    return openrnn.get_collection(openrnn.GraphKeys.SAVEABLE_OBJECTS)


def names():
    return [v.name for v in openrnn.global_variables()]


def test_names_of_repeated_layers(kind, caller):
    layers = [kind.layer(1, U) for _ in range(3)]
    for layer in layers:
        caller(layer, draw(T, B, I))
    snake = kind.snake
    wanted = [f"{snake}/opaque_kernel", f"{snake}_1/opaque_kernel", f"{snake}_2/opaque_kernel"]
    assert names() == wanted
    assert [layer.scope_name for layer in layers] == [snake, f"{snake}_1", f"{snake}_2"]


def test_a_given_name_is_made_unique_inside_a_scope(kind, caller):
    with openrnn.variable_scope("m1"):
        for _ in range(2):
            caller(kind.layer(1, U, name="enc"), draw(T, B, I))
    assert names() == ["m1/enc/opaque_kernel", "m1/enc_1/opaque_kernel"]


def test_the_same_object_reuses_its_variable(kind, caller):
    layer = kind.layer(L, U)
    with openrnn.variable_scope("a"):
        caller(layer, draw(T, B, I))
    with openrnn.variable_scope("b"):
        caller(layer, draw(T + 1, B, I))
    assert names() == [f"a/{kind.snake}/opaque_kernel"] and len(saveables()) == 1


def test_nested_scopes(kind, caller):
    top = openrnn.get_variable_scope()
    assert (top.name, top.original_name_scope, top.reuse) == ("", "", False)
    with openrnn.variable_scope("a"), openrnn.variable_scope("b") as inner:
        assert (inner.name, inner.original_name_scope) == ("a/b", "a/b/")
        layer = kind.layer(L, U)
        caller(layer, draw(T, B, I))
    assert names() == [f"a/b/{kind.snake}/opaque_kernel"]
    assert layer.saveable.name == f"a/b/{kind.snake}/opaque_kernel_saveable"


@pytest.mark.parametrize("explicit", [True, False], ids=["build", "call"])
def test_reuse_shares_the_variable(kind, caller, explicit):
    x = draw(T, B, I)

    def connect(layer):
        if explicit:
            layer.build((None, None, I))
        return caller(layer, x)[0]

    with openrnn.variable_scope("outer"):
        first = kind.layer(L, U, name="rnn")
        output = connect(first)
    with openrnn.variable_scope("outer", reuse=True):
        second = kind.layer(L, U, name="rnn")
        again = connect(second)
    assert names() == ["outer/rnn/opaque_kernel"]
    assert second.kernel.name == first.kernel.name
    assert first.saveable is not None and second.saveable is None and len(saveables()) == 1
    np.testing.assert_array_equal(output, again)
    first.kernel.assign(draw(first.count_params(), seed=5))
    np.testing.assert_array_equal(array(second.kernel), array(first.kernel))
    np.testing.assert_array_equal(connect(first), connect(second))


def test_reuse_of_a_default_name(kind, caller):
    for reuse in (None, True):
        with openrnn.variable_scope("outer", reuse=reuse):
            layer = kind.layer(L, U)
            caller(layer, draw(T, B, I))
            assert layer.kernel.name == f"outer/{kind.snake}/opaque_kernel"
    assert len(names()) == 1


def test_reuse_without_a_variable(kind, caller):
    with openrnn.variable_scope("outer", reuse=True):
        layer = kind.layer(L, U, name="rnn")
        with nothing_changes(layer):
            message = error_text(ValueError, caller, layer, draw(T, B, I))
            assert_names(message, "outer/rnn/opaque_kernel", "not exist|does not|exist")


def test_reuse_with_another_shape(kind, caller):
    with openrnn.variable_scope("outer"):
        first = kind.layer(L, U, name="rnn")
        caller(first, draw(T, B, I))
    with openrnn.variable_scope("outer", reuse=True):
        second = kind.layer(L, U + 1, name="rnn")
        with nothing_changes(first, second):
            message = error_text(ValueError, caller, second, draw(T, B, I))
            assert_names(message, str(first.count_params()))


@pytest.mark.parametrize("explicit", [True, False], ids=["build", "call"])
@pytest.mark.parametrize("outer", ["", "m1", "m1/m2"], ids=["top", "scope", "nested"])
def test_prefix_of_the_saveable(kind, direction, caller, explicit, outer):
    """Explicit build: the scope around it. Implicit: the layer's own scope."""
    layer = kind.layer(1, U, direction=direction)

    def connect():
        if explicit:
            layer.build((None, None, I))
        else:
            caller(layer, draw(T, B, I))

    if outer:
        with openrnn.variable_scope(outer):
            connect()
    else:
        connect()
    prefix = outer if explicit else f"{outer}/{kind.snake}".lstrip("/")
    prefix = f"{prefix}/" if prefix else ""
    place = {
        "unidirectional": ["rnn/multi_rnn_cell/cell_0/"],
        "bidirectional": [
            f"stack_bidirectional_rnn/cell_0/bidirectional_rnn/{side}/" for side in ("fw", "bw")
        ],
    }[direction]
    found = [spec.name for spec in layer.saveable.specs]
    assert {name.split(kind.cell)[0] for name in found} == {prefix + one for one in place}
    assert layer.saveable.name == layer.kernel.name + "_saveable"


def test_a_reusing_scope_makes_no_saveable(kind):
    with openrnn.variable_scope("outer"):
        openrnn.get_variable("x", (1,))
        kind.layer(L, U, name="rnn").build((None, None, I))
    with openrnn.variable_scope("outer", reuse=True):
        layer = kind.layer(L, U, name="rnn")
        layer.build((None, None, I))
        assert layer.saveable is None
    assert len(saveables()) == 1


def test_variable_scope_members():
    with openrnn.variable_scope("a") as scope:
        assert (scope.name, bool(scope.reuse)) == ("a", False)
        assert openrnn.get_variable_scope().name == "a"
        with openrnn.variable_scope("b", reuse=True) as inner:
            assert (inner.name, bool(inner.reuse)) == ("a/b", True)
    assert openrnn.get_variable_scope().name == ""


def reopen(outer, given, own):
    """The reuse inside `with variable_scope(SCOPE, own)`, SCOPE being of reuse `given`."""
    with openrnn.variable_scope("a", reuse=given) as scope:
        pass
    with openrnn.variable_scope("outer", reuse=outer):
        with openrnn.variable_scope(scope, reuse=own) as again:
            assert again.name == "a"
            return bool(again.reuse)


@pytest.mark.parametrize("given", [None, True])
@pytest.mark.parametrize("own", [None, False, True])
@pytest.mark.parametrize("outer", [None, True])
def test_reuse_of_a_scope_that_is_opened_again(outer, given, own):
    """Its own word, else that of the scope; True around it stays."""
    assert reopen(outer, given, own) is bool((given if own is None else own) or outer)


def test_variables_of_a_scope_that_is_opened_again():
    with openrnn.variable_scope("a") as scope:
        first = openrnn.get_variable("x", (1,))
    with openrnn.variable_scope("b"), openrnn.variable_scope(scope):
        assert openrnn.get_variable("y", (1,)).name == "a/y"
        error_text(ValueError, openrnn.get_variable, "x", (1,))
    with openrnn.variable_scope(scope, reuse=True) as reusing:
        assert openrnn.get_variable("x", (1,)) is first
        error_text(ValueError, openrnn.get_variable, "z", (1,))
    with openrnn.variable_scope(reusing):
        assert openrnn.get_variable("x", (1,)) is first
    with openrnn.variable_scope(reusing, reuse=False):
        error_text(ValueError, openrnn.get_variable, "x", (1,))
    with openrnn.variable_scope("a"), openrnn.variable_scope("", reuse=True):
        assert openrnn.get_variable("x", (1,)) is first


def test_a_scope_is_left_when_its_block_fails():
    with pytest.raises(KeyError), openrnn.variable_scope("a"):
        raise KeyError("x")
    assert openrnn.get_variable_scope().name == ""
    kept = openrnn.variable_scope("b")  # leaving ends it, not that it is dropped
    with pytest.raises(KeyError), kept:
        raise KeyError("x")
    assert openrnn.get_variable_scope().name == ""


def test_get_variable(caller):
    with openrnn.variable_scope("s"):
        first = openrnn.get_variable("w", (2, 3), initializer=openrnn.initializers.ones())
        message = error_text(ValueError, openrnn.get_variable, "w", (2, 3))
        assert_names(message, "s/w", "exist")
    with openrnn.variable_scope("s", reuse=True):
        again = openrnn.get_variable("w", (2, 3))
        assert_names(error_text(ValueError, openrnn.get_variable, "v", (1,)), "s/v")
        assert_names(error_text(ValueError, openrnn.get_variable, "w", (3, 2)), "2, 3", "3, 2")
    first.assign(np.full((2, 3), 4.0, "float32"))
    assert np.all(array(again) == 4.0) and names() == ["s/w"]


def test_variables_are_made_unique():
    found = [openrnn.Variable(np.zeros(1, "float32")).name for _ in range(2)]
    with openrnn.variable_scope("s"):
        found.append(openrnn.Variable(np.zeros(1, "float32")).name)
        found += [openrnn.Variable(np.zeros(1, "float32"), name="x").name for _ in range(2)]
    assert found == ["Variable", "Variable_1", "s/Variable", "s/x", "s/x_1"]


def test_graphs_have_names_and_collections_of_their_own():
    kept = make_layer(GRU)
    with openrnn.Graph().as_default() as graph:
        assert openrnn.get_default_graph() is graph and names() == [] and saveables() == []
        assert make_layer(GRU).kernel.name == kept.kernel.name
    assert names() == [kept.kernel.name]


def test_a_graph_is_left_by_an_error():
    outer = openrnn.get_default_graph()
    with pytest.raises(KeyError), openrnn.Graph().as_default():
        raise KeyError("inside")
    assert openrnn.get_default_graph() is outer


def test_the_scope_opened_again_without_a_name_inherits_reuse():
    with openrnn.variable_scope("a"):
        made = openrnn.get_variable("v", [2])
    with openrnn.variable_scope("a", reuse=True), openrnn.variable_scope("") as scope:
        assert scope.reuse and openrnn.get_variable("v", [2]) is made
