"""The frame around a saved state, the same as the engine's (core/plugin/state.c). Little-endian:

    "tarestat"; u32 version of the frame; u32 kind; u32 bytes of name, of plugin version, of locked parameters; u32 K; u64 bytes of state;
    u64 XXH3 of all that follows; name, plugin version, locked parameters ("key=value\\n" each), state
"""

import struct

from . import abi
from .plugin import TareError
from .xxh3 import xxh3

HEAD = struct.Struct("<8s6I2Q")
MAGIC, VERSION = b"tarestat", 1


def value_text(param, value):
    """Formats a parameter as in an INI file: the shortest decimal that reads back as the same
    number, as printf %g writes it.
    """
    if param.type == abi.BOOL:
        return "true" if value else "false"
    if param.type != abi.FLOAT:
        return str(value)
    return next(text for text in ("%.*g" % (digits, value) for digits in range(1, 18)) if float(text) == value)


def write(kind, name, version, locked, clusters, body):
    texts = [name.encode(), version.encode(), locked.encode()]
    rest = b"".join(texts) + body
    return HEAD.pack(MAGIC, VERSION, kind, *map(len, texts), clusters, len(body), xxh3(rest)) + rest


def _pairs(locked):
    return dict(line.split("=", 1) for line in locked.split("\n") if "=" in line)


def _check_locked(name, saved, locked, defaults):
    """Checks that locked parameters have the values that the state was saved with. A parameter that
    the state does not name is newer, and must have its default.
    """
    saved, now = _pairs(saved), _pairs(locked)
    for key, value in now.items():
        if key in saved and saved[key] != value:
            raise TareError("%s: saved with %s=%s, but this has %s=%s; this parameter is fixed for a run" % (name, key, saved[key], key, value), 12)
        if key not in saved and defaults.get(key) != value:
            raise TareError("%s: saved before the parameter %s existed, which is fixed for a run; the state can continue only with the default %s, "
                            "but this has %s" % (name, key, defaults.get(key), value), 12)
    for key in saved:
        if key not in now:
            raise TareError("%s: saved with %s=%s, a fixed parameter that is unknown to this version" % (name, key, saved[key]), 12)


def read(data, kind, name, version, locked, defaults, clusters):
    """Returns the plugin's own bytes, and the version that wrote them; raises an error for a state
    that does not fit. defaults: {key: text} of the locked parameters.
    """
    if len(data) < HEAD.size or not data.startswith(MAGIC):
        raise TareError("%s: %d bytes that are not the saved state of a plugin" % (name, len(data)), abi.E_CORRUPT)
    _, frame, saved_kind, n_name, n_version, n_locked, saved_clusters, n_body, hashed = HEAD.unpack_from(data)
    rest = data[HEAD.size:]
    if frame != VERSION:
        raise TareError("%s: saved state of format %d, this reads %d" % (name, frame, VERSION), 32)
    if len(rest) != n_name + n_version + n_locked + n_body:
        raise TareError("%s: the saved state has %d bytes where %d were written" % (name, len(rest), n_name + n_version + n_locked + n_body),
                        abi.E_CORRUPT)
    if xxh3(rest) != hashed:
        raise TareError("%s: the saved state is damaged: the checksum does not match" % name, abi.E_CORRUPT)
    saved_name, rest = rest[:n_name].decode(errors="replace"), rest[n_name:]
    saved_version, rest = rest[:n_version].decode(errors="replace"), rest[n_version:]
    saved_locked, body = rest[:n_locked].decode(errors="replace"), rest[n_locked:]
    if saved_kind != kind or saved_name != name:
        raise TareError("%s: the state of %s %s" % (name, abi.KINDS.get(saved_kind, "a plugin of an unknown kind"), saved_name), 32)
    if saved_version.split(".")[0] != version.split(".")[0]:
        raise TareError("%s: written by version %s, this is %s; another major version cannot read it" % (name, saved_version, version), 32)
    _check_locked(name, saved_locked, locked, defaults)
    if saved_clusters != clusters:
        raise TareError("%s: saved with n_clusters = %d, this has %d" % (name, saved_clusters, clusters), 12)
    return body, saved_version
