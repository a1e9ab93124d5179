"""The language model on each side."""
