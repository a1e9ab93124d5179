__prefix__:
    from numpy import dtype as NumpyDType
    from numpy.typing import NDArray
