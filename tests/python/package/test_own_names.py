"""Each class has the members of its own: a layer of a user's may name its attributes as it likes."""

import numpy as np
import openrnn
import pytest

# Members of tf.layers.Layer, and `device`.
MEMBERS = """
    activity_regularizer add_loss add_update add_variable add_weight apply build built call
    compute_mask compute_output_shape count_params device dtype from_config get_config get_input_at
    get_input_mask_at get_input_shape_at get_losses_for get_output_at get_output_mask_at
    get_output_shape_at get_updates_for get_weights graph inbound_nodes input input_mask input_shape
    input_spec losses name non_trainable_variables non_trainable_weights outbound_nodes output
    output_mask output_shape scope_name set_weights stateful trainable trainable_variables
    trainable_weights updates variables weights
""".split()

# Of the recurrent layers, of Dropout, Dense, the cells and models.
TAKEN = """
    num_layers num_units num_dirs input_mode direction rnn_mode dropout num_proj input_size math
    weights_dtype math_kind saveable dropout_calls canonical_bias_shapes canonical_weight_shapes
    rate kernel units activation state_size output_size cells layers inputs outputs
""".split()


def public(cls):
    return {name for name in dir(cls) if not name.startswith("_")}


def test_a_layer_has_the_members_of_tensorflow():
    assert sorted(public(openrnn.layers.Layer)) == MEMBERS


def test_classes_add_their_own_alone():
    rnn = public(openrnn.cudnn_rnn.CudnnLSTM) - set(MEMBERS)
    assert rnn == {*TAKEN[:16], "kernel", "state_shape", "with_arithmetic"}
    assert public(openrnn.layers.Dropout) - set(MEMBERS) == {"rate"}
    cell = openrnn.cudnn_rnn.CudnnCompatibleGRUCell
    assert public(cell) - set(MEMBERS) == {"num_units", "output_size", "state_size", "zero_state"}


class Own(openrnn.layers.Layer):
    """Keeps an attribute of every name that another class has."""

    def __init__(self):
        super().__init__()
        for i, name in enumerate(TAKEN):
            setattr(self, name, i)

    def build(self, input_shape):
        self.kernel = self.add_weight("kernel", (input_shape[-1], 2))
        self.rnn_call = self.cell_step = self.build_core = 1
        super().build(input_shape)

    def call(self, x):
        self.dropout = 0.5
        return openrnn.matmul(x, self.kernel) * self.dropout


@pytest.mark.parametrize("symbolic", [False, True], ids=["values", "symbolic"])
def test_names_of_other_classes_are_free(symbolic, tmp_path):
    layer, x = Own(), np.ones((3, 4), np.float32)
    call = layer
    if symbolic:
        given = openrnn.Input(batch_shape=(None, 4))
        call = openrnn.Model(given, layer(given))
    first = call(x).numpy()
    np.testing.assert_allclose(first, 0.5 * x @ layer.kernel.numpy(), rtol=1e-6)
    assert [getattr(layer, name) for name in TAKEN if name not in ("kernel", "dropout")] == [
        i for i, name in enumerate(TAKEN) if name not in ("kernel", "dropout")
    ]
    saved = openrnn.train.Saver(layer.weights).save(str(tmp_path / "own"))
    layer.set_weights([np.zeros((4, 2), np.float32)])
    openrnn.train.Saver(layer.weights).restore(saved)
    np.testing.assert_array_equal(call(x).numpy(), first)


def test_what_a_class_has_is_not_set_by_chance():
    layer = openrnn.cudnn_rnn.CudnnLSTM(1, 2)
    for name in ("num_layers", "direction", "dropout", "kernel", "saveable"):
        with pytest.raises(AttributeError):
            setattr(layer, name, 1)
