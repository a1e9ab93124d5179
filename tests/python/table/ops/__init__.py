"""The op-level classes and functions: calls, gradients, dropout, wrong arguments."""
