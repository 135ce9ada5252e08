"""Finding and opening plugins, their parameters, and what the host offers them."""

import ctypes as c
import difflib
import glob
import logging
import math
import os
import shutil
import sysconfig

from . import abi, fenv, philox, program

log = logging.getLogger("tare")


class TareError(Exception):
    """An error of a plugin or of loading it; code is the ABI's status."""

    def __init__(self, message, code=1):
        super().__init__(message)
        self.code = code


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
    sub = "estimators" if kind == abi.ESTIMATOR else "verifiers"
    for folder in folders:
        for path in (os.path.join(folder, name + ".so"), os.path.join(folder, sub, name + ".so")):
            if os.path.exists(path):
                return path
    names = {os.path.basename(f)[:-3] for folder in folders for f in glob.glob(os.path.join(folder, sub, "*.so"))}
    near = difflib.get_close_matches(name, names, 1)
    raise TareError("no %s named '%s'%s in %s; set TARE_PLUGIN_PATH or give a file"
                    % (abi.KINDS[kind], name, " (did you mean '%s'?)" % near[0] if near else "", ", ".join(folders)))


def table_copy(type_, address):
    """Copies the plugin's table in this build's layout: members that its build did not have stay
    NULL.
    """
    size = c.c_uint32.from_address(address).value
    table = type_()
    c.memmove(c.addressof(table), address, min(size, c.sizeof(type_)))
    return table


class Memory:
    """host->alloc: zeroed, aligned, owned by the instance until release."""

    def __init__(self):
        self.held = {}

    def alloc(self, _ctx, size, align):
        align = max(align, 16)
        if size < 0 or align & (align - 1):
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


class Opened:
    """One descriptor of a file, with an instance of it. Base class of Estimator and Verifier."""

    kind = None
    table_type = None
    required = ()  # functions that a plugin cannot lack
    known_flags = 0  # of its table

    def __init__(self, name, run_seed=0, **parameters):
        self.run_seed = run_seed
        self.path = os.path.realpath(find(name, self.kind))
        if not os.path.exists(self.path):
            raise TareError("%s: not there" % self.path)
        try:
            with fenv.kept(self.path):
                library = c.CDLL(self.path, mode=os.RTLD_NOW | os.RTLD_LOCAL)
            entry = library.tare_plugin_v1
        except (OSError, AttributeError) as error:
            raise TareError("%s: not a plugin of ABI major 1: %s" % (self.path, error)) from None
        self._library = library
        self.metrics = {}
        self._memory = Memory()
        self._host = self._make_host()
        self._error = abi.Error(struct_size=c.sizeof(abi.Error))
        entry.restype = c.POINTER(abi.Plugin)
        entry.argtypes = [c.POINTER(abi.Host), c.POINTER(abi.Error)]
        with fenv.kept(self.path):
            plugin = entry(c.byref(self._host), c.byref(self._error))
        if not plugin:
            raise TareError("%s: refuses to be used: %s" % (self.path, self._error.message.decode(errors="replace")), self._error.code)
        self._choose(plugin.contents)
        self._values, self.parameters = self._check(parameters)
        self._self = abi.SELF()
        self._made = False

    def _choose(self, plugin):
        if plugin.abi_minor_needed > abi.ABI_MINOR:
            raise TareError("%s: needs ABI 1.%d, this host has 1.%d" % (self.path, plugin.abi_minor_needed, abi.ABI_MINOR), 32)
        every = [d.contents for d in plugin.descriptors[: plugin.n_descriptors]]
        for d in every:
            if d.struct_size < c.sizeof(abi.Descriptor) or d.param_size < c.sizeof(abi.Param):
                raise TareError("%s: a descriptor of %d bytes with parameters of %d; %d and %d are needed" % (
                    self.path, d.struct_size, d.param_size, c.sizeof(abi.Descriptor), c.sizeof(abi.Param)), 80)
        of_kind = [d for d in every if d.kind == self.kind]
        if not of_kind:
            raise TareError("%s: contains no %s" % (self.path, abi.KINDS[self.kind]))
        stem = os.path.splitext(os.path.basename(self.path))[0]
        named = [d for d in of_kind if d.name.decode() == stem]
        if not named and len(of_kind) > 1:
            raise TareError("%s: contains several of its kind" % self.path)
        self._descriptor = d = (named or of_kind)[0]
        self.name, self.version, self.needs = d.name.decode(), d.version.decode(), d.needs
        self._table = table_copy(self.table_type, d.functions)
        if self._table.flags & ~self.known_flags:
            raise TareError("%s: %s %s: unknown flags 0x%x in its function table (this host knows 0x%x)"
                            % (self.path, abi.KINDS[self.kind], self.name, self._table.flags, self.known_flags), 80)
        for function in self.required:
            if not getattr(self._table, function):
                raise TareError("%s: %s %s: the function %s is missing" % (self.path, abi.KINDS[self.kind], self.name, function), 80)
        self.table = [abi.Param.from_address(d.params + i * d.param_size) for i in range(d.n_params)]

    def _make_host(self):
        def say(_ctx, level, message):
            log.log({0: 10, 1: 20, 2: 30}.get(level, 40), "%s: %s", os.path.basename(self.path), (message or b"").decode(errors="replace"))

        def random(_ctx, stream, counter, out, n):
            if n < 0 or (n and not out):
                return 10
            for i, word in enumerate(philox.words(self.run_seed, self.kind, self.name, stream, counter, n)):
                out[i] = word
            return 0

        def metric(_ctx, name, value):
            self.metrics[name.decode(errors="replace")] = value

        return abi.Host(c.sizeof(abi.Host), abi.ABI_MINOR, None, abi.LOG(say), abi.ALLOC(self._memory.alloc),
                        abi.RELEASE(self._memory.release), abi.RANDOM(random), abi.METRIC(metric), abi.CANCELLED(lambda _ctx: 0),
                        abi.EXTENSION(lambda _ctx, _id: None))

    # ---------------------------------------------------------------- parameters

    def _check(self, given):
        keys = [p.key.decode() for p in self.table]
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
            plain[key] = self._set(values[i], param, key, value)
        return values, plain

    def _set(self, slot, param, key, value):
        where = "%s: %s" % (self.name, key)
        if param.type == abi.BOOL:
            words = {"true": 1, "yes": 1, "on": 1, "1": 1, "false": 0, "no": 0, "off": 0, "0": 0}
            if str(value).lower() not in words:
                raise TareError("%s: '%s' must be true or false" % (where, value), 12)
            slot.i = words[str(value).lower()]
            return bool(slot.i)
        if param.type == abi.CHOICE:
            choices = []
            while param.choices[len(choices)]:
                choices.append(param.choices[len(choices)].decode())
            if value not in choices:
                raise TareError("%s: '%s' is not one of %s" % (where, value, ", ".join(choices)), 12)
            slot.i = choices.index(value)
            return value
        if param.type in (abi.STRING, abi.PATH):
            slot.s = str(value).encode()
            return str(value)
        try:
            number = int(str(value)) if param.type == abi.INT else float(value)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise TareError("%s: '%s' is not a %s" % (where, value, "whole number" if param.type == abi.INT else "finite number"), 12)
        bounded = param.min != 0 or param.max != 0
        low = number <= param.min if param.flags & abi.ABOVE_MIN else number < param.min
        high = number >= param.max if param.flags & abi.BELOW_MAX else number > param.max
        if bounded and (low or high):
            raise TareError("%s: %s is out of range: must be %g %s %s %s %g" % (
                where, value, param.min, "<" if param.flags & abi.ABOVE_MIN else "<=", key,
                "<" if param.flags & abi.BELOW_MAX else "<=", param.max), 12)
        if param.type == abi.INT:
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
            said = self._error.message.decode(errors="replace") or "failed with status %d and no message" % status
            raise TareError("%s %s: %s: %s" % (abi.KINDS[self.kind], self.name, phase, said), status)

    def _stream(self, data=b"", version=None):
        state = {"out": bytearray(), "at": 0}

        def write(_ctx, source, size):
            if size < 0:
                return 10
            state["out"] += c.string_at(source, size)
            return 0

        def read(_ctx, target, size):
            if size < 0 or state["at"] + size > len(data):
                return abi.E_CORRUPT
            c.memmove(target, data[state["at"]: state["at"] + size], size)
            state["at"] += size
            return 0

        stream = abi.Stream(c.sizeof(abi.Stream), 0, None, abi.WRITE(write), abi.READ(read),
                            version.encode() if version else None)
        return stream, state

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
