"""Runs tare's plugins from Python. See README.md in the folder above."""

from .estimator import Estimator, Step, advantages
from .errors import TareError
from .verifier import Verdict, Verifier

__all__ = ["Estimator", "Step", "TareError", "Verdict", "Verifier", "advantages"]
__version__ = "1.3.0"  # the ABI's, as sdk/include/tare/base.h has it
