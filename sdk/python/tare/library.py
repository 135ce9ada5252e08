"""Loads libtare.so (core/api/api.h) by ctypes: its location, its functions, and its errors as
exceptions.
"""

import ctypes as c
import logging
import os
import shutil

from tare_sdk import TareError, abi, program

VERSION = 2
log = logging.getLogger("tare")
i32, i64, text, handle = c.c_int32, c.c_int64, abi.Text, c.c_void_p


class Error(c.Structure):
    _fields_ = [("code", i32), ("message", c.c_char * 2000)]


class Facts(c.Structure):
    _fields_ = [("vocab", i64), ("hidden", i64), ("layers", i64), ("context", i64), ("has_tokenizer", i32)]


class Place(c.Structure):
    _fields_ = [("dir", c.c_char_p), ("step", i64), ("steps", i64)]


class Column(c.Structure):
    _fields_ = [("name", c.c_char_p), ("data", c.c_void_p), ("n", i64), ("width", i64), ("type", i32)]


class Settings(c.Structure):
    _fields_ = [("list", c.POINTER(c.c_char_p)), ("n", i64)]


class Given(c.Structure):
    """tare_api_text."""

    _fields_ = [("data", c.c_void_p), ("size", i64)]

    def take(self):
        try:
            return c.string_at(self.data, self.size)
        finally:
            plain("free")(self.data)


class Lines(c.Structure):
    _fields_ = [("ids", c.c_void_p), ("begin", c.c_void_p), ("n", i64), ("temperature", c.c_double)]


class View(c.Structure):
    _fields_ = [("struct_size", c.c_uint32), ("batch", c.POINTER(abi.Batch)), ("column", c.POINTER(Column)), ("n_columns", i64)]


LOG = c.CFUNCTYPE(None, c.c_void_p, i32, c.c_char_p)
class Asked(c.Structure):
    """tare_api_asked: what a reward function is called with."""

    _fields_ = [("struct_size", c.c_uint32), ("instance", c.c_char_p), ("host", c.POINTER(abi.Host)), ("n", i64),
                ("completion", c.POINTER(c.POINTER(abi.Completion))), ("verdict", c.POINTER(c.POINTER(abi.Verdict))), ("reward", c.POINTER(c.c_double))]


REWARD = c.CFUNCTYPE(i32, c.c_void_p, c.POINTER(Asked), c.POINTER(abi.Error))
ADVANTAGE = c.CFUNCTYPE(i32, c.c_void_p, c.POINTER(View), c.POINTER(c.c_double), c.POINTER(abi.Error))


class RunOptions(c.Structure):
    _fields_ = [("struct_size", c.c_uint32), ("resume", i32), ("allow_change", i32), ("config", c.c_char_p), ("settings", c.POINTER(c.c_char_p)),
                ("n", i64), ("ctx", c.c_void_p), ("reward", REWARD), ("advantage", ADVANTAGE)]


strings, error, out = c.POINTER(c.c_char_p), c.POINTER(Error), c.POINTER(handle)
FUNCTIONS = {  # with an Error at the end of those that return a status
    "begin": (c.c_char_p, LOG, c.c_void_p),
    "model_open": (c.c_char_p, strings, i64, out),
    "model_facts": (handle, c.POINTER(Facts)),
    "generate": (handle, c.POINTER(text), c.POINTER(Settings), c.POINTER(Given)),
    "score": (handle, c.POINTER(Lines), c.c_void_p, c.c_void_p),
    "embed": (handle, c.POINTER(text), i64, c.c_void_p),
    "encode": (handle, text, c.POINTER(c.c_void_p), c.POINTER(i64)),
    "decode": (handle, c.c_void_p, i64, c.POINTER(Given)),
    "run_open": (c.POINTER(RunOptions), out),
    "run_place": (handle, c.POINTER(Place)),
    "run_step": (handle, out),
    "run_save": (handle,),
    "run_close": (handle,),
}
PLAIN = {"version": (i32, ()), "release": (c.c_char_p, ()), "log_level": (None, (i32,)), "free": (None, (c.c_void_p,)), "model_close": (None, (handle,)),
         "batch_columns": (i64, (handle, c.POINTER(Column), i64)), "batch_metrics": (c.c_char_p, (handle,)), "batch_free": (None, (handle,))}


def _candidates():
    """Returns (libtare.so, the program): from TARE_LIBRARY, from this wheel, or next to the `tare`
    on the PATH (a build folder or an installation).
    """
    tare = os.environ.get("TARE") or shutil.which("tare")
    given = os.environ.get("TARE_LIBRARY")
    if given:
        yield given, tare or os.path.join(os.path.dirname(given), "tare")
    yield os.path.join(program.LIBRARIES, "libtare.so"), program.path()
    if tare:
        tare = os.path.realpath(tare)
        folder = os.path.dirname(tare)
        yield os.path.join(folder, "libtare.so"), tare
        for lib in ("lib", "lib64"):
            yield os.path.join(os.path.dirname(folder), lib, "tare", "libtare.so"), tare


def _open():
    looked = []
    for path, tare in _candidates():
        if os.path.exists(path):
            break
        looked.append(path)
    else:
        raise ImportError("libtare.so is in none of: %s. In a clone that is built, put its build folder on the PATH or set TARE_LIBRARY=build/libtare.so; "
                          "`pip install .` in the clone installs it" % ", ".join(looked))
    library = c.CDLL(path)
    for name, (result, arguments) in PLAIN.items():
        function = getattr(library, "tare_api_" + name)
        function.restype, function.argtypes = result, arguments
    if library.tare_api_version() != VERSION:
        raise ImportError("%s has version %d of its interface, and this package is for %d: install both from the same clone"
                          % (path, library.tare_api_version(), VERSION))
    for name, arguments in FUNCTIONS.items():
        function = getattr(library, "tare_api_" + name)
        function.restype, function.argtypes = i32, arguments + (error,)
    return library, tare


def _with_arguments(message):
    """The engine's messages name options of the program; here they are arguments."""
    names = [argument for option, argument in (("--resume", "resume=True"), ("--allow-change", "allow_change=True")) if option in message]
    return "%s (in Python: tare.Run(..., %s))" % (message, ", ".join(names)) if names else message


def call(name, *arguments):
    """Calls a function that can fail; its error becomes a TareError with the ABI's code."""
    failure = Error()
    status = getattr(LIBRARY, "tare_api_" + name)(*arguments, c.byref(failure))
    if status:
        raise TareError(_with_arguments(failure.message.decode(errors="replace")), status)


def plain(name):
    return getattr(LIBRARY, "tare_api_" + name)


@LOG
def _say(_ctx, level, message):
    log.log({0: logging.DEBUG, 1: logging.INFO, 2: logging.WARNING}.get(level, logging.ERROR), "%s", message.decode(errors="replace"))


def log_level(level):
    """Sets the level of the engine's messages to the logger "tare": debug, info, warning (the
    default), error or none.
    """
    levels = {"debug": 0, "info": 1, "warning": 2, "error": 3, "none": 4}
    if level not in levels:
        raise ValueError("%r; one of %s" % (level, ", ".join(levels)))
    plain("log_level")(levels[level])
    if level in ("debug", "info"):
        log.setLevel(level.upper())
        if not log.hasHandlers():
            logging.basicConfig(format="tare: %(message)s")


def setting(key, value):
    """Formats a keyword and its value as the text that the engine reads."""
    if value is True or value is False:
        value = "true" if value else "false"
    if not isinstance(value, (str, int, float, os.PathLike)):
        raise TypeError("%s: must be a text, a number, True or False, not %s" % (key, type(value).__name__))
    return ("%s=%s" % (key, os.fspath(value) if isinstance(value, os.PathLike) else value)).encode("utf-8", "surrogateescape")


def settings(given):
    """Makes a C array of them, and returns it with its length."""
    made = [setting(key, value) for key, value in given.items()]
    for one in made:
        if b"\0" in one:
            raise ValueError("%r holds a NUL" % one)
    return (c.c_char_p * max(len(made), 1))(*made), len(made)


def path(name, value):
    value = os.fsencode(value)
    if b"\0" in value:
        raise ValueError("%s: %r holds a NUL" % (name, value))
    return value


LIBRARY, PROGRAM = _open()
call("begin", path("program", PROGRAM) if PROGRAM else None, _say, None)
log_level("warning")
release = LIBRARY.tare_api_release().decode()
