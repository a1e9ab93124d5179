"""Saveables, converters, checkpoints, optimizers."""
