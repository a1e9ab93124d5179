"""The compatible cells and the functions that run them."""
