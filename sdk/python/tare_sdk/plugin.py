"""Finding and opening plugins, their parameters, and what the host offers them."""

import ctypes as c
import difflib
import glob
import json
import logging
import math
import os
import re
import shutil
import sysconfig
import time

from . import abi, fenv, frame, philox, program
from .columns import check_wants
from .errors import TareError

log = logging.getLogger("tare")
METRIC_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*(/[A-Za-z0-9_-][A-Za-z0-9_.-]*)*")
FOLDERS = {abi.KIND_ESTIMATOR: "estimators", abi.KIND_VERIFIER: "verifiers", abi.KIND_ENCODER: "clusterers", abi.KIND_CODEBOOK: "clusterers",
           abi.KIND_OBJECTIVE: "objectives", abi.KIND_CURRICULUM: "curricula", abi.KIND_ENVIRONMENT: "environments"}


def find(name, kind):
    """Finds a file, or a name on TARE_PLUGIN_PATH, in this wheel, and in PREFIX/lib/tare of the
    tare on the PATH.
    """
    if os.sep in name or name.endswith(".so"):
        return name
    folders = [f for f in os.environ.get("TARE_PLUGIN_PATH", "").split(":") if f]
    folders.append(program.LIBRARIES)
    tare = shutil.which("tare")
    if tare:
        folder = os.path.dirname(os.path.realpath(tare))
        folders.append(os.path.join(folder, "plugins"))  # a build folder
        prefix = os.path.dirname(folder)
        folders += [os.path.join(prefix, lib, "tare") for lib in ("lib", "lib64", "lib/" + (sysconfig.get_config_var("MULTIARCH") or "none"))]
    sub = FOLDERS[kind]
    for folder in folders:
        for path in (os.path.join(folder, name + ".so"), os.path.join(folder, sub, name + ".so")):
            if os.path.exists(path):
                return path
    names = {os.path.basename(f)[:-3] for folder in folders for f in glob.glob(os.path.join(folder, sub, "*.so"))}
    near = difflib.get_close_matches(name, names, 1)
    raise TareError("no %s named '%s'%s in %s; set TARE_PLUGIN_PATH or give a file"
                    % (abi.KINDS[kind], name, " (did you mean '%s'?)" % near[0] if near else "", ", ".join(folders)))


def _list(pointer):
    """Reads a list of texts that ends with NULL."""
    found = []
    while pointer and pointer[len(found)] is not None:
        found.append(pointer[len(found)].decode())
    return found


class Memory:
    """host->alloc: zeroed, aligned, owned by the instance until release."""

    def __init__(self):
        self.held = {}

    def alloc(self, _ctx, size, align):
        align = max(align, 16)
        if size < 0 or align & (align - 1) or align > 1 << 20:
            return None
        try:
            buffer = c.create_string_buffer(size + align)
        except (MemoryError, OverflowError, ValueError):
            return None
        address = -(-c.addressof(buffer) // align) * align
        self.held[address] = buffer
        return address

    def release(self, _ctx, address):
        self.held.pop(address, None)


class Metrics(dict):
    """The values of a step by name. host->metric adds each value in the way that it names."""

    def __init__(self):
        super().__init__()
        self._counts = {}

    def add(self, name, value, how):
        n = self._counts[name] = self._counts.get(name, 0) + 1
        old = self.get(name, value)
        self[name] = {abi.METRIC_SUM: old + value if n > 1 else value, abi.METRIC_MEAN: old + (value - old) / n,
                      abi.METRIC_MIN: min(old, value), abi.METRIC_MAX: max(old, value)}.get(how, value)

    def clear(self):
        super().clear()
        self._counts.clear()


class Opened:
    """One plugin of a file, with an instance of it: the base class of all kinds. run_seed: the
    run's, for plugins that draw random numbers. instance: its name in the run, which random numbers
    depend on. Parameters by keyword, checked against the plugin's table. Not for several threads.
    """

    kind = None
    table_type = None
    required = ()  # functions that a plugin cannot lack, in addition to create and destroy

    def __init__(self, name, run_seed=0, instance=None, n_clusters=0, loss=None, dataset=None, **parameters):
        self.run_seed, self.n_clusters, self.metrics, self._memory, self._made = run_seed, n_clusters, Metrics(), Memory(), False
        self._misnamed = False
        self._error = abi.sized(abi.Error)
        self.path = os.path.realpath(find(name, self.kind))
        self._host = self._make_host()
        self._choose(self._open())
        self.instance = instance or self.name
        self._values, self.parameters = self._check(parameters)
        self.wants = self._select()
        self._self = abi.SELF()
        self._setup = abi.sized(abi.Setup, host=c.pointer(self._host), values=self._values, instance=self.instance.encode(), n_clusters=n_clusters,
                                loss=loss and c.pointer(loss), dataset=dataset and c.pointer(dataset(self)))
        self._call("create", self._table.create, c.byref(self._setup), c.byref(self._self))
        self._made = True

    # ---------------------------------------------------------------- loading

    def _open(self):
        """Returns the plugins of the file."""
        if not os.path.exists(self.path):
            raise TareError("%s: not there" % self.path)
        try:
            with fenv.kept(self.path):
                self._library = c.CDLL(self.path, mode=os.RTLD_NOW | os.RTLD_LOCAL)
            entry = self._library.tare_plugin_v1
        except (OSError, AttributeError) as error:
            raise TareError("%s: not a plugin of ABI major 1: %s" % (self.path, error)) from None
        entry.restype, entry.argtypes = c.c_void_p, [abi.P(abi.Host), abi.ERROR]
        with fenv.kept(self.path):
            plugin = entry(c.byref(self._host), c.byref(self._error))
        if not plugin:
            raise TareError("%s: refuses to be used: %s" % (self.path, self._error.message.decode(errors="replace")), self._error.code)
        return abi.copied_sized(abi.Plugin, plugin)

    def _refuse(self, message, *arguments, code=80):
        raise TareError("%s: %s" % (self.path, message % arguments), code)

    def _understood(self, what, value, known):
        """Refuses bits in a plugin's struct that this version gives no meaning."""
        if value & ~known:
            self._refuse("unknown flags 0x%x in %s (this host knows 0x%x); update tare_sdk", value & ~known, what, known)

    def _choose(self, plugin):
        """Finds the descriptor of this kind, and copies it and its tables. A descriptor of another
        kind, known or unknown, is passed over.
        """
        kind = abi.KINDS[self.kind]
        if not abi.knows(plugin, "descriptors") or not plugin.descriptors or plugin.n_descriptors > abi.LIMIT_DESCRIPTORS:
            self._refuse("%d descriptors in a tare_plugin of %d bytes", plugin.n_descriptors, plugin.struct_size)
        self._understood("its tare_plugin", plugin.flags, 0)
        every = [abi.copied_sized(abi.Descriptor, address) for address in plugin.descriptors[: plugin.n_descriptors] if address]
        of_kind = [d for d in every if d.kind == self.kind]
        if not of_kind:
            raise TareError("%s: contains no %s" % (self.path, kind))
        for d in of_kind:
            if not abi.knows(d, "extension"):
                self._refuse("a descriptor of %d bytes lacks members of ABI 1.0; set struct_size to sizeof the descriptor", d.struct_size)
            if not (d.name and d.version and d.functions):
                self._refuse("a descriptor has no name, version or function table")
        stem = os.path.splitext(os.path.basename(self.path))[0]
        named = [d for d in of_kind if d.name.decode() == stem]
        if not named and len(of_kind) > 1:
            raise TareError("%s: contains several of its kind" % self.path)
        self._descriptor = d = (named or of_kind)[0]
        self.name, self.version = d.name.decode(), d.version.decode()
        who = "%s %s" % (kind, self.name)
        if d.minor_needed > abi.ABI_MINOR:
            self._refuse("%s: needs ABI 1.%d, this host has 1.%d", who, d.minor_needed, abi.ABI_MINOR, code=32)
        self._understood("the descriptor of " + who, d.flags | d.reserved, 0)
        if d.calls not in abi.CALLS:
            self._refuse("%s: unknown calls %d (TARE_CALLS_...)", who, d.calls)
        self._copy_table(who, d.functions)
        self.table = self._rows(who, abi.Param, d.params, d.n_params, d.param_size, "old_keys", abi.LIMIT_PARAMS)
        for p in self.table:
            if not p.key or not p.doc or (p.type == abi.PARAM_CHOICE and not p.choices):
                self._refuse("%s: a parameter has no key, doc or choices", who)
            self._understood("the parameter %s of %s" % (p.key.decode(), who), p.flags, abi.PARAM_FLAGS)
            if not abi.PARAM_BOOL <= p.type <= abi.PARAM_PATH:
                self._refuse("%s: parameter %s has the unknown type %d", who, p.key.decode(), p.type)
        self._check_names(who)
        self._wants = self._rows(who, abi.Want, d.wants, d.n_wants, d.want_size, "width", abi.LIMIT_WANTS)
        for w in self._wants:
            self._understood("the wanted column %s of %s" % ((w.name or b"?").decode(), who), w.flags, abi.WANT_OPTIONAL)
        self._columns = check_wants("%s: %s" % (self.path, who), self.kind, self._wants)

    def _check_names(self, who):
        """Refuses a name, earlier ones included, that two parameters have."""
        owners = {p.key.decode(): p.key.decode() for p in self.table}
        for p in self.table:
            for old in _list(p.old_keys):
                if old in owners:
                    self._refuse("%s: parameter %s lists %s in old_keys, which is also a name of parameter %s", who, p.key.decode(), old, owners[old])
                owners[old] = p.key.decode()

    def _copy_table(self, who, address):
        self._table = abi.copied_sized(self.table_type, address)
        self._understood("the function table of " + who, self._table.flags, abi.TABLE_FLAGS[self.kind])
        for function in ("create", "destroy") + self.required:
            if not abi.knows(self._table, function) or not getattr(self._table, function):
                self._refuse("%s: the function %s is missing", who, function)

    def _rows(self, who, type_, address, n, stride, last, most):
        """Copies a table of the plugin, whose rows may have another size than this build's."""
        field = getattr(type_, last)
        if n and (not address or stride < field.offset + field.size or n > most):
            self._refuse("%s: a table of %d rows of %d bytes; a %s has %d in ABI 1.0, and %d rows are the most", who, n, stride, type_.__name__.lower(),
                         field.offset + field.size, most)
        return [abi.copied(type_, address + i * stride, stride) for i in range(n)]

    def _select(self):
        """Returns the wanted columns by name: True if required, False if optional."""
        chosen = (abi.u8 * max(len(self._wants), 1))(*[1] * len(self._wants))
        if self._table.select:
            self._call("select", self._table.select, self._values, chosen)
        self._columns = [self._named(column) if column and chosen[i] else None for i, column in enumerate(self._columns)]
        return {column.name: column.required for column in self._columns if column}

    def _named(self, column):
        """Gives "row.$P" the field that the parameter P names; None where it is empty."""
        if not (column.field or "").startswith("$"):
            return column
        field = self.parameters.get(column.field[1:])
        return column._replace(name="row." + field, field=field) if field else None

    def lacks(self, names, owner):
        """Refuses a plugin that requires a column of these names, which `owner` cannot supply."""
        for name in names:
            if self.wants.get(name):
                raise TareError("%s: wants the column %s, which %s does not have" % (self.name, name, owner), 40)

    @property
    def row_fields(self):
        """The wanted fields of the data set's rows, as "row.KEY"."""
        return [column.name for column in self._columns if column and column.field]

    @property
    def reads_rows(self):
        """True if it reads the data set's rows, or fields of them."""
        return "row.json" in self.wants or bool(self.row_fields)

    # ---------------------------------------------------------------- services

    def _make_host(self):
        def say(_ctx, level, message):
            log.log({0: 10, 1: 20, 2: 30}.get(level, 40), "%s: %s", os.path.basename(self.path), self._hide((message or b"").decode(errors="replace")))

        def random(_ctx, stream, counter, out, n):
            if n < 0 or (n and not out):
                return 10
            for i, word in enumerate(philox.words(self.run_seed, self.kind, self.instance, stream, counter, n)):
                out[i] = word
            return 0

        def metric(_ctx, name, value, how):
            text = (name or b"").decode(errors="replace")
            if len(text) <= 63 and METRIC_NAME.fullmatch(text):
                self.metrics.add(self._hide(text), value, how)
            elif not self._misnamed:
                self._misnamed = True
                log.warning("%s: a metric's name must have 1 to 63 letters, digits and characters of \"_.-/\"; the metric %r and others of such "
                            "names are left out", self.name, self._hide(text[:40]))

        return abi.sized(abi.Host, abi_minor=abi.ABI_MINOR, name=b"tare_sdk", version=b"1.0.0", log=abi.LOG(say),
                         alloc=abi.ALLOC(self._memory.alloc), release=abi.RELEASE(self._memory.release), random=abi.RANDOM(random),
                         metric=abi.METRIC(metric), cancelled=abi.CANCELLED(lambda _ctx: 0), now_ns=abi.NOW(lambda _ctx: time.monotonic_ns()),
                         extension=abi.EXTENSION(lambda _ctx, _id: None))

    # ---------------------------------------------------------------- parameters

    def _new_keys(self):
        """Returns {earlier name: name} of the parameters."""
        return {old: p.key.decode() for p in self.table for old in _list(p.old_keys)}

    def _renamed(self, given):
        """Gives earlier names of parameters their new ones."""
        names = self._new_keys()
        for old in [key for key in given if key in names]:
            log.info("%s: the parameter %s is now called %s", self.name, old, names[old])
        return {names.get(key, key): value for key, value in given.items()}

    def _check(self, given):
        keys, given = [p.key.decode() for p in self.table], self._renamed(given)
        for key in given:
            if key not in keys:
                near = difflib.get_close_matches(key, keys, 1)
                raise TareError("%s: unknown parameter %s; %s" % (self.name, key, "did you mean %s?" % near[0] if near else
                                                                  "there are " + ", ".join(keys) if keys else "it has none"), 12)
        values, plain = (abi.Value * max(len(keys), 1))(), {}
        for i, (key, param) in enumerate(zip(keys, self.table)):
            value = given.get(key, param.fallback.decode() if param.fallback is not None else None)
            if value is None:
                raise TareError("%s: %s is missing and has no default: %s" % (self.name, key, param.doc.decode()), 12)
            if key in given and param.flags & abi.PARAM_DEPRECATED:
                log.warning("%s: the parameter %s is deprecated: %s", self.name, key, param.doc.decode())
            plain[key] = self._set(values[i], param, key, value)
        return values, plain

    def _set(self, slot, param, key, value):
        where = "%s: %s" % (self.name, key)
        if param.type == abi.PARAM_BOOL:
            words = {"true": 1, "yes": 1, "on": 1, "1": 1, "false": 0, "no": 0, "off": 0, "0": 0}
            if str(value).lower() not in words:
                raise TareError("%s: '%s' must be true or false" % (where, value), 12)
            slot.i = words[str(value).lower()]
            return bool(slot.i)
        if param.type == abi.PARAM_CHOICE:
            choices = _list(param.choices)
            if value not in choices:
                raise TareError("%s: '%s' is not one of %s" % (where, value, ", ".join(choices)), 12)
            slot.i = choices.index(value)
            return value
        if param.type in (abi.PARAM_STRING, abi.PARAM_PATH):
            slot.s = self._given(where, param, str(value)).encode()
            return str(value)
        return self._set_number(slot, param, where, key, value)

    def _given(self, where, param, value):
        """Returns a text as the plugin gets it: a secret's value, an absolute path."""
        if param.flags & abi.PARAM_SECRET and value:
            if not re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", value):  # perhaps the secret itself, which no message repeats
                raise TareError("%s is a secret: its value must be the name of an environment variable that has the secret, not the secret itself" % where, 12)
            if value not in os.environ:
                raise TareError("%s = %s: names no environment variable; set it to the secret" % (where, value), 12)
            return os.environ[value]
        return os.path.abspath(value) if param.type == abi.PARAM_PATH and value else value

    @staticmethod
    def _set_number(slot, param, where, key, value):
        whole = param.type == abi.PARAM_INT
        try:
            number = int(str(value)) if whole else float(value)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise TareError("%s: '%s' is not a %s" % (where, value, "whole number" if whole else "finite number"), 12)
        above, below = param.flags & abi.PARAM_ABOVE_MIN, param.flags & abi.PARAM_BELOW_MAX
        low = param.flags & abi.PARAM_MIN and (number <= param.min if above else number < param.min)
        high = param.flags & abi.PARAM_MAX and (number >= param.max if below else number > param.max)
        if low or high:
            least = "%g %s " % (param.min, "<" if above else "<=") if param.flags & abi.PARAM_MIN else ""
            most = " %s %g" % ("<" if below else "<=", param.max) if param.flags & abi.PARAM_MAX else ""
            raise TareError("%s: %s is out of range: must be %s%s%s" % (where, value, least, key, most), 12)
        if whole:
            slot.i = number
        else:
            slot.f = number
        return number

    # ---------------------------------------------------------------- calls

    def _call(self, phase, function, *arguments):
        self._error.code, self._error.message = 0, b""
        with fenv.kept():
            status = function(*arguments, c.byref(self._error))
        if status:
            said = self._hide(self._error.message.decode(errors="replace")) or "failed with status %d and no message" % status
            raise TareError("%s %s: %s: %s" % (abi.KINDS[self.kind], self.name, phase, said), status)

    def _sizes(self):
        """Returns the plugin's sizes: 0 without the function."""
        sizes = abi.sized(abi.Sizes)
        if self._table.sizes:
            self._call("sizes", self._table.sizes, self._self, c.byref(sizes))
        if min(sizes.prepare, sizes.collect, sizes.record, sizes.dim, sizes.clusters) < 0:
            raise TareError("%s: sizes: a size is below 0" % self.name, 80)
        return sizes

    def _check_sizes(self):
        """Refuses vectors whose sizes changed: the host's buffers have those that the instance began with."""
        now = self._sizes()
        for name in ("prepare", "collect", "record"):
            if getattr(now, name) != getattr(self._size, name):
                raise TareError("%s %s: sizes: %s is %d after load, but was %d; the sizes of an instance must stay the same" % (
                    abi.KINDS[self.kind], self.name, name, getattr(now, name), getattr(self._size, name)), 80)

    def _stream(self, data=b"", version=0):
        """Returns a stream, and its {"out": what was written, "at": bytes that were read}."""
        state = {"out": bytearray(), "at": 0, "failed": 0}

        def failed(status):
            state["failed"] = state["failed"] or status
            return status

        def write(_ctx, source, size):
            if size < 0 or (size and not source):
                return failed(10)
            state["out"] += c.string_at(source, size) if size else b""
            return 0

        def read(_ctx, target, size):
            if size < 0 or (size and not target):
                return failed(10)
            if state["at"] + size > len(data):
                return failed(abi.E_CORRUPT)
            c.memmove(target, data[state["at"]: state["at"] + size], size)
            state["at"] += size
            return 0

        return abi.sized(abi.Stream, write=abi.WRITE(write), read=abi.READ(read), size=len(data), state_version=version), state

    def _written(self, phase, function, *arguments):
        """Returns the bytes that a function writes; b"" without the function."""
        if not function:
            return b""
        stream, got = self._stream()
        self._call(phase, function, *arguments, c.byref(stream))
        self._check_stream(phase, got)
        return bytes(got["out"])

    def _check_stream(self, phase, got):
        if got["failed"]:
            raise TareError("%s %s: %s goes on after its stream failed: %s" % (
                abi.KINDS[self.kind], self.name, phase, "it read bytes that are not there" if phase == "load" else "what it wrote is incomplete"),
                got["failed"])

    def _secrets(self, least):
        """The values of secret parameters that have at least this many bytes."""
        given = [(p, self._values[i].s) for i, p in enumerate(self.table) if p.flags & abi.PARAM_SECRET] if hasattr(self, "_values") else []
        return [(p.key.decode(), value) for p, value in given if value and len(value) >= least]

    def _hide(self, text):
        """Overwrites the values of secrets in a message."""
        for _key, value in self._secrets(4):
            secret = value.decode(errors="replace")
            text = text.replace(secret, "*" * len(secret))
        return text

    def _refuse_secrets(self, phase, data):
        for key, value in self._secrets(8):
            if value in data:
                raise TareError("%s %s: %s wrote the value of the secret parameter %s; it must not be recorded or stored" % (
                    abi.KINDS[self.kind], self.name, phase, key), 80)
        return data

    def _used_facts(self, without):
        """Returns the TARE_USES_... bits for these parameters. without: those without the function."""
        bits = self._table.uses(self._values) if self._table.uses else without
        if bits & ~abi.USES:
            raise TareError("%s %s: uses returns the bits 0x%x; this host knows 0x%x" % (abi.KINDS[self.kind], self.name, bits, abi.USES), 80)
        return bits

    def describe(self):
        """Returns the state as the plugin describes it, for display."""
        data = self._refuse_secrets("describe", self._written("describe", self._table.describe, self._self)) or b"{}"
        try:
            state = json.loads(data)
        except ValueError:
            state = None
        if not isinstance(state, dict):
            raise TareError("%s %s: describe must write one JSON object" % (abi.KINDS[self.kind], self.name), 80)
        return state

    def identity(self):
        """Returns what results depend on in addition to name, version and parameters: the hash of a file, a
        model's name.
        """
        data = self._refuse_secrets("identity", self._written("identity", self._table.identity, self._self))
        try:
            text = data.decode()
        except UnicodeDecodeError:
            text = None
        if text is None or len(data) > 4096 or any(byte < 32 or byte == 127 for byte in data):
            raise TareError("%s %s: identity must write one line of UTF-8 with at most 4096 bytes" % (abi.KINDS[self.kind], self.name), 80)
        return text

    # ---------------------------------------------------------------- saved state

    def _locked(self):
        """Returns lines "key=value" of the parameters that a resumed run must not change, as the
        engine writes them.
        """
        return "".join("%s=%s\n" % (p.key.decode(), frame.locked_text(p, self.parameters[p.key.decode()])) for p in self._locked_params())

    def _locked_params(self):
        return [p for p in self.table if p.flags & abi.PARAM_LOCKED_ON_RESUME]

    def _locked_defaults(self):
        locked = {p.key.decode(): p for p in self._locked_params() if p.fallback is not None}
        return {key: frame.locked_text(param, self._set(abi.Value(), param, key, param.fallback.decode())) for key, param in locked.items()}

    def save(self):
        """Returns the state as bytes: the frame that the engine writes into its checkpoints, bit
        for bit.
        """
        body = self._refuse_secrets("save", self._written("save", self._table.save, self._self))
        return frame.write(self._descriptor, self._locked(), self.n_clusters, body)

    def load(self, data):
        """Continues from the result of save(), here or in the engine. Refuses damaged bytes, and
        states of another plugin, K or locked parameter, and state versions that the plugin does not
        read.
        """
        raw, version = frame.read(data, self._descriptor, self._locked(), self._locked_defaults(), self.n_clusters, self._new_keys())
        if raw and not self._table.load:
            raise TareError("%s: %d bytes of state for a plugin without any" % (self.name, len(raw)), abi.E_CORRUPT)
        stream, got = self._stream(raw, version)
        if self._table.load:
            self._call("load", self._table.load, self._self, c.byref(stream))
            self._check_stream("load", got)
            if hasattr(self, "_size"):
                self._check_sizes()
        if got["at"] != len(raw):
            raise TareError("%s: load left %d bytes" % (self.name, len(raw) - got["at"]), abi.E_CORRUPT)
        return self

    def close(self):
        if self._made:
            self._made = False
            self._table.destroy(self._self)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if getattr(self, "_made", False):
            self.close()
