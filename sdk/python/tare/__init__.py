"""The engine in Python: models, estimators, verifiers, training step by step. See docs/python.md.

    import tare
    for step in tare.Run("config.ini", **{"train.steps": 20}):
        print(step.number, step.metrics["reward/mean"], step.advantage)
"""

from tare_sdk import Estimator, TareError, Verdict, Verifier

from .library import log_level, release as __version__
from .model import Model
from .plugins import estimate, verify
from .functions import Batch
from .run import Run, Step

__all__ = ["Batch", "Estimator", "Model", "Run", "Step", "TareError", "Verdict", "Verifier", "estimate", "log_level", "verify"]
