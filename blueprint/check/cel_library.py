"""The functions that Kubernetes adds to CEL, for a binding that has only the standard ones.

k8s.io/apiserver@v0.35.4 pkg/cel/library. A quantity, URL, address or range is a map with one key here, so that two are
equal when the originals are. `semver`, `format`, `authorizer` and the two-variable macros are not here: a rule that
uses one does not compile, and is reported as not evaluated.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import pairwise
from typing import Any
from urllib.parse import parse_qs, urlsplit

from cel_expr_python import cel

from blueprint.check.formats import is_cidr, is_uri
from blueprint.quantity import QuantityError, parse_quantity

_T = cel.Type
Opaque = dict[str, str]
_Network = ipaddress.IPv4Interface | ipaddress.IPv6Interface
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def extension() -> cel.CelExtension:
    """All functions, as one extension of a CEL environment."""
    return cel.CelExtension("kubernetes", list(_declarations()))


def _declarations() -> Iterator[cel.FunctionDecl]:
    overloads: dict[str, list[cel.Overload]] = {}
    for name, member, parameters, returns, implementation in _FUNCTIONS:
        label = f"k8s_{name}_{len(overloads.get(name, ()))}_{'member' if member else 'global'}"
        overloads.setdefault(name, []).append(
            cel.Overload(label, returns, list(parameters), is_member=member, impl=implementation)
        )
    for name, group in overloads.items():
        yield cel.FunctionDecl(name, group)


# Quantities: the value as a fraction.


def _quantity(text: str) -> Opaque:
    try:
        return {"quantity": str(parse_quantity(text))}
    except QuantityError as error:
        raise ValueError(str(error)) from error


def _is_quantity(text: str) -> bool:
    try:
        parse_quantity(text)
    except QuantityError:
        return False
    return text == text.strip()


def _amount(value: Opaque | int) -> Fraction:
    return Fraction(value if isinstance(value, int) else value["quantity"])


def _compared(one: Opaque, other: Opaque) -> int:
    return (_amount(one) > _amount(other)) - (_amount(one) < _amount(other))


def _whole(value: Opaque) -> int:
    amount = _amount(value)
    if amount.denominator != 1 or not -(2**63) <= amount < 2**63:
        raise ValueError("cannot convert value to integer")
    return int(amount)


def _is_whole(value: Opaque) -> bool:
    amount = _amount(value)
    return amount.denominator == 1 and -(2**63) <= amount < 2**63


# URLs.


def _url(text: str) -> Opaque:
    if not is_uri(text):
        raise ValueError("URL parse error during conversion from string")
    return {"url": text}


def _host(value: Opaque) -> str:
    return urlsplit(value["url"]).netloc.rpartition("@")[2]


def _hostname(value: Opaque) -> str:
    host = _host(value)
    return host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]


def _port(value: Opaque) -> str:
    return _host(value).rpartition("]")[2].rpartition(":")[2] if ":" in _host(value).rpartition("]")[2] else ""


# Addresses and ranges.


def _address(text: str) -> _Address:
    """Go's netip.ParseAddr without zones and IPv4-mapped IPv6, as the library wants it."""
    address = ipaddress.ip_address(text)
    if "%" in text or (isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped):
        raise ValueError(f"IP Address {text!r} is not allowed")
    return address


def _is_address(text: str) -> bool:
    try:
        return bool(_address(text))
    except ValueError:
        return False


def _ip(text: str) -> Opaque:
    return {"ip": str(_address(text))}


def _of(value: Opaque) -> _Address:
    return ipaddress.ip_address(value["ip"])


def _is_multicast(value: Opaque) -> bool:
    address = _of(value)
    network = "224.0.0.0/24" if address.version == 4 else "ff02::/16"
    return address in ipaddress.ip_network(network)


def _is_global(value: Opaque) -> bool:
    address = _of(value)
    special = address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local
    return not special and str(address) != "255.255.255.255"


def _cidr(text: str) -> Opaque:
    if not is_cidr(text):
        raise ValueError("network address parse error during conversion from string")
    _address(text.partition("/")[0])
    return {"cidr": ipaddress.ip_interface(text).with_prefixlen}


def _is_range(text: str) -> bool:
    try:
        return bool(_cidr(text))
    except ValueError:
        return False


def _range(value: Opaque | str) -> _Network:
    return ipaddress.ip_interface(value["cidr"] if isinstance(value, dict) else _cidr(value)["cidr"])


def _holds_ip(value: Opaque, other: Opaque | str) -> bool:
    return (_of(other) if isinstance(other, dict) else _address(other)) in _range(value).network


def _holds_range(value: Opaque, other: Opaque | str) -> bool:
    outer, inner = _range(value).network, _range(other).network
    return outer.version == inner.version and inner.network_address in outer and outer.prefixlen <= inner.prefixlen


# Lists and regular expressions.


def _same(one: object, other: object) -> bool:
    """CEL equality: true is not 1."""
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def _is_sorted(items: list[Any]) -> bool:
    return all(not one > other for one, other in pairwise(items))


def _nonempty(pick: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    def picked(items: list[Any]) -> object:
        if not items:
            raise ValueError("min and max need a list that is not empty")
        return pick(items)

    return picked


def _index(items: list[Any], item: object) -> int:
    return next((index for index, held in enumerate(items) if _same(held, item)), -1)


def _last_index(items: list[Any], item: object) -> int:
    return max((index for index, held in enumerate(items) if _same(held, item)), default=-1)


def _find(text: str, pattern: str) -> str:
    found = re.search(pattern, text, re.ASCII)
    return found[0] if found else ""


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    found = [match[0] for match in re.finditer(pattern, text, re.ASCII)]
    return found if limit < 0 else found[:limit]


def _contains(items: list[Any], wanted: list[Any]) -> bool:
    return all(_index(items, item) >= 0 for item in wanted)


_S, _M, _L, _B, _I, _D = _T.STRING, _T.MAP, _T.LIST, _T.BOOL, _T.INT, _T.DYN

# name, whether it is called on its first parameter, parameters, result, implementation
_FUNCTIONS: tuple[tuple[str, bool, tuple[cel.Type, ...], cel.Type, Callable[..., Any]], ...] = (
    ("quantity", False, (_S,), _D, _quantity),
    ("isQuantity", False, (_S,), _B, _is_quantity),
    ("sign", False, (_M,), _I, lambda q: (_amount(q) > 0) - (_amount(q) < 0)),
    ("isGreaterThan", True, (_M, _M), _B, lambda q, other: _compared(q, other) > 0),
    ("isLessThan", True, (_M, _M), _B, lambda q, other: _compared(q, other) < 0),
    ("compareTo", True, (_M, _M), _I, _compared),
    ("asApproximateFloat", True, (_M,), _T.DOUBLE, lambda q: float(_amount(q))),
    ("asInteger", True, (_M,), _I, _whole),
    ("isInteger", True, (_M,), _B, _is_whole),
    ("add", True, (_M, _M), _D, lambda q, other: {"quantity": str(_amount(q) + _amount(other))}),
    ("add", True, (_M, _I), _D, lambda q, other: {"quantity": str(_amount(q) + other)}),
    ("sub", True, (_M, _M), _D, lambda q, other: {"quantity": str(_amount(q) - _amount(other))}),
    ("sub", True, (_M, _I), _D, lambda q, other: {"quantity": str(_amount(q) - other)}),
    ("url", False, (_S,), _D, _url),
    ("isURL", False, (_S,), _B, is_uri),
    ("getScheme", True, (_M,), _S, lambda u: urlsplit(u["url"]).scheme),
    ("getHost", True, (_M,), _S, _host),
    ("getHostname", True, (_M,), _S, _hostname),
    ("getPort", True, (_M,), _S, _port),
    ("getEscapedPath", True, (_M,), _S, lambda u: urlsplit(u["url"]).path),
    ("getQuery", True, (_M,), _M, lambda u: parse_qs(urlsplit(u["url"]).query, keep_blank_values=True)),
    ("ip", False, (_S,), _D, _ip),
    ("isIP", False, (_S,), _B, _is_address),
    ("ip.isCanonical", False, (_S,), _B, lambda text: str(_address(text)) == text),
    ("family", True, (_M,), _I, lambda a: _of(a).version),
    ("isUnspecified", True, (_M,), _B, lambda a: _of(a).is_unspecified),
    ("isLoopback", True, (_M,), _B, lambda a: _of(a).is_loopback),
    ("isLinkLocalMulticast", True, (_M,), _B, _is_multicast),
    ("isLinkLocalUnicast", True, (_M,), _B, lambda a: _of(a).is_link_local),
    ("isGlobalUnicast", True, (_M,), _B, _is_global),
    ("cidr", False, (_S,), _D, _cidr),
    ("isCIDR", False, (_S,), _B, _is_range),
    ("containsIP", True, (_M, _D), _B, _holds_ip),
    ("containsCIDR", True, (_M, _D), _B, _holds_range),
    ("ip", True, (_M,), _D, lambda c: {"ip": str(_range(c).ip)}),
    ("prefixLength", True, (_M,), _I, lambda c: _range(c).network.prefixlen),
    ("masked", True, (_M,), _D, lambda c: {"cidr": str(_range(c).network)}),
    ("string", False, (_M,), _S, lambda value: value.get("ip") or value["cidr"]),
    ("isSorted", True, (_L,), _B, _is_sorted),
    ("sum", True, (_L,), _D, sum),
    ("min", True, (_L,), _D, _nonempty(min)),
    ("max", True, (_L,), _D, _nonempty(max)),
    ("indexOf", True, (_L, _D), _I, _index),
    ("lastIndexOf", True, (_L, _D), _I, _last_index),
    ("find", True, (_S, _S), _S, _find),
    ("findAll", True, (_S, _S), _L, _find_all),
    ("findAll", True, (_S, _S, _I), _L, _find_all),
    ("sets.contains", False, (_L, _L), _B, _contains),
    ("sets.equivalent", False, (_L, _L), _B, lambda a, b: _contains(a, b) and _contains(b, a)),
    ("sets.intersects", False, (_L, _L), _B, lambda a, b: any(_index(a, item) >= 0 for item in b)),
)
