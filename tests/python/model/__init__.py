"""The second specification: recurrent networks in NumPy, with derived error bounds."""
