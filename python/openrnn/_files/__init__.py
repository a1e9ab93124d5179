"""Model files of every framework: load and save, and the names and layouts of PyTorch.

L layers, D directions, U units, I input size; O = num_proj when projecting, else U.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from openrnn import _arguments, _core
from openrnn._files import _whole
from openrnn._sessions import PackedModel
from openrnn._typing import TensorLike
from openrnn.cudnn_rnn._layers import CudnnRNN
from openrnn.errors import ArgumentError, UnsupportedError
from openrnn.layers import GRU, LSTM, RNN, LayerGraph

_CLASSES: dict[str, type[CudnnRNN]] = {
    "lstm": LSTM,
    "gru": GRU,
    "rnn_tanh": RNN,
    "rnn_relu": RNN,
}


class LoadedNetwork:
    """One recurrent network of a file.

    name: its path in the file. options: of the network (openrnn.network_options()). params: the
    opaque buffer. initial_state: (h [L*D, O],), of an LSTM (h, c [L*D, U]), or None. slots: what an
    optimizer keeps beside the parameters, by name, each as params. tensors: the names of the
    tensors that it was made from.

    Examples
    --------
    >>> lstm = openrnn.layers.LSTM(4)
    >>> lstm.build((None, None, 3))
    >>> openrnn.save("lstm.safetensors", lstm)
    >>> network = openrnn.load("lstm.safetensors").network
    >>> network.options["num_units"], network.tensors[0], network.params.shape
    (4, 'weight_ih_l0', (144,))
    """

    def __init__(self, given: dict[str, Any]) -> None:
        self.name: str = given["name"]
        self.options: dict[str, Any] = given["options"]
        self.params: NDArray[Any] = given["params"]
        self.slots: dict[str, NDArray[Any]] = given["slots"]
        self.tensors: list[str] = given["tensors"]
        states = [given["initial_h"], given["initial_c"]]
        kept = tuple(state for state in states if state is not None)
        self.initial_state: tuple[NDArray[Any], ...] | None = kept or None
        self._given = given
        self._layer: CudnnRNN | None = None

    @property
    def layer(self) -> CudnnRNN:
        """The network as a layer, LSTM, GRU or RNN: built, with its weights; always the same."""
        if self._layer is None:
            self._layer = self._new_layer()
        return self._layer

    def _new_layer(self) -> CudnnRNN:
        options = dict(self.options)
        mode, input_size = options.pop("rnn_mode"), options.pop("input_size")
        if mode in ("rnn_tanh", "rnn_relu"):
            options.setdefault("activation", mode.removeprefix("rnn_"))
        layer: CudnnRNN = _CLASSES[mode](**options)
        layer.build([None, None, input_size])
        layer.kernel.assign(self.params)
        return layer

    def packed(self, *, max_threads: int = 0) -> PackedModel:
        """The network as it was in the file, for inference."""
        training = {
            option["name"] for option in _core.network_options() if option["group"] == "training"
        }
        options = {name: value for name, value in self.options.items() if name not in training}
        return PackedModel(self.params, **options, max_threads=max_threads)

    def __repr__(self) -> str:
        options = ", ".join(f"{name}={value!r}" for name, value in self.options.items())
        return f"<openrnn network '{self.name}' {options}>"


class LoadedModel(Mapping[str, LoadedNetwork]):
    """The recurrent networks of a file, by name, in its order; `model` is the whole of it.

    kind: what the file is. metadata: its metadata and plain values. not_understood: the tensors that
    neither a network nor a layer was made from, which tensor() reads; notes: why, and which networks
    have weights, states or slots that are NaN or infinite. layers: what stands around the networks,
    {"name", "kind", "inputs", "options", "weights", ..} each, where the file holds a whole model that
    is computed here; outputs: which of their outputs are the model's.

    Examples
    --------
    >>> lstm, gru = openrnn.layers.LSTM(4), openrnn.layers.GRU(2)
    >>> lstm.build((None, None, 3))
    >>> gru.build((None, None, 4))
    >>> openrnn.save("two.openrnn", {"encoder": lstm, "decoder": gru}, values={"epochs": 5})
    >>> model = openrnn.load("two.openrnn")
    >>> list(model), model.metadata, model["decoder"].layer.num_units
    (['encoder', 'decoder'], {'epochs': 5}, 2)
    """

    def __init__(self, given: dict[str, Any]) -> None:
        self._path: str = given["path"]
        self.kind: str = given["kind"]
        self._file_kind: int = given["file_kind"]
        self.metadata: dict[str, Any] = given["values"]
        self.not_understood: list[str] = given["not_understood"]
        self.notes: list[str] = given["notes"]
        networks = [LoadedNetwork(network) for network in given["networks"]]
        self._networks = {network.name: network for network in networks}
        self.layers: list[dict[str, Any]] = given["layers"]
        self.outputs: list[tuple[str, int]] = given["outputs"]
        self._model: LayerGraph | None = None

    def __getitem__(self, name: str) -> LoadedNetwork:
        return self._networks[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._networks)

    def __len__(self) -> int:
        return len(self._networks)

    @property
    def network(self) -> LoadedNetwork:
        """The only one. Raises ArgumentError when there are several, or none."""
        if len(self._networks) != 1:
            raise ArgumentError(
                f"[load] the file has {len(self)} networks, expected one: {list(self)}"
            )
        return next(iter(self._networks.values()))

    @property
    def layer(self) -> CudnnRNN:
        """The layer of the only network."""
        return self.network.layer

    @property
    def model(self) -> LayerGraph:
        """The whole model as one layer, ready to run and to train; always the same.

        Its recurrent layers are those of the networks. Raises UnsupportedError naming what the file
        holds that is not computed here.
        """
        if self._model is None:
            if not self.layers:
                raise UnsupportedError(
                    f"[load] {self.kind} has no whole model that is computed here, only networks"
                    + "".join(f"; {note}" for note in self.notes)
                )
            self._model = _whole.make_graph(
                self.layers, self.outputs, lambda name: self[name].layer
            )
        return self._model

    def tensor(self, name: str) -> NDArray[Any]:
        """A tensor of the file by its name there, read now: one of `not_understood`, or any other.

        Raises ArgumentError for a name that the file has not, and as load() if it has changed.
        """
        return cast(NDArray[Any], _core.read_tensor(self._path, name))

    def packed(self, *, max_threads: int = 0) -> PackedModel:
        """The only network, for inference."""
        return self.network.packed(max_threads=max_threads)

    def __repr__(self) -> str:
        return f"<openrnn model of {self.kind}: {list(self._networks.values())}>"


def load(
    path: str | os.PathLike[str],
    *,
    rnn_mode: str | None = None,
    reset_after: bool | None = None,
    recurrent_activation: str | None = None,
    forget_bias: float | None = None,
    network: Mapping[str, Any] | None = None,
) -> LoadedModel:
    """The recurrent networks of a model file, of whatever kind its content shows it to be.

    The hints say what a file may leave open and are used only where it does: rnn_mode 'rnn_tanh' or
    'rnn_relu' of plain networks (PyTorch's files do not say it), reset_after of a GRU,
    recurrent_activation of gates, forget_bias of TensorFlow's LSTM cells (else its default, 1),
    network, as the options of PackedModel ({'rnn_mode': 'lstm', 'num_layers': 2, ..}), of an
    opaque_kernel that lies in a TensorFlow checkpoint alone. Raises FormatError for a malformed
    file, UnsupportedError for what is not read, ArgumentError naming the hint that is missing.

    Examples
    --------
    >>> gru = openrnn.layers.GRU(4)
    >>> gru.build((None, None, 3))
    >>> openrnn.save("gru.npz", gru)
    >>> layer = openrnn.load("gru.npz").layer
    >>> x = np.ones((5, 2, 3), "float32")
    >>> bool((layer(x)[0].numpy() == gru(x)[0].numpy()).all())
    True
    """
    given = _core.load_networks(
        os.fspath(path),
        rnn_mode,
        reset_after,
        recurrent_activation,
        None if forget_bias is None else _arguments.as_number("load", "forget_bias", forget_bias),
        None if network is None else _options_of(network),
    )
    return LoadedModel({**given, "path": os.fspath(path)})


def _options_of(network: Any) -> dict[str, Any]:
    options = _arguments.as_dict("load", "network", network, "options")
    _core.require_fields("load", options, [])
    return options


def _network_of(name: str, value: Any) -> dict[str, Any]:
    if isinstance(value, LoadedNetwork):
        given = {**value._given, "name": name}
        if value._layer is not None:
            given["params"] = value._layer.kernel.numpy()
        return given
    if isinstance(value, CudnnRNN):
        return {
            "name": name,
            "options": _core.network_of_layer(value),
            "params": value.kernel.numpy(),
            "initial_h": None,
            "initial_c": None,
            "slots": {},
        }
    raise TypeError(
        f"[save] '{name}' is a {type(value).__name__}, expected a built recurrent layer or a "
        "network of load()"
    )


def save(
    path: str | os.PathLike[str],
    model: LoadedModel | CudnnRNN | LoadedNetwork | LayerGraph | Mapping[str, Any],
    format: str | None = None,
    *,
    values: Mapping[str, Any] | None = None,
) -> None:
    """Writes recurrent networks: a built layer, networks of load(), or several of them by name.

    Or a whole model: one of load(), or its LayerGraph, with the weights that its layers have now.
    What a kind of file cannot hold of it beside its networks is left out, or refused by name:
    docs/network_files.md.

    format: 'openrnn' (holds everything), 'safetensors', 'torch' or 'npz' (PyTorch's names),
    'onnx', 'keras', 'keras_h5', 'keras_weights', 'tensorflow', 'rtneural', 'nam'; None: by the
    ending of the path, .openrnn, .safetensors, .pt, .npz, .onnx, .keras, .h5, .weights.h5, .index,
    .json, .nam. A network of load() whose layer was made is written with
    the layer's weights. values: metadata, strings and numbers by name; None:
    those of a model of load(), as far as the format holds them. Raises UnsupportedError naming what
    the format cannot hold, before anything is written; 'keras', 'keras_h5', 'keras_weights' and
    'rtneural' hold no values, 'nam' version, sample_rate, metadata.*, head.weight and head.bias.

    Examples
    --------
    >>> lstm = openrnn.layers.LSTM(4)
    >>> lstm.build((None, None, 3))
    >>> openrnn.save("lstm.openrnn", lstm, values={"rate": 16000})
    >>> openrnn.load("lstm.openrnn").metadata
    {'rate': 16000}
    """
    layers: list[dict[str, Any]] = []
    outputs: list[tuple[str, int]] = []
    if isinstance(model, LayerGraph):
        config = model.get_config()
        layers, outputs = _whole.layers_of(model), config["outputs"]
        networks = [
            _network_of(one["options"]["network"], model.get_layer(one["name"]))
            for one in layers
            if one["kind"] == "recurrent"
        ]
    elif isinstance(model, Mapping):
        if isinstance(model, LoadedModel):
            made = model._model
            layers = model.layers
            if made is not None:  # slots belong to the weights of the file, as those of networks
                slots = {one["name"]: one["slots"] for one in layers}
                layers = [
                    {**one, "slots": slots.get(one["name"], {})} for one in _whole.layers_of(made)
                ]
            outputs = model.outputs
        networks = [_network_of(str(name), value) for name, value in model.items()]
    else:
        networks = [_network_of(getattr(model, "name", "") if _is_loaded(model) else "", model)]
    if values is None:
        values = model.metadata if isinstance(model, LoadedModel) else {}
    else:  # those that came with a file of another kind are left out, but not what is given
        _core.check_values(os.fspath(path), [str(name) for name in values], format)
    file_kind = model._file_kind if isinstance(model, LoadedModel) else 0
    _core.save_networks(
        os.fspath(path), networks, dict(values), format, file_kind, layers, outputs
    )


def _is_loaded(model: Any) -> bool:
    return isinstance(model, LoadedNetwork)


def canonical_from_torch(
    state: Mapping[str, TensorLike], rnn_mode: str, **network: Any
) -> tuple[list[NDArray[Any]], list[NDArray[Any]]]:
    """(weights, biases) of the state_dict of a torch.nn.LSTM, GRU or RNN.

    As params_to_canonical gives them; nothing is summed or halved. network: num_layers, num_units,
    input_size, direction, num_proj, use_bias, dtype. Raises ArgumentError for a shape that does not
    fit, UnsupportedError for options that PyTorch's modules lack.

    Examples
    --------
    >>> shapes = {"weight_ih_l0": (12, 3), "weight_hh_l0": (12, 4),
    ...           "bias_ih_l0": (12,), "bias_hh_l0": (12,)}
    >>> state = {name: np.ones(shape, "float32") for name, shape in shapes.items()}
    >>> weights, biases = openrnn.canonical_from_torch(
    ...     state, "gru", num_layers=1, num_units=4, input_size=3)
    >>> len(weights), weights[0].shape, len(biases)
    (6, (4, 3), 6)
    """
    options = {"rnn_mode": rnn_mode, **network}
    names = _core.torch_names(options)
    missing = [name for name in names if name not in state]
    if missing or len(state) != len(names):
        raise ArgumentError(
            f"[canonical_from_torch] a state with {list(state)}, expected {list(names)}"
        )
    return _core.canonical_from_torch(options, [np.asarray(state[name]) for name in names])


def torch_from_canonical(
    weights: Sequence[TensorLike], biases: Sequence[TensorLike], rnn_mode: str, **network: Any
) -> dict[str, NDArray[Any]]:
    """The inverse: arrays by PyTorch's names, in the order of Module.parameters().

    Examples
    --------
    >>> model = openrnn.cudnn_rnn.ops.CudnnGRU(num_layers=1, num_units=4, input_size=3)
    >>> weights, biases = model.params_to_canonical(np.zeros(model.params_size(), "float32"))
    >>> state = openrnn.torch_from_canonical(
    ...     weights, biases, "gru", num_layers=1, num_units=4, input_size=3)
    >>> {name: array.shape for name, array in state.items()}
    {'weight_ih_l0': (12, 3), 'weight_hh_l0': (12, 4), 'bias_ih_l0': (12,), 'bias_hh_l0': (12,)}
    """
    return _core.torch_from_canonical({"rnn_mode": rnn_mode, **network}, weights, biases)


def canonical_from_keras(
    weights: Sequence[TensorLike], rnn_mode: str, **network: Any
) -> tuple[list[NDArray[Any]], list[NDArray[Any]]]:
    """(weights, biases) of get_weights() of a keras.layers.LSTM, GRU or SimpleRNN.

    Or of a Bidirectional one, or of several layers one behind the other; as params_to_canonical
    gives them. network: num_layers, num_units, input_size, direction, reset_after, use_bias, dtype,
    and single_bias=True but for a GRU with reset_after, since Keras has one bias there. Raises
    ArgumentError for a shape that does not fit, UnsupportedError for options that Keras lacks.

    Examples
    --------
    >>> given = [np.ones((3, 16), "float32"), np.ones((4, 16), "float32"), np.ones(16, "float32")]
    >>> weights, biases = openrnn.canonical_from_keras(
    ...     given, "lstm", num_layers=1, num_units=4, input_size=3, single_bias=True)
    >>> len(weights), weights[0].shape, len(biases)
    (8, (4, 3), 4)
    """
    return _core.canonical_from_keras({"rnn_mode": rnn_mode, **network}, list(weights))


def keras_from_canonical(
    weights: Sequence[TensorLike], biases: Sequence[TensorLike], rnn_mode: str, **network: Any
) -> list[NDArray[Any]]:
    """The inverse: arrays for set_weights().

    Examples
    --------
    >>> network = dict(num_layers=1, num_units=4, input_size=3)
    >>> weights = [np.ones((4, 3), "float32"), np.ones((4, 4), "float32")]
    >>> biases = [np.ones(4, "float32")]
    >>> arrays = openrnn.keras_from_canonical(
    ...     weights, biases, "rnn_tanh", single_bias=True, **network)
    >>> [array.shape for array in arrays]
    [(3, 4), (4, 4), (4,)]
    """
    return _core.keras_from_canonical({"rnn_mode": rnn_mode, **network}, weights, biases)


def canonical_from_onnx(
    inputs: Sequence[TensorLike], rnn_mode: str, **network: Any
) -> tuple[list[NDArray[Any]], list[NDArray[Any]]]:
    """(weights, biases) of the inputs W, R, B and P of ONNX's operators LSTM, GRU and RNN.

    B with use_bias, P with use_peepholes; of several layers one behind the other. network as of
    canonical_from_torch. Raises ArgumentError for a shape that does not fit, UnsupportedError for
    options that ONNX lacks.

    Examples
    --------
    >>> w, r = np.ones((1, 4, 3), "float32"), np.ones((1, 4, 4), "float32")
    >>> weights, biases = openrnn.canonical_from_onnx(
    ...     [w, r], "rnn_tanh", num_layers=1, num_units=4, input_size=3, use_bias=False)
    >>> [weight.shape for weight in weights], biases
    ([(4, 3), (4, 4)], [])
    """
    return _core.canonical_from_onnx({"rnn_mode": rnn_mode, **network}, list(inputs))


def onnx_from_canonical(
    weights: Sequence[TensorLike], biases: Sequence[TensorLike], rnn_mode: str, **network: Any
) -> list[NDArray[Any]]:
    """The inverse: W, R and, where there are such, B and P of each layer.

    Examples
    --------
    >>> weights, biases = [np.ones((4, 3), "float32"), np.ones((4, 4), "float32")], []
    >>> arrays = openrnn.onnx_from_canonical(
    ...     weights, biases, "rnn_tanh", num_layers=1, num_units=4, input_size=3, use_bias=False)
    >>> [array.shape for array in arrays]
    [(1, 4, 3), (1, 4, 4)]
    """
    return _core.onnx_from_canonical({"rnn_mode": rnn_mode, **network}, weights, biases)
