"""Whole models of files: their layers, made of descriptions, and back."""

from collections.abc import Callable
from typing import Any

from openrnn.cudnn_rnn._layers import CudnnRNN
from openrnn.layers import Dense, Dropout, Embedding, Layer, LayerGraph

# What Dense computes itself; others the graph does.
_OWN = ("relu", "tanh", "sigmoid")


def _built(layer: Layer, shape: list[int | None], weights: dict[str, Any]) -> None:
    layer.build(shape)
    for name, values in weights.items():
        getattr(layer, name).assign(values)


def _make(one: dict[str, Any], recurrent: Callable[[str], CudnnRNN]) -> Layer | None:
    options, weights = one["options"], one["weights"]
    layer: Layer
    if one["kind"] == "recurrent":
        layer = recurrent(options["network"])
    elif one["kind"] == "dropout":
        return Dropout(options.get("rate", 0.0))
    elif one["kind"] == "dense":
        activation = options.get("activation", "linear")
        layer = Dense(
            options["units"],
            activation if activation in _OWN else None,
            use_bias=options.get("use_bias", True),
            dtype=str(weights["kernel"].dtype),
        )
        _built(layer, [None, weights["kernel"].shape[0]], weights)
    elif one["kind"] == "embedding":
        layer = Embedding(
            options["vocabulary"], options["dim"], dtype=str(weights["embeddings"].dtype)
        )
        _built(layer, [None], weights)
    else:
        return None
    layer.trainable = options.get("trainable", True)
    return layer


def make_graph(
    layers: list[dict[str, Any]],
    outputs: list[tuple[str, int]],
    recurrent: Callable[[str], CudnnRNN],
) -> LayerGraph:
    """The graph of a description; recurrent: the layer of a network."""
    made = {one["name"]: layer for one in layers if (layer := _make(one, recurrent)) is not None}
    described = [
        {key: one[key] for key in ("name", "kind", "inputs", "options")} for one in layers
    ]
    return LayerGraph(described, outputs, made)


def layers_of(graph: LayerGraph) -> list[dict[str, Any]]:
    """The description with the weights of now."""
    made = graph.layers
    described = []
    for one in graph.get_config()["description"]:
        layer, weights = made.get(one["name"]), {}
        if layer is not None and not isinstance(layer, CudnnRNN):
            for variable in layer.weights:
                weights[variable.name.rpartition("/")[2].partition(":")[0]] = variable.numpy()
        described.append({**one, "weights": weights})
    return described
