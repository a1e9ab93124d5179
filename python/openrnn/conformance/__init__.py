"""ONNX's recurrent operators, case by case: `python -m openrnn.conformance --backend NAME`.

Runs the cases of conformance/ (its README.md has the equations and what a case is) on this library
or on another runtime, each in a process of its own, and prints what passes. A backend is a Python
file with `version()` and `run(model_path, inputs)`; those of adapters/ have names.
"""
