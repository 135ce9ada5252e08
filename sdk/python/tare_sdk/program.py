"""The program in the wheel: the console script `tare`, and `python -m tare_sdk`."""

import os
import sys

ENGINE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "engine")
LIBRARIES = os.path.join(ENGINE, "lib", "tare")


def path():
    """Returns the program's file, or None in a package without it (pip install ./sdk/python)."""
    file = os.path.join(ENGINE, "bin", "tare")
    return file if os.path.exists(file) else None


def main():
    file = path()
    if not file:
        sys.exit("tare: this package holds the Python host alone; `pip install .` in the folder above sdk/ brings the program")
    os.execv(file, ["tare"] + sys.argv[1:])
