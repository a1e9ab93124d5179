"""The exceptions of this package. Messages read "[call] what was given, what was expected"."""

from openrnn import _core


class ArgumentError(ValueError):
    """A value, shape or size that the call cannot take."""


class StateError(RuntimeError):
    """A call that comes too early, too late or twice."""


class NotConnectedError(AttributeError):
    """A layer that was never connected to an input."""


class UnsupportedError(NotImplementedError):
    """Something that this engine or build cannot do."""


class EngineError(RuntimeError):
    """A failure inside an engine, such as a GPU library that is missing."""


class IoError(OSError):
    """The operating system refused: disk full, unwritable folder, no such file."""


class FormatError(ValueError):
    """A file whose bytes are not what its format says."""


_core.set_error_classes(
    (
        ArgumentError,
        StateError,
        NotConnectedError,
        UnsupportedError,
        EngineError,
        IoError,
        FormatError,
    )
)
