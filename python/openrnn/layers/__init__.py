"""Layer, the base class of all layers; the recurrent layers and those used with them."""

from openrnn._layer import InputSpec, Layer
from openrnn.layers._graph import LayerGraph
from openrnn.layers._recurrent import GRU, LSTM, RNN
from openrnn.layers._simple import Dense, Dropout, Embedding

__all__ = ["GRU", "LSTM", "RNN", "Dense", "Dropout", "Embedding", "InputSpec", "Layer", "LayerGraph"]
