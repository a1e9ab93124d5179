"""Saveables in files: names and values, collisions, what wins on restore, failures."""

import numpy as np
import openrnn
import pytest
from model import numpy_layout
from table.saving.saving_support import make_saveable
from table.support import (
    GRU, LSTM, RELU, TANH, B, I, KINDS, L, T, U, array, assert_names, draw, error_text, make_layer,
    make_spec, nothing_changes,
)  # fmt: skip


def names_in(prefix):
    return {name for name, *_ in openrnn.train.list_variables(prefix)}


def test_two_saveables_in_one_checkpoint(tmp_path, direction):
    first, spec_a, one = make_saveable(LSTM, direction, variable_name="a", scope="enc", name="one")
    second, spec_b, two = make_saveable(
        GRU, direction, variable_name="b", scope="dec", name="two", seed=9
    )
    saver = openrnn.train.Saver([one, two])
    prefix = saver.save(str(tmp_path / "model"))
    wanted = dict(numpy_layout.to_tf(spec_a, array(first), "enc"))
    wanted.update(numpy_layout.to_tf(spec_b, array(second), "dec"))
    assert names_in(prefix) == set(wanted)
    for name, value in wanted.items():
        np.testing.assert_array_equal(openrnn.train.load_variable(prefix, name), value, name)
    for variable in (first, second):
        variable.assign(np.zeros(variable.shape, "float32"))
    saver.restore(prefix)
    np.testing.assert_array_equal(array(first), numpy_layout.from_tf(spec_a, wanted, "enc"))
    np.testing.assert_array_equal(array(second), numpy_layout.from_tf(spec_b, wanted, "dec"))


def test_equal_tensor_names_collide(tmp_path):
    """Two saveables of different names and one scope."""
    one = make_saveable(TANH, variable_name="a", name="one")[2]
    two = make_saveable(RELU, variable_name="b", name="two")[2]
    message = error_text(
        ValueError, lambda: openrnn.train.Saver([one, two]).save(str(tmp_path / "m"))
    )
    assert_names(message, "rnn/multi_rnn_cell/cell_0/basic_rnn_cell/kernel")
    assert list(tmp_path.iterdir()) == []


def test_two_layers_built_in_one_scope_collide(kind, tmp_path):
    """Explicit builds take the prefix of the scope around, which is the same for both."""
    with openrnn.variable_scope("m1"):
        held = [make_layer(kind, name="x"), make_layer(kind, name="y")]
    assert len(held) == len(openrnn.global_variables())
    message = error_text(ValueError, lambda: openrnn.train.Saver().save(str(tmp_path / "m")))
    assert_names(message, f"m1/rnn/multi_rnn_cell/cell_0/{kind.cell}")
    assert list(tmp_path.iterdir()) == []


def test_two_called_layers_do_not_collide(kind, tmp_path):
    with openrnn.variable_scope("m1"):
        held = [kind.layer(L, U) for _ in range(2)]
        for layer in held:
            layer(draw(T, B, I))
    names = names_in(openrnn.train.Saver().save(str(tmp_path / "m")))
    for layer in (kind.snake, f"{kind.snake}_1"):
        assert any(n.startswith(f"m1/{layer}/rnn/multi_rnn_cell/cell_0/") for n in names)
        assert f"m1/{layer}/opaque_kernel" in names


@pytest.mark.parametrize("explicit", [True, False], ids=["build", "call"])
def test_default_saver_holds_raw_and_canonical(kind, direction, explicit, tmp_path):
    layer = kind.layer(L, U, direction=direction)
    layer.build((None, None, I)) if explicit else layer(draw(T, B, I))
    layer.set_weights([draw(layer.count_params(), seed=6)])
    before = array(layer.kernel).copy()
    saver = openrnn.train.Saver()
    prefix = saver.save(str(tmp_path / "m"))
    wanted = dict(
        numpy_layout.to_tf(make_spec(kind, direction), before, "" if explicit else kind.snake)
    )
    wanted[f"{kind.snake}/opaque_kernel"] = before
    assert names_in(prefix) == set(wanted)
    for name, value in wanted.items():
        np.testing.assert_array_equal(openrnn.train.load_variable(prefix, name), value, name)
    layer.set_weights([np.zeros_like(before)])
    saver.restore(prefix)
    np.testing.assert_array_equal(array(layer.kernel), before, "the raw variable resumes the bits")


@pytest.mark.parametrize("kind", KINDS, ids=[kind.mode for kind in KINDS])
def test_canonical_tensors_win_over_another_raw_variable(kind, tmp_path):
    layer = make_layer(kind)
    variable = openrnn.Variable(draw(layer.count_params(), seed=50), name="other")
    canonical = kind.saveable(variable, L, U, I, name="other_saveable")
    prefix = openrnn.train.Saver([layer.kernel, canonical]).save(str(tmp_path / "m"))
    wanted = dict(numpy_layout.to_tf(make_spec(kind), array(variable)))
    openrnn.train.Saver([layer.kernel, layer.saveable]).restore(prefix)
    np.testing.assert_array_equal(
        array(layer.kernel), numpy_layout.from_tf(make_spec(kind), wanted)
    )


def test_missing_tensor_changes_nothing(kind, tmp_path):
    layer = make_layer(kind)
    prefix = openrnn.train.Saver([layer.saveable]).save(str(tmp_path / "m"))
    with nothing_changes(layer):
        message = error_text((ValueError, KeyError), lambda: openrnn.train.Saver().restore(prefix))
        assert_names(message, f"{kind.snake}/opaque_kernel")


def test_restore_of_another_network_changes_nothing(kind, tmp_path):
    small, large = make_layer(kind), make_layer(kind, sizes={"num_units": U + 1}, name="large")
    prefix = openrnn.train.Saver([small.saveable]).save(str(tmp_path / "m"))
    with nothing_changes(small, large):
        error_text(ValueError, lambda: openrnn.train.Saver([large.saveable]).restore(prefix))


def test_missing_file(kind, tmp_path):
    layer = make_layer(kind)
    with nothing_changes(layer):
        saver = openrnn.train.Saver([layer.saveable])
        message = error_text((OSError, ValueError), lambda: saver.restore(str(tmp_path / "none")))
        assert_names(message, "none")
