"""What TensorFlow 1's Saver wrote, read and written again by the same Saver, has the same bytes."""

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
openrnn = pytest.importorskip("openrnn", reason="the package is not installed")

from openrnn import cudnn_rnn

v1 = tf.compat.v1
SUFFIXES = ("index", "data-00000-of-00001")


def draw(*shape):
    return np.random.default_rng(0).normal(size=shape).astype("float32")


# Neither sorted nor all of one dtype; bytes of the names are what is compared.
VALUES = {
    "zeta/kernel": draw(5, 7),
    "global_step": np.int64(12),
    "alpha": draw(3),
    "Beta": np.float64(2.5),
    "cudnn_lstm/opaque_kernel_a": draw(2, 2),
    "m/ä": np.zeros((2, 0), "float32"),
    "flags": np.array([True, False]),
    "m/a": np.arange(6, dtype="int32").reshape(3, 2),
}


@pytest.fixture(autouse=True)
def empty_graph():
    openrnn.reset_default_graph()


def bytes_of(prefix):
    return [(prefix.parent / f"{prefix.name}.{suffix}").read_bytes() for suffix in SUFFIXES]


def written_by_tensorflow(prefix, values, saveable=None):
    """Runs a Saver of everything; `saveable` (name, [(spec, value)]) is one of its saveables."""
    from tensorflow.python.training.saving import saveable_object

    class Pieces(saveable_object.SaveableObject):
        def restore(self, restored_tensors, restored_shapes):
            return tf.no_op()

    with tf.Graph().as_default(), v1.Session() as session:
        variables = {
            name: v1.get_variable(name.replace("ä", "ae"), initializer=value, use_resource=False)
            for name, value in values.items()
        }
        items = dict(variables)
        if saveable:
            name, specs = saveable
            items[name] = Pieces(
                tf.constant(0.0),
                [
                    saveable_object.SaveSpec(tf.constant(value), "", spec, dtype=value.dtype)
                    for spec, value in specs
                ],
                name,
            )
        session.run(v1.global_variables_initializer())
        v1.train.Saver(items).save(session, str(prefix), write_meta_graph=False)


def test_variables_alone(tmp_path):
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    written_by_tensorflow(theirs, VALUES)
    variables = {
        name: openrnn.Variable(np.zeros_like(value), name=name, dtype=value.dtype.name)
        for name, value in VALUES.items()
    }
    saver = openrnn.train.Saver()
    saver.restore(theirs)
    for name, value in VALUES.items():
        np.testing.assert_array_equal(variables[name].numpy(), value)
    saver.save(ours)
    assert bytes_of(ours) == bytes_of(theirs)


def test_renamed_variables(tmp_path):
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    written_by_tensorflow(theirs, VALUES)
    saver = openrnn.train.Saver(
        {
            name: openrnn.Variable(np.zeros_like(value), name=f"v{i}", dtype=value.dtype.name)
            for i, (name, value) in enumerate(VALUES.items())
        }
    )
    saver.restore(theirs)
    saver.save(ours)
    assert bytes_of(ours) == bytes_of(theirs)


@pytest.mark.parametrize("direction", ["unidirectional", "bidirectional"])
@pytest.mark.parametrize("kind", ["CudnnLSTM", "CudnnGRU"])
def test_variables_and_a_saveable(tmp_path, kind, direction):
    """The saveable stands among the variables by its name, its tensors as its specs have them."""
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    layer = getattr(cudnn_rnn, kind)(12, 3, direction=direction, seed=1)
    layer.build((None, None, 4))
    specs = [(spec.name, spec.tensor.numpy()) for spec in layer.saveable.specs]
    assert [name for name, _ in specs] != sorted(name for name, _ in specs)
    values = {**VALUES, layer.kernel.name: layer.kernel.numpy()}
    written_by_tensorflow(theirs, values, (layer.saveable.name, specs))
    held = [
        openrnn.Variable(np.zeros_like(value), name=name, dtype=value.dtype.name)
        for name, value in VALUES.items()
    ]
    assert len(openrnn.global_variables()) == 1 + len(held)
    kernel = layer.kernel.numpy()
    layer.kernel.assign(np.zeros_like(kernel))
    saver = openrnn.train.Saver()
    saver.restore(theirs)
    np.testing.assert_array_equal(layer.kernel.numpy(), kernel)
    saver.save(ours)
    assert bytes_of(ours) == bytes_of(theirs)
