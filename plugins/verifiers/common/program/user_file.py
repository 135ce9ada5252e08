"""Loads a user's Python file for a driver, and opens the driver's pipes. Precedes the text of every driver
(tare_python_driver in plugins.cmake); HERE has the paths that were taken out of sys.path meanwhile."""
import importlib.machinery
import importlib.util
import os
import sys


def clean(text):
    # a lone surrogate and NUL have no place in the JSON that is read
    return text.encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "\\x00")


def load_file(path, otherwise):
    """Returns the file as a module under the name by which other processes can import it, or else under `otherwise`."""
    path = os.path.abspath(path)
    sys.path[:0] = [os.path.dirname(path), *HERE]
    name = os.path.splitext(os.path.basename(path))[0]
    if not name.isidentifier() or name in sys.modules or name in getattr(sys, "stdlib_module_names", ()):
        name = otherwise
    spec = importlib.util.spec_from_file_location(name, path, loader=importlib.machinery.SourceFileLoader(name, path))  # whatever its ending
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # pickle, dataclasses, inspect and process pools look there
    spec.loader.exec_module(module)
    return module


def pipes():
    """Returns the files of answers and of questions. What the user's code prints must not reach the answers."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    lines = os.fdopen(os.dup(0), "r", encoding="utf-8", newline="\n")
    os.dup2(2, 1)
    sys.stdin = open(os.devnull)
    return out, lines
