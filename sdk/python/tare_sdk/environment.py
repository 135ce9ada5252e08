"""Environments answer the policy's turns (tare/draft/environment.h). The kind is a draft."""

import ctypes as c
import json
import math
from dataclasses import dataclass, field

from . import abi
from .errors import TareError
from .plugin import Opened


@dataclass
class Observation:
    """The answer of reset and step. messages: dicts of role, text, name, call_id."""

    messages: list = field(default_factory=list)
    end: str = "running"
    reward: float = 0.0
    verdict: str = None
    state_key: str = ""
    tools: list = None
    stop: list = field(default_factory=list)
    note: str = ""


class _Answer:
    """A tare_observation and the buffers for its texts."""

    def __init__(self, environment, reset):
        self._who, self._keep, self._texts, self._messages = environment.name, [], {}, []
        self._say = abi.SAY(self._added)
        members = {}
        for name in ("state_key", "note") + (("tools", "stop") if reset else ()):
            stream, self._texts[name] = environment._stream()
            self._keep.append(stream)
            members[name] = c.pointer(stream)
        self.raw = abi.sized(abi.Observation, say=self._say, **members)

    def _added(self, _ctx, address):
        message = abi.copied_sized(abi.Message, address)
        if not abi.knows(message, "parts") or message.role not in abi.ROLES or message.parts.size:
            return 80
        self._messages.append({"role": abi.ROLES[message.role], **{name: getattr(message, name).read().decode(errors="replace")
                                                                  for name in ("text", "name", "call_id")}})
        return 0

    def taken(self):
        raw = self.raw
        if not 0 <= raw.end < len(abi.EPISODE_ENDS) or not math.isfinite(raw.reward) or raw.verdict not in (0, *abi.VERDICTS) or raw.flags:
            raise TareError("environment %s: an observation with end %d, reward %r, verdict %d and flags 0x%x"
                            % (self._who, raw.end, raw.reward, raw.verdict, raw.flags), 80)
        said = {name: bytes(text["out"]).decode(errors="replace") for name, text in self._texts.items()}
        return Observation(self._messages, abi.EPISODE_ENDS[raw.end], raw.reward, abi.VERDICTS.get(raw.verdict), said["state_key"],
                           json.loads(said["tools"]) if said.get("tools") else None, said.get("stop", "").splitlines(), said["note"])


class Session:
    """A session of an environment: any number of episodes, one after another."""

    def __init__(self, environment):
        self._environment, self._session, self._turn = environment, abi.SELF(), 0
        environment._call("open", environment._table.open, environment._self, c.byref(self._session))

    def reset(self, row=None, messages=(), prompt_uid=0, group=0, index=0, seed=0, noise=0, max_turns=0, max_tokens=0):
        """Begins an episode. seed: of the task; noise: of the rollout; whole numbers of 128 bits."""
        e, answer = self._environment, _Answer(self._environment, True)
        words = lambda x: (abi.u64 * 2)(x & 2**64 - 1, x >> 64 & 2**64 - 1)
        episode = abi.sized(abi.Episode, row=abi.text(None if row is None else json.dumps(row)), messages=abi.text(json.dumps(list(messages))),
                            prompt_uid=prompt_uid, group=group, index=index, seed=words(seed), noise=words(noise), max_turns=max_turns,
                            max_tokens=max_tokens)
        self._turn = 0
        e._call("reset", e._table.reset, e._self, self._session, c.byref(episode), c.byref(answer.raw))
        return answer.taken()

    def step(self, text, calls=(), token=(), finish="stop", n_unparsed=0):
        """Answers a turn of the policy. calls: dicts of id, name, arguments (a dict)."""
        e, answer = self._environment, _Answer(self._environment, False)
        made = [abi.sized(abi.Call, id=abi.text(x.get("id", "")), name=abi.text(x["name"]), arguments=abi.text(json.dumps(x.get("arguments", {}))))
                for x in calls]
        act = abi.sized(abi.Act, turn=self._turn, text=abi.text(text), call=(abi.P(abi.Call) * max(len(made), 1))(*map(c.pointer, made)),
                        n_calls=len(made), n_unparsed=n_unparsed, token=(abi.i32 * max(len(token), 1))(*token), n_tokens=len(token),
                        finish=abi.FINISH[finish])
        e._call("step", e._table.step, e._self, (abi.SELF * 1)(self._session), (abi.P(abi.Act) * 1)(c.pointer(act)),
                (abi.P(abi.Observation) * 1)(c.pointer(answer.raw)), 1)
        self._turn += 1
        return answer.taken()

    def save(self):
        """The session's state as the plugin writes it."""
        return self._environment._written("save_session", self._environment._table.save_session, self._environment._self, self._session)

    def load(self, data):
        e = self._environment
        stream, _ = e._stream(data)
        e._call("load_session", e._table.load_session, e._self, self._session, c.byref(stream))

    def suggest(self, draw):
        """A legal act for the session's state, drawn with a whole number of 128 bits."""
        words = (abi.u64 * 2)(draw & 2**64 - 1, draw >> 64 & 2**64 - 1)
        return self._environment._written("suggest", self._environment._table.suggest, self._environment._self, self._session,
                                          words).decode(errors="replace")

    def close(self):
        if self._session is not None:
            self._environment._table.close(self._environment._self, self._session)
            self._session = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Environment(Opened):
    """with environment.session() as s: s.reset(row); s.step(text). Sessions are closed before the environment."""

    kind = abi.KIND_ENVIRONMENT
    table_type = abi.EnvironmentTable
    required = ("open", "close", "reset", "step")

    def session(self):
        return Session(self)

    @property
    def uses(self):
        """The TARE_USES_... bits for these parameters."""
        return self._used_facts(0)

    def card(self):
        """What the environment is, as a dict; {} where it says nothing."""
        return json.loads(self._written("card", self._table.card, self._values) or b"{}")
