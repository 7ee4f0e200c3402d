"""The string formats that an API server enforces, read as its Go code reads them.

`rfc3339` and `base64` are the decoders of built-in kinds; the others are those of CRDs
(k8s.io/kube-openapi@v0.0.0-20250910181357-589584f1c912 pkg/validation/strfmt).
"""

from __future__ import annotations

import base64
import binascii
import datetime
import ipaddress
import re
from collections.abc import Callable, Mapping
from email.utils import parseaddr
from urllib.parse import urlsplit

_TIME = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|[+-][0-9]{2}:[0-9]{2})", re.ASCII)
_RFC3339 = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:[.,][0-9]+)?(?:Z|[+-]([0-9]{2}):([0-9]{2}))"
)
_GO_DURATION = re.compile(r"[+-]?(?:0|(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+)")
_GO_PART = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_SCALA_PART = re.compile(r"([0-9]+)\s*([A-Za-zµ]+)")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_SCALA = (
    (("ns", "nano"), 1e-9),
    (("us", "µs", "micro"), 1e-6),
    (("ms", "milli"), 1e-3),
    (("s", "sec"), 1.0),
    (("m", "min"), 60.0),
    (("h", "hr", "hour"), 3600.0),
    (("d", "day"), 86400.0),
    (("w", "wk", "week"), 604800.0),
)
_LEADING_ZEROS = re.compile(r"(?<![0-9a-fA-F])0+(?=[0-9])")
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})")
_UUID = r"[0-9a-f]{8}-?[0-9a-f]{4}-?%s-?%s-?[0-9a-f]{12}"
_HOST = re.compile(
    r"([a-z0-9]((-?[a-z0-9]{0,62})?)|([a-z0-9](([a-z0-9-]{0,61}[a-z0-9])?)(\.))+([a-z]){2,63})",
    re.IGNORECASE | re.ASCII,
)
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)


def is_date(text: str) -> bool:
    """`2006-01-02`."""
    try:
        return len(text) == 10 and bool(datetime.date.fromisoformat(text))
    except ValueError:
        return False


def is_datetime(text: str) -> bool:
    """A date, a `t` of either case and a time with its zone; strfmt is laxer than RFC 3339."""
    date, _, rest = text.lower().partition("t")
    match = _TIME.fullmatch(rest)
    return match is not None and is_date(date) and match[1] <= "23" and match[2] <= "59" and match[3] <= "59"


def is_rfc3339(text: str) -> bool:
    """What Go's time.Parse(time.RFC3339, text) accepts."""
    match = _RFC3339.fullmatch(text)
    return (
        match is not None
        and is_date(match[1])
        and match[2] <= "23"
        and match[3] <= "59"
        and match[4] <= "59"
        and (match[5] or "00") <= "24"
        and (match[6] or "00") <= "60"
    )


def is_base64(text: str) -> bool:
    """Standard base64 with padding; Go skips line breaks and asks nothing of the last bits."""
    bare = text.replace("\r", "").replace("\n", "")
    try:
        base64.b64decode(bare, validate=True)
    except (binascii.Error, ValueError):
        return False
    return len(bare) % 4 == 0


def is_byte(text: str) -> bool:
    """Standard base64 of at least one byte, with padding and without line breaks."""
    return _BASE64.fullmatch(text) is not None


def duration(text: str) -> datetime.timedelta | None:
    """A Go duration (`1h30m`, `-0.5s`) or a Scala one (`2 days`); None when it is neither."""
    if _GO_DURATION.fullmatch(text):
        seconds = sum(float(number) * _SECONDS[unit] for number, unit in _GO_PART.findall(text))
        return datetime.timedelta(seconds=-seconds if text.startswith("-") else seconds)
    found = [
        int(number) * seconds
        for number, unit in _SCALA_PART.findall(text)
        for variants, seconds in _SCALA
        if unit.lower() in variants or unit.lower().startswith(variants[-1])
    ]
    return datetime.timedelta(seconds=sum(found)) if found else None


def is_duration(text: str) -> bool:
    """A Go duration or a Scala one."""
    return duration(text) is not None


def is_ipv4(text: str) -> bool:
    """An address with a dot in it; leading zeros are tolerated."""
    return "." in text and _address(_LEADING_ZEROS.sub("", text))


def is_ipv6(text: str) -> bool:
    """An address with a colon in it."""
    return ":" in text and _address(text)


def _address(text: str) -> bool:
    try:
        return "%" not in text and bool(ipaddress.ip_address(text))
    except ValueError:
        return False


def is_cidr(text: str) -> bool:
    """An address and a prefix length; bits of the host may be set, leading zeros are tolerated."""
    address, slash, length = text.partition("/")
    if not (slash and length.isascii() and length.isdecimal() and len(length) < 8):
        return False
    bare = _LEADING_ZEROS.sub("", address) if "." in address else address
    return _address(bare) and int(length) <= ipaddress.ip_address(bare).max_prefixlen


def is_uri(text: str) -> bool:
    """An absolute URI or an absolute path, as Go's url.ParseRequestURI wants it."""
    if not text or any(c <= " " or c == "\x7f" for c in text) or re.search(r"%(?![0-9a-fA-F]{2})", text):
        return False
    if text.startswith("/"):
        return True
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return False
    return bool(parts.scheme)


def is_hostname(text: str) -> bool:
    """A DNS name of at most 255 characters with labels of at most 63; Unicode letters are left to the server."""
    if not text.isascii():
        return True
    return _HOST.fullmatch(text) is not None and len(text) <= 255 and all(len(p) <= 63 for p in text.split("."))


def is_email(text: str) -> bool:
    """An address of RFC 5322, with or without a name."""
    return "@" in parseaddr(text)[1]


def is_short_name(text: str) -> bool:
    """A DNS label, as `k8s-short-name`."""
    return len(text) <= 63 and _LABEL.fullmatch(text) is not None


def is_long_name(text: str) -> bool:
    """DNS labels joined by dots, as `k8s-long-name`."""
    return len(text) <= 253 and all(_LABEL.fullmatch(part) for part in text.split("."))


def _matches(pattern: str) -> Callable[[str], bool]:
    compiled = re.compile(pattern, re.IGNORECASE | re.ASCII)
    return lambda text: compiled.fullmatch(text) is not None


# isbn, creditcard, ssn, bsonobjectid, password and rgbcolor stand in no CRD of the pack and are left to the server.
FORMATS: Mapping[str, Callable[[str], bool]] = {
    "rfc3339": is_rfc3339,
    "base64": is_base64,
    "byte": is_byte,
    "date": is_date,
    "datetime": is_datetime,
    "duration": is_duration,
    "ipv4": is_ipv4,
    "ipv6": is_ipv6,
    "cidr": is_cidr,
    "uri": is_uri,
    "hostname": is_hostname,
    "email": is_email,
    "mac": _matches(
        r"(?:[0-9a-f]{2}(?P<s>[:-])(?:[0-9a-f]{2}(?P=s)){4,18}[0-9a-f]{2}|(?:[0-9a-f]{4}\.){2,9}[0-9a-f]{4})"
    ),
    "uuid": _matches(_UUID % ("[0-9a-f]{4}", "[0-9a-f]{4}")),
    "uuid3": _matches(_UUID % ("3[0-9a-f]{3}", "[0-9a-f]{4}")),
    "uuid4": _matches(_UUID % ("4[0-9a-f]{3}", "[89ab][0-9a-f]{3}")),
    "uuid5": _matches(_UUID % ("5[0-9a-f]{3}", "[89ab][0-9a-f]{3}")),
    "hexcolor": _matches(r"#?([0-9a-f]{3}|[0-9a-f]{6})"),
    "k8sshortname": is_short_name,
    "k8slongname": is_long_name,
}
