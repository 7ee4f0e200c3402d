"""As much of DER as the authorities here need to write. Source: ITU-T X.690 §8, §11."""

from __future__ import annotations

from datetime import datetime


def tlv(tag: int, *parts: bytes) -> bytes:
    """One value with its tag and length."""
    body = b"".join(parts)
    if len(body) < 128:
        return bytes((tag, len(body))) + body
    size = len(body).to_bytes((len(body).bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(size))) + size + body


def sequence(*parts: bytes) -> bytes:
    return tlv(0x30, *parts)


def set_of(*parts: bytes) -> bytes:
    return tlv(0x31, *sorted(parts))


def octets(data: bytes) -> bytes:
    return tlv(0x04, data)


def utf8(text: str) -> bytes:
    return tlv(0x0C, text.encode())


def integer(value: int) -> bytes:
    return tlv(0x02, value.to_bytes(value.bit_length() // 8 + 1, "big"))


def oid(dotted: str) -> bytes:
    first, second, *rest = map(int, dotted.split("."))
    encoded = bytearray((40 * first + second,))
    for arc in rest:
        digits = [arc & 0x7F]
        while arc := arc >> 7:
            digits.append(0x80 | (arc & 0x7F))
        encoded += bytes(reversed(digits))
    return tlv(0x06, bytes(encoded))


def time(moment: datetime) -> bytes:
    """GeneralizedTime in whole seconds of UTC."""
    return tlv(0x18, moment.strftime("%Y%m%d%H%M%SZ").encode())
