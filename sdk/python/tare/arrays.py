"""Shows memory of the engine as arrays: NumPy arrays where NumPy is installed, else memoryviews."""

import ctypes as c

try:
    import numpy
except ImportError:
    numpy = None

TYPES = {1: c.c_uint8, 2: c.c_int32, 3: c.c_int64, 4: c.c_uint64, 5: c.c_float, 6: c.c_double}
TEXT, STRING = 7, 64
WHOLE = (c.c_int32, c.c_int64)


class Text(c.Structure):
    _fields_ = [("data", c.c_void_p), ("size", c.c_int64)]


def attribute(name):
    """The attribute of a column: component_verdict for "component.verdict"."""
    return name.decode().replace(".", "_")


def string(bytes_):
    return bytes_.decode("utf-8", "replace")


def texts(address, n):
    """Reads n tare_text as a list of str, with None for a missing text."""
    found = (Text * n).from_address(address) if n else ()
    return [string(c.string_at(t.data, t.size)) if t.data else None for t in found]


def strings(address, n):
    return [string(x) if x is not None else None for x in ((c.c_char_p * n).from_address(address) if n else ())]


def view(address, type_, n, width, owner):
    """Makes a read-only array of n entries of `width` numbers; it keeps `owner`, which has the
    memory, alive.
    """
    block = (type_ * (n * width)).from_address(address)
    block.owner = owner
    memory = memoryview(block).cast("B").toreadonly()
    if numpy is None:
        return memory.cast(type_._type_)
    # NumPy arrays of read-only memory cannot be made writable
    array = numpy.frombuffer(memory, type_) if n * width else numpy.frombuffer(b"", type_)
    return array.reshape(n, width) if width != 1 else array


def copied(address, type_, n, width=1):
    """Copies an array."""
    block = (type_ * (n * width)).from_buffer_copy(c.string_at(address, c.sizeof(type_) * n * width)) if n * width else (type_ * 0)()
    if numpy is None:
        return list(block) if width == 1 else [list(block[i * width: (i + 1) * width]) for i in range(n)]
    array = numpy.array(block, dtype=type_)
    return array.reshape(n, width) if width != 1 else array


def numbers(values, type_, name):
    """Makes a flat C array of the caller's numbers (a list, a NumPy array, a pandas column), and
    returns it with its length.
    """
    if numpy is not None:
        try:
            array = numpy.ascontiguousarray(values, dtype=type_)
        except (TypeError, ValueError, OverflowError) as why:
            raise TypeError("%s: numbers are expected: %s" % (name, why)) from None
        if array.ndim != 1:
            raise ValueError("%s: one row of numbers is expected, and it has %d dimensions" % (name, array.ndim))
        if type_ in WHOLE and not numpy.array_equal(array, numpy.asarray(values)):
            raise ValueError("%s: whole numbers of %d bits are expected" % (name, 8 * c.sizeof(type_)))
        return array, array.ctypes.data, len(array)
    try:
        values = list(values)
        block = (type_ * max(len(values), 1))(*values)
    except TypeError as why:
        raise TypeError("%s: numbers are expected: %s" % (name, why)) from None
    if type_ in WHOLE and list(block[: len(values)]) != values:
        raise ValueError("%s: whole numbers of %d bits are expected" % (name, 8 * c.sizeof(type_)))
    return block, c.addressof(block), len(values)


def buffer(type_, n, width=1):
    """Makes a writable array, and returns it with its address."""
    if numpy is not None:
        array = numpy.empty((n, width) if width != 1 else n, dtype=type_)
        return array, array.ctypes.data
    block = (type_ * max(n * width, 1))()
    return block, c.addressof(block)
