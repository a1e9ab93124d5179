"""How far each side is from float64, and how far float32 storage alone leads."""

from peers.accuracy.errors import QUANTITIES, Errors, Exact, Source, errors, quantities

__all__ = ["QUANTITIES", "Errors", "Exact", "Source", "errors", "quantities"]
