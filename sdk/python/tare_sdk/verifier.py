"""Verifiers turn completions into verdicts (tare/verifier.h)."""

import ctypes as c
import json
import math
import time
from dataclasses import dataclass, field
from typing import Optional

from . import abi
from .errors import TareError
from .plugin import Opened

GRACE_NS, LOOK_NS = 100_000_000, 1_000_000_000  # time after a deadline; time of one poll, as in the engine


@dataclass
class Verdict:
    verdict: str
    reward: float
    extracted: str
    note: Optional[str]
    segments: list = field(default_factory=list)  # (end in bytes of the completion's UTF-8, reward), where the verifier gives some

    @property
    def judged(self):
        """True if there is a verdict: false when the verifier ran out of time or crashed."""
        return self.verdict not in ("timeout", "crashed")


def kept_text(data, most):
    """Cuts a text for people to `most` bytes, at the end of a character."""
    return bytes(data[:most]).decode(errors="ignore" if len(data) > most else "replace")


class _Asked:
    """A completion and the buffers for its verdict."""

    def __init__(self, verifier, completion, answer, prompt, row, timeout):
        self.deadline = time.monotonic_ns() + int(timeout * 1e9) if timeout else 0
        self.given = abi.sized(abi.Completion, prompt=abi.text(prompt), text=abi.text(completion), answer=abi.text(answer),
                               row=abi.text(None if row is None else json.dumps(row)), deadline_ns=self.deadline)
        (self._extracted, self.extracted), (self._note, self.note) = verifier._stream(), verifier._stream()
        parts = (abi.Segment * abi.LIMIT_SEGMENTS)() if verifier._table.flags & abi.VERIFIER_GIVES_SEGMENTS else None
        self.out = abi.sized(abi.Verdict, reward=math.nan, extracted=c.pointer(self._extracted), note=c.pointer(self._note), segment=parts,
                             segment_capacity=len(parts) if parts else 0)


class Verifier(Opened):
    """A verifier instance; call it from one thread at a time. Parameters are keywords, checked against the
    plugin's table.
    """

    kind = abi.KIND_VERIFIER
    table_type = abi.VerifierTable
    required = ("verify",)

    def __init__(self, name, **parameters):
        super().__init__(name, **parameters)
        self._uses, self._tickets = self._used_facts(abi.USES_ANSWER), 0

    @property
    def uses_answer(self):
        """True if it compares with the row's answer, with these parameters. None: a program of the
        user decides (python, command).
        """
        return True if self._uses & abi.USES_ANSWER else None if self._uses & abi.USES_MAYBE_ANSWER else False

    def _answer(self, answer):
        if answer is None and self.uses_answer:
            raise TareError("verifier %s compares with the answer, which is missing" % self.name, 10)
        return "" if answer is None else answer

    def verify(self, completion, answer=None, prompt="", row=None, timeout=0):
        """Verifies one completion. answer: may be left out where the verifier uses none; row: the
        data set's row, a dict; timeout: seconds, passed to the plugin as its deadline; 0: none.
        """
        asked = _Asked(self, completion, self._answer(answer), prompt, row, timeout)
        given, out = (abi.P(abi.Completion) * 1)(c.pointer(asked.given)), (abi.P(abi.Verdict) * 1)(c.pointer(asked.out))
        self._call("verify", self._table.verify, self._self, given, out, 1)
        return self._taken(asked)

    def explain(self, completion, answer=None, prompt="", row=None):
        """Explains the verdict on one completion, as a dict; None if it offers no explanations."""
        if not self._table.explain:
            return None
        asked = _Asked(self, completion, self._answer(answer), prompt, row, 0)
        return json.loads(self._written("explain", self._table.explain, self._self, c.byref(asked.given)))

    @property
    def waits(self):
        """True if it verifies several completions at a time, because it waits for an external service."""
        return all(getattr(self._table, name) for name in ("submit", "poll", "take", "cancel"))

    def verify_all(self, completions, answers=None, prompts=None, rows=None, timeout=0, at_once=16):
        """Returns the verdicts of several completions, in their order. A verifier that waits for an
        external service has up to at_once of them in progress; those that pass the timeout get
        the verdict timeout. answers, prompts, rows: one for each, or None.
        """
        n = len(completions)
        answers = [self._answer(a) for a in ([None] * n if answers is None else answers)]
        prompts, rows = [""] * n if prompts is None else prompts, [None] * n if rows is None else rows
        if not len(answers) == len(prompts) == len(rows) == n:
            raise TareError("verifier %s: %d completions with %d answers, %d prompts and %d rows" % (self.name, n, len(answers), len(prompts), len(rows)), 10)
        if not self.waits:
            return [self.verify(x, a, p, r, timeout) for x, a, p, r in zip(completions, answers, prompts, rows)]
        verdicts, under_way, todo = [None] * n, {}, list(zip(range(n), completions, answers, prompts, rows))[::-1]
        try:
            while todo or under_way:
                while todo and len(under_way) < at_once:
                    i, *about = todo.pop()
                    asked = _Asked(self, *about, timeout)
                    self._tickets += 1
                    self._call("submit", self._table.submit, self._self, c.byref(asked.given), self._tickets)
                    if timeout:
                        asked.deadline = time.monotonic_ns() + int(timeout * 1e9)
                    under_way[self._tickets] = i, asked
                for ticket in self._look(under_way):
                    i, asked = under_way.pop(ticket)
                    self._call("take", self._table.take, self._self, ticket, c.byref(asked.out))
                    verdicts[i] = self._taken(asked)
                for ticket in [t for t, (_, a) in under_way.items() if a.deadline and time.monotonic_ns() > a.deadline + GRACE_NS]:
                    i, _ = under_way.pop(ticket)
                    self._table.cancel(self._self, ticket)
                    verdicts[i] = Verdict("timeout", 0.0, "", "the verifier did not answer in time")
        finally:
            for ticket in under_way:
                self._table.cancel(self._self, ticket)
        return verdicts

    def _look(self, under_way):
        """Waits for the first of them; returns the tickets that are done."""
        n, now = len(under_way), time.monotonic_ns()
        wait = min([LOOK_NS] + [a.deadline + GRACE_NS - now for _, a in under_way.values() if a.deadline])
        tickets, states = (abi.i64 * n)(*under_way), (abi.u8 * n)()
        waiting = abi.sized(abi.Waiting, n=n, ticket=tickets, state=states, wait_ns=max(wait, 0))
        self._call("poll", self._table.poll, self._self, c.byref(waiting))
        if any(state not in (abi.TICKET_OPEN, abi.TICKET_DONE) for state in states):
            raise TareError("verifier %s: poll: unknown states of tickets in %r" % (self.name, list(states)), 80)
        return [tickets[k] for k in range(n) if states[k] == abi.TICKET_DONE]

    def _taken(self, asked):
        out = asked.out
        if out.code not in abi.VERDICTS or not math.isfinite(out.reward):
            raise TareError("verifier %s: verify: code %d, reward %r" % (self.name, out.code, out.reward), 80)
        return Verdict(abi.VERDICTS[out.code], out.reward, kept_text(asked.extracted["out"], abi.LIMIT_EXTRACTED),
                       kept_text(asked.note["out"], abi.LIMIT_NOTE) or None, self._segments(out, asked.given.text.size))

    def _segments(self, out, size):
        if not 0 <= out.n_segments <= out.segment_capacity:
            raise TareError("verifier %s: verify: %d segments in a buffer of %d" % (self.name, out.n_segments, out.segment_capacity), 80)
        got = [(out.segment[k].end, out.segment[k].reward) for k in range(out.n_segments)]
        ends = [0] + [end for end, _ in got]
        if any(a >= b for a, b in zip(ends, ends[1:])) or ends[-1] > size or not all(math.isfinite(reward) for _, reward in got):
            raise TareError("verifier %s: verify: the segments %r do not fit a completion of %d bytes" % (self.name, got, size), 80)
        return got
