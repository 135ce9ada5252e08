"""The frame around a saved state, the same as the engine's (core/plugin/state.c). Little-endian:

    "tarestat"; u32 version of the frame; u32 kind; u32 bytes of name, of vendor, of plugin version, of locked parameters;
    u32 version of the plugin's format; u32 K; u64 bytes of state; u64 XXH3 of all before this word,
    xor XXH3 of all that follows;
    name, vendor, plugin version, locked parameters ("key=value\\n" each), state
"""

import struct

from . import abi
from .errors import TareError
from .xxh3 import xxh3

HEAD = struct.Struct("<8s8IQ")
HASH = struct.Struct("<Q")
MAGIC, VERSION = b"tarestat", 1


def value_text(param, value):
    """Formats a parameter as in an INI file: the shortest decimal that reads back as the same
    number, as printf %g writes it.
    """
    if param.type == abi.PARAM_BOOL:
        return "true" if value else "false"
    if param.type != abi.PARAM_FLOAT:
        return str(value)
    return next(text for text in ("%.*g" % (digits, value) for digits in range(1, 18)) if float(text) == value)


def locked_text(param, value):
    """Writes a parameter's value without the newline that ends it in the frame."""
    return value_text(param, value).replace("\\", "\\\\").replace("\n", "\\n")


def _vendor(descriptor):
    """The value of "vendor" in tare_descriptor.about."""
    about, i = descriptor.about, 0
    while about and about[i] is not None:
        if about[i] == b"vendor":
            return about[i + 1]
        i += 2
    return b""


def write(d, locked, clusters, body):
    """d: the plugin's descriptor."""
    texts = [d.name, _vendor(d), d.version, locked.encode()]
    rest = b"".join(texts) + body
    head = HEAD.pack(MAGIC, VERSION, d.kind, *map(len, texts), d.state_version, clusters, len(body))
    return head + HASH.pack(xxh3(head) ^ xxh3(rest)) + rest


def _pairs(locked):
    return dict(line.split("=", 1) for line in locked.split("\n") if "=" in line)


def _check_locked(name, saved, locked, defaults, new_keys):
    """Checks that locked parameters have the values that the state was saved with, possibly with an
    earlier key. A parameter that the state does not name is newer, and must have its default.
    """
    saved, now = {new_keys.get(key, key): value for key, value in _pairs(saved).items()}, _pairs(locked)
    for key, value in now.items():
        if key in saved and saved[key] != value:
            raise TareError("%s: saved with %s=%s, but this has %s=%s; this parameter is fixed for a run" % (name, key, saved[key], key, value), 12)
        if key not in saved and defaults.get(key) != value:
            raise TareError("%s: saved before the parameter %s existed, which is fixed for a run; the state can continue only with the default %s, "
                            "but this has %s" % (name, key, defaults.get(key), value), 12)
    for key in saved:
        if key not in now:
            raise TareError("%s: saved with %s=%s, a fixed parameter that is unknown to this version" % (name, key, saved[key]), 12)


def read(data, d, locked, defaults, clusters, new_keys):
    """Returns the plugin's own bytes, and the version of their format; raises an error for a state
    that does not fit. d: the plugin's descriptor; defaults: {key: text} of the locked parameters;
    new_keys: {earlier key: key} of the parameters.
    """
    name = d.name.decode()
    start = HEAD.size + HASH.size
    if len(data) < start or not data.startswith(MAGIC):
        raise TareError("%s: %d bytes that are not the saved state of a plugin" % (name, len(data)), abi.E_CORRUPT)
    _, frame, kind, *sizes, version, saved_clusters, n_body = HEAD.unpack_from(data)
    rest = data[start:]
    if frame != VERSION:
        raise TareError("%s: saved state of format %d, this reads %d" % (name, frame, VERSION), 32)
    if len(rest) != sum(sizes) + n_body:
        raise TareError("%s: the saved state has %d bytes where %d were written" % (name, len(rest), sum(sizes) + n_body), abi.E_CORRUPT)
    if xxh3(data[:HEAD.size]) ^ xxh3(rest) != HASH.unpack_from(data, HEAD.size)[0]:
        raise TareError("%s: the saved state is damaged: the checksum does not match" % name, abi.E_CORRUPT)
    texts, at = [], 0
    for size in sizes:
        texts.append(rest[at: at + size].decode(errors="replace"))
        at += size
    vendor = _vendor(d).decode(errors="replace")
    if (kind, texts[0]) != (d.kind, name):
        raise TareError("%s: the state of %s %s" % (name, abi.KINDS.get(kind, "a plugin of an unknown kind"), texts[0]), 32)
    if texts[1] != vendor:
        raise TareError("%s: the state of a plugin by %s, this one is by %s" % (name, texts[1] or "an unnamed vendor", vendor or "an unnamed vendor"), 32)
    if not d.state_oldest <= version <= d.state_version:
        raise TareError("%s: state of version %d of the plugin's format (written by %s); this one reads %d to %d"
                        % (name, version, texts[2], d.state_oldest, d.state_version), 32)
    _check_locked(name, texts[3], locked, defaults, new_keys)
    if saved_clusters != clusters:
        raise TareError("%s: saved with n_clusters = %d, this has %d" % (name, saved_clusters, clusters), 12)
    return rest[at:], version
