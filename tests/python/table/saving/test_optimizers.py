"""Optimizers: the update formulas in NumPy, slots and their names, global_step, float16."""

import inspect

import numpy as np
import openrnn
import pytest
from model import numpy_optimizers
from table.support import GRU, B, I, T, array, assert_names, draw, error_text, make_layer

EMPTY = inspect.Parameter.empty
SIGNATURES = [
    ("GradientDescentOptimizer", [("learning_rate", EMPTY)]),
    ("MomentumOptimizer", [("learning_rate", EMPTY), ("momentum", EMPTY), ("use_nesterov", False)]),
    ("AdagradOptimizer", [("learning_rate", EMPTY), ("initial_accumulator_value", 0.1)]),
    ("RMSPropOptimizer", [("learning_rate", EMPTY), ("decay", 0.9), ("momentum", 0.0),
                          ("epsilon", 1e-10), ("centered", False)]),
    ("AdamOptimizer", [("learning_rate", 0.001), ("beta1", 0.9), ("beta2", 0.999),
                       ("epsilon", 1e-8)]),
]  # fmt: skip
# (what, class, arguments by name, the same for the model, slots by name in their order)
ROWS = [
    ("sgd", "GradientDescent", {"learning_rate": 0.25}, {}, []),
    ("momentum", "Momentum", {"learning_rate": 0.1, "momentum": 0.75}, {}, ["momentum"]),
    ("nesterov", "Momentum", {"learning_rate": 0.1, "momentum": 0.75, "use_nesterov": True},
     {"nesterov": True}, ["momentum"]),
    ("adagrad", "Adagrad", {"learning_rate": 0.5}, {}, ["accumulator"]),
    ("adagrad 1", "Adagrad", {"learning_rate": 0.5, "initial_accumulator_value": 1.0},
     {"initial_accumulator": 1.0}, ["accumulator"]),
    ("rmsprop", "RMSProp", {"learning_rate": 0.05}, {"epsilon": 1e-10}, ["rms", "momentum"]),
    ("rmsprop momentum", "RMSProp", {"learning_rate": 0.05, "decay": 0.75, "momentum": 0.5,
                                     "epsilon": 0.01}, {}, ["rms", "momentum"]),
    ("rmsprop centered", "RMSProp", {"learning_rate": 0.05, "momentum": 0.5, "centered": True},
     {"epsilon": 1e-10}, ["rms", "mg", "momentum"]),
    ("adam defaults", "Adam", {}, {"learning_rate": 0.001}, ["m", "v"]),
    ("adam", "Adam", {"learning_rate": 0.1, "beta1": 0.75, "beta2": 0.875, "epsilon": 0.01}, {},
     ["m", "v"]),
]  # fmt: skip
IDS = [row[0] for row in ROWS]


def optimizer_of(row):
    return getattr(openrnn.train, row[1] + "Optimizer")(**row[2])


def model_of(row):
    given = {
        k: v for k, v in row[2].items() if k not in ("use_nesterov", "initial_accumulator_value")
    }
    return numpy_optimizers.Optimizer(row[1], **{**given, **row[3]})


def step(optimizer, variable, gradient, **kw):
    """minimize of a loss whose gradient is given."""
    slope = openrnn.constant(gradient)
    return optimizer.minimize(
        lambda: openrnn.reduce_sum(variable * slope), var_list=[variable], **kw
    )


@pytest.mark.parametrize("name, wanted", SIGNATURES, ids=[row[0] for row in SIGNATURES])
def test_signature(name, wanted):
    found = list(inspect.signature(getattr(openrnn.train, name)).parameters.values())
    assert [(p.name, p.default) for p in found][: len(wanted)] == wanted


@pytest.mark.parametrize("row", ROWS, ids=IDS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_update(row, dtype):
    start = draw(7, seed=1, dtype=dtype)
    gradients = [draw(7, seed=2 + k, dtype=dtype) for k in range(5)]
    variable, optimizer = openrnn.Variable(start, name="X"), optimizer_of(row)
    for gradient in gradients:
        step(optimizer, variable, gradient)
    wanted = numpy_optimizers.run(
        model_of(row), start.astype("float64"), [g.astype("float64") for g in gradients]
    )
    # The powers of Adam are float32 also for a float64 variable.
    tolerance = {"float32": 4e-6, "float64": 1e-6 if row[1] == "Adam" else 1e-13}[dtype]
    np.testing.assert_allclose(array(variable), wanted["X"], rtol=tolerance, atol=tolerance)
    names = {v.name: v for v in optimizer.variables()}
    assert set(names) == set(wanted) - {"X"}
    for name, value in names.items():
        np.testing.assert_allclose(array(value), wanted[name], rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_slots(row):
    variable, optimizer = openrnn.Variable(draw(3), name="X"), optimizer_of(row)
    step(optimizer, variable, draw(3))
    assert sorted(optimizer.get_slot_names()) == sorted(row[4])
    for k, name in enumerate(row[4]):
        slot = optimizer.get_slot(variable, name)
        assert slot.name == f"X/{row[1]}" + (f"_{k}" if k else "")
        assert slot.shape == (3,) and not slot.trainable
    if row[4]:
        assert optimizer.get_slot(openrnn.Variable(draw(2)), row[4][0]) is None
    assert [v.name for v in openrnn.trainable_variables()][0] == "X"
    assert not {v.name for v in optimizer.variables()} & {
        v.name for v in openrnn.trainable_variables()
    }


def test_powers_of_adam():
    variable = openrnn.Variable(draw(3), name="X")
    optimizer = openrnn.train.AdamOptimizer(0.1, beta1=0.75, beta2=0.875)
    for _ in range(3):
        step(optimizer, variable, draw(3))
    found = {v.name: v for v in optimizer.variables()}
    # They start at beta and are multiplied after each step.
    assert float(array(found["beta1_power"])) == 0.75**4
    assert float(array(found["beta2_power"])) == 0.875**4
    assert found["beta1_power"].dtype == found["beta2_power"].dtype == "float32"


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_global_step(row):
    variable, optimizer = openrnn.Variable(draw(3)), optimizer_of(row)
    count = openrnn.train.get_or_create_global_step()
    assert (count.name, count.dtype, count.trainable) == ("global_step", "int64", False)
    assert int(array(count)) == 0
    for _ in range(3):
        step(optimizer, variable, draw(3), global_step=count)
    assert int(array(count)) == 3
    assert openrnn.train.get_or_create_global_step().name == "global_step"
    assert int(array(openrnn.train.get_or_create_global_step())) == 3


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_compute_then_apply_is_minimize(row):
    start, found = draw(4), []
    for split in (False, True):
        openrnn.reset_default_graph()
        variable, optimizer = openrnn.Variable(start), optimizer_of(row)
        loss = lambda: openrnn.reduce_sum(openrnn.square(variable))  # noqa: E731, B023
        for _ in range(2):
            if split:
                pairs = optimizer.compute_gradients(loss, var_list=[variable])
                assert [v.name for _, v in pairs] == [variable.name]
                np.testing.assert_allclose(array(pairs[0][0]), 2 * array(variable), rtol=1e-6)
                optimizer.apply_gradients(pairs)
            else:
                optimizer.minimize(loss)
        found.append(array(variable).copy())
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_a_variable_that_the_loss_does_not_reach_has_no_gradient(row):
    used, unused = openrnn.Variable(draw(4)), openrnn.Variable(draw(3))
    optimizer = optimizer_of(row)
    before = array(unused).copy()
    loss = lambda: openrnn.reduce_sum(openrnn.square(used))  # noqa: E731
    pairs = optimizer.compute_gradients(loss, [unused, used])
    assert [gradient is None for gradient, _ in pairs] == [True, False]
    optimizer.apply_gradients(pairs)
    np.testing.assert_array_equal(array(unused), before)


def test_default_variables_are_the_trainable_ones():
    moved = openrnn.Variable(draw(2))
    kept = openrnn.Variable(draw(2), trainable=False)
    before = array(kept).copy()
    loss = lambda: openrnn.reduce_sum(moved) + openrnn.reduce_sum(kept)  # noqa: E731
    openrnn.train.GradientDescentOptimizer(1.0).minimize(loss)
    np.testing.assert_array_equal(array(kept), before)


def test_no_gradient_at_all():
    variable, other = openrnn.Variable(draw(2)), openrnn.Variable(draw(2))
    before = array(variable).tobytes()
    optimizer = openrnn.train.AdamOptimizer()
    call = lambda: optimizer.minimize(lambda: openrnn.reduce_sum(other), var_list=[variable])  # noqa
    assert_names(error_text(ValueError, call), "gradient", variable.name)
    assert array(variable).tobytes() == before


def test_wrong_gradient_shape_changes_nothing():
    variable = openrnn.Variable(draw(2))
    before = array(variable).tobytes()
    optimizer = openrnn.train.GradientDescentOptimizer(1.0)
    error_text(ValueError, optimizer.apply_gradients, [(openrnn.constant(draw(3)), variable)])
    assert array(variable).tobytes() == before


def test_slots_of_the_opaque_kernel_are_saved_raw(kind, tmp_path):
    layer = make_layer(kind)
    optimizer = openrnn.train.AdamOptimizer(0.01)
    loss = lambda: openrnn.reduce_sum(openrnn.square(layer(draw(T, B, I))[0]))  # noqa: E731
    count = openrnn.train.get_or_create_global_step()
    optimizer.minimize(loss, global_step=count)
    prefix = openrnn.train.Saver().save(str(tmp_path / "m"), global_step=1)
    assert prefix.endswith("m-1")
    name = layer.kernel.name
    for suffix, slot in (("Adam", "m"), ("Adam_1", "v")):
        found = openrnn.train.load_variable(prefix, f"{name}/{suffix}")
        np.testing.assert_array_equal(found, array(optimizer.get_slot(layer.kernel, slot)))
    stored = {n for n, *_ in openrnn.train.list_variables(prefix)}
    assert {"beta1_power", "beta2_power", "global_step", name} <= stored


def test_resuming_repeats_the_same_bits(tmp_path):
    layer, data = make_layer(GRU), draw(T, B, I)
    optimizer = openrnn.train.AdamOptimizer(0.01)
    loss = lambda: openrnn.reduce_sum(openrnn.square(layer(data)[0]))  # noqa: E731
    optimizer.minimize(loss)
    saver = openrnn.train.Saver()
    prefix = saver.save(str(tmp_path / "m"))
    kernels = []
    for _ in range(2):
        optimizer.minimize(loss)
        optimizer.minimize(loss)
        kernels.append(array(layer.kernel).copy())
        saver.restore(prefix)
    np.testing.assert_array_equal(*kernels)


def test_saving_never_changes_the_run(kind, tmp_path):
    """A run that saves after every step ends with the same bits, dropout included."""
    kernels = []
    for saves in (False, True):
        openrnn.reset_default_graph()
        openrnn.set_random_seed(5)
        layer = kind.layer(2, 4, dropout=0.5)
        loss = lambda layer=layer: openrnn.reduce_sum(openrnn.square(layer(draw(T, B, I))[0]))
        optimizer = openrnn.train.AdamOptimizer(0.01)
        for step_number in range(3):
            optimizer.minimize(loss)
            if saves:
                openrnn.train.Saver().save(str(tmp_path / "m"), global_step=step_number)
        kernels.append(array(layer.kernel).copy())
    np.testing.assert_array_equal(*kernels)


@pytest.mark.parametrize("clip", [0.5, 100.0], ids=["clipped", "kept"])
def test_clip_by_global_norm(clip):
    given = [draw(3, 2), draw(5)]
    norm = np.sqrt(sum(np.sum(g.astype("f8") ** 2) for g in given))
    clipped, found = openrnn.clip_by_global_norm([openrnn.constant(g) for g in given], clip)
    np.testing.assert_allclose(float(array(found)), norm, rtol=1e-6)
    for a, b in zip(clipped, given, strict=True):
        np.testing.assert_allclose(array(a), b * clip * min(1 / norm, 1 / clip), rtol=1e-6)


@pytest.mark.parametrize("row", ROWS, ids=IDS)
@pytest.mark.parametrize("clip", [0.5, 100.0], ids=["clipped", "kept"])
def test_minimize_clips(row, clip):
    values = []
    for clips_itself in (True, False):
        variable, optimizer = openrnn.Variable(draw(4)), optimizer_of(row)
        slope = openrnn.constant(draw(4))
        loss = lambda: openrnn.reduce_sum(openrnn.square(variable * slope))  # noqa
        for _ in range(2):
            if clips_itself:
                optimizer.minimize(loss, var_list=[variable], clip_norm=clip)
                continue
            pairs = optimizer.compute_gradients(loss, [variable])
            clipped, _ = openrnn.clip_by_global_norm([g for g, _ in pairs], clip)
            optimizer.apply_gradients([(clipped[0], variable)])
        optimizer.finish()
        values.append(array(variable).copy())
    np.testing.assert_array_equal(*values)


@pytest.mark.parametrize("bad", [0, -1.0, np.nan])
def test_a_clip_norm_is_above_0(bad):
    variable = openrnn.Variable(draw(3))
    with pytest.raises(openrnn.ArgumentError, match="clip_norm is .*, expected a number above 0"):
        step(openrnn.train.GradientDescentOptimizer(1.0), variable, draw(3), clip_norm=bad)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_clip_of_a_norm_that_is_not_finite(bad):
    given = [openrnn.constant(np.array([1.0, bad], "float32"))]
    message = error_text((ValueError, ArithmeticError), openrnn.clip_by_global_norm, given, 1.0)
    assert_names(message, "finite|nan|inf")


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_float16_keeps_a_float32_master(row):
    """Steps far below the float16 resolution add up; all of it is among the variables."""
    variable, optimizer = openrnn.Variable(np.ones(3, "float16"), name="X"), optimizer_of(row)
    gradient = np.full(3, 2.0**-10, "float16")
    for _ in range(40):
        step(optimizer, variable, gradient)
    wanted = numpy_optimizers.run(model_of(row), np.ones(3), [np.full(3, 2.0**-10)] * 40)["X"]
    # One rounding to float16 below 1.
    np.testing.assert_allclose(array(variable).astype("f8"), wanted, rtol=0, atol=2.0**-11)
    assert {str(v.dtype) for v in optimizer.variables()} <= {"float32", "int64", "int32"}


def test_float16_takes_a_gradient_in_float32():
    """As a step's own gradients are: what float16 cannot hold is neither lost nor too large."""
    variable = openrnn.Variable(np.zeros(2, "float16"))
    optimizer = openrnn.train.GradientDescentOptimizer(2.0**10)
    optimizer.apply_gradients([(np.array([-(2.0**-30), 0.0], "float32"), variable)])
    np.testing.assert_array_equal(variable, np.array([2.0**-20, 0.0], "float16"))
    optimizer = openrnn.train.GradientDescentOptimizer(2.0**-10)
    optimizer.apply_gradients([(np.array([0.0, -(2.0**17)], "float32"), variable)])
    np.testing.assert_array_equal(variable, np.array([2.0**-20, 128.0], "float16"))


def test_float16_skips_a_step_that_is_not_finite():
    variable = openrnn.Variable(np.ones(2, "float16"))
    optimizer = openrnn.train.GradientDescentOptimizer(0.5)
    step(optimizer, variable, np.array([np.inf, 1.0], "float16"))
    np.testing.assert_array_equal(array(variable), [1.0, 1.0])
    step(optimizer, variable, np.array([0.25, 0.5], "float16"))
    np.testing.assert_array_equal(array(variable), [0.875, 0.75])


@pytest.mark.parametrize("name", [name for name, _ in SIGNATURES])
@pytest.mark.parametrize("rate", ["fast", None, [0.1], {}], ids=str)
def test_constructor_of_wrong_types(name, rate):
    more = {"momentum": 0.9} if name == "MomentumOptimizer" else {}
    make = getattr(openrnn.train, name)
    error_text((TypeError, ValueError), lambda: make(learning_rate=rate, **more))


def test_slots_of_a_layer_come_with_the_checkpoint(tmp_path):
    """An optimizer that has made none yet gets those of a recurrent layer when it is restored."""
    rows, kept = draw(4, 2, 3), {}
    for turn in ("saved", "restored"):
        with openrnn.Graph().as_default():
            layer = openrnn.cudnn_rnn.CudnnLSTM(2, 5, seed=1)
            layer.build((None, None, 3))
            optimizer = openrnn.train.AdamOptimizer(0.1)
            checkpoint = openrnn.train.Checkpoint(net=layer, optimizer=optimizer)
            if turn == "saved":
                loss = lambda: openrnn.reduce_sum(openrnn.square(layer(rows)[0]))  # noqa: E731, B023
                optimizer.minimize(loss)
                checkpoint.write(tmp_path / "one")
            else:
                checkpoint.read(tmp_path / "one").assert_consumed()
            kept[turn] = [array(optimizer.get_slot(layer.kernel, name)) for name in ("m", "v")]
    for saved, restored in zip(kept["saved"], kept["restored"], strict=True):
        assert np.any(saved)
        np.testing.assert_array_equal(restored, saved)
