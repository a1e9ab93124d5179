"""Call frames of XLA, made by hand."""

import ctypes as c

from openrnn import _core

P = c.POINTER
TYPES = {"bool": 1, "int32": 4, "int64": 5, "uint8": 6, "uint32": 8, "float16": 10, "float32": 11,
         "float64": 12, "bfloat16": 16}  # fmt: skip
EXECUTE = 3


class Extension(c.Structure):
    pass


Extension._fields_ = [("size", c.c_size_t), ("type", c.c_int), ("next", P(Extension))]


class Version(c.Structure):
    _fields_ = [("size", c.c_size_t), ("ext", c.c_void_p), ("major", c.c_int), ("minor", c.c_int)]


class Metadata(c.Structure):
    _fields_ = [("size", c.c_size_t), ("version", Version), ("traits", c.c_uint32)]


class MetadataExtension(c.Structure):
    _fields_ = [("base", Extension), ("metadata", P(Metadata))]


class ErrorArgs(c.Structure):
    _fields_ = [("size", c.c_size_t), ("ext", c.c_void_p), ("text", c.c_char_p), ("code", c.c_int)]


CREATE = c.CFUNCTYPE(c.c_void_p, P(ErrorArgs))


class Api(c.Structure):
    _fields_ = [("size", c.c_size_t), ("ext", c.c_void_p), ("version", Version),
                ("internal", c.c_void_p), ("create_error", CREATE)]  # fmt: skip


class Buffer(c.Structure):
    _fields_ = [("size", c.c_size_t), ("ext", c.c_void_p), ("type", c.c_int), ("data", c.c_void_p),
                ("rank", c.c_int64), ("dims", P(c.c_int64))]  # fmt: skip


class Values(c.Structure):
    _fields_ = [("size", c.c_size_t), ("ext", c.c_void_p), ("count", c.c_int64),
                ("types", P(c.c_int)), ("values", P(c.c_void_p))]  # fmt: skip


class Span(c.Structure):
    _fields_ = [("data", c.c_char_p), ("size", c.c_size_t)]


class Scalar(c.Structure):
    _fields_ = [("type", c.c_int), ("value", c.c_void_p)]


class Attributes(c.Structure):
    _fields_ = [("size", c.c_size_t), ("ext", c.c_void_p), ("count", c.c_int64),
                ("types", P(c.c_int)), ("names", P(P(Span))), ("values", P(c.c_void_p))]  # fmt: skip


class Frame(c.Structure):
    _fields_ = [("size", c.c_size_t), ("ext", c.c_void_p), ("api", P(Api)), ("ctx", c.c_void_p),
                ("stage", c.c_int), ("operands", Values), ("results", Values),
                ("attributes", Attributes)]  # fmt: skip


def pointer_to(value):
    return c.cast(c.pointer(value), c.c_void_p).value


class Call:
    """One frame and everything that it points to."""

    def __init__(self, operands, results, attributes, version=(0, 3)):
        self.kept, self.errors = [], []
        create = CREATE(self._error)
        version = Version(c.sizeof(Version), None, *version)
        api = Api(c.sizeof(Api), None, version, None, create)
        self.kept += [create, api]
        self.frame = Frame(
            c.sizeof(Frame), None, c.pointer(api), None, EXECUTE, self._values(operands),
            self._values(results), self._attributes(attributes),
        )  # fmt: skip

    def _error(self, args):
        self.errors.append((args[0].code, args[0].text.decode()))
        return 1

    def _values(self, arrays):
        types, values = (c.c_int * 24)(), (c.c_void_p * 24)()
        for i, array in enumerate(arrays):
            dims = (c.c_int64 * 8)(*array.shape)
            buffer = Buffer(c.sizeof(Buffer), None, TYPES.get(str(array.dtype), 77),
                            array.ctypes.data, array.ndim, dims)  # fmt: skip
            types[i], values[i] = 1, pointer_to(buffer)
            self.kept += [dims, buffer, array]
        self.kept += [types, values]
        return Values(c.sizeof(Values), None, len(arrays), types, values)

    def _attributes(self, named):
        types, names, values = (c.c_int * 8)(), (P(Span) * 8)(), (c.c_void_p * 8)()
        for i, (name, value) in enumerate(sorted(named.items())):
            span = Span(name.encode(), len(name))
            names[i] = c.pointer(span)
            if isinstance(value, str):
                types[i], held = 4, Span(value.encode(), len(value))
            elif isinstance(value, bool):
                flag = c.c_bool(value)
                types[i], held = 3, Scalar(TYPES["bool"], pointer_to(flag))
                self.kept.append(flag)
            else:
                number = c.c_int64(value)
                types[i], held = 3, Scalar(5, pointer_to(number))
                self.kept.append(number)
            values[i] = pointer_to(held)
            self.kept += [span, held]
        self.kept += [types, names, values]
        return Attributes(c.sizeof(Attributes), None, len(named), types, names, values)

    def run(self, name="openrnn_forward"):
        capsule = {**_core.jax_targets(), **_core.keras_targets()}[name]
        get = c.pythonapi.PyCapsule_GetPointer
        get.restype, get.argtypes = c.c_void_p, [c.py_object, c.c_char_p]
        address = get(capsule, b"xla._CUSTOM_CALL_TARGET")
        # A handler runs without the interpreter lock, as XLA calls it.
        found = c.CFUNCTYPE(c.c_void_p, P(Frame))(address)(c.byref(self.frame))
        assert bool(found) == bool(self.errors)
        return self.errors[0] if self.errors else None
