"""Runs tare's plugins from Python. See README.md in the folder above."""

from .codebook import Codebook, Encoder
from .curriculum import Curriculum
from .environment import Environment
from .errors import TareError
from .estimator import Estimator, Step, advantages
from .objective import Objective
from .verifier import Verdict, Verifier

__all__ = ["Codebook", "Curriculum", "Encoder", "Environment", "Estimator", "Objective", "Step", "TareError", "Verdict", "Verifier", "advantages"]
__version__ = "1.0.0"  # the ABI's, as sdk/include/tare/base.h has it
