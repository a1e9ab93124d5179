"""Finished runs kept in bench/results, and the tables of docs/ drawn from them."""
