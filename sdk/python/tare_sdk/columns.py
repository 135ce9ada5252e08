"""Columns of a step, flat: one array for all groups. Made from lists, or from NumPy arrays without
a loop in Python where NumPy is installed.
"""

import ctypes as c
import json
import math
from itertools import accumulate

from . import abi
from .plugin import TareError

try:
    import numpy
except ImportError:
    numpy = None

GROUP, ROLLOUT, TOKEN = "group", "rollout", "token"

# keyword of step(): (member of tare_batch, type, unit of an entry, need (0: always shown), name in
# messages)
COLUMNS = {
    "cluster": ("cluster", abi.i32, GROUP, 0, "the clusters of the prompts"),
    "uid": ("prompt_uid", abi.u64, GROUP, 0, "the prompts' uids"),
    "verdicts": ("verdict", abi.i32, ROLLOUT, 0, "the verdicts"),
    "components": ("component", abi.f64, ROLLOUT, abi.NEED_COMPONENTS, "the reward's components"),
    "entropy": ("token_entropy", abi.f32, TOKEN, abi.NEED_ENTROPY, "the tokens' entropy"),
    "logprob": ("token_logprob", abi.f32, TOKEN, abi.NEED_LOGPROB, "the tokens' logprobs"),
    "ref_logprob": ("token_ref_logprob", abi.f32, TOKEN, abi.NEED_REF_LOGPROB, "the reference policy's logprobs"),
    "finish": ("finish", abi.u8, ROLLOUT, abi.NEED_FINISH, "how the completions ended (finish)"),
    "rows": ("row", abi.Text, GROUP, abi.NEED_ROW, "the data set's rows"),
    "completions": ("completion", abi.Text, ROLLOUT, abi.NEED_COMPLETION, "the completions' texts"),
    "token_ids": ("token_id", abi.i32, TOKEN, abi.NEED_TOKEN_ID, "the completions' token ids"),
    "component_verdicts": ("component_verdict", abi.i32, ROLLOUT, abi.NEED_VERDICTS, "each verifier's verdicts"),
    "off_policy": ("off_policy", abi.u8, ROLLOUT, abi.NEED_OFF_POLICY, "which rollouts are off-policy"),
    "policy_version": ("policy_version", abi.i64, ROLLOUT, abi.NEED_POLICY_VERSION, "the policy's version"),
    "segments": ("segment", abi.i32, TOKEN, abi.NEED_SEGMENTS, "the segments of a verifier"),
    "segment_rewards": ("segment_reward", abi.f64, TOKEN, abi.NEED_SEGMENTS, "the rewards of a verifier's segments"),
}
WIDE = "components", "component_verdicts"  # an entry is a row of them
CODES = {name: code for code, name in abi.VERDICTS.items()} | {"crashed": 6, None: 0}


def shown(name, needs):
    """True if an estimator with these needs sees the column."""
    need = COLUMNS[name][3]
    return not need or bool(needs & need) or (name == "logprob" and bool(needs & abi.WANTS_LOGPROB))


def fresh(type_, n, fill=0):
    """Makes a writable array, and returns it with its pointer."""
    if numpy:
        array = numpy.full(n, fill, dtype=type_)
        return array, c.cast(array.ctypes.data, c.POINTER(type_))
    array = (type_ * max(n, 1))(*([fill] * n))
    return array, array


def plain(array, n):
    """Converts a result of fresh() to a NumPy array or a list."""
    return array if numpy else array[:n]


def finite(values):
    return bool(numpy.isfinite(values).all()) if numpy and not isinstance(values, list) else all(map(math.isfinite, values))


def _fixed(type_, values):
    if numpy:
        if type_ is abi.u64 and not isinstance(values, numpy.ndarray):
            values = [int(u) & (2**64 - 1) for u in values]
        array = numpy.ascontiguousarray(values, dtype=type_).reshape(-1)
        return array, c.cast(array.ctypes.data, c.POINTER(type_)), len(array)
    number = float if type_ in (abi.f32, abi.f64) else lambda x: int(x) & (2**64 - 1) if type_ is abi.u64 else int(x)
    values = [number(x) for x in values]
    array = (type_ * max(len(values), 1))(*values)
    return array, array, len(values)


def _texts(values):
    data = [v if isinstance(v, bytes) else (v if isinstance(v, str) else json.dumps(v, ensure_ascii=False)).encode("utf-8", "surrogatepass")
            for v in values]
    array = (abi.Text * max(len(data), 1))(*[abi.Text(d, len(d)) for d in data])
    return (array, data), array, len(data)


def _numbers(who, fields, rows):
    """Reads the fields of rows that an estimator requests as numbers, row by row. A row: a
    dictionary, or the text of a JSON object.
    """
    numbers = []
    for m, row in enumerate(rows):
        row = json.loads(row) if isinstance(row, (str, bytes)) else row or {}
        for name in fields:
            value = row.get(name)
            if value is not None and not isinstance(value, (bool, int, float)) and not (numpy and isinstance(value, (numpy.number, numpy.bool_))):
                raise TareError("%s: row %d: '%s' is %r; it is read as a number: give a number, True or False, or leave it out" % (who, m, name, value), 10)
            numbers.append(math.nan if value is None else float(value))
    return numbers


def _coded(name, values):
    """Converts names of verdicts and finish reasons to their codes."""
    table = CODES if name in ("verdicts", "component_verdicts") else abi.FINISH if name == "finish" else None
    if table is None or (numpy and isinstance(values, numpy.ndarray) and values.dtype.kind != "O"):
        return values
    return [table[v] if v in table else v for v in values]


UNJUDGED = 5, 6  # timeout, crashed


def judged(reward, sizes, lengths, columns):
    """Removes the rollouts without a verdict, whose reward means nothing, as the engine does.
    Returns None where there are none, else (reward, sizes, lengths, columns, indices of the
    rollouts, of the groups, of the tokens) of the remaining ones.
    """
    n = len(reward)
    keep = [True] * n
    for name in ("verdicts", "component_verdicts"):
        values = columns.get(name)
        for i, value in enumerate([] if values is None else values):
            codes = value if name in WIDE else [value]
            if i < n and any((CODES.get(code, 0) if isinstance(code, str) else code) in UNJUDGED for code in codes):
                keep[i] = False
    if all(keep):
        return None
    sizes = [sizes] * (n // sizes) if isinstance(sizes, int) else list(sizes)
    lengths = [1] * n if lengths is None else [int(x) for x in lengths]
    begin, starts = [0, *accumulate(sizes)], [0, *accumulate(lengths)]
    rollouts = [i for i in range(n) if keep[i]]
    groups = [m for m in range(len(sizes)) if any(keep[begin[m]:begin[m + 1]])]
    tokens = [t for i in rollouts for t in range(starts[i], starts[i + 1])]
    places = {GROUP: groups, ROLLOUT: rollouts, TOKEN: tokens}
    full = {GROUP: len(sizes), ROLLOUT: n, TOKEN: starts[-1]}
    chosen = {}
    for name, values in columns.items():
        fits = values is not None and name in COLUMNS and len(values) == full[COLUMNS[name][2]]
        chosen[name] = [values[i] for i in places[COLUMNS[name][2]]] if fits else values
    return ([reward[i] for i in rollouts], [sum(keep[begin[m]:begin[m + 1]]) for m in groups], [lengths[i] for i in rollouts], chosen,
            rollouts, groups, tokens, full)


class Columns:
    """Makes a tare_batch that keeps its arrays alive. reward: [N]; sizes: rollouts of each group,
    or one number for all; lengths: tokens of each rollout, 1 without it; the others by the names
    of COLUMNS, flat. fields: names that the estimator reads of the rows. A needed column that is
    missing is an error with its name.
    """

    def __init__(self, who, needs, n_clusters, step, reward, sizes, lengths=None, fields=(), **given):
        self.who, self._keep = who, []
        unknown = [name for name in given if name not in COLUMNS]
        if unknown:
            raise TypeError("%s: there is no column %s; there are %s" % (who, unknown[0], ", ".join(["lengths", *COLUMNS])))
        reward, pointer, n = _fixed(abi.f64, reward)
        self.sizes = self._sizes(sizes, n)
        self.lengths = None if lengths is None else [int(x) for x in lengths]
        self.batch = abi.Batch(struct_size=c.sizeof(abi.Batch), step=step, n_groups=len(self.sizes), n_rollouts=n, n_clusters=n_clusters)
        if not finite(plain(reward, n)) or (self.sizes and min(self.sizes) < 1):
            raise TareError("%s: every group needs rollouts, and every reward must be finite" % who, 61)
        self._keep.append(reward)
        self.batch.reward = pointer
        self._begin("group_begin", self.sizes)
        if lengths is None:
            self.lengths = [1] * n
        if len(self.lengths) != n or (n and min(self.lengths) < 0):
            raise TareError("%s: lengths need one entry a rollout, none below 0; here are %d for %d" % (who, len(self.lengths), n), 13)
        self.batch.n_tokens = self._begin("token_begin", self.lengths)
        self._defaults(given, needs, reward, n)
        for name, values in given.items():
            if values is not None and shown(name, needs):
                self._column(name, values)
        self._missing(given, needs)
        self._fields(fields, given.get("rows"))
        self._clusters(n_clusters)

    def _sizes(self, sizes, n):
        if isinstance(sizes, int):
            if sizes < 1 or n % sizes:
                raise TareError("%s: %d rewards are no groups of %d" % (self.who, n, sizes), 13)
            return [sizes] * (n // sizes)
        sizes = [int(s) for s in sizes]
        if sum(sizes) != n:
            raise TareError("%s: groups of %d rollouts in all, and %d rewards" % (self.who, sum(sizes), n), 13)
        return sizes

    def _begin(self, member, sizes):
        begin, pointer, _ = _fixed(abi.i64, [0, *accumulate(sizes)])
        self._keep.append(begin)
        setattr(self.batch, member, pointer)
        return int(begin[len(sizes)])

    def _defaults(self, given, needs, reward, n):
        groups = len(self.sizes)
        if given.get("cluster") is None and not needs & abi.NEED_CLUSTER:
            given["cluster"] = [-1] * groups
        if given.get("uid") is None:
            given["uid"] = list(range(groups))
        if given.get("verdicts") is None:
            given["verdicts"] = numpy.where(reward > 0, 1, 2) if numpy else [1 if r > 0 else 2 for r in reward[:n]]
        if given.get("off_policy") is None:
            given["off_policy"] = [0] * n

    def _column(self, name, values):
        member, type_, axis, _, _ = COLUMNS[name]
        if name in WIDE:
            values = self._wide(name, values)
        values = _coded(name, values)
        try:
            kept, pointer, n = _texts(values) if type_ is abi.Text else _fixed(type_, values)
        except (TypeError, ValueError, OverflowError) as error:
            raise TareError("%s: %s: %s" % (self.who, name, error), 10) from None
        want = {GROUP: self.batch.n_groups, ROLLOUT: self.batch.n_rollouts, TOKEN: self.batch.n_tokens}[axis]
        want *= self.batch.n_components if name in WIDE else 1
        if n != want:
            raise TareError("%s: %s: %d entries where %d are needed, one for each %s" % (self.who, name, n, want, axis), 13)
        self._keep.append(kept)
        setattr(self.batch, member, pointer)

    def _wide(self, name, rows):
        if numpy and isinstance(rows, numpy.ndarray) and rows.ndim == 2:
            width, values = rows.shape[1], rows.reshape(-1)
        else:
            rows = [list(row) for row in rows]
            width, values = len(rows[0]) if rows else 0, [x for row in rows for x in row]
            if any(len(row) != width for row in rows):
                raise TareError("%s: %s need one row a rollout, all of one length" % (self.who, name), 13)
        if self.batch.n_components not in (0, width):
            raise TareError("%s: %s has %d entries a rollout, and there are %d components" % (self.who, name, width, self.batch.n_components), 13)
        self.batch.n_components = width
        return values

    def _missing(self, given, needs):
        for name, (_, _, _, need, what) in COLUMNS.items():
            if needs & need and given.get(name) is None:
                raise TareError("%s: needs %s (%s)" % (self.who, what, name), 13)
        if needs & abi.NEED_CLUSTER and given.get("cluster") is None:
            raise TareError("%s: needs the clusters of the prompts (cluster; -1: none)" % self.who, 13)

    def _fields(self, fields, rows):
        if not fields:
            return
        if rows is None or len(rows) != self.batch.n_groups:
            raise TareError("%s: reads '%s' of the data set's rows (rows); give one for each group" % (self.who, fields[0]), 13)
        kept, self.batch.column, _ = _fixed(abi.f64, _numbers(self.who, fields, rows))
        names = (c.c_char_p * len(fields))(*[name.encode() for name in fields])
        self.batch.n_columns, self.batch.column_name = len(fields), names
        self._keep += [kept, names]

    def _clusters(self, n_clusters):
        if any(not -1 <= self.batch.cluster[m] < max(n_clusters, 0) for m in range(self.batch.n_groups)):
            raise TareError("%s: clusters must be in [0, %d), or -1 for none" % (self.who, n_clusters), 13)
