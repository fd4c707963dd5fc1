"""Integers of variable length: seven bits a byte, lowest first, the highest bit set if another byte follows."""

_ONE_BYTE = tuple(bytes([value]) for value in range(0x80))


def encode_zigzag(value: int) -> bytes:
    """Return a signed integer as records have it: numbers near 0 are short, positive and negative ones."""
    return unsigned((value << 1) ^ (value >> 63))


def unsigned(value: int) -> bytes:
    """Return an unsigned integer as flexible messages have it (KIP-482)."""
    if value <= 0x7F:
        return _ONE_BYTE[value]
    if value <= 0x3FFF:
        return bytes((value & 0x7F | 0x80, value >> 7))
    if value <= 0x1FFFFF:
        return bytes((value & 0x7F | 0x80, value >> 7 & 0x7F | 0x80, value >> 14))
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
