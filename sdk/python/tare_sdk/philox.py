"""The engine's random numbers: Philox4x32-10 keyed by (run seed, kind, name, stream), so that host->random gives the same words here."""

MASK = 2**64 - 1
PLUGIN = 5  # the purpose of these streams in the engine


def _mix(x):
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & MASK
    x = (x ^ x >> 27) * 0x94D049BB133111EB & MASK
    return x ^ x >> 31


def _derive(key, word):
    return _mix(key ^ _mix(word & MASK))


def _block(key, counter, high):
    c0, c1, c2, c3 = counter & 0xFFFFFFFF, counter >> 32, high & 0xFFFFFFFF, high >> 32
    k0, k1 = key & 0xFFFFFFFF, key >> 32
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = p1 >> 32 ^ c1 ^ k0, p1 & 0xFFFFFFFF, p0 >> 32 ^ c3 ^ k1, p0 & 0xFFFFFFFF
        k0, k1 = k0 + 0x9E3779B9 & 0xFFFFFFFF, k1 + 0xBB67AE85 & 0xFFFFFFFF
    return c0, c1, c2, c3


def words(seed, kind, name, stream, counter, n):
    """Returns n 32-bit words."""
    key = _mix(_mix(seed & MASK) ^ PLUGIN)
    for word in (kind, *name.encode(), stream):
        key = _derive(key, word)
    out = []
    for at in range(0, n, 4):
        out += _block(key, counter, at // 4)
    return out[:n]
