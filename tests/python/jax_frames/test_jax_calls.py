"""What openrnn.jax hands over to JAX and to the engine; its errors, whole; its defaults."""

import gc
import json

import numpy as np
import numpy_jax
import openrnn
import pytest
from numpy_jax import installed
from test_jax_functions import SAMPLES, SPECS, call_of, cell_of, dicts_of, options_of

from model.numpy_layout import Spec
from model.rnn_data import make_problem

X = np.random.default_rng(1).normal(size=(2, 5, 3)).astype("float32")


@pytest.fixture(scope="module")
def ours():
    with installed() as package:
        yield package


@pytest.fixture
def runs(ours, monkeypatch):
    """The arguments of what is compiled."""
    from openrnn.jax import _calls

    found, own = [], _calls._run
    assert own.options == {"static_argnums": 0}
    monkeypatch.setattr(_calls, "_run", lambda *args: found.append(args) or own(*args))
    return found


def told(call):
    return json.loads(call.net.text)


def test_what_a_call_is(ours, runs):
    sizes = {"input_size": 3, "num_units": 4, "dtype": "float32"}
    for cell in ("lstm", "gru", "rnn"):
        params = ours.init(3, cell, input_size=3, hidden_size=4, num_layers=2)
        states = (None, None) if cell == "lstm" else (None,)
        getattr(ours, cell)(X, *states, params)
        call, x, (h0, c0), given, lengths, key, token = runs.pop()
        found = told(call)
        assert {name: found[name] for name in sizes} == sizes and found["num_layers"] == 2
        assert found.get("dropout", 0.0) == 0.0 and found.get("direction", "unidirectional") == "unidirectional"
        assert (call.batch_major, call.training, key) == (True, False, None)
        assert x.shape == (2, 5, 3) and h0.shape == (2, 2, 4) and c0.shape == ((2, 2, 4) if cell == "lstm" else (0,))
        assert h0.dtype == c0.dtype == np.float32 and not h0.any() and not c0.any()
        assert lengths.shape == (0,) and lengths.dtype == np.int32 and not token.any() and token.dtype == np.uint32
        assert [set(each) for each in given] == [{"w_ih", "w_hh", "b_ih", "b_hh"}] * 2

        both = ours.init(3, cell, input_size=3, hidden_size=4, num_layers=2, bidirectional=True)
        more = {"reset_after": False} if cell == "gru" else {"activation": "relu"} if cell == "rnn" else {}
        getattr(ours, cell)(X, *states, both, bidirectional=True, time_major=True, dropout=0.25, key=5,
                            sequence_lengths=[1, 2, 0, 1, 2], gate_clip=None, **more)  # fmt: skip
        call, _, (h0, _), _, lengths, key, _ = runs.pop()
        found = told(call)
        assert found["dropout"] == 0.25 and found["direction"] == "bidirectional"
        assert (call.batch_major, call.training, key) == (False, True, 5)
        assert h0.shape == (4, 5, 4) and lengths.tolist() == [1, 2, 0, 1, 2] and lengths.dtype == np.int32
        mode = {"lstm": "lstm", "gru": "gru", "rnn": "rnn_relu"}[cell]
        assert found["rnn_mode"] == mode and found.get("reset_after", True) == (cell != "gru")
        getattr(ours, cell)(X, *states, params, key=5)
        assert runs.pop()[5] is None  # nothing is drawn


def test_activations(ours, runs):
    params = ours.init(3, "rnn", input_size=3, hidden_size=4)
    for activation, mode, more in ((None, "rnn_tanh", None), ("tanh", "rnn_tanh", None),
                                   ("relu", "rnn_relu", None), ("softsign", "rnn_tanh", "softsign")):
        y, h = ours.rnn(X, None, params, activation=activation)
        found = told(runs.pop()[0])
        assert found["rnn_mode"] == mode and found.get("activation") == more
    plain = np.zeros((2, 4))
    w = params[0]
    for t in range(5):
        a = X[:, t] @ w["w_ih"].T + w["b_ih"] + plain @ w["w_hh"].T + w["b_hh"]
        plain = a / (1 + abs(a))
    np.testing.assert_allclose(h[0], plain, atol=1e-6)


def test_arrays_of_any_kind(ours):
    """Lists and arrays of another order become arrays."""
    params = ours.init(3, input_size=3, hidden_size=4, dtype="float64")
    as_lists = [{name: value.tolist() for name, value in params[0].items()}]
    x, h = X.astype("float64"), np.ones((1, 2, 4))
    right = ours.lstm(x, h, h, params)[0]
    np.testing.assert_array_equal(ours.lstm(x.tolist(), h.tolist(), h.tolist(), as_lists)[0], right)
    np.testing.assert_array_equal(ours.lstm(x, h, h, ours.pack(tuple(as_lists)))[0], right)
    np.testing.assert_array_equal(ours.flatten(as_lists), ours.flatten(params))
    again = ours.unflatten(ours.flatten(params).tolist(), input_size=3, hidden_size=4)
    assert all((again[0][name] == params[0][name]).all() for name in params[0])


def test_states_of_a_projected_gru(ours):
    params = ours.init(3, "gru", input_size=3, hidden_size=4, proj_size=2)
    h, c = np.ones((1, 2, 2), "float32"), np.full((1, 2, 4), 0.5, "float32")
    y, hn, cn = ours.gru(X, h, params, c0=c)
    assert y.shape == (2, 5, 2) and hn.shape == (1, 2, 2) and cn.shape == (1, 2, 4)
    assert abs(y - ours.gru(X, h, params)[0]).max() > 1e-3


def test_what_networks_say_of_themselves(ours):
    from openrnn.jax._network import Layout, by_text, network_of

    sizes = {"num_layers": 3, "num_units": 4, "input_size": 2, "dtype": "float64"}
    for cell, bidirectional, more, wanted in (
        ("lstm", True, {"num_proj": 3}, (2, 3, 6, 6, True, False)), ("lstm", False, {}, (1, 4, 3, 4, True, False)),
        ("gru", False, {"dropout": 0.5}, (1, 4, 3, 4, False, True)), ("rnn", True, {}, (2, 4, 6, 8, False, False)),
    ):  # fmt: skip
        net = network_of({**sizes, **more}, Layout(cell, bidirectional, {"gate_clip": None}))
        assert (net.units, net.input_size, net.dtype) == (4, 2, "float64")
        assert (net.directions, net.hidden, net.states, net.output, net.has_cell, net.draws) == wanted
        assert net.rows is True and net.mode.startswith(cell) and by_text(net.text) is net
        # One piece behind another, and each in the dict of its layer and direction.
        pieces = sorted(net.pieces, key=lambda piece: piece.offset)
        assert [piece.offset for piece in pieces[1:]] == [piece.offset + piece.size for piece in pieces[:-1]]
        assert pieces[-1].offset + pieces[-1].size == net.size
        keys = {"w_ih", "w_hh", "b_ih", "b_hh"} | ({"w_hr"} if more.get("num_proj") else set())
        assert {(p.at, p.key) for p in pieces} == {(at, key) for at in range(net.states) for key in keys}


REFUSED = [
    (lambda o, p: o.lstm(X, None, None, {}), "lstm] params is dict, expected a list of one dict a layer"),
    (lambda o, p: o.lstm(X, None, None, [{}] * 3, bidirectional=True),
     "lstm] params is 3 dicts, expected a list of one dict for each layer and direction"),
    (lambda o, p: o.lstm(X, None, None, [{**p, "w_ih": 5.0}]),
     "lstm] params[0]['w_ih'] is float64 [], expected a matrix"),
    (lambda o, p: o.lstm(X, None, None, [{"w_hh": p["w_hh"]}]), "lstm] params[0]['w_ih'] is missing, expected a matrix"),
    (lambda o, p: o.lstm(X, None, None, [{**p, "w_ih": p["w_ih"].astype(int)}]),
     "lstm] params[0]['w_ih'] is of int64, expected float32, float64, bfloat16, float16"),
    (lambda o, p: o.lstm(X, None, None, [{k: v for k, v in p.items() if k != "b_ih"}]),
     "lstm] params[0] has no 'b_ih', expected [16]"),
    (lambda o, p: o.lstm(X, None, None, [p, {**p, "w_ih": p["w_hh"], "b_ih": p["b_ih"][:3]}]),
     "lstm] params[1]['b_ih'] is float32 [3], expected float32 [16]"),
    (lambda o, p: o.lstm(X[0], None, None, [p]), "lstm] x is float32 [5, 3], expected float32 [B, T, I] with I = 3"),
    (lambda o, p: o.lstm(X[0], None, None, [p], time_major=True),
     "lstm] x is float32 [5, 3], expected float32 [T, B, I] with I = 3"),
    (lambda o, p: o.lstm(X, np.ones((1, 2, 3), "float32"), None, [p]),
     "lstm] h0 is float32 [1, 2, 3], expected float32 [1, 2, 4]"),
    (lambda o, p: o.lstm(X, None, np.ones((1, 5, 4), "float32"), [p]),
     "lstm] c0 is float32 [1, 5, 4], expected float32 [1, 2, 4]"),
    (lambda o, p: o.lstm(X, None, None, [p], sequence_lengths=[[1, 2]]),
     "lstm] sequence_lengths is int64 [1, 2], expected integers [2]"),
    (lambda o, p: o.lstm(X, None, None, o.pack([p]), dropout=0.5),
     "lstm] dropout is given beside packed params, expected it in openrnn.jax.pack"),
    (lambda o, p: o.rnn(X, None, o.pack([p])), "rnn] params are packed for lstm, expected rnn"),
    (lambda o, p: o.gru(X, None, o.init(3, "gru", input_size=3, hidden_size=4), c0=X),
     "gru] c0 is given, expected None: only a projected gru has one"),
    (lambda o, p: o.flatten([p], "tree"), "flatten] cell is 'tree', expected 'lstm', 'gru' or 'rnn'"),
    (lambda o, p: o.flatten(5), "flatten] params is int, expected a list of one dict a layer"),
    (lambda o, p: o.pack([p], "tree"), "pack] cell is 'tree', expected 'lstm', 'gru' or 'rnn'"),
    (lambda o, p: o.pack([p, 7]), "pack] params[1] is int, expected a dict"),
    (lambda o, p: o.pack([{**p, "w_ih": numpy_jax.Tracer()}]),
     "pack] params are traced, expected arrays: pack outside of jit, or pass params themselves"),
    (lambda o, p: o.unflatten(X[0, 0], "tree", input_size=3, hidden_size=4),
     "unflatten] cell is 'tree', expected 'lstm', 'gru' or 'rnn'"),
    (lambda o, p: o.unflatten(X[0, 0], input_size=3, hidden_size=4), "unflatten] buffer is float32 [3], expected [144]"),
    (lambda o, p: o.init(3, "tree", input_size=3, hidden_size=4), "init] cell is 'tree', expected 'lstm', 'gru' or 'rnn'"),
    (lambda o, p: o.init(3, input_size=3, hidden_size=4, method="he"),
     "init] method is 'he', expected 'uniform' or 'glorot'"),
    (lambda o, p: o.from_flax({}, "tree"), "from_flax] cell is 'tree', expected 'lstm', 'gru' or 'rnn'"),
    (lambda o, p: o.from_flax({"ii": 1, "a": 2}),
     "from_flax] params have ['a', 'ii'] and no 'if', expected those of one cell of flax.linen"),
    (lambda o, p: o.to_flax(p, "tree"), "to_flax] cell is 'tree', expected 'lstm', 'gru' or 'rnn'"),
    (lambda o, p: o.to_flax({**p, "w_hr": 1, "a": 2}), "to_flax] params have 'a', which no cell of flax.linen has"),
]  # fmt: skip


@pytest.mark.parametrize("text", [text for _, text in REFUSED])
def test_errors_whole(ours, text):
    (params,) = ours.init(3, input_size=3, hidden_size=4)
    (call,) = (call for call, its in REFUSED if its == text)
    with pytest.raises(openrnn.ArgumentError) as raised:
        call(ours, params)
    assert str(raised.value) == f"[openrnn.jax.{text}"


def test_options_that_are_refused(ours):
    params = ours.init(3, "gru", input_size=3, hidden_size=4)
    for name in ("rnn_mode", "num_layers", "num_units", "input_size", "direction", "dtype", "num_proj",
                 "use_bias", "single_bias", "seed", "leaves"):  # fmt: skip
        with pytest.raises(TypeError, match=rf"openrnn.jax.gru.*{name}"):
            ours.gru(X, None, params, **{name: 1})
        with pytest.raises(TypeError, match=rf"openrnn.jax.pack.*{name}"):
            ours.pack(params, "gru", **{name: 1})
    for name in ("input_dropout", "output_dropout", "drop_connect", "input_mode"):
        with pytest.raises(openrnn.UnsupportedError) as raised:
            ours.gru(X, None, params, **{name: 1})
        assert str(raised.value) == (f"[openrnn.jax.gru] {name} is an option of openrnn.layers, expected functions "
                                     "of JAX around this one")


def test_packed_params_whose_leaves_are_others(ours):
    packed = ours.pack(ours.init(3, input_size=3, hidden_size=4))
    (buffer, token), net = packed.tree_flatten()
    assert ours.Packed.tree_unflatten(net, (buffer, token)).tree_flatten() == ((buffer, token), net)
    for leaves, text in (
        ((buffer[:3], token), "buffer of packed params is float32 [3], expected float32 [144]"),
        ((buffer.astype("float64"), token), "buffer of packed params is float64 [144], expected float32 [144]"),
        ((buffer, token[:1]), "token of packed params is uint32 [1], expected uint32 [2]"),
        ((buffer, token.astype("int32")), "token of packed params is int32 [2], expected uint32 [2]"),
    ):  # fmt: skip
        with pytest.raises(openrnn.ArgumentError) as raised:
            ours.lstm(X, None, None, ours.Packed.tree_unflatten(net, leaves))
        assert str(raised.value) == f"[openrnn.jax.lstm] the {text} as pack made it"
    # Of vmap, whose samples stand first.
    many = ours.Packed.tree_unflatten(net, (np.stack([buffer] * 2), np.stack([token] * 2)))
    assert many.parts("call", "lstm")[1].shape == (2, 144)


def test_a_buffer_that_stays_is_told_so(ours, monkeypatch):
    """The engine packs by address what cannot be given away; a copy's address says nothing."""
    from openrnn import _core

    held, own = [], _core.jax_hold
    monkeypatch.setattr(_core, "jax_hold", lambda *args: held.append(args) or own(*args))
    params = ours.init(3, input_size=3, hidden_size=4)
    gc.collect()
    before = _core.jax_held()
    packed = ours.pack(params, use_peepholes=False)
    text, at, stays = held.pop()
    assert stays is True and at == packed._params.unsafe_buffer_pointer() and text == packed._network.text
    assert _core.jax_held() == before + 1
    monkeypatch.setattr(numpy_jax.Array, "unsafe_buffer_pointer", lambda self: 5)
    ours.pack(params)
    assert held.pop()[2] is False
    del packed
    assert _core.jax_held() == before


def test_targets_and_primitives(ours):
    from openrnn.jax import _targets

    names = ["openrnn_forward", "openrnn_backward", "openrnn_tangent"]
    for name in names:
        assert numpy_jax.targets[name][1] == {"platform": "cpu", "api_version": 1}
    primitives = [_targets.forward_p, _targets.backward_p, _targets.tangent_p]
    assert [each.name for each in primitives] == names
    assert all(each.multiple_results is True for each in primitives)
    spec = SPECS["lstm"]
    problem = make_problem(spec, 4, 2, np.float64)
    _, call, args, _ = call_of(ours, spec, problem)
    numpy_jax.disabled.clear()
    found = _targets.forward_p.function(*args, **call.attributes, room=0)
    assert numpy_jax.disabled == [False]  # a call without jit is compiled nevertheless
    for a, b in zip(found, _targets.forward_p.bind(*args, **call.attributes, room=0), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_program_for_another_platform(ours):
    from types import SimpleNamespace

    import jax.interpreters.mlir as mlir

    context = SimpleNamespace(platforms=["cuda", "tpu"])
    with pytest.raises(openrnn.UnsupportedError) as raised:
        mlir.lowerings["openrnn_forward", None](context, 1, 2, room=3)
    assert str(raised.value) == (
        "[openrnn.jax] a call is compiled for cuda, tpu, expected cpu: on a GPU use jax.experimental.rnn or "
        "jax.lax.scan, or put the arrays on jax.devices('cpu')[0]"
    )


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("batch_major", [False, True])
def test_room_for_what_is_saved(ours, batch_major, training):
    spec = Spec("lstm", 2, 3, 2)
    problem = make_problem(spec, 7, 2, np.float64)
    operation, call, args, _ = call_of(ours, spec, problem, batch_major, training, dropout=0.5)
    assert call.axis == (0 if batch_major else 1)
    room = operation.reserve_bytes(call.net, 7, 2, training)
    assert room != operation.reserve_bytes(call.net, 2, 7, training)
    _, kept = operation.operation(call).keep(*args)
    assert len(kept) == 7 and kept[6].shape == (room,)
    assert all(a is b for a, b in zip(kept[:6], args[:6], strict=True))


def test_gradients_of_what_was_saved(ours):
    """The call that saves has a gradient itself: gradients of gradients go through it."""
    spec = SPECS["lstm_both"]
    problem = make_problem(spec, 4, 2, np.float64)
    operation, call, args, grads = call_of(ours, spec, problem)
    room = operation.reserve_bytes(call.net, 4, 2, False)
    saving = operation._saving(call, room)
    outputs, kept = saving.keep(*args)
    assert len(outputs) == 4 and len(kept) == 7 and kept[6] is outputs[3]
    right = operation.operation(call).first(operation.operation(call).keep(*args)[1], grads)
    found = saving.first(kept, [*grads, np.zeros(room, np.uint8)])
    assert found[4:] == right[4:] == (None, None, None)
    for a, b in zip(found[:4], right[:4], strict=True):
        np.testing.assert_array_equal(a, b)


# Arguments that are mapped one at a time: whether their samples are rows of one call.
FOLDED = {"x": (0, True), "h0": (1, True), "c0": (2, True), "params": (3, False), "lengths": (4, True),
          "seed": (5, False), "token": (6, False)}  # fmt: skip


@pytest.fixture
def binds(ours, monkeypatch):
    from openrnn.jax import _targets

    found = []
    for primitive in (_targets.forward_p, _targets.backward_p):
        own = primitive.bind
        monkeypatch.setattr(primitive, "bind", lambda *args, own=own, **more: found.append({**more, "args": args}) or own(*args, **more))
    return found


@pytest.mark.parametrize("name", FOLDED)
def test_samples_that_share_weights_are_one_call(ours, binds, name):
    place, folds = FOLDED[name]
    spec = SPECS["lstm"]
    problem = make_problem(spec, 4, 2, np.float64, "mixed")
    operation, call, args, grads = call_of(ours, spec, problem)
    flags = [n == place for n in range(7)]
    given = [np.stack([each] * SAMPLES) if flag else each for each, flag in zip(args, flags, strict=True)]
    room = operation.reserve_bytes(call.net, 4, 2, False)
    outputs, _ = operation.forward(call, room).rule(SAMPLES, flags, *given)
    assert [each["room"] for each in binds] == ([SAMPLES * room] if folds else [room] * SAMPLES)
    assert all(each["args"][5].tolist() == [7, 9] and not each["args"][6].any() for each in binds)
    binds.clear()
    for rows in (False, True):
        for mapped in (False, True):  # the reserve
            reserve = outputs[3] if mapped else outputs[3][0]
            operation._backward(call, rows).rule(
                SAMPLES, [True, False, False, *flags[:6], mapped], np.stack([grads[0]] * SAMPLES), *grads[1:],
                *given[:6], reserve)
            wanted = [True] if mapped and (folds or name == "token") else [rows] * SAMPLES
            assert [each["rows"] for each in binds] == wanted
            binds.clear()


def test_an_engine_without_gradients_of_rows(ours, binds, monkeypatch):
    spec = SPECS["lstm"]
    problem = make_problem(spec, 4, 2, np.float64)
    operation, call, args, grads = call_of(ours, spec, problem)
    monkeypatch.setattr(call.net, "rows", False)
    room = operation.reserve_bytes(call.net, 4, 2, False)
    flags = [True] + [False] * 6
    outputs, _ = operation.forward(call, room).rule(SAMPLES, flags, np.stack([args[0]] * SAMPLES), *args[1:])
    binds.clear()
    operation._backward(call, False).rule(
        SAMPLES, [True, False, False, *flags[:6], True], np.stack([grads[0]] * SAMPLES), *grads[1:],
        np.stack([args[0]] * SAMPLES), *args[1:6], outputs[3])  # fmt: skip
    assert len(binds) == SAMPLES


def test_dtypes_of_parameters(ours):
    """Random numbers of 16 bits are those of float32, rounded; of float64 they are its own."""
    for method in ("uniform", "glorot"):
        made = {dtype: ours.init(3, input_size=3, hidden_size=4, dtype=dtype, method=method)[0]
                for dtype in ("float64", "float32", "float16", "bfloat16")}
        for name, exact in made["float32"].items():
            for dtype, params in made.items():
                assert params[name].dtype.name == dtype
            for half in ("float16", "bfloat16"):
                np.testing.assert_array_equal(made[half][name], exact.astype(half))
        assert (made["float64"]["w_ih"] != made["float32"]["w_ih"]).any()
    assert ours.init(3, input_size=3, hidden_size=4, dtype=np.float64)[0]["w_ih"].dtype == np.float64


def test_defaults_of_parameters(ours):
    made = ours.init(3, input_size=3, hidden_size=4)
    named = ours.init(3, "lstm", input_size=3, hidden_size=4, num_layers=1, bidirectional=False, proj_size=0,
                      use_bias=True, single_bias=False, dtype="float32", method="uniform")  # fmt: skip
    assert len(made) == 1 and made[0].keys() == named[0].keys()
    assert all((made[0][name] == named[0][name]).all() for name in made[0])
    flat = ours.flatten(made)
    assert flat.shape == (144,)
    assert ours.unflatten(flat, input_size=3, hidden_size=4)[0].keys() == made[0].keys()
    packed = ours.pack(made)
    np.testing.assert_array_equal(ours.lstm(X, None, None, packed)[0], ours.lstm(X, None, None, made)[0])
    again = ours.from_flax(ours.to_flax(made[0]))
    assert set(again) == {"w_ih", "w_hh", "b_ih"}
    np.testing.assert_array_equal(again["w_ih"], made[0]["w_ih"])
    theirs = ours.to_flax(made[0])
    assert set(theirs) == {side + gate for side in "ih" for gate in "ifgo"}
    assert "bias" in theirs["hi"] and "bias" not in theirs["ii"]


def test_flat_parameters_of_options(ours):
    """Options reach the layout, both ways."""
    params = ours.init(3, input_size=3, hidden_size=4, use_peepholes=True, bidirectional=True)
    flat = ours.flatten(params, use_peepholes=True, bidirectional=True)
    again = ours.unflatten(flat, input_size=3, hidden_size=4, use_peepholes=True, bidirectional=True)
    assert len(again) == 2
    for a, b in zip(again, params, strict=True):
        assert a.keys() == b.keys() and "peephole" in a and all((a[name] == b[name]).all() for name in a)
    with pytest.raises(openrnn.ArgumentError, match="int32"):
        ours.unflatten(flat.astype("int32"), input_size=3, hidden_size=4)
    half = ours.init(3, "gru", input_size=3, hidden_size=4, single_bias=True, dtype="float64")
    assert ours.flatten(half, "gru").shape == (96,)
    assert dicts_of(SPECS["gru"], make_problem(SPECS["gru"], 2, 2, np.float32).params)[0].keys() == {
        "w_ih", "w_hh", "b_ih", "b_hh"}
    assert (cell_of(SPECS["rnn_relu"]), options_of(SPECS["gru"])) == ("rnn", {"bidirectional": False})


def test_names_of_the_package(ours):
    names = ["Packed", "flatten", "from_flax", "gru", "init", "lstm", "pack", "rnn", "to_flax", "unflatten"]
    assert ours.__all__ == names and all(callable(getattr(ours, name)) for name in names)


def test_gradients_of_samples_with_masks(ours, binds):
    """Masks are numbered by row, in backward passes, too."""
    spec = Spec("lstm", 2, 3, 2)
    problem = make_problem(spec, 4, 2, np.float64)
    operation, call, args, grads = call_of(ours, spec, problem, training=True, dropout=0.5)
    _, kept = operation.operation(call).keep(*args)
    right = operation.operation(call).first(kept, grads)
    many = [np.stack([each] * SAMPLES) for each in (*grads, kept[0], kept[6])]
    binds.clear()
    found, _ = operation._backward(call, False).rule(
        SAMPLES, [True] * 4 + [False] * 5 + [True], *many[:4], *kept[1:6], many[4])
    assert len(binds) == SAMPLES
    for a, b in zip(found, right, strict=False):
        for n in range(SAMPLES):
            np.testing.assert_allclose(a[n], b, atol=1e-12)


def test_dtypes_of_flax_s_biases(ours):
    for dtype in ("float32", "float16"):
        (params,) = ours.init(3, input_size=3, hidden_size=4, single_bias=True, dtype=dtype)
        theirs = ours.to_flax(params)
        assert {each["bias"].dtype.name for name, each in theirs.items() if name[0] == "h"} == {dtype}
        (gru,) = ours.init(3, "gru", input_size=3, hidden_size=4, dtype=dtype)
        back = ours.from_flax(ours.to_flax(gru, "gru"), "gru")
        assert {each.dtype.name for each in back.values()} == {dtype}
