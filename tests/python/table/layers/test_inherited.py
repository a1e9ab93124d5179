"""What every layer inherits: variables, losses, updates, configuration, copies, masks."""

import copy

import numpy as np
import openrnn
import pytest
from model import numpy_layout
from table.support import (
    B, I, L, T, U, array, assert_close, assert_names, draw, error_text, make_layer, make_spec,
    nothing_changes, oracle,
)  # fmt: skip

LISTS = [
    # (member, is the opaque variable in it: trainable layer, frozen layer)
    ("trainable_weights", True, False),
    ("trainable_variables", True, False),
    ("non_trainable_weights", False, True),
    ("non_trainable_variables", False, True),
    ("weights", True, True),
    ("variables", True, True),
]


def collection(name):
    return openrnn.get_collection(getattr(openrnn.GraphKeys, name))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("given", ["string", "openrnn", "numpy"])
def test_dtype_is_the_name(kind, dtype, given):
    value = {"string": dtype, "openrnn": getattr(openrnn, dtype), "numpy": np.dtype(dtype)}[given]
    assert kind.layer(L, U, dtype=value).dtype == dtype


def test_default_name_and_dtype(kind):
    layer = kind.layer(L, U)
    assert (layer.name, layer.dtype, layer.built) == (kind.snake, "float32", False)


@pytest.mark.parametrize("member, trainable, frozen", LISTS, ids=[row[0] for row in LISTS])
def test_variable_lists(kind, caller, member, trainable, frozen):
    layer = kind.layer(L, U)
    assert list(getattr(layer, member)) == []
    caller(layer, draw(T, B, I))
    name = [layer.kernel.name]
    assert [v.name for v in getattr(layer, member)] == (name if trainable else [])
    layer.trainable = False
    assert [v.name for v in getattr(layer, member)] == (name if frozen else [])
    layer.trainable = True
    assert [v.name for v in getattr(layer, member)] == (name if trainable else [])


def test_trainable_argument(kind, caller):
    layer = kind.layer(L, U, trainable=False)
    assert layer.trainable is False
    caller(layer, draw(T, B, I))
    assert layer.trainable_weights == [] and len(layer.non_trainable_weights) == 1
    assert openrnn.trainable_variables() == []


def test_scope_name(kind, caller):
    layer = kind.layer(L, U)
    assert_names(error_text(ValueError, lambda: layer.scope_name), kind.snake)
    with openrnn.variable_scope("outer"):
        caller(layer, draw(T, B, I))
    assert layer.scope_name == f"outer/{kind.snake}"


def test_graph(kind, caller):
    graph = openrnn.Graph()
    with graph.as_default():
        layer = kind.layer(L, U)
        caller(layer, draw(T, B, I))
    assert layer.graph is graph


def test_count_params(kind, direction, caller):
    layer = kind.layer(L, U, direction=direction)
    assert_names(error_text(ValueError, layer.count_params), "built")
    caller(layer, draw(T, B, I))
    assert layer.count_params() == numpy_layout.params_size(make_spec(kind, direction))


def test_get_and_set_weights(kind, caller):
    layer = kind.layer(L, U)
    x = draw(T, B, I)
    caller(layer, x)
    (weight,) = layer.get_weights()
    assert type(weight) is np.ndarray and weight.shape == (layer.count_params(),)
    other = draw(*weight.shape, seed=4)
    layer.set_weights([other])
    np.testing.assert_array_equal(layer.get_weights()[0], other)
    np.testing.assert_array_equal(array(layer.kernel), other)
    assert_close(caller(layer, x)[0], oracle(make_spec(kind), other, x)[0])


def test_changing_what_get_weights_gave_changes_no_weight(kind):
    layer = make_layer(kind)
    (weight,) = layer.get_weights()
    kept = weight.copy()
    try:
        weight += 1.0
    except ValueError:
        pass  # A read-only array is as good.
    np.testing.assert_array_equal(array(layer.kernel), kept)


@pytest.mark.parametrize(
    "what", ["no array", "two arrays", "too short", "too long", "two-dimensional"]
)
def test_set_weights_mismatch(kind, what):
    layer = make_layer(kind)
    size = layer.count_params()
    wrong = {
        "no array": ([], ["0", "1"]),
        "two arrays": ([draw(size), draw(size)], ["2", "1"]),
        "too short": ([draw(size - 1)], [str(size - 1), str(size)]),
        "too long": ([draw(size + 1)], [str(size + 1), str(size)]),
        "two-dimensional": ([draw(1, size)], [f"1, *{size}", str(size)]),
    }
    values, parts = wrong[what]
    with nothing_changes(layer):
        assert_names(error_text(ValueError, layer.set_weights, values), *parts)


def test_apply_is_call(kind, caller):
    layer, x = make_layer(kind), draw(T, B, I)
    output, states = layer.apply(x, training=False)
    wanted, wanted_states = layer(x, training=False)
    np.testing.assert_array_equal(array(output), array(wanted))
    np.testing.assert_array_equal(array(states[0]), array(wanted_states[0]))
    symbolic, _ = layer.apply(openrnn.Input(batch_shape=(T, B, I)))
    assert symbolic.is_symbolic and symbolic.shape == (T, B, U)


def test_compute_mask(kind):
    layer = kind.layer(L, U)
    x = openrnn.constant(draw(T, B, I))
    assert layer.compute_mask(x) is None and layer.compute_mask(x, None) is None
    assert layer.compute_mask([x, x], [None, None]) is None
    assert_names(error_text(TypeError, layer.compute_mask, x, x), "mask")
    assert_names(error_text(TypeError, layer.compute_mask, x, mask=[True]), "mask")


@pytest.mark.parametrize("shape", [(None, None, I), (T, None, I), (T, B, I)], ids=str)
def test_compute_output_shape(kind, direction, shape):
    layer = kind.layer(L, U, direction=direction)
    assert tuple(layer.compute_output_shape(shape)) == (*shape[:2], layer.num_dirs * U)
    assert layer.built is False


@pytest.mark.parametrize(
    "shape, parts", [((T, I), [f"2|{T}, *{I}", "3"]), ((1, T, B, I), ["4", "3"])]
)
def test_compute_output_shape_of_another_rank(kind, shape, parts):
    layer = kind.layer(L, U)
    with nothing_changes(layer):
        assert_names(error_text(ValueError, layer.compute_output_shape, shape), *parts)


def test_config_round_trip(kind):
    given = {
        "num_layers": 3, "num_units": 5, "input_mode": "auto_select", "direction": "bidirectional",
        "dropout": 0.5, "seed": 4, "dtype": "float64", "name": "enc", "trainable": False,
    }  # fmt: skip
    layer = kind.layer(
        **given,
        kernel_initializer=openrnn.initializers.random_uniform(-0.5, 0.5, seed=1),
        bias_initializer=openrnn.initializers.constant(2.0),
    )
    config = layer.get_config()
    assert {key: config[key] for key in given} == given
    assert set(config["bias_initializer"]) == {"class_name", "config"}
    again = type(layer).from_config(config)
    assert type(again) is kind.layer and again is not layer
    assert again.get_config() == config
    layer.build((None, None, 6))
    again.build((None, None, 6))
    assert again.weights[0].trainable is layer.weights[0].trainable
    np.testing.assert_array_equal(array(again.kernel), array(layer.kernel))
    assert np.all(array(again.kernel)[-1] == 2.0)


def test_config_of_defaults(kind):
    config = kind.layer(2, 3).get_config()
    wanted = {
        "num_layers": 2, "num_units": 3, "input_mode": "linear_input", "dropout": 0.0,
        "direction": "unidirectional", "seed": None, "dtype": "float32", "name": kind.snake,
        "kernel_initializer": None, "bias_initializer": None, "trainable": True,
    }  # fmt: skip
    assert {key: config[key] for key in wanted} == wanted
    assert kind.layer.from_config(config).get_config() == config


def test_config_keeps_a_callable(kind):
    def ones(shape, dtype=None):
        return np.ones(shape)

    layer = kind.layer(L, U, kernel_initializer=ones)
    assert layer.get_config()["kernel_initializer"] is ones
    again = kind.layer.from_config(layer.get_config())
    again.build((None, None, I))
    assert array(again.kernel)[0] == 1.0


def test_config_with_an_unknown_argument(kind):
    config = {**kind.layer(2, 3).get_config(), "number_of_units": 7}
    assert_names(error_text(TypeError, kind.layer.from_config, config), "number_of_units")


def test_deep_copy_has_variables_of_its_own(kind, caller):
    layer, x = make_layer(kind, dropout=0.25, seed=3), draw(T, B, I)
    before = len(openrnn.global_variables())
    copied = copy.deepcopy(layer)
    assert copied is not layer and type(copied) is kind.layer
    assert len(openrnn.global_variables()) == before + 1
    assert {**copied.get_config(), "name": layer.name} == layer.get_config() and copied.built
    assert copied.graph is layer.graph and copied.scope_name == layer.scope_name + "_1"
    a, b = (caller(one, x, training=False)[0] for one in (layer, copied))
    np.testing.assert_array_equal(a, b)
    layer.kernel.assign(draw(layer.count_params(), seed=8))
    assert (array(copied.kernel) != array(layer.kernel)).all()
    np.testing.assert_array_equal(caller(copied, x, training=False)[0], b)
    copied.trainable = False
    assert layer.trainable is True


def test_deep_copy_of_an_unbuilt_layer(kind):
    layer = kind.layer(L, U)
    copied = copy.deepcopy(layer)
    copied.build((None, None, I))
    assert copied.built and not layer.built


def test_scope_argument_is_consumed(kind):
    layer = kind.layer(L, U)
    layer(draw(T, B, I), scope="given")
    assert layer.kernel.name == "given/opaque_kernel" and layer.scope_name == "given"
    layer(draw(T, B, I), scope="ignored")
    assert layer.scope_name == "given" and len(openrnn.global_variables()) == 1


def test_scope_argument_on_symbolic_input(kind):
    layer = kind.layer(L, U)
    layer(openrnn.Input(batch_shape=(T, B, I)), scope="given")
    assert layer.kernel.name == "given/opaque_kernel"


def test_scope_argument_may_be_a_variable_scope(kind):
    class Scaled(openrnn.layers.Layer):
        def build(self, input_shape):
            self.factor = self.add_weight("factor", (input_shape[-1],))

        def call(self, inputs):
            return inputs

    with openrnn.variable_scope("given") as scope:
        pass
    layer, own = kind.layer(L, U), Scaled()
    layer(draw(T, B, I), scope=scope)
    own(draw(T, B, I), scope=scope)
    assert layer.kernel.name == "given/opaque_kernel" and layer.scope_name == "given"
    assert own.factor.name == "given/factor" and own.scope_name == "given"


def test_call_that_returns_none(caller):
    class Silent(openrnn.layers.Layer):
        def call(self, inputs):
            return None

    message = error_text(ValueError, Silent(), caller.tensor(draw(T, B, I)))
    assert_names(message, "call", "None|return")


def test_inputs_from_another_graph(kind):
    with openrnn.Graph().as_default():
        x = openrnn.Input(batch_shape=(T, B, I))
    with openrnn.Graph().as_default():
        layer = kind.layer(L, U)
        layer(openrnn.Input(batch_shape=(T, B, I)))
        with nothing_changes(layer):
            assert_names(error_text(ValueError, layer, x), "graph")
