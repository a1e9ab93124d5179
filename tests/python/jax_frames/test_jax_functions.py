"""openrnn.jax over a stand-in for JAX: values, gradients by its rules, parameters, packing, errors."""

import gc

import numpy as np
import openrnn
import pytest
from numpy_jax import Tracer, installed

from model import numpy_layout, package_run
from model.numpy_layout import Spec
from model.rnn_data import make_problem

BI = {"direction": "bidirectional"}
SPECS = {
    "lstm": Spec("lstm", 1, 5, 3), "lstm_both": Spec("lstm", 2, 3, 4, **BI),
    "lstm_projection": Spec("lstm", 2, 5, 3, num_proj=2, **BI), "gru": Spec("gru", 1, 4, 3),
    "gru_both": Spec("gru", 2, 4, 3, **BI), "rnn_tanh": Spec("rnn_tanh", 2, 3, 2),
    "rnn_relu": Spec("rnn_relu", 1, 3, 2, **BI),
}  # fmt: skip
STEP = 1e-6


@pytest.fixture(scope="module")
def ours():
    with installed() as package:
        yield package


def dicts_of(spec, params):
    """The list of dicts, by the lists of the NumPy model."""
    weights, biases = numpy_layout.params_to_canonical(spec, params)
    gates, made = spec.num_gates, []
    each = len(weights) // spec.num_pseudo
    for p in range(spec.num_pseudo):
        matrices, vectors = weights[p * each : (p + 1) * each], biases[2 * gates * p : 2 * gates * (p + 1)]
        made.append({
            "w_ih": np.concatenate(matrices[:gates]), "w_hh": np.concatenate(matrices[gates : 2 * gates]),
            "b_ih": np.concatenate(vectors[:gates]), "b_hh": np.concatenate(vectors[gates:]),
        })  # fmt: skip
        if spec.num_proj:
            made[-1]["w_hr"] = matrices[-1]
    return made


def options_of(spec):
    options = {"bidirectional": spec.num_dirs == 2}
    return {**options, "activation": "relu"} if spec.mode == "rnn_relu" else options


def cell_of(spec):
    return spec.mode.split("_")[0]


def called(ours, spec, x, states, params, **more):
    """[y, h, ..]."""
    function = getattr(ours, cell_of(spec))
    states = states or [None] * (2 if spec.mode == "lstm" else 1)
    return list(function(x, *states, params, **options_of(spec), **more))


@pytest.mark.parametrize("time_major", [True, False])
@pytest.mark.parametrize("lengths", [None, "mixed"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", SPECS)
def test_results(ours, name, dtype, lengths, time_major):
    spec = SPECS[name]
    problem = make_problem(spec, 5, 3, dtype, lengths)
    wanted = package_run.run("op", problem, gradients=False)
    states = [each for each in problem.states if each is not None]
    x = problem.x if time_major else problem.x.swapaxes(0, 1)
    params = dicts_of(spec, problem.params)
    packed = ours.pack(params, cell_of(spec), **options_of(spec))
    lengths = None if lengths is None else problem.lengths.tolist()  # of any kind of integers
    more = {"time_major": time_major, "sequence_lengths": lengths}
    plain = called(ours, spec, x, states, params, **more)
    for found in (plain, getattr(ours, cell_of(spec))(x, *states, packed, **more)):
        y, *last = found
        np.testing.assert_allclose(y if time_major else y.swapaxes(0, 1), wanted["y"], atol=1e-6)
        for key, each in zip("hc", last, strict=False):
            np.testing.assert_allclose(each, wanted[key], atol=1e-6)
        assert len(last) == len(states) and {each.dtype.name for each in found} == {dtype}
    zeros = [np.zeros_like(each) for each in states]
    none, zero = (called(ours, spec, x, given, params, **more) for given in ([], zeros))
    for a, b in zip(none, zero, strict=True):
        np.testing.assert_array_equal(a, b)


def call_of(ours, spec, problem, batch_major=True, training=False, **options):
    """(the call, its arguments as the engine has them)."""
    from openrnn.jax import _operation, _params

    layout = _params.layout_of("test", cell_of(spec), options_of(spec)["bidirectional"],
                               {k: v for k, v in options_of(spec).items() if k == "activation"} | options)
    params = dicts_of(spec, problem.params)
    net = _params.network_of_params("test", params, layout)
    turn = (lambda a: np.ascontiguousarray(a.swapaxes(0, 1))) if batch_major else (lambda a: a)
    c0 = turn(problem.c0) if net.has_cell else np.zeros(0, problem.x.dtype)
    lengths = np.zeros(0, np.int32) if problem.lengths is None else problem.lengths
    seed = np.array([7, 9], np.uint32)
    args = [turn(problem.x), turn(problem.h0), c0, _params.joined(net, params), lengths, seed, np.zeros(2, np.uint32)]
    dc = turn(problem.dc) if net.has_cell else c0
    return _operation, _operation.Call(net, batch_major, training), args, [turn(problem.dy), turn(problem.dh), dc]


@pytest.mark.parametrize("batch_major", [True, False])
@pytest.mark.parametrize("lengths", [None, "mixed"])
@pytest.mark.parametrize("name", SPECS)
def test_gradients(ours, name, lengths, batch_major):
    spec = SPECS[name]
    problem = make_problem(spec, 5, 3, np.float64, lengths)
    wanted = package_run.run("op", problem)
    operation, call, args, grads = call_of(ours, spec, problem, batch_major)
    run = operation.operation(call)
    outputs, kept = run.keep(*args)
    for a, b in zip(outputs, run(*args), strict=True):
        np.testing.assert_array_equal(a, b)
    for first in (run.first(kept, grads), run.first((*kept[:6], kept[6][:0]), grads)):
        turn = (lambda a: a.swapaxes(0, 1)) if batch_major else (lambda a: a)
        for key, found in zip(("dx", "dh0", "dc0"), first):
            if key in wanted:
                np.testing.assert_allclose(turn(found), wanted[key], atol=1e-12)
        np.testing.assert_allclose(first[3], wanted["dparams"], atol=1e-12)
        assert first[4:] == (None, None, None)


@pytest.mark.parametrize("name", ["lstm_projection", "gru_both"])
def test_second_gradients(ours, name):
    """Of sum(gradients * v), by both ways to it; against differences of gradients."""
    spec = SPECS[name]
    problem = make_problem(spec, 4, 2, np.float64, "mixed")
    operation, call, args, grads = call_of(ours, spec, problem)
    run = operation.operation(call)
    _, kept = run.keep(*args)
    gradient = operation._gradient(call)
    first, held = gradient.keep(*grads, *kept)
    random = np.random.default_rng(3)
    v = [random.normal(size=np.shape(each)) for each in first]
    second = gradient.first(held, v)
    assert second[7:] == (None, None, None)

    def total(moved):
        *upstream, x, h, c, params = moved
        found = run.first(run.keep(x, h, c, params, *args[4:])[1], upstream)
        return sum((a * b).sum() for a, b in zip(found[:4], v, strict=True))

    leaves = [*grads, *args[:4]]
    for place, leaf in enumerate(leaves):
        if not leaf.size:
            continue
        direction = random.normal(size=leaf.shape)
        ends = [total([*leaves[:place], leaf + sign * STEP * direction, *leaves[place + 1 :]])
                for sign in (1, -1)]
        exact = (np.asarray(second[place]) * direction).sum()
        assert abs(exact - (ends[0] - ends[1]) / (2 * STEP)) < 1e-6 * max(1, abs(exact)), place


SAMPLES = 3
MAPPED = {"x": {0}, "states": {1, 2}, "params": {0, 3}, "lengths": {0, 1, 2, 4}, "seed": {0, 5},
          "token": {1, 6}}  # fmt: skip


@pytest.mark.parametrize("lengths", ["mixed", None])
@pytest.mark.parametrize("batch_major", [True, False])
@pytest.mark.parametrize("mapped", MAPPED)
@pytest.mark.parametrize("name", ["lstm_both", "gru"])
def test_vmap_rules(ours, name, mapped, batch_major, lengths):
    spec = SPECS[name]
    problem = make_problem(spec, 4, 2, np.float64, lengths)
    operation, call, args, grads = call_of(ours, spec, problem, batch_major)
    random = np.random.default_rng(4)
    places = MAPPED[mapped]

    def samples(value, place):
        if place == 4:
            return random.integers(0, 5, (SAMPLES, len(value))).astype(np.int32)
        moved = np.stack([value] * SAMPLES)
        return moved if place in (5, 6) else moved + 0.1 * random.normal(size=moved.shape)

    given = [samples(each, n) if n in places else each for n, each in enumerate(args)]
    flags = [n in places for n in range(7)]
    alone = lambda values, flags, n: [v[n] if flag else v for v, flag in zip(values, flags, strict=True)]
    x = alone(given, flags, 0)[0]
    time, batch = (x.shape[1], x.shape[0]) if batch_major else x.shape[:2]
    room = operation.reserve_bytes(call.net, time, batch, False)
    forward = operation.forward(call, room)
    outputs, out_flags = forward.rule(SAMPLES, flags, *given)
    assert outputs[3].shape == (SAMPLES, room) and out_flags[3]
    for rows, spoiled in ((False, False), (False, True), (True, False)):
        backward = operation._backward(call, rows)
        reserve = outputs[3] * 0 if spoiled else outputs[3]
        for grads_mapped in ((True, False, False), (False, True, False)):
            upstream = [samples(each, 0) if flag else each for each, flag in zip(grads, grads_mapped, strict=True)]
            b_flags = [*grads_mapped, *flags[:6], True]
            found, found_flags = backward.rule(SAMPLES, b_flags, *upstream, *given[:6], reserve)
            for n in range(SAMPLES):
                one = alone(given, flags, n)
                right = forward(*one)
                for a, flag, b in zip(outputs[:3], out_flags, right, strict=False):
                    np.testing.assert_allclose(a[n] if flag else a, b, atol=1e-14)
                wanted = backward(*alone(upstream, grads_mapped, n), *one[:6], right[3])
                for a, flag, b in zip(found, found_flags, wanted, strict=True):
                    np.testing.assert_allclose(a[n] if flag else a, b, atol=1e-12)


def test_vmap_of_one_call_s_gradients(ours):
    """A reserve that is not mapped is of one call, whose gradients are wanted for many outputs."""
    spec = SPECS["lstm"]
    problem = make_problem(spec, 4, 2, np.float64)
    operation, call, args, grads = call_of(ours, spec, problem)
    run = operation.operation(call)
    _, kept = run.keep(*args)
    many = [np.stack([each, 2 * each]) for each in grads]
    backward = operation._backward(call, False)
    found, flags = backward.rule(2, [True] * 3 + [False] * 7, *many, *kept)
    assert flags == (True,) * 4
    right = run.first(kept, grads)
    for a, b in zip(found, right[:4], strict=True):
        np.testing.assert_allclose(a[1], 2 * b, atol=1e-12)
    directions = [np.stack([each, -each]) for each in right[:4]]
    tangent = operation._tangent(call)
    found, _ = tangent.rule(2, [True] * 4 + [False] * 9, *directions, *grads, *kept[:6])
    for a, b in zip(found, tangent(*right[:4], *grads, *kept[:6]), strict=True):
        np.testing.assert_allclose(a[1], -np.asarray(b), atol=1e-12)


def test_masks_of_samples_are_their_own(ours):
    spec = Spec("lstm", 2, 3, 2)
    problem = make_problem(spec, 4, 2, np.float64)
    operation, call, args, _ = call_of(ours, spec, problem, training=True, dropout=0.5)
    forward = operation.forward(call, 0)
    x = np.stack([args[0]] * SAMPLES)
    outputs, flags = forward.rule(SAMPLES, [True] + [False] * 6, x, *args[1:])
    for n in range(SAMPLES):
        np.testing.assert_array_equal(outputs[0][n], forward(*args)[0])
    assert flags[0]


def test_dropout_is_of_a_key(ours):
    params = ours.init(3, "gru", input_size=3, hidden_size=4, num_layers=2)
    x = np.random.default_rng(1).normal(size=(2, 5, 3)).astype("float32")
    run = lambda **more: ours.gru(x, None, params, **more)[0]
    first = run(dropout=0.5, key=5)
    np.testing.assert_array_equal(run(dropout=0.5, key=5), first)
    assert abs(run(dropout=0.5, key=6) - first).max() > 1e-3
    np.testing.assert_array_equal(run(dropout=0.5), run())
    np.testing.assert_array_equal(run(key=5), run())
    assert abs(first - run()).max() > 1e-3


CELLS = {"lstm": 4, "gru": 3, "rnn": 1}


@pytest.mark.parametrize("method", ["uniform", "glorot"])
@pytest.mark.parametrize("cell", CELLS)
def test_init(ours, cell, method):
    gates = CELLS[cell]
    more = {"proj_size": 2} if cell == "lstm" else {}
    params = ours.init(7, cell, input_size=30, hidden_size=6, num_layers=2, bidirectional=True,
                       method=method, dtype="float64", **more)  # fmt: skip
    out = 2 if more else 6
    assert len(params) == 4
    for index, each in enumerate(params):
        width = 30 if index < 2 else 2 * out
        shapes = {"w_ih": (gates * 6, width), "w_hh": (gates * 6, out), "b_ih": (gates * 6,), "b_hh": (gates * 6,)}
        shapes.update({"w_hr": (2, 6)} if more else {})
        assert {k: v.shape for k, v in each.items()} == shapes
        assert {v.dtype.name for v in each.values()} == {"float64"}
        if method == "uniform":
            assert all(0.5 / 6**0.5 < abs(v).max() <= 6**-0.5 for k, v in each.items() if v.size > 9)
            assert all(v.min() < 0 < v.max() for v in each.values())
            continue
        assert not each["b_ih"].any() and not each["b_hh"].any()
        if more:
            limit = (6 / (2 + 6)) ** 0.5
            assert 0.7 * limit < abs(each["w_hr"]).max() <= limit
        limit = (6 / (6 + width)) ** 0.5
        assert 0.8 * limit < min(each["w_ih"].max(), -each["w_ih"].min()) and abs(each["w_ih"]).max() <= limit
        for part in np.split(each["w_hh"], gates):
            np.testing.assert_allclose(part.T @ part, np.eye(out), atol=1e-12)
    flat = np.concatenate([v.ravel() for each in params for v in each.values() if v.any()])
    assert len(np.unique(flat)) == flat.size
    assert (flat != flat.astype("float32")).any(), "drawn in float64"


def test_init_of_options(ours):
    made = lambda **more: ours.init(1, input_size=3, hidden_size=4, **more)[0]
    assert set(made(single_bias=True)) == {"w_ih", "w_hh", "b_ih"}
    assert set(made(use_bias=False)) == {"w_ih", "w_hh"}
    (norm,) = [made(layer_norm="products", layer_norm_cell="output")]
    assert (norm["gain_ih"] == 1).all() and (norm["cell_gain"] == 1).all() and not norm["cell_bias"].any()
    assert made(dtype="bfloat16")["w_ih"].dtype.name == "bfloat16"
    assert made()["w_ih"].dtype.name == "float32"
    peepholes = made(use_peepholes=True, method="glorot")["peephole"]
    assert 0 < abs(peepholes).max() <= 0.5
    with pytest.raises(openrnn.ArgumentError, match=r"^\[openrnn.jax.init\] method is 'he', expected 'uniform' or"):
        made(method="he")


@pytest.mark.parametrize("name", SPECS)
def test_flatten_and_back(ours, name):
    spec = SPECS[name]
    params = make_problem(spec, 2, 2, np.float32).params
    options = options_of(spec)
    flat = ours.flatten(dicts_of(spec, params), cell_of(spec), **options)
    np.testing.assert_array_equal(flat, params)
    again = ours.unflatten(params, cell_of(spec), input_size=spec.input_size, hidden_size=spec.num_units,
                           num_layers=spec.num_layers, proj_size=spec.num_proj, **options)  # fmt: skip
    for a, b in zip(again, dicts_of(spec, params), strict=True):
        assert a.keys() == b.keys() and all((a[k] == b[k]).all() for k in a)
    with pytest.raises(openrnn.ArgumentError, match=rf"buffer is float32 \[3\], expected \[{params.size}\]"):
        ours.unflatten(params[:3], cell_of(spec), input_size=spec.input_size, hidden_size=spec.num_units,
                       num_layers=spec.num_layers, proj_size=spec.num_proj, **options)  # fmt: skip


def flax_step(cell, params, x, h, c):
    """Flax's equations."""
    dense = lambda name, a: a @ params[name]["kernel"] + params[name].get("bias", 0)
    sigmoid = lambda a: 1 / (1 + np.exp(-a))
    if cell == "rnn":
        return np.tanh(dense("i", x) + dense("h", h))
    if cell == "gru":
        r, z = (sigmoid(dense("i" + g, x) + dense("h" + g, h)) for g in "rz")
        return (1 - z) * np.tanh(dense("in", x) + r * dense("hn", h)) + z * h
    i, f, g, o = (dense("i" + gate, x) + dense("h" + gate, h) for gate in "ifgo")
    return sigmoid(o) * np.tanh(sigmoid(f) * c + sigmoid(i) * np.tanh(g))


@pytest.mark.parametrize("bias", ["two", "single", "none"])
@pytest.mark.parametrize("cell", CELLS)
def test_flax(ours, cell, bias):
    options = {"two": {}, "single": {"single_bias": True}, "none": {"use_bias": False}}[bias]
    (params,) = ours.init(2, cell, input_size=3, hidden_size=4, dtype="float64", **options)
    random = np.random.default_rng(6)
    x, h, c = (random.normal(size=(2, width)) for width in (3, 4, 4))
    theirs = ours.to_flax(params, cell)
    run = getattr(ours, cell)
    states = (h[None], c[None]) if cell == "lstm" else (h[None],)
    right = flax_step(cell, theirs, x, h, c)
    np.testing.assert_allclose(run(x[:, None], *states, [params])[1][0], right, atol=1e-12)
    for wrapped in (theirs, {"params": theirs}):
        again = ours.from_flax(wrapped, cell)
        np.testing.assert_allclose(run(x[:, None], *states, [again])[1][0], right, atol=1e-12)
    assert ("b_hh" in again) == (cell == "gru" and bias != "none")


@pytest.mark.parametrize("gone", ["b_ih", "b_hh"])
@pytest.mark.parametrize("cell", CELLS)
def test_flax_of_one_bias_alone(ours, cell, gone):
    """The other one is zeros."""
    (params,) = ours.init(2, cell, input_size=3, hidden_size=4, dtype="float64")
    random = np.random.default_rng(8)
    params = {name: random.normal(size=array.shape) for name, array in params.items()}
    alone = ours.to_flax({name: array for name, array in params.items() if name != gone}, cell)
    both = ours.to_flax({**params, gone: np.zeros_like(params[gone])}, cell)
    assert alone.keys() == both.keys()
    for name, parts in both.items():
        assert alone[name].keys() == parts.keys()
        for part, array in parts.items():
            np.testing.assert_array_equal(alone[name][part], array)
    assert any(parts["bias"].any() for parts in both.values() if "bias" in parts)


def test_params_of_lists_and_tuples(ours):
    """Whatever JAX makes an array of."""
    params = ours.init(3, input_size=3, hidden_size=4, num_layers=2, dtype="float64")
    plain = tuple({key: value.tolist() for key, value in each.items()} for each in params)
    x = np.random.default_rng(1).normal(size=(2, 5, 3))
    right = ours.lstm(x, None, None, params)[0]
    for given in (plain, list(plain), tuple(params), ours.pack(plain)):
        np.testing.assert_array_equal(ours.lstm(x, None, None, given)[0], right)
    np.testing.assert_array_equal(ours.flatten(plain), ours.flatten(params))


def wrong_calls(ours):
    params = ours.init(3, input_size=3, hidden_size=4)
    both = ours.init(3, input_size=3, hidden_size=4, bidirectional=True)
    x = np.ones((2, 5, 3), "float32")
    (one,) = params
    lstm = lambda given, **more: ours.lstm(more.pop("x", x), None, None, given, **more)
    packed = ours.pack(params)
    state = np.zeros((1, 2, 4), "float32")
    return [
        (lambda: lstm({}), "params is dict, expected a list of one dict a layer"),
        (lambda: lstm([]), "params is 0 dicts, expected a list of one dict a layer"),
        (lambda: lstm((*both, one), bidirectional=True), "params is 3 dicts, expected a list of one dict for each layer"),
        (lambda: lstm(params, bidirectional=True), "params is 1 dicts, expected a list of one dict for each layer"),
        (lambda: lstm([1]), r"params\[0\] is int, expected a dict"),
        (lambda: lstm([{"w_ih": one["w_ih"]}]), r"params\[0\]\['w_hh'\] is missing, expected a matrix"),
        (lambda: lstm([{**one, "w_ih": one["b_ih"]}]), r"params\[0\]\['w_ih'\] is float32 \[16\], expected a matrix"),
        (lambda: lstm([{**one, "w_hh": one["w_hh"][:-1]}]), r"params\[0\]\['w_hh'\] has 15 rows, expected a multiple of 4"),
        (lambda: lstm([{**one, "w_ih": one["w_ih"].astype(int)}]), r"params\[0\]\['w_ih'\] is of int64, expected float32"),
        (lambda: lstm([*both, *both]), r"params\[\d\]\['w_ih'\] is float32 \[16, 3\], expected float32 \[16, 4\]"),
        (lambda: lstm([one, 5]), r"params\[1\] is int, expected a dict"),
        (lambda: lstm([{**one, "w_xx": one["b_ih"]}]), r"params\[0\] has 'w_xx', which this network has not"),
        (lambda: lstm(params, use_peepholes=True), r"params\[0\] has no 'peephole', expected \[12\]"),
        (lambda: lstm([{**one, "b_hh": one["b_hh"].astype("float64")}]), r"params\[0\]\['b_hh'\] is float64 \[16\], expected float32"),
        (lambda: lstm(params, x=x[0]), r"x is float32 \[5, 3\], expected float32 \[B, T, I\] with I = 3"),
        (lambda: lstm(params, x=x[..., :2], time_major=True), r"x is float32 \[2, 5, 2\], expected float32 \[T, B, I\] with"),
        (lambda: lstm(params, x=x.astype("float64")), "x is float64"),
        (lambda: ours.lstm(x, state[:, :1], None, params), r"h0 is float32 \[1, 1, 4\], expected float32 \[1, 2, 4\]"),
        (lambda: ours.lstm(x, state, state.astype("float64"), params), "c0 is float64"),
        (lambda: lstm(params, sequence_lengths=[1.0, 2.0]), r"sequence_lengths is float64 \[2\], expected integers \[2\]"),
        (lambda: lstm(params, sequence_lengths=[1]), r"sequence_lengths is int64 \[1\], expected integers \[2\]"),
        (lambda: lstm(packed, use_peepholes=True), "use_peepholes is given beside packed params, expected it in openrnn.jax.pack"),
        (lambda: lstm(packed, bidirectional=True), "bidirectional is given beside packed params"),
        (lambda: ours.gru(x, None, packed), "params are packed for lstm, expected gru"),
    ]  # fmt: skip


def test_errors(ours):
    for call, text in wrong_calls(ours):
        with pytest.raises(openrnn.ArgumentError, match=rf"^\[openrnn.jax.\w+\] {text}"):
            call()
    gru = ours.init(3, "gru", input_size=3, hidden_size=4)
    x = np.ones((2, 5, 3), "float32")
    with pytest.raises(openrnn.ArgumentError, match="c0 is given, expected None: only a projected gru has one"):
        ours.gru(x, None, gru, c0=np.zeros((1, 2, 4), "float32"))
    np.testing.assert_array_equal(ours.gru(x, None, gru, gate_clip=None)[0], ours.gru(x, None, gru)[0])
    for name in ("num_units", "seed", "leaves"):
        with pytest.raises(TypeError, match=rf"openrnn.jax.gru.*{name}"):
            ours.gru(x, None, gru, **{name: 4})
    with pytest.raises(openrnn.UnsupportedError, match="input_mode is an option of openrnn.layers"):
        ours.gru(x, None, gru, input_mode="skip_input")
    with pytest.raises(openrnn.ArgumentError, match=r"^\[openrnn.jax.flatten\] cell is 'tree', expected 'lstm', 'gru' or 'rnn'"):
        ours.flatten(gru, "tree")
    with pytest.raises(openrnn.ArgumentError, match=r"^\[openrnn.jax.pack\] params are traced"):
        ours.pack([{**gru[0], "w_ih": Tracer()}], "gru")
    with pytest.raises(openrnn.ArgumentError, match=r"\[openrnn.jax.to_flax\] params have 'w_hr', which no cell"):
        ours.to_flax({**gru[0], "w_hr": x}, "gru")
    with pytest.raises(openrnn.ArgumentError, match=r"\[openrnn.jax.from_flax\] params have \['a'\] and no 'ir', expected"):
        ours.from_flax({"a": 1}, "gru")


def test_the_reset_gate_before_the_product(ours):
    params = ours.init(3, "gru", input_size=3, hidden_size=4)
    x = np.random.default_rng(1).normal(size=(2, 5, 3)).astype("float32")
    y = ours.gru(x, None, params, reset_after=False)[0]
    packed = ours.pack(params, "gru", reset_after=False)
    np.testing.assert_array_equal(ours.gru(x, None, packed, reset_after=None, gate_clip=None)[0], y)
    np.testing.assert_array_equal(ours.gru(x, None, params, reset_after=True)[0], ours.gru(x, None, params)[0])
    assert abs(y - ours.gru(x, None, params)[0]).max() > 1e-4


def test_packed_params_that_somebody_changed(ours):
    params = ours.init(3, input_size=3, hidden_size=4)
    x = np.ones((2, 5, 3), "float32")
    packed = ours.pack(params, weights_dtype="int8")
    found = ours.lstm(x, None, None, packed)[0]
    assert 0 < abs(found - ours.lstm(x, None, None, params)[0]).max() < 0.02
    (buffer, token), net = packed.tree_flatten()
    assert repr(packed) == f"<openrnn.jax.Packed of {net.text}>"
    other = ours.Packed.tree_unflatten(net, (buffer * 2, token))
    doubled = [{key: 2 * value for key, value in params[0].items()}]
    right = ours.lstm(x, None, None, ours.pack(doubled, weights_dtype="int8"))[0]
    np.testing.assert_array_equal(ours.lstm(x, None, None, other)[0], right)
    for leaves, text in (((buffer[:3], token), r"the buffer of packed params is float32 \[3\], expected float32 \[144\]"),
                         ((buffer, token.astype("int32")), r"the token of packed params is int32 \[2\], expected uint32"),
                         ((buffer.astype("float64"), token), "the buffer of packed params is float64")):
        with pytest.raises(openrnn.ArgumentError, match=text):
            ours.lstm(x, None, None, ours.Packed.tree_unflatten(net, leaves))


def test_what_was_packed_goes_with_its_object(ours, monkeypatch):
    from openrnn import _core

    dropped, own = [], _core.jax_drop
    monkeypatch.setattr(_core, "jax_drop", lambda *words: dropped.append(words) or own(*words))
    packed = ours.pack(ours.init(3, input_size=3, hidden_size=4))
    words = tuple(int(word) for word in packed.tree_flatten()[0][1])
    assert not dropped and words != (0, 0)
    del packed
    gc.collect()
    assert dropped == [words]


def test_a_program_for_another_platform_is_refused(ours):
    from types import SimpleNamespace

    import jax.interpreters.mlir as mlir

    for name in ("openrnn_forward", "openrnn_backward", "openrnn_tangent"):
        assert mlir.lowerings[name, "cpu"] == name
        for context in (SimpleNamespace(platforms=["cuda"]),
                        SimpleNamespace(platforms=None, module_context=SimpleNamespace(platforms=["cuda"]))):
            with pytest.raises(openrnn.UnsupportedError, match=r"^\[openrnn.jax\] a call is compiled for cuda, expected cpu"):
                mlir.lowerings[name, None](context)
