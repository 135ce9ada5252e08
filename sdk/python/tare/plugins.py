"""Calls single estimators and verifiers through tare_sdk (sdk/python/README.md), with
bit-identical results.
"""

import ctypes as c
from numbers import Integral

from tare_sdk import Estimator, Verifier

from .arrays import numbers, numpy


def estimate(estimator, rewards, groups, n_clusters=0, columns=None, **parameters):
    """The advantages of N rewards, an array [N]. groups: the prompt of each rollout, a number each, those of a group side by side (0 0 0 1 1 1); or
    one number, the rollouts in each group. estimator: the name or the file of a plugin, with its parameters by keyword; or an Estimator, whose state
    is used and whose apply() is then yours to call. columns: what else an estimator needs, as Estimator.step_flat takes it."""
    reward, _, n = numbers(rewards, c.c_double, "rewards")
    sizes = _sizes(groups, n)
    columns = columns or {}
    if isinstance(estimator, Estimator):
        if parameters or n_clusters:
            raise TypeError("the Estimator has its parameters already")
        return estimator.step_flat(_plain(reward, n), sizes, **columns).advantage
    with Estimator(estimator, n_clusters=n_clusters, **parameters) as one:
        return one.step_flat(_plain(reward, n), sizes, **columns).advantage


def _plain(block, n):
    return block if numpy is not None else list(block[:n])


def _sizes(groups, n):
    """Returns the number of rollouts in each group."""
    if isinstance(groups, Integral):
        groups = int(groups)
        if groups < 1 or n % groups:
            raise ValueError("groups = %d: %d rewards are not whole groups of that size" % (groups, n))
        return [groups] * (n // groups)
    of, _, m = numbers(groups, c.c_int64, "groups")
    if m != n:
        raise ValueError("groups: %d numbers for %d rewards; one for each is expected" % (m, n))
    sizes, seen, last = [], set(), None
    for g in (int(x) for x in of[:m]):
        if g == last:
            sizes[-1] += 1
            continue
        if g in seen:
            raise ValueError("groups: the rollouts of group %d do not stand side by side" % g)
        seen.add(g)
        sizes.append(1)
        last = g
    return sizes


def verify(verifier, completions, answers, prompts=None, rows=None, timeout=0, **parameters):
    """Verdicts (.reward, .verdict, .extracted, .note) of completions against answers. verifier: the name or the file of a plugin, with its parameters
    by keyword; or a Verifier. rows: the data's rows, for verifiers that read their fields."""
    if isinstance(completions, str) or isinstance(answers, str):
        raise TypeError("completions, answers: lists are expected, not one text")
    completions, answers = list(completions), list(answers)
    if isinstance(verifier, Verifier):
        if parameters:
            raise TypeError("the Verifier has its parameters already")
        return verifier.verify_all(completions, answers, prompts, rows, timeout)
    with Verifier(verifier, **parameters) as one:
        return one.verify_all(completions, answers, prompts, rows, timeout)
