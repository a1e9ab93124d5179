"""How a stack of Keras's layers is called under each of its backends.

Each has use_threads(count), version(), and Calls(forward, variables, (x, r), jit): a call is the
forward pass, with r that and the gradients of sum(y * r) with respect to x and to the variables.
"""
