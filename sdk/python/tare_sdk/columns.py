"""Columns by name, flat: one array for all groups. Made from lists, or from NumPy arrays without a
loop in Python where NumPy is installed.

The names are those of the engine (core/plugin/columns.h). Where a name has a dot, its keyword has
an underscore: component_verdict= is the column "component.verdict".
"""

import ctypes as c
import json
import math
from collections import namedtuple
from itertools import accumulate

from . import abi
from .abi import AXIS_GROUP, AXIS_ONE, AXIS_ROLLOUT, AXIS_ROW, AXIS_TOKEN, AXIS_TURN, F32, F64, I32, I64, TEXT, U8
from .errors import TareError

try:
    import numpy
except ImportError:
    numpy = None

TYPES = {U8: abi.u8, I32: abi.i32, I64: abi.i64, abi.U64: abi.u64, F32: abi.f32, F64: abi.f64, TEXT: abi.Text}

# (kind, name, axis): (type, width); width 0: the number of reward components
REGISTRY = {(kind, name, axis): (type_, width) for kind, columns in {
    abi.KIND_ESTIMATOR: (
        ("component.name", AXIS_ONE, TEXT, 0), ("cluster", AXIS_GROUP, I32, 1), ("row.json", AXIS_GROUP, TEXT, 1),
        ("component", AXIS_ROLLOUT, F64, 0), ("component.verdict", AXIS_ROLLOUT, I32, 0), ("verdict", AXIS_ROLLOUT, I32, 1),
        ("finish", AXIS_ROLLOUT, U8, 1), ("completion", AXIS_ROLLOUT, TEXT, 1), ("off_policy", AXIS_ROLLOUT, U8, 1),
        ("policy_version", AXIS_ROLLOUT, I64, 1), ("turn.reward", AXIS_TURN, F64, 1), ("turn.state", AXIS_TURN, I64, 1),
        ("turn.finish", AXIS_TURN, U8, 1), ("turn.calls", AXIS_TURN, I32, 1), ("turn.unparsed", AXIS_TURN, I32, 1), ("token", AXIS_TOKEN, I32, 1),
        ("logprob", AXIS_TOKEN, F32, 1), ("entropy", AXIS_TOKEN, F32, 1), ("ref_logprob", AXIS_TOKEN, F32, 1),
        ("updated_logprob", AXIS_TOKEN, F32, 1), ("segment", AXIS_TOKEN, I32, 1), ("segment_reward", AXIS_TOKEN, F64, 1)),
    abi.KIND_OBJECTIVE: (
        ("sampler_logprob", AXIS_TOKEN, F32, 1), ("ref_logprob", AXIS_TOKEN, F32, 1), ("kl", AXIS_TOKEN, F32, 1), ("off_policy", AXIS_TOKEN, U8, 1),
        ("turn", AXIS_TOKEN, I32, 1)),
    abi.KIND_CURRICULUM: (
        ("row.index", AXIS_GROUP, I64, 1), ("verdict", AXIS_ROLLOUT, I32, 1), ("finish", AXIS_ROLLOUT, U8, 1), ("fate", AXIS_ROLLOUT, U8, 1)),
}.items() for name, axis, type_, width in columns}
ROW_FIELDS = {(abi.KIND_ESTIMATOR, AXIS_GROUP), (abi.KIND_CURRICULUM, AXIS_GROUP), (abi.KIND_CURRICULUM, AXIS_ROW)}

Column = namedtuple("Column", "name axis type width required field")  # field: KEY of "row.KEY", or None


def keyword(name):
    return name.replace(".", "_")


# keyword: axis, of the columns and members of a tare_batch
AXES = {keyword(name): axis for kind, name, axis in REGISTRY if kind != abi.KIND_OBJECTIVE} | {"prompt_uid": AXIS_GROUP, "sampled": AXIS_TOKEN, "turns": AXIS_ROLLOUT}
CODES = {name: code for code, name in abi.VERDICTS.items()} | {"crashed": 6, None: 0}
NAMES = {"verdict": CODES, "component_verdict": CODES, "finish": abi.FINISH, "turn_finish": abi.FINISH,
         "fate": {name: code for code, name in enumerate(abi.FATES)}}
UNJUDGED = 5, 6  # timeout, crashed


def check_wants(who, kind, wants):
    """Returns a Column for each want, None for an optional one that this host does not have."""
    columns, seen = [], set()
    for w in wants:
        if not w.name:
            raise TareError("%s: a want has no name" % who, 80)
        name, required = w.name.decode(), not w.flags & abi.WANT_OPTIONAL
        if (name, w.axis) in seen:
            raise TareError("%s: wants the column %s twice" % (who, name), 80)
        seen.add((name, w.axis))
        found = REGISTRY.get((kind, name, w.axis))
        field = name[4:] if not found and name.startswith("row.") and name[4:] and (kind, w.axis) in ROW_FIELDS else None
        type_, width = (F64, 1) if field else found or (None, 1)
        if type_ is None and not required:
            columns.append(None)
            continue
        if type_ is None:
            raise TareError("%s: wants the column %s, which this host does not have on that axis; update tare_sdk" % (who, name), 40)
        if w.type != type_ or (w.width and width and w.width != width):
            raise TareError("%s: wants the column %s with type %d and width %d; it has type %d and width %d" % (who, name, w.type, w.width, type_, width), 80)
        columns.append(Column(name, w.axis, type_, 1 if width else w.width, required, field))
    return columns


# ---------------------------------------------------------------- arrays


def fresh(type_, n, fill=0):
    """Makes a writable array, and returns it with its pointer."""
    if numpy:
        array = numpy.full(n, fill, dtype=type_)
        return array, c.cast(array.ctypes.data, c.POINTER(type_))
    array = (type_ * max(n, 1))(*([fill] * n))
    return array, c.cast(array, c.POINTER(type_))


def plain(array, n):
    """Converts a result of fresh() to a NumPy array or a list."""
    return array if numpy else array[:n]


def finite(values):
    return bool(numpy.isfinite(values).all()) if numpy and not isinstance(values, list) else all(map(math.isfinite, values))


def fixed(type_, values):
    """Copies numbers; returns what keeps them alive, a pointer, and their number."""
    if numpy:
        if type_ is abi.u64 and not isinstance(values, numpy.ndarray):
            values = [int(u) & (2**64 - 1) for u in values]
        array = numpy.ascontiguousarray(values, dtype=type_).reshape(-1)
        return array, c.cast(array.ctypes.data, c.POINTER(type_)), len(array)
    number = float if type_ in (abi.f32, abi.f64) else lambda x: int(x) & (2**64 - 1) if type_ is abi.u64 else int(x)
    values = [number(x) for x in values]
    array = (type_ * max(len(values), 1))(*values)
    return array, c.cast(array, c.POINTER(type_)), len(values)


def texts(values):
    """The same for texts: str, bytes, or values that JSON can represent."""
    data = [v if isinstance(v, bytes) else (v if isinstance(v, str) else json.dumps(v, ensure_ascii=False)).encode("utf-8", "surrogatepass")
            for v in values]
    array = (abi.Text * max(len(data), 1))(*[abi.Text(d, len(d)) for d in data])
    return (array, data), c.cast(array, c.POINTER(abi.Text)), len(data)


def _wide(who, name, rows):
    """Returns the numbers of an array of rows in one row, and the width."""
    if numpy and isinstance(rows, numpy.ndarray) and rows.ndim == 2:
        return rows.reshape(-1), rows.shape[1]
    rows = [list(row) for row in rows]
    width = len(rows[0]) if rows else 0
    if any(len(row) != width for row in rows):
        raise TareError("%s: %s need one row a rollout, all of one length" % (who, name), 13)
    return [x for row in rows for x in row], width


def _field(who, key, rows):
    """Reads a field of rows as numbers. A row: a dictionary, or the text of a JSON object."""
    numbers = []
    for m, row in enumerate(rows):
        row = json.loads(row) if isinstance(row, (str, bytes)) else row or {}
        value = row.get(key)
        if value is not None and not isinstance(value, (bool, int, float)) and not (numpy and isinstance(value, (numpy.number, numpy.bool_))):
            raise TareError("%s: row %d: '%s' is %r; it is read as a number: give a number, True or False, or leave it out" % (who, m, key, value), 10)
        numbers.append(math.nan if value is None else float(value))
    return numbers


def _coded(name, values):
    """Converts names of verdicts, fates and ends to their codes."""
    table = NAMES.get(name)
    if table is None or (numpy and isinstance(values, numpy.ndarray) and values.dtype.kind != "O"):
        return values
    return [table[v] if v in table else v for v in values]


class Views:
    """The column array of a batch, in the order of the plugin's wants. given: columns by keyword,
    flat; counts: entries of each axis. A required column that is missing is an error with its
    name. Columns of an axis without a count, and those named in absent, are left out.
    """

    def __init__(self, plugin, given, counts, absent=()):
        self.who, self._keep, self._counts, self._width = plugin.name, [], counts, None
        self.array = (abi.Column * max(len(plugin._columns), 1))()
        for out, column in zip(self.array, plugin._columns):
            if column and column.axis in counts and column.name not in absent:
                self._fill(out, column, given)

    def _fill(self, out, column, given):
        name = "row_json" if column.field else keyword(column.name)
        values, n = given.get(name), self._counts[column.axis]
        if values is None:
            if column.required:
                raise TareError("%s: wants the column %s, one entry for each %s (%s=)" % (self.who, column.name, abi.AXES[column.axis], name), 13)
            return
        width = 1
        if column.field:
            values = _field(self.who, column.field, values)
        elif column.width != 1 and column.axis != AXIS_ONE:
            values, width = _wide(self.who, name, values)
        elif column.axis == AXIS_ONE:
            width = len(values)
        if width != 1 or column.width != 1:
            self._check_width(name, column, width)
        try:
            values = _coded(name, values)
            kept, pointer, entries = texts(values) if column.type == TEXT else fixed(TYPES[column.type], values)
        except (TypeError, ValueError, OverflowError) as error:
            raise TareError("%s: %s: %s" % (self.who, name, error), 10) from None
        if entries != n * width:
            raise TareError("%s: %s: %d entries where %d are needed, one for each %s" % (self.who, name, entries, n * width, abi.AXES[column.axis]), 13)
        self._keep.append(kept)
        out.data, out.n, out.width = c.cast(pointer, c.c_void_p), n, width

    def _check_width(self, name, column, width):
        if self._counts.get(AXIS_ROLLOUT) == 0 and column.axis == AXIS_ROLLOUT:
            return
        if column.width not in (0, width) or self._width not in (None, width):
            raise TareError("%s: %s has %d entries a rollout, and there are %d components" % (self.who, name, width, column.width or self._width), 13)
        self._width = width


# ---------------------------------------------------------------- batches


def judged(reward, sizes, lengths, columns):
    """Removes the rollouts without a verdict, whose reward means nothing, as the engine does.
    Returns None where there are none, else (reward, sizes, lengths, columns, indices of the
    remaining entries by axis, numbers of all entries by axis).
    """
    n = len(reward)
    keep = [True] * n
    for name in ("verdict", "component_verdict"):
        values = columns.get(name)
        for i, value in enumerate([] if values is None else values):
            codes = value if name == "component_verdict" else [value]
            if i < n and any((CODES.get(code, 0) if isinstance(code, str) else code) in UNJUDGED for code in codes):
                keep[i] = False
    if all(keep):
        return None
    sizes = [sizes] * (n // sizes) if isinstance(sizes, int) else list(sizes)
    lengths = [1] * n if lengths is None else [int(x) for x in lengths]
    begin, tokens, turns, sampled = [0, *accumulate(sizes)], [0, *accumulate(lengths)], columns.get("turns"), columns.get("sampled")
    if turns is None:
        turns = [(None,)] * n if sampled is None else [_runs(sampled[s:e]) for s, e in zip(tokens, tokens[1:])]
    acts = [0, *accumulate(map(len, turns))]
    rollouts = [i for i in range(n) if keep[i]]
    groups = [m for m in range(len(sizes)) if any(keep[begin[m]:begin[m + 1]])]
    places = {AXIS_GROUP: groups, AXIS_ROLLOUT: rollouts, AXIS_TOKEN: [t for i in rollouts for t in range(tokens[i], tokens[i + 1])],
              AXIS_TURN: [t for i in rollouts for t in range(acts[i], acts[i + 1])]}
    full = {AXIS_GROUP: len(sizes), AXIS_ROLLOUT: n, AXIS_TOKEN: tokens[-1], AXIS_TURN: acts[-1]}
    chosen = {}
    for name, values in columns.items():
        axis = AXES.get(name)
        fits = values is not None and axis in full and len(values) == full[axis]
        chosen[name] = [values[i] for i in places[axis]] if fits else values
    return ([reward[i] for i in rollouts], [sum(keep[begin[m]:begin[m + 1]]) for m in groups], [lengths[i] for i in rollouts], chosen, places, full)


def _runs(sampled):
    """Returns the turns of a rollout: the runs of sampled tokens, as (begin, end)."""
    runs, start = [], None
    for t, one in enumerate([*sampled, 0]):
        if one and start is None:
            start = t
        elif not one and start is not None:
            runs.append((start, t))
            start = None
    return runs or [(0, 0)]


class Batch:
    """Makes a tare_batch that keeps its arrays alive. reward: [N]; sizes: rollouts of each group, or
    one number for all; lengths: tokens of each rollout, context included, 1 without it; sampled: [T],
    1 for tokens of the policy, 0 for context; turns: for each rollout a list of (first sampled
    token, token after the last), without it the runs of sampled tokens. Without both a rollout is one
    turn, all sampled. absent: columns that are not known yet. The others by the keywords of AXES, flat.
    """

    def __init__(self, plugin, step, reward, sizes, lengths=None, sampled=None, turns=None, absent=(), **given):
        self.who, self._keep = plugin.name, []
        unknown = [name for name in given if name not in AXES]
        if unknown:
            raise TypeError("%s: there is no column %s; there are %s" % (self.who, unknown[0], ", ".join(["lengths", *AXES])))
        reward, pointer, n = fixed(abi.f64, reward)
        self.sizes = self._sizes(sizes, n)
        if not finite(plain(reward, n)) or (self.sizes and min(self.sizes) < 1):
            raise TareError("%s: every group needs rollouts, and every reward must be finite" % self.who, 61)
        lengths = [1] * n if lengths is None else [int(x) for x in lengths]
        if len(lengths) != n or (n and min(lengths) < 0):
            raise TareError("%s: lengths need one entry a rollout, none below 0; here are %d for %d" % (self.who, len(lengths), n), 13)
        self.raw = b = abi.sized(abi.Batch, step=step, n_groups=len(self.sizes), n_rollouts=n, n_tokens=sum(lengths))
        self._keep.append(reward)
        b.reward = pointer
        self._begin("group_begin", self.sizes)
        begin = self._begin("token_begin", lengths)
        turns = self._turns(begin, lengths, sampled, turns)
        single = b.n_turns == n
        self._defaults(given, reward, n, single)
        self._set("prompt_uid", abi.u64, given["prompt_uid"], b.n_groups)
        counts = {AXIS_ONE: 1, AXIS_GROUP: b.n_groups, AXIS_ROLLOUT: n, AXIS_TURN: b.n_turns, AXIS_TOKEN: b.n_tokens}
        self._views = Views(plugin, given, counts, absent)
        b.column = self._views.array

    def _sizes(self, sizes, n):
        if isinstance(sizes, int):
            if sizes < 1 or n % sizes:
                raise TareError("%s: %d rewards are no groups of %d" % (self.who, n, sizes), 13)
            return [sizes] * (n // sizes)
        sizes = [int(s) for s in sizes]
        if sum(sizes) != n:
            raise TareError("%s: groups of %d rollouts in all, and %d rewards" % (self.who, sum(sizes), n), 13)
        return sizes

    def _set(self, member, type_, values, n):
        kept, pointer, entries = fixed(type_, values)
        if entries != n:
            raise TareError("%s: %s: %d entries where %d are needed" % (self.who, member, entries, n), 13)
        self._keep.append(kept)
        setattr(self.raw, member, pointer)

    def _begin(self, member, sizes):
        begin = [0, *accumulate(sizes)]
        self._set(member, abi.i64, begin, len(begin))
        return begin

    def _turns(self, begin, lengths, sampled, turns):
        """Sets the members of turns and of sampled tokens."""
        b, self.context = self.raw, ()
        if sampled is None and turns is None:
            ones, pointer = fresh(abi.u8, b.n_tokens, 1)
            self._keep.append(ones)
            b.sampled, b.n_turns = pointer, b.n_rollouts
            acts = [[(0, n)] for n in lengths]
            self._set("length", abi.i64, lengths, b.n_rollouts)
        else:
            if turns is None:
                if len(sampled) != b.n_tokens:
                    raise TareError("%s: sampled: %d entries where %d are needed, one for each token" % (self.who, len(sampled), b.n_tokens), 13)
                acts = [_runs(sampled[s:e]) for s, e in zip(begin, begin[1:])]
            else:
                acts = self._checked(turns, lengths)
            if sampled is None:
                sampled = [int(any(s <= t < e for s, e in rollout)) for rollout, n in zip(acts, lengths) for t in range(n)]
            sampled = [int(bool(x)) for x in sampled]
            self.context = [t for t, one in enumerate(sampled) if not one]
            self._set("sampled", abi.u8, sampled, b.n_tokens)
            self._set("length", abi.i64, [sum(sampled[s:e]) for s, e in zip(begin, begin[1:])], b.n_rollouts)
            b.n_turns = sum(map(len, acts))
        self._begin("turn_begin", map(len, acts))
        for member, side in (("act_begin", 0), ("act_end", 1)):
            self._set(member, abi.i64, [start + act[side] for start, rollout in zip(begin, acts) for act in rollout], b.n_turns)

    def _checked(self, turns, lengths):
        turns = [[(int(s), int(e)) for s, e in rollout] for rollout in turns]
        for i, (rollout, length) in enumerate(zip(turns, lengths)):
            marks = [0, *(x for turn in rollout for x in turn), length]
            if not rollout or any(a > b for a, b in zip(marks, marks[1:])):
                raise TareError("%s: turns: those of rollout %d are %r; its %d tokens need at least one (begin, end), in order"
                                % (self.who, i, rollout, length), 13)
        if len(turns) != len(lengths):
            raise TareError("%s: turns: %d lists for %d rollouts" % (self.who, len(turns), len(lengths)), 13)
        return turns

    def _defaults(self, given, reward, n, single):
        """Fills columns that follow from others."""
        def default(name, values):
            if given.get(name) is None:
                given[name] = values

        default("prompt_uid", list(range(len(self.sizes))))
        default("verdict", numpy.where(reward > 0, 1, 2) if numpy else [1 if r > 0 else 2 for r in reward[:n]])
        default("off_policy", [0] * n)
        if single:
            default("turn_reward", reward[:n])
            default("turn_finish", given.get("finish"))
            default("turn_state", [-1] * n)
            default("turn_calls", [0] * n)
            default("turn_unparsed", [0] * n)
