"""Restores the floating-point environment after a plugin changed it. An object that was linked with
-ffast-math may switch on flush-to-zero for the thread that loads it, which would change the
numbers of the surrounding trainer.
"""

import contextlib
import ctypes as c
import logging

try:
    _libm = c.CDLL(None)
    _get, _set = _libm.fegetenv, _libm.fesetenv
except (OSError, AttributeError, TypeError):  # a C library without them: nothing can be put back
    _get = _set = None

ROOM = 256  # of fenv_t, which has 32 bytes on x86-64 and 8 on arm64
CONTROL = 28, 32  # of it, the word of x86-64 that has rounding and flush-to-zero; above its low six bits are no sticky flags


def _control(env):
    return int.from_bytes(env.raw[CONTROL[0]: CONTROL[1]], "little") & ~0x3F


@contextlib.contextmanager
def kept(path=None):
    """Restores rounding and flush-to-zero after the block. path: the file that is loaded in the
    block, for a warning about a change.
    """
    if not _get:
        yield
        return
    before, after = c.create_string_buffer(ROOM), c.create_string_buffer(ROOM)
    _get(before)
    try:
        yield
    finally:
        _get(after)
        _set(before)
        if path and _control(before) != _control(after):
            logging.getLogger("tare").warning(
                "%s: changed the floating-point mode while it was loaded; put back (was it linked with -ffast-math?)", path)
