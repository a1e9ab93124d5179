__prefix__:
    from numpy.typing import NDArray
