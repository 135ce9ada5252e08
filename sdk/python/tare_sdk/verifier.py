"""Verifiers: completions to verdicts (tare/verifier.h)."""

import ctypes as c
import json
import math
import time
from dataclasses import dataclass
from typing import Optional

from . import abi
from .plugin import Opened, TareError


@dataclass
class Verdict:
    verdict: str
    reward: float
    extracted: str
    reason: Optional[str]


def _text(value):
    data = value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")
    return abi.Text(data, len(data))


class Verifier(Opened):
    """An instance; calls from one thread at a time. Parameters by keyword, checked against the plugin's table."""

    kind = abi.VERIFIER
    table_type = abi.VerifierTable
    required = ("create", "destroy", "verify")
    known_flags = 1  # TARE_JUDGES_TOGETHER: one answer at a time is all there is

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
        out = abi.Verdict(c.sizeof(abi.Verdict), 0, math.nan, c.addressof(room), len(room), 0, None)
        answers, verdicts = (c.POINTER(abi.Answer) * 1)(c.pointer(given)), (c.POINTER(abi.Verdict) * 1)(c.pointer(out))
        self._call("verify", self._table.verify, self._self, answers, verdicts, 1)
        if out.code not in abi.VERDICTS or not math.isfinite(out.reward) or not 0 <= out.size <= out.capacity:
            raise TareError("verifier %s: verify: code %d, reward %r, %d bytes extracted" % (self.name, out.code, out.reward, out.size), 80)
        return Verdict(abi.VERDICTS[out.code], out.reward, room.raw[: out.size].decode(errors="replace"),
                       out.reason.decode(errors="replace") if out.reason else None)
