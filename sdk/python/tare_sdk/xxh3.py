"""XXH3, 64 bits, seed 0 (Yann Collet's xxHash), in Python: the checksum in the frame around a saved state."""

import struct

P32 = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D)
P64 = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
MASK = 2**64 - 1
SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e")


def _u64(data, at):
    return int.from_bytes(data[at: at + 8], "little")


def _u32(data, at):
    return int.from_bytes(data[at: at + 4], "little")


def _fold(a, b):
    product = a * b
    return (product ^ product >> 64) & MASK


def _avalanche(h):
    h = (h ^ h >> 37) * 0x165667919E3779F9 & MASK
    return h ^ h >> 32


def _avalanche64(h):
    h = (h ^ h >> 33) * P64[1] & MASK
    h = (h ^ h >> 29) * P64[2] & MASK
    return h ^ h >> 32


def _rotated(h, n):
    return (h << n | h >> 64 - n) & MASK


def _short(data, n):
    if n > 8:
        low = _u64(data, 0) ^ _u64(SECRET, 24) ^ _u64(SECRET, 32)
        high = _u64(data, n - 8) ^ _u64(SECRET, 40) ^ _u64(SECRET, 48)
        return _avalanche((n + int.from_bytes(low.to_bytes(8, "little"), "big") + high + _fold(low, high)) & MASK)
    if n >= 4:
        h = _u32(data, n - 4) + (_u32(data, 0) << 32) ^ _u64(SECRET, 8) ^ _u64(SECRET, 16)
        h = (h ^ _rotated(h, 49) ^ _rotated(h, 24)) * 0x9FB21C651E98DF25 & MASK
        h = (h ^ (h >> 35) + n) * 0x9FB21C651E98DF25 & MASK
        return h ^ h >> 28
    if n:
        mixed = data[0] << 16 | data[n >> 1] << 24 | data[n - 1] | n << 8
        return _avalanche64(mixed ^ _u32(SECRET, 0) ^ _u32(SECRET, 4))
    return _avalanche64(_u64(SECRET, 56) ^ _u64(SECRET, 64))


def _mix(data, at, key):
    return _fold(_u64(data, at) ^ _u64(SECRET, key), _u64(data, at + 8) ^ _u64(SECRET, key + 8))


def _middle(data, n):
    total = n * P64[0]
    if n <= 128:
        for i in range((n - 1) // 32, -1, -1):
            total += _mix(data, 16 * i, 32 * i) + _mix(data, n - 16 * (i + 1), 32 * i + 16)
        return _avalanche(total & MASK)
    total = _avalanche((total + sum(_mix(data, 16 * i, 16 * i) for i in range(8))) & MASK)
    total += sum(_mix(data, 16 * i, 16 * (i - 8) + 3) for i in range(8, n // 16))
    return _avalanche((total + _mix(data, n - 16, 136 - 17)) & MASK)


def _stripe(lanes, data, at, key):
    words, keys = struct.unpack_from("<8Q", data, at), struct.unpack_from("<8Q", SECRET, key)
    for i in range(8):
        mixed = words[i] ^ keys[i]
        lanes[i ^ 1] = lanes[i ^ 1] + words[i] & MASK
        lanes[i] = lanes[i] + (mixed & 0xFFFFFFFF) * (mixed >> 32) & MASK


def _long(data, n):
    lanes = [P32[2], P64[0], P64[1], P64[2], P64[3], P32[1], P64[4], P32[0]]
    keys = struct.unpack_from("<8Q", SECRET, 128)
    blocks = (n - 1) // 1024
    for block in range(blocks):
        for stripe in range(16):
            _stripe(lanes, data, 1024 * block + 64 * stripe, 8 * stripe)
        lanes = [(x ^ x >> 47 ^ k) * P32[0] & MASK for x, k in zip(lanes, keys)]
    for stripe in range((n - 1 - 1024 * blocks) // 64):
        _stripe(lanes, data, 1024 * blocks + 64 * stripe, 8 * stripe)
    _stripe(lanes, data, n - 64, 121)
    total = n * P64[0] + sum(_fold(lanes[2 * i] ^ _u64(SECRET, 11 + 16 * i), lanes[2 * i + 1] ^ _u64(SECRET, 19 + 16 * i)) for i in range(4))
    return _avalanche(total & MASK)


def xxh3(data):
    """Returns the hash of bytes, as a number below 2^64."""
    n = len(data)
    return _short(data, n) if n <= 16 else _middle(data, n) if n <= 240 else _long(data, n)
