"""Gradients of the op: against NumPy, what is missing, what is refused."""

import numpy as np
import openrnn
import pytest
from model import numpy_rnn
from table.ops.op_support import EAGER_SYMBOLIC, make_arguments, make_op
from table.support import (
    KINDS, LSTM, B, I, T, U, array, assert_close, assert_names, draw, error_text, make_layer,
    per_kind,
)  # fmt: skip


def upstream(spec, seed=40):
    """Non-uniform d(loss)/d(output) and d(loss)/d(state)s."""
    dy = draw(T, B, spec.num_dirs * spec.state_width, seed=seed, dtype="float64")
    dh = draw(spec.num_pseudo, B, spec.state_width, seed=seed + 1, dtype="float64")
    dc = draw(spec.num_pseudo, B, spec.num_units, seed=seed + 2, dtype="float64")
    return [dy, dh, dc] if spec.mode == "lstm" else [dy, dh]


def wanted_gradients(spec, arguments, slopes, lengths=None):
    """[dx, dh0, (dc0,) dparams]; a slope of None counts as zeros."""
    x, *states, params = (np.asarray(a, np.float64) for a in arguments)
    states = [*states, None][:2]
    _, _, _, tape = numpy_rnn.forward(spec, params, x, *states, lengths=lengths)
    dy, dh, dc = [*slopes, None][:3]
    dy = np.zeros((T, B, spec.num_dirs * spec.state_width)) if dy is None else dy
    dx, dh0, dc0, dparams = numpy_rnn.backward(tape, dy, dh, dc)
    return [dx, dh0, dparams] if dc0 is None else [dx, dh0, dc0, dparams]


def loss_of(outputs, slopes):
    """The sum of outputs times slopes, over the outputs that have one."""
    terms = [
        openrnn.reduce_sum(o * openrnn.constant(s))
        for o, s in zip(outputs, slopes, strict=True)
        if s is not None
    ]
    return openrnn.add_n(terms)


def found_gradients(op, arguments, slopes, symbolic=False, **kw):
    sources = [openrnn.constant(a) for a in arguments]
    function = lambda *given: op(*given, **kw)  # noqa: E731
    if symbolic:
        inputs = [openrnn.Input(batch_shape=a.shape, dtype=str(a.dtype)) for a in arguments]
        model = openrnn.Model(inputs, list(op(*inputs, **kw)))
        function = lambda *given: model(list(given))  # noqa: E731
    with openrnn.GradientTape() as tape:
        for source in sources:
            tape.watch(source)
        loss = loss_of(function(*sources), slopes)
    return [None if g is None else array(g) for g in tape.gradient(loss, sources)]


def double(kind, direction="unidirectional", **kw):
    op, spec = make_op(kind, direction, dtype="float64", **kw)
    return op, spec, make_arguments(spec, dtype="float64")


@EAGER_SYMBOLIC
@pytest.mark.parametrize("lengths", [None, [2, 5, 1], [0, 4, 0]], ids=str)
def test_all_gradients(kind, direction, symbolic, lengths):
    op, spec, arguments = double(kind, direction)
    kw = {} if lengths is None else {"sequence_lengths": np.asarray(lengths, "int32")}
    slopes = upstream(spec)
    found = found_gradients(op, arguments, slopes, symbolic, **kw)
    for a, b in zip(found, wanted_gradients(spec, arguments, slopes, lengths), strict=True):
        assert_close(a, b, 1e-12)


@EAGER_SYMBOLIC
def test_projection(direction, symbolic):
    op, spec, arguments = double(LSTM, direction, num_units=5, num_proj=3)
    slopes = upstream(spec)
    found = found_gradients(op, arguments, slopes, symbolic)
    for a, b in zip(found, wanted_gradients(spec, arguments, slopes), strict=True):
        assert_close(a, b, 1e-12)


def test_skip_input(kind, direction):
    op, spec, arguments = double(kind, direction, input_mode="skip_input", input_size=U)
    slopes = upstream(spec)
    found = found_gradients(op, arguments, slopes)
    for a, b in zip(found, wanted_gradients(spec, arguments, slopes), strict=True):
        assert_close(a, b, 1e-12)


@EAGER_SYMBOLIC
@per_kind(lambda kind: range(1 + kind.num_states))
def test_missing_upstream_gradients_are_zeros(kind, symbolic, row):
    op, spec, arguments = double(kind)
    slopes = [s if k == row else None for k, s in enumerate(upstream(spec))]
    found = found_gradients(op, arguments, slopes, symbolic)
    for a, b in zip(found, wanted_gradients(spec, arguments, slopes), strict=True):
        assert_close(a, b, 1e-12)


def test_float32_gradients(kind):
    op, spec = make_op(kind)
    arguments = make_arguments(spec)
    slopes = [s.astype("float32") for s in upstream(spec)]
    found = found_gradients(op, arguments, slopes)
    assert {g.dtype.name for g in found} == {"float32"}
    for a, b in zip(found, wanted_gradients(spec, arguments, slopes), strict=True):
        # Sums of T * B terms of order one.
        assert_close(a, b, 1e-5)


@EAGER_SYMBOLIC
def test_without_training_there_is_no_gradient(kind, symbolic):
    op, spec, arguments = double(kind)
    message = error_text(
        ValueError, found_gradients, op, arguments, upstream(spec), symbolic, is_training=False
    )
    assert_names(message, "is_training", "True", "gradients")


@EAGER_SYMBOLIC
def test_a_layer_without_training_has_no_gradient(kind, symbolic):
    layer, x = make_layer(kind), openrnn.constant(draw(T, B, I))
    call = lambda value: layer(value, training=False)[0]  # noqa: E731
    if symbolic:
        inputs = openrnn.Input(batch_shape=(T, B, I))
        call = openrnn.Model(inputs, call(inputs))
    with openrnn.GradientTape() as tape:
        loss = openrnn.reduce_sum(call(x))
    for _ in range(2):
        message = error_text(ValueError, tape.gradient, loss, layer.kernel)
        assert_names(message, "training", "True", "gradients")


def test_gradients_asked_twice_are_the_same(kind, direction):
    op, _, arguments = double(kind, direction)
    sources = [openrnn.constant(a) for a in arguments]
    with openrnn.GradientTape() as tape:
        for source in sources:
            tape.watch(source)
        loss = openrnn.reduce_sum(openrnn.square(op(*sources)[0]))
    first, second = ([array(g) for g in tape.gradient(loss, sources)] for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


def test_only_what_is_watched(kind):
    op, _, arguments = double(kind)
    sources = [openrnn.constant(a) for a in arguments]
    with openrnn.GradientTape() as tape:
        tape.watch(sources[0])
        loss = openrnn.reduce_sum(op(*sources)[0])
    found = tape.gradient(loss, sources)
    assert found[0] is not None and all(g is None for g in found[1:])


def test_structure_of_the_sources(kind):
    op, _, arguments = double(kind)
    x, params = openrnn.constant(arguments[0]), openrnn.Variable(arguments[-1])
    with openrnn.GradientTape() as tape:
        tape.watch(x)
        output = op(x, *arguments[1:-1], params)[0]
        loss = openrnn.reduce_sum(output)
    single = tape.gradient(loss, x)
    assert single.shape == x.shape
    as_list, as_tuple = tape.gradient(loss, [x, params]), tape.gradient(loss, (x, (params,)))
    assert type(as_list) is list and type(as_tuple) is tuple and type(as_tuple[1]) is tuple
    np.testing.assert_array_equal(array(as_list[0]), array(single))
    np.testing.assert_array_equal(array(as_tuple[1][0]), array(as_list[1]))
    assert tape.gradient(loss, openrnn.Variable(np.zeros(2, "float64"))) is None


def test_output_gradients(kind):
    op, spec, arguments = double(kind)
    x, slopes = openrnn.constant(arguments[0]), upstream(spec)
    with openrnn.GradientTape() as tape:
        tape.watch(x)
        outputs = op(x, *arguments[1:])
    found = tape.gradient(list(outputs), x, output_gradients=slopes)
    assert_close(found, wanted_gradients(spec, arguments, slopes)[0], 1e-12)
    ones = [np.ones(o.shape) for o in outputs]
    found = tape.gradient(list(outputs), [x])[0]
    assert_close(found, wanted_gradients(spec, arguments, ones)[0], 1e-12)


@pytest.mark.parametrize("position", [0, 1])
def test_output_gradients_of_another_shape(kind, position):
    op, spec, arguments = double(kind)
    x, slopes = openrnn.constant(arguments[0]), upstream(spec)
    with openrnn.GradientTape() as tape:
        tape.watch(x)
        outputs = list(op(x, *arguments[1:]))
    shape = list(slopes[position].shape)
    slopes[position] = np.ones([shape[0] + 1, *shape[1:]])
    call = lambda given: tape.gradient(outputs, x, output_gradients=given)
    assert_names(error_text(ValueError, call, slopes), str(shape[0] + 1), str(shape[0]))
    assert_names(error_text(ValueError, call, slopes[:1]), "1", str(len(outputs)))


def test_what_backward_reads_is_not_the_callers_memory(kind):
    op, spec, arguments = double(kind)
    given, slopes = [a.copy() for a in arguments], upstream(spec)
    params = openrnn.Variable(given[-1])
    with openrnn.GradientTape() as tape:
        loss = loss_of(op(*given[:-1], params), slopes)
    for value in given:
        value[...] = np.nan
    params.assign(np.full(params.shape, 3.0))
    found = tape.gradient(loss, params)
    assert_close(found, wanted_gradients(spec, arguments, slopes)[-1], 1e-12)


def test_a_longer_buffer_has_a_gradient_of_its_length(kind):
    op, spec, arguments = double(kind)
    longer = np.concatenate([arguments[-1], np.ones(4)])
    slopes = upstream(spec)
    found = found_gradients(op, [*arguments[:-1], longer], slopes)
    assert found[-1].shape == longer.shape and np.all(found[-1][-4:] == 0.0)
    assert_close(found[-1][:-4], wanted_gradients(spec, arguments, slopes)[-1], 1e-12)


@pytest.mark.parametrize("dropout", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("kind", KINDS, ids=[kind.mode for kind in KINDS])
def test_central_differences(kind, dropout, monkeypatch):
    """L2 U3 I4 B3 T4 in float64, one mask in every call: 5e-6 for a step of 1e-4."""
    monkeypatch.setenv("TF_CUDNN_RESET_RND_GEN_STATE", "1")
    op, spec = make_op(kind, num_units=3, input_size=4, dtype="float64", dropout=dropout, seed=6)
    arguments = [np.abs(a) for a in make_arguments(spec, dtype="float64", time=4, batch=3)]
    total = lambda outputs: openrnn.add_n([openrnn.reduce_sum(o) for o in outputs])  # noqa: E731
    sources = [openrnn.constant(a) for a in arguments]
    with openrnn.GradientTape() as tape:
        for source in sources:
            tape.watch(source)
        loss = total(op(*sources))
    found = [array(g) for g in tape.gradient(loss, sources)]
    for k, gradient in enumerate(found):
        assert np.all(np.isfinite(gradient))
        for index in np.ndindex(gradient.shape):
            values = []
            for step in (1e-4, -1e-4):
                moved = [a.copy() for a in arguments]
                moved[k][index] += step
                values.append(float(array(total(op(*moved)))))
            assert abs((values[0] - values[1]) / 2e-4 - gradient[index]) <= 5e-6 * (
                1.0 + abs(gradient[index])
            )


@pytest.mark.parametrize(
    "name, arguments",
    [
        ("GradientDescentOptimizer", (0.01,)),
        ("MomentumOptimizer", (0.01, 0.9)),
        ("AdagradOptimizer", (0.01,)),
        ("RMSPropOptimizer", (0.005,)),
        ("AdamOptimizer", (0.01,)),
    ],
)
def test_every_optimizer_trains_the_one_variable(kind, name, arguments):
    layer = kind.layer(4, 2, seed=2, bias_initializer=openrnn.initializers.constant(0.25))
    x, wanted = draw(8, 4, 2), draw(8, 4, 2, seed=1, low=0.0, high=0.5)
    optimizer = getattr(openrnn.train, name)(*arguments)

    def loss():
        return openrnn.losses.mean_squared_error(wanted, layer(x)[0])

    first = float(array(loss()))
    before = array(layer.kernel).copy()
    for _ in range(3):
        optimizer.minimize(loss, var_list=layer.trainable_weights)
    assert float(array(loss())) < first
    assert np.all(np.isfinite(array(layer.kernel))) and not np.array_equal(
        before, array(layer.kernel)
    )
