__prefix__:
    import numpy
    from numpy.typing import NDArray
