"""This library: outputs by `openrnn.onnx`, gradients by the op-level models."""

import os
from typing import Any

import numpy as np

# The gates of the opaque buffer among ONNX's blocks: i f c o in i o f c, r z n in z r h.
_GATES = {"LSTM": [0, 2, 3, 1], "GRU": [1, 0, 2], "RNN": [0]}
_NAMES = {
    "Relu": "relu", "Tanh": "tanh", "Sigmoid": "sigmoid", "Affine": "affine", "Softsign": "softsign",
    "LeakyRelu": "leaky_relu", "ThresholdedRelu": "thresholded_relu", "ScaledTanh": "scaled_tanh",
    "HardSigmoid": "hard_sigmoid", "Elu": "elu", "Softplus": "softplus",
}  # fmt: skip
_ALPHA = {"Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh", "HardSigmoid", "Elu"}
_BETA = {"Affine", "ScaledTanh", "HardSigmoid"}
_PLACES = {
    "RNN": ["activation"],
    "GRU": ["recurrent_activation", "activation"],
    "LSTM": ["recurrent_activation", "activation", "output_activation"],
}


def version() -> str:
    """Computes one step: an engine or an instruction set that this machine lacks raises."""
    import openrnn
    from openrnn.cudnn_rnn import ops

    found = openrnn.explain(num_units=4, input_size=4, max_time=1, batch=1)
    wanted = os.environ.get("OPENRNN_ENGINE", found.engine)
    if found.engine != wanted:
        raise RuntimeError(f"[conformance] the engine is {found.engine}, expected {wanted}")
    model, zeros = ops.CudnnGRU(1, 4, 4), np.zeros((1, 1, 4), np.float32)
    model(zeros, zeros, np.zeros(model.params_size(), np.float32), is_training=False)
    return str(openrnn.__version__)


def run(model_path: str, inputs: dict[str, Any]) -> dict[str, Any]:
    import openrnn

    outputs = openrnn.onnx.load(model_path)(inputs)
    return {name: value.numpy() for name, value in outputs.items()}


def _functions(op: str, attributes: dict[str, Any]) -> list[list[str]]:
    """Of each direction its functions as this library writes them; numbers go to those that take one."""
    alphas = list(attributes.get("activation_alpha", []))
    betas = list(attributes.get("activation_beta", []))
    found = []
    for name in attributes.get("activations", []):
        numbers = [alphas.pop(0)] if name in _ALPHA and alphas else []
        numbers += [betas.pop(0)] if name in _BETA and betas else []
        found.append(_NAMES[name] + (f"({','.join(map(repr, numbers))})" if numbers else ""))
    count = len(_PLACES[op])
    return [found[n : n + count] for n in range(0, len(found), count)]


def _options(case: dict[str, Any], functions: list[str], given: dict[str, Any]) -> dict[str, Any]:
    attributes = case["attributes"]
    found: dict[str, Any] = dict(zip(_PLACES[case["op"]], functions, strict=False))
    found["use_bias"] = "B" in given
    if "clip" in attributes:
        found["gate_clip"] = (-attributes["clip"], attributes["clip"])
    if case["op"] == "GRU":
        found["reset_after"] = bool(attributes.get("linear_before_reset", 0))
    if case["op"] == "LSTM":
        found["coupled_gates"] = bool(attributes.get("input_forget", 0))
        found["use_peepholes"] = "P" in given
    return found


def _pieces(op: str, given: dict[str, Any], dirs: range) -> tuple[list[Any], list[Any]]:
    """Matrices and vectors in the order of the canonical lists."""
    gates = _GATES[op]
    count = len(gates)
    weights = [np.split(given[name][d], count)[k] for d in dirs for name in ("W", "R") for k in gates]
    vectors = []
    if "B" in given:
        for d in dirs:
            blocks = np.split(given["B"][d], 2 * count)
            vectors += [blocks[side + k] for side in (0, count) for k in gates]
    if "P" in given:
        vectors += [np.split(given["P"][d], 3)[k] for d in dirs for k in (0, 2, 1)]
    return weights, vectors


def _placed(op: str, parts: list[Any]) -> Any:
    """Blocks of gates in ONNX's order."""
    return np.concatenate([parts[k] for k in np.argsort(_GATES[op])])


def _gathered(op: str, weights: list[Any], vectors: list[Any], given: dict[str, Any], dirs: int) -> dict[str, Any]:
    """The inverse of _pieces, for gradients: W, R, B and P."""
    count = len(_GATES[op])
    found: dict[str, Any] = {"W": [], "R": [], "B": [], "P": []}
    for d in range(dirs):
        at = 2 * count * d
        found["W"].append(_placed(op, weights[at : at + count]))
        found["R"].append(_placed(op, weights[at + count : at + 2 * count]))
        if "B" in given:
            sides = [vectors[at : at + count], vectors[at + count : at + 2 * count]]
            found["B"].append(np.concatenate([_placed(op, side) for side in sides]))
        if "P" in given:
            i, f, o = vectors[len(vectors) - 3 * (dirs - d) :][:3]
            found["P"].append(np.concatenate([i, o, f]))
    return {name: np.stack(parts) for name, parts in found.items() if parts}


def _reversed(x: Any, lengths: Any) -> Any:
    """Each row's own steps backwards, padding where it was."""
    out = x.copy()
    for row, length in enumerate(lengths):
        out[:length, row] = x[:length, row][::-1]
    return out


def _train(case: dict[str, Any], functions: list[str], given: dict[str, Any], upstream: dict[str, Any],
           dirs: range, lengths: Any) -> dict[str, Any]:  # fmt: skip
    """Gradients of one call; all arrays time-major, Y [T, B, D*U]."""
    import openrnn
    from openrnn.cudnn_rnn import ops

    op, units = case["op"], given["R"].shape[2]
    kind = {"LSTM": ops.CudnnLSTM, "GRU": ops.CudnnGRU, "RNN": ops.CudnnRNNTanh}[op]
    way = "bidirectional" if len(dirs) == 2 else "unidirectional"
    options = _options(case, functions, given)
    model: Any = kind(1, units, given["X"].shape[2], direction=way, dtype=case["dtype"], **options)
    params = model.canonical_to_params(*_pieces(op, given, dirs))
    zeros = np.zeros((len(dirs), given["X"].shape[1], units), given["X"].dtype)
    names = ["initial_h", "initial_c"][: 1 + (op == "LSTM")]
    states = [openrnn.Tensor(given[name][list(dirs)] if name in given else zeros) for name in names]
    x = openrnn.Tensor(given["X"])
    with openrnn.GradientTape() as tape:
        for each in (x, params, *states):
            tape.watch(each)
        outputs = model(x, *states, params, is_training=True, sequence_lengths=lengths)
    starts = [upstream[name] for name in ("Y", "Y_h", "Y_c")[: len(outputs)]]
    dx, dparams, *dstates = tape.gradient(list(outputs), [x, params, *states], starts)
    weights, vectors = model.params_to_canonical(dparams)
    parts = [[np.asarray(t.numpy()) for t in each] for each in (weights, vectors, dstates)]
    found = _gathered(op, parts[0], parts[1], given, len(dirs))
    found |= dict(zip(names, parts[2], strict=True))
    return found | {"X": dx.numpy()}


def _moved(name: str, a: Any, batch_major: bool) -> Any:
    """Between time-major and batch-major."""
    return a.swapaxes(0, 1) if batch_major and name in ("X", "initial_h", "initial_c") else a


def gradients(case: dict[str, Any], inputs: dict[str, Any], upstream: dict[str, Any]) -> dict[str, Any]:
    """Of sum(upstream * outputs), by input; arrays in the case's layout."""
    batch_major = case["attributes"].get("layout", 0) == 1
    given = {n: np.ascontiguousarray(_moved(n, a, batch_major)) for n, a in inputs.items()}
    time, batch = given["X"].shape[:2]
    dirs, units, dtype = given["R"].shape[0], given["R"].shape[2], given["X"].dtype
    lengths = given.pop("sequence_lens", np.full(batch, time, np.int32))
    starts = {"Y": np.zeros((time, dirs, batch, units), dtype)}
    for name in ("Y_h", "Y_c"):
        starts[name] = np.zeros((dirs, batch, units), dtype)
    for name, a in upstream.items():
        if batch_major:
            a = a.transpose(1, 2, 0, 3) if name == "Y" else a.swapaxes(0, 1)
        starts[name] = np.ascontiguousarray(a).astype(dtype)
    by_direction = _functions(case["op"], case["attributes"]) or [[]] * dirs
    direction = case["attributes"].get("direction", "forward")
    # One call of both directions where their functions agree; else each by itself.
    together = dirs == 2 and by_direction[0] == by_direction[1]
    found: dict[str, Any] = {}
    for each in [range(dirs)] if together else [range(d, d + 1) for d in range(dirs)]:
        backward = direction == "reverse" or (not together and each[0] == 1)
        # Of a row that is walked backwards the first `length` steps, of any other none.
        turn = lengths if backward else np.zeros_like(lengths)
        y = np.concatenate([_reversed(starts["Y"][:, d], turn) for d in each], axis=2)
        part = {"Y": y, "Y_h": starts["Y_h"][list(each)], "Y_c": starts["Y_c"][list(each)]}
        new = _train(case, by_direction[each[0]], given | {"X": _reversed(given["X"], turn)}, part, each, lengths)
        x = _reversed(np.asarray(new.pop("X")), turn)
        found["X"] = found["X"] + x if "X" in found else x
        for name, a in new.items():
            found[name] = np.concatenate([found[name], a]) if name in found else a
    return {name: _moved(name, a, batch_major) for name, a in found.items()}
