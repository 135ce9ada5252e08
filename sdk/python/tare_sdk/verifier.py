"""Verifiers: completions to verdicts (tare/verifier.h)."""

import ctypes as c
import json
import math
import time
from dataclasses import dataclass, field
from typing import Optional

from . import abi
from .plugin import Opened, TareError


SEGMENTS = 256  # at most, as in the engine


@dataclass
class Verdict:
    verdict: str
    reward: float
    extracted: str
    reason: Optional[str]
    segments: list = field(default_factory=list)  # (end in bytes of the completion's UTF-8, reward), where the verifier gives some


def _text(value):
    data = value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")
    return abi.Text(data, len(data))


class Verifier(Opened):
    """An instance; calls from one thread at a time. Parameters by keyword, checked against the plugin's table."""

    kind = abi.VERIFIER
    table_type = abi.VerifierTable
    required = ("create", "destroy", "verify")
    known_flags = abi.JUDGES_TOGETHER | abi.GIVES_SEGMENTS  # together: one answer at a time is all there is

    def __init__(self, name, **parameters):
        super().__init__(name, **parameters)
        self._call("create", self._table.create, c.byref(self._host), self._values, c.byref(self._self))
        self._made = True

    def verify(self, completion, answer, prompt="", row=None, timeout=0):
        """row: the data set's row, a dict; timeout: seconds, handed to the plugin as its deadline; 0: none."""
        deadline = time.monotonic_ns() + int(timeout * 1e9) if timeout else 0
        given = abi.Answer(c.sizeof(abi.Answer), 0, _text(prompt), _text(completion), _text(answer),
                           _text(json.dumps(row)) if row is not None else abi.Text(), deadline, finish=-1)
        room = c.create_string_buffer(4096)
        parts = (abi.Segment * SEGMENTS)() if self._table.flags & abi.GIVES_SEGMENTS else None
        out = abi.Verdict(c.sizeof(abi.Verdict), 0, math.nan, c.addressof(room), len(room), 0, None, parts, SEGMENTS if parts else 0, 0)
        answers, verdicts = (c.POINTER(abi.Answer) * 1)(c.pointer(given)), (c.POINTER(abi.Verdict) * 1)(c.pointer(out))
        self._call("verify", self._table.verify, self._self, answers, verdicts, 1)
        if out.code not in abi.VERDICTS or not math.isfinite(out.reward) or not 0 <= out.size <= out.capacity:
            raise TareError("verifier %s: verify: code %d, reward %r, %d bytes extracted" % (self.name, out.code, out.reward, out.size), 80)
        return Verdict(abi.VERDICTS[out.code], out.reward, room.raw[: out.size].decode(errors="replace"),
                       out.reason.decode(errors="replace") if out.reason else None, self._segments(out, given.completion.size))

    def _segments(self, out, size):
        if not 0 <= out.n_segments <= out.segment_capacity:
            raise TareError("verifier %s: verify: %d segments in a buffer of %d" % (self.name, out.n_segments, out.segment_capacity), 80)
        got = [(out.segment[k].end, out.segment[k].reward) for k in range(out.n_segments)]
        ends = [0] + [end for end, _ in got]
        if any(a >= b for a, b in zip(ends, ends[1:])) or ends[-1] > size or not all(math.isfinite(reward) for _, reward in got):
            raise TareError("verifier %s: verify: the segments %r do not fit a completion of %d bytes" % (self.name, got, size), 80)
        return got
