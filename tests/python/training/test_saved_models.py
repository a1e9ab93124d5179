"""Model.save and openrnn.load_model."""

import pickle
import pickletools

import numpy as np
import openrnn
import pytest
from openrnn import layers, train

RANDOM = np.random.default_rng(3)


class Scale(layers.Layer):
    """A layer of a user."""

    def __init__(self, factor, **kw):
        super().__init__(**kw)
        self.factor = factor

    def build(self, input_shape):
        self.offset = self.add_weight("offset", (input_shape[-1],))

    def call(self, inputs):
        return inputs * self.factor + self.offset


def network(own=False):
    words, x = openrnn.Input((None,), dtype="int32"), openrnn.Input((None, 3))
    y = openrnn.concat([layers.Embedding(7, 2, seed=1)(words), x], axis=2)
    y, states = openrnn.cudnn_rnn.CudnnLSTM(2, 4, direction="bidirectional", seed=2)(
        y, time_major=False
    )
    y = openrnn.tanh(y) * 2.0
    if own:
        y = Scale(0.5)(y)
    y = layers.Dropout(0.4, seed=3)(layers.Dense(2, "tanh", kernel_initializer="ones")(y))
    return openrnn.Model([words, x], (y, states), name="mine")


def given():
    return [RANDOM.integers(0, 7, (3, 5)).astype("int32"), RANDOM.normal(size=(3, 5, 3)).astype("f")]


def flat(outputs):
    y, states = outputs
    return [y, *states]


@pytest.mark.parametrize("own", [False, True])
def test_a_whole_model_comes_back(tmp_path, own):
    model, x = network(own), given()
    wanted = flat(model.predict(x))
    model.save(tmp_path / "a.model")
    assert [path.name for path in tmp_path.iterdir()] == ["a.model"]
    custom = {"Scale": Scale} if own else None
    with openrnn.Graph().as_default():
        again = openrnn.load_model(tmp_path / "a.model", custom_objects=custom)
        for one, other in zip(flat(again.predict(x)), wanted, strict=True):
            np.testing.assert_array_equal(one, other)
        assert again.name == "mine" and [v.name for v in again.weights] == [
            v.name for v in model.weights
        ]
        assert isinstance(again, openrnn.Model)
        # It trains, and the first does not change.
        again.fit(
            (x, np.zeros((3, 5, 2), "f")),
            lambda y, found: openrnn.losses.mean_squared_error(y, found[0]),
            train.AdamW(0.1), progress=False,
        )  # fmt: skip
        assert not np.array_equal(flat(again.predict(x))[0], wanted[0])
    np.testing.assert_array_equal(flat(model.predict(x))[0], wanted[0])


def test_own_classes_are_asked_for(tmp_path):
    network(own=True).save(tmp_path / "a.model")
    for custom in (None, {}, {"Other": Scale}):
        with pytest.raises(NotImplementedError) as raised:
            openrnn.load_model(tmp_path / "a.model", custom_objects=custom)
        assert str(raised.value) == (
            f"[load_model] '{tmp_path}/a.model' needs '{__name__}.Scale', expected it in custom_objects"
        )
    with pytest.raises(TypeError) as raised:
        openrnn.load_model(tmp_path / "a.model", custom_objects=[Scale])
    assert str(raised.value) == (
        "[load_model] custom_objects is 'list', expected a dictionary of classes and functions"
    )
    with pytest.raises(TypeError, match=r"^\[load_model\] path is 'int', expected a path$"):
        openrnn.load_model(3)
    with pytest.raises(TypeError, match=r"^\[save\] path is 'int', expected a path$"):
        network().save(3)


def test_a_class_of_ours_is_replaced_where_its_name_is_given(tmp_path):
    class Named(openrnn.Model):
        pass

    model, x = network(), given()
    model.save(tmp_path / "a.model")
    with openrnn.Graph().as_default():
        again = openrnn.load_model(tmp_path / "a.model", custom_objects={"Model": Named})
        assert type(again) is Named
        for one, other in zip(flat(again.predict(x)), flat(model.predict(x)), strict=True):
            np.testing.assert_array_equal(one, other)


def without_frames(content):
    """The same pickle, in which texts may change their lengths."""
    places = [place for code, _, place in pickletools.genops(content) if code.name == "FRAME"]
    for place in reversed(places):
        content = content[:place] + content[place + 9 :]
    return content


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_files_of_other_versions_of_numpy(tmp_path, dtype):
    """NumPy 1 says numpy.core where NumPy 2 says numpy._core."""
    x = openrnn.Input((3,), dtype=dtype)
    model, path = openrnn.Model(x, layers.Dense(2, dtype=dtype)(x)), tmp_path / "a.model"
    model.save(path)
    content = without_frames(path.read_bytes()[16:])
    ones, found = np.ones((1, 3), "float32").astype(dtype), 0
    for module in (b"numpy._core.multiarray", b"numpy._core.numeric"):
        for old, new in ((module, module.replace(b"_core", b"core")), (module.replace(b"_core", b"core"), module)):
            short = lambda name: b"\x8c" + bytes([len(name)]) + name
            found += content.count(short(old))
            path.write_bytes(b"OpenRNN model 1\n" + content.replace(short(old), short(new)))
            again = openrnn.load_model(path).predict(ones)
            assert again.tobytes() == model.predict(ones).tobytes()
    assert found


class Evil:
    def __init__(self, function, argument):
        self.made = function, (argument,)

    def __reduce__(self):
        return self.made


@pytest.mark.parametrize(
    "name", ["os system", "builtins eval", "openrnn.initializers _arguments.os.system",
             "openrnn._fit_model_file os.replace", "openrnn._fit_model_file os", "openrnn._layer _subclasses",
             "openrnn.train Saver"],
)  # fmt: skip
def test_a_file_runs_nothing_of_its_choice(tmp_path, name):
    module, attribute = name.split()
    content = (b"\x80\x04\x8c" + bytes([len(module)]) + module.encode() + b"\x8c"
               + bytes([len(attribute)]) + attribute.encode() + b"\x93"
               + pickle.dumps(("touch ran",))[2:-1] + b"R.")  # fmt: skip
    path = tmp_path / "evil.model"
    path.write_bytes(b"OpenRNN model 1\n" + content)
    with pytest.raises(NotImplementedError, match="expected it in custom_objects"):
        openrnn.load_model(path)


def test_broken_files(tmp_path):
    model, path = network(), tmp_path / "a.model"
    model.save(path)
    whole = path.read_bytes()
    for content, text in [
        (b"", "at byte 0: expected a file of Model.save"),
        (b"PK\x03\x04", "at byte 0: expected a file of Model.save"),
        (b"\x00" + whole, "at byte 0: expected a file of Model.save"),
        (b"\x00" * len(whole) + whole, "at byte 0: expected a file of Model.save"),
        (whole[:200], "is broken"),
        (whole[: len(whole) // 2], "is broken"),
        (b"OpenRNN model 1\n" + pickle.dumps([1, 2]), "holds a list, expected a Model"),
    ]:
        path.write_bytes(content)
        with pytest.raises(ValueError, match=text) as raised:
            openrnn.load_model(path)
        assert str(raised.value).startswith(f"[load_model] '{path}' ")
    with pytest.raises(OSError):
        openrnn.load_model(tmp_path / "none")


def test_what_no_file_can_hold(tmp_path):
    x = openrnn.Input((3,))
    model = openrnn.Model(x, layers.Dense(2, activation=lambda y: y * 2.0)(x))
    path = tmp_path / "a.model"
    path.write_bytes(b"older")
    with pytest.raises(NotImplementedError, match=r"\[save\] 'model' holds what no file can"):
        model.save(path)
    assert path.read_bytes() == b"older"


def test_a_failed_rename_leaves_nothing_beside(tmp_path, monkeypatch):
    path = tmp_path / "a.model"
    path.write_bytes(b"older")

    def refuse(old, new):
        raise OSError(f"no {new}")

    with monkeypatch.context() as patch:
        patch.setattr(openrnn._fit_model_file.os, "replace", refuse)
        with pytest.raises(OSError, match=f"no {path}"):
            network().save(path)
    assert [one.name for one in tmp_path.iterdir()] == ["a.model"] and path.read_bytes() == b"older"


class Noted(layers.LSTM):
    """Of a user, too, though the package has its base."""


def test_what_of_the_package_a_file_may_name(tmp_path):
    x = openrnn.Input(batch_shape=(None, None, 3))
    regular = openrnn.regularizers.l2(0.5)
    y, state = layers.LSTM(2, seed=1, kernel_initializer=openrnn.initializers.ones(),
                           activity_regularizer=regular)(x)  # fmt: skip
    cell = openrnn.nn.rnn_cell.BasicLSTMCell(2)
    outputs, last = openrnn.nn.dynamic_rnn(cell, y, dtype="float32", time_major=True)
    model = openrnn.Model(x, (outputs, last, state))
    model.save(tmp_path / "a.model")
    given = RANDOM.normal(size=(4, 2, 3)).astype("f")
    with openrnn.Graph().as_default():
        again = openrnn.load_model(tmp_path / "a.model")
        assert isinstance(again.layers[0], layers.LSTM)
        for one, other in zip(flat_all(again.predict(given)), flat_all(model.predict(given)), strict=True):
            np.testing.assert_array_equal(one, other)
    openrnn.Model(x, Noted(2)(x)[0]).save(tmp_path / "b.model")
    with pytest.raises(NotImplementedError, match=r"\.Noted', expected it in custom_objects"):
        openrnn.load_model(tmp_path / "b.model")
    assert openrnn.load_model(tmp_path / "b.model", custom_objects={"Noted": Noted}).layers


def flat_all(outputs):
    return [part for one in outputs for part in (flat_all(one) if isinstance(one, tuple) else [one])]


def test_a_failed_write_leaves_the_older_file(tmp_path):
    with pytest.raises(OSError):
        network().save(tmp_path / "missing" / "a.model")


def test_a_save_that_fails_leaves_nothing_beside(tmp_path):
    (tmp_path / "a.model").mkdir()
    with pytest.raises(OSError, match="a.model"):
        network().save(tmp_path / "a.model")
    assert [path.name for path in tmp_path.iterdir()] == ["a.model"]
