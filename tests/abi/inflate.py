#!/usr/bin/env python3
"""Makes a copy of the SDK's C headers as a later minor version might have them, and runs Python's host
with structs of that kind.

    inflate.py headers FROM TO      every growable struct has 16 bytes more, every enumeration another
                                    number, which is a bit of those that are flags
    inflate.py python PROGRAM ...   runs a Python program in which ctypes appends 16 bytes to every struct
                                    that begins with struct_size

A plugin or a host built so must work with today's other side: it may test a member with TARE_KNOWS,
never a size."""
import ctypes
import pathlib
import re
import runpy
import shutil
import sys

STRIDES = ("tare_param", "tare_want")  # they grow by the descriptor's param_size and want_size


def inflate(text, numbers):
    def struct(m):
        grows = m.group(1) in STRIDES or re.match(r"\s*(/\*.*?\*/\s*)?(uint32_t struct_size|TARE_HEAD;)", m.group(2), re.S)
        if not grows or m.group(1) == "tare_head":
            return m.group(0)
        return "typedef struct %s {%s\n    uint64_t inflated_1, inflated_2;\n} %s;" % (m.group(1), m.group(2), m.group(1))

    def enumeration(m):
        numbers.append(m.group(0))
        return m.group(1).rstrip() + ", TARE_INFLATED_%d = 1 << 29\n};" % len(numbers)

    text = re.sub(r"typedef struct (\w+) \{(.*?)\n\} \1;", struct, text, flags=re.S)
    return re.sub(r"(^enum \{.*?)\};", enumeration, text, flags=re.S | re.M)


def headers(source, to):
    shutil.copytree(source, to)
    numbers = []
    for path in sorted(pathlib.Path(to).rglob("*.h")):
        path.write_text(inflate(path.read_text(), numbers))


class Inflated(type(ctypes.Structure)):
    def __setattr__(cls, name, value):
        if name == "_fields_" and value and value[0][0] == "struct_size":
            value = list(value) + [("inflated_1", ctypes.c_uint64), ("inflated_2", ctypes.c_uint64)]
        super().__setattr__(name, value)


def python(program, arguments):
    class Structure(ctypes.Structure, metaclass=Inflated):
        pass

    ctypes.Structure = Structure
    sys.argv = [program] + arguments
    runpy.run_path(program, run_name="__main__")


if __name__ == "__main__":
    if sys.argv[1:2] == ["headers"] and len(sys.argv) == 4:
        headers(sys.argv[2], sys.argv[3])
    elif sys.argv[1:2] == ["python"] and len(sys.argv) > 2:
        python(sys.argv[2], sys.argv[3:])
    else:
        sys.exit(__doc__)
