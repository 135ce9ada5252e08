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


SEGMENTS = 256  # at most, as in the engine
GRACE_NS, LOOK_NS = 100_000_000, 1_000_000_000  # time after a deadline; time of one poll, as in the engine


@dataclass
class Verdict:
    verdict: str
    reward: float
    extracted: str
    reason: Optional[str]
    segments: list = field(default_factory=list)  # (end in bytes of the completion's UTF-8, reward), where the verifier gives some

    @property
    def judged(self):
        """True if there is a verdict: false when the verifier ran out of time or crashed."""
        return self.verdict not in ("timeout", "crashed")


def _text(value):
    data = value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")
    return abi.Text(data, len(data))


class _Asked:
    """An answer and the buffers for its verdict."""

    def __init__(self, verifier, completion, answer, prompt, row, timeout):
        self.deadline = time.monotonic_ns() + int(timeout * 1e9) if timeout else 0
        self.given = abi.Answer(c.sizeof(abi.Answer), 0, _text(prompt), _text(completion), _text(answer),
                                _text(json.dumps(row)) if row is not None else abi.Text(), self.deadline, finish=-1)
        self.buffer = c.create_string_buffer(4096)
        self.parts = (abi.Segment * SEGMENTS)() if verifier._table.flags & abi.GIVES_SEGMENTS else None
        self.out = abi.Verdict(c.sizeof(abi.Verdict), 0, math.nan, c.addressof(self.buffer), len(self.buffer), 0, None, self.parts,
                               SEGMENTS if self.parts else 0, 0)


class Verifier(Opened):
    """A verifier instance; call it from one thread at a time. Parameters are keywords, checked against the
    plugin's table.
    """

    kind = abi.VERIFIER
    table_type = abi.VerifierTable
    required = ("create", "destroy", "verify")
    known_flags = abi.JUDGES_TOGETHER | abi.GIVES_SEGMENTS  # together: one answer at a time is all there is

    def __init__(self, name, **parameters):
        super().__init__(name, **parameters)
        self._uses = self._table.uses(self._values) if self._table.uses else abi.USES_ANSWER
        if self._uses & ~(abi.USES_ANSWER | abi.MAY_USE_ANSWER | abi.REFUSES_ROWS):
            raise TareError("verifier %s: uses returns the bits 0x%x; this host knows only 0x7" % (self.name, self._uses), 80)
        self._call("create", self._table.create, c.byref(self._host), self._values, c.byref(self._self))
        self._made, self._tickets = True, 0

    @property
    def uses_answer(self):
        """True if it compares with the row's answer, with these parameters. None: a program of the
        user decides (python, command).
        """
        return True if self._uses & abi.USES_ANSWER else None if self._uses & abi.MAY_USE_ANSWER else False

    def _answer(self, answer):
        if answer is None and self.uses_answer:
            raise TareError("verifier %s compares with the answer, which is missing" % self.name, 10)
        return "" if answer is None else answer

    def verify(self, completion, answer=None, prompt="", row=None, timeout=0):
        """Verifies one completion. answer: may be left out where the verifier uses none; row: the
        data set's row, a dict; timeout: seconds, passed to the plugin as its deadline; 0: none.
        """
        answer = self._answer(answer)
        asked = _Asked(self, completion, answer, prompt, row, timeout)
        answers, verdicts = (c.POINTER(abi.Answer) * 1)(c.pointer(asked.given)), (c.POINTER(abi.Verdict) * 1)(c.pointer(asked.out))
        self._call("verify", self._table.verify, self._self, answers, verdicts, 1)
        return self._taken(asked)

    @property
    def waits(self):
        """True if it verifies several answers at a time, because it waits for an external service."""
        return bool(self._table.submit and self._table.poll and self._table.cancel)

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
        """Waits for the first of them; returns the tickets with a verdict."""
        n, now = len(under_way), time.monotonic_ns()
        wait = min([LOOK_NS] + [a.deadline + GRACE_NS - now for _, a in under_way.values() if a.deadline])
        tickets, done = (c.c_int64 * n)(*under_way), (c.c_uint8 * n)()
        verdicts = (c.POINTER(abi.Verdict) * n)(*[c.pointer(a.out) for _, a in under_way.values()])
        waiting = abi.Waiting(c.sizeof(abi.Waiting), 0, n, tickets, verdicts, done, max(wait, 0))
        try:
            self._call("poll", self._table.poll, self._self, c.byref(waiting))
        except TareError:
            for k in range(n):
                if done[k]:
                    under_way.pop(tickets[k])  # the plugin has forgotten it
            raise
        if any(state not in (abi.TICKET_OPEN, abi.TICKET_JUDGED) for state in done):
            raise TareError("verifier %s: poll: the states of its tickets are %r, and it returned no error" % (self.name, list(done)), 80)
        return [tickets[k] for k in range(n) if done[k]]

    def _taken(self, asked):
        out = asked.out
        if out.code not in abi.VERDICTS or not math.isfinite(out.reward) or not 0 <= out.size <= out.capacity:
            raise TareError("verifier %s: verify: code %d, reward %r, %d bytes extracted" % (self.name, out.code, out.reward, out.size), 80)
        return Verdict(abi.VERDICTS[out.code], out.reward, asked.buffer.raw[: out.size].decode(errors="replace"),
                       out.reason.decode(errors="replace") if out.reason else None, self._segments(out, asked.given.completion.size))

    def _segments(self, out, size):
        if not 0 <= out.n_segments <= out.segment_capacity:
            raise TareError("verifier %s: verify: %d segments in a buffer of %d" % (self.name, out.n_segments, out.segment_capacity), 80)
        got = [(out.segment[k].end, out.segment[k].reward) for k in range(out.n_segments)]
        ends = [0] + [end for end, _ in got]
        if any(a >= b for a, b in zip(ends, ends[1:])) or ends[-1] > size or not all(math.isfinite(reward) for _, reward in got):
            raise TareError("verifier %s: verify: the segments %r do not fit a completion of %d bytes" % (self.name, got, size), 80)
        return got
