"""Cells with options: their parameters, equations and data in NumPy."""
