"""What a product sees of its operands under each arithmetic, in NumPy.

An arithmetic is the keyword arguments that ask for it, such as {"math": "bf16"}.
"""

import numpy as np

BF16 = {"math": "bf16"}
FLOAT16, BFLOAT16, INT8 = ({"weights_dtype": name} for name in ("float16", "bfloat16", "int8"))
ALL = [BF16, FLOAT16, BFLOAT16, INT8]


def name(arithmetic):
    return "-".join(arithmetic.values()) or "float32"


def bfloat16(values):
    """The nearest bfloat16 of float32 values, ties to the even one."""
    values = np.asarray(values, np.float32)
    step = np.ldexp(np.float64(1), np.maximum(np.frexp(values)[1], -125) - 8)
    return np.round(values.astype(np.float64) / step) * step


def _flushed(values):
    values = np.asarray(values, np.float32)
    return np.where(np.abs(values) < np.finfo(np.float32).tiny, np.float32(0), values)


def _int8(matrix, of_zeros):
    """(whole numbers, scale of each row); `of_zeros` is the scale of a row of zeros."""
    matrix = np.asarray(matrix, np.float32)
    largest = np.max(np.abs(matrix), axis=-1, keepdims=True, initial=0)
    return matrix, largest, np.where(largest > 0, largest / np.float32(127), of_zeros)


def weights(arithmetic, matrix):
    """[rows, k] in float64, as the products see it."""
    if arithmetic == BF16:
        return bfloat16(_flushed(matrix))
    if arithmetic == FLOAT16:
        return matrix.astype(np.float16).astype(np.float64)
    if arithmetic == BFLOAT16:
        return bfloat16(matrix)
    if arithmetic == INT8:
        matrix, _, scale = _int8(matrix, np.float32(1))
        return np.rint(matrix / scale).astype(np.float64) * scale.astype(np.float64)
    return matrix.astype(np.float64)


def activations(arithmetic, rows):
    """[B, k] in float64, as the products see it; each row has a scale of its own in int8."""
    if arithmetic == BF16:
        return bfloat16(_flushed(rows))
    if arithmetic == INT8:
        rows, largest, scale = _int8(rows, np.float32(0))
        inverse = np.float32(127) / np.where(largest > 0, largest, np.float32(1))
        return np.rint(rows * inverse).astype(np.float64) * scale.astype(np.float64)
    return np.asarray(rows, np.float64)
