from __future__ import annotations

import base64
import datetime
import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blueprint.catalog.crds import FORMATS as ENFORCED
from blueprint.check.formats import FORMATS, duration

# What the Go code of each format says, from its own tests and from reading it.
TABLE = [
    (
        "rfc3339",
        ["2026-11-30T10:00:00Z", "2026-11-30T10:00:00.123+01:00", "2024-02-29T23:59:59,5-24:60"],
        [
            "2026-11-30 10:00:00Z",
            "2026-11-30T10:00:00",
            "2026-02-30T10:00:00Z",
            "2026-11-30t10:00:00z",
            "",
            "2026-11-30T24:00:00Z",
        ],
    ),
    (
        "datetime",
        ["2026-11-30T10:00:00Z", "2026-11-30t10:00:00.1z", "2026-11-30T10:00:00+99:99"],
        ["2026-11-30", "2026-13-30T10:00:00Z", "2026-11-30T24:00:00Z", "2026-11-30T10:00:00", "t"],
    ),
    ("date", ["2026-11-30"], ["2026-11-31", "20261130", "2026-1-1", ""]),
    (
        "duration",
        ["1s", "1h30m", "-1.5h", "0", ".5s", "1d", "2 weeks", "5 minutes", "1 hour 3 secs"],
        ["", "1", "s", "1x"],
    ),
    ("base64", ["", "YQ==", "YQ\n==", "YR=="], ["YQ", "YQ=", "a b=", "_-8="]),
    ("byte", ["YQ==", "YWFh"], ["", "YQ\n==", "YQ="]),
    ("ipv4", ["10.0.0.1", "010.0.0.001", "::ffff:1.2.3.4"], ["10.0.0", "::1", "1.2.3.400", ""]),
    ("ipv6", ["::1", "2001:DB8::1", "::ffff:1.2.3.4"], ["10.0.0.1", "fe80::1%eth0", "::g"]),
    (
        "cidr",
        ["10.0.0.1/8", "::/0", "010.0.0.0/08"],
        ["10.0.0.0", "10.0.0.0/33", "10.0.0.0/-1", "::/129", "/8", "10.0.0.0/999999999"],
    ),
    (
        "uri",
        ["http://a/b?c#d", "/a", "urn:x", "https://[::1]:8080/"],
        ["", "a/b", "http://a b", "http://[::1", "/%zz", "http://a:b/"],
    ),
    ("hostname", ["a", "a-b.example.com", "localhost"], ["-a", "a..b", "a_b", "x" * 64 + ".com"]),
    ("email", ["a@b.c", "A <a@b.c>"], ["a", ""]),
    (
        "mac",
        ["00:00:5e:00:53:01", "0000.5e00.5301", "02-00-5e-10-00-00-00-01"],
        ["00:00:5e:00:53", "00:00-5e:00:53:01"],
    ),
    ("uuid", ["a1b2c3d4-e5f6-4a5b-8c7d-0123456789AB", "a1b2c3d4e5f64a5b8c7d0123456789ab"], ["a1b2"]),
    ("uuid3", ["a1b2c3d4-e5f6-3a5b-0c7d-0123456789ab"], ["a1b2c3d4-e5f6-4a5b-8c7d-0123456789ab"]),
    ("uuid4", ["a1b2c3d4-e5f6-4a5b-8c7d-0123456789ab"], ["a1b2c3d4-e5f6-4a5b-0c7d-0123456789ab"]),
    ("uuid5", ["a1b2c3d4-e5f6-5a5b-8c7d-0123456789ab"], ["a1b2c3d4-e5f6-4a5b-8c7d-0123456789ab"]),
    ("hexcolor", ["#fff", "FFFFFF"], ["#ffff", "red"]),
    ("k8sshortname", ["a-1"], ["A", "a.b", "-a", "a" * 64, ""]),
    ("k8slongname", ["a.b-1"], ["A", "a..b", "a." * 130]),
]


@pytest.mark.parametrize(("name", "good", "bad"), TABLE)
def test_each_format(name: str, good: list[str], bad: list[str]) -> None:
    for text in good:
        assert FORMATS[name](text), text
    for text in bad:
        assert not FORMATS[name](text), text


def test_every_format_is_in_the_table() -> None:
    assert {name for name, _, _ in TABLE} == set(FORMATS)
    assert set(FORMATS) - {"rfc3339", "base64"} <= ENFORCED


@given(st.datetimes(timezones=st.timezones() | st.just(datetime.UTC)))
def test_times_that_python_writes_are_read(moment: datetime.datetime) -> None:
    offset = moment.utcoffset()
    assert offset is not None
    if moment.year >= 1000 and offset.total_seconds() % 60 == 0:
        assert FORMATS["rfc3339"](moment.isoformat())
        assert FORMATS["datetime"](moment.isoformat())


@given(st.binary(max_size=30))
def test_base64_that_python_writes_is_read(data: bytes) -> None:
    assert FORMATS["base64"](base64.b64encode(data).decode())


@given(st.ip_addresses())
def test_addresses(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    assert FORMATS["ipv4"](str(address)) or FORMATS["ipv6"](str(address))
    assert FORMATS["cidr"](f"{address}/{address.max_prefixlen}")


def test_durations_have_their_length() -> None:
    assert duration("1h30m") == datetime.timedelta(minutes=90)
    assert duration("-1.5s") == datetime.timedelta(seconds=-1.5)
    assert duration("2 days") == datetime.timedelta(days=2)
    assert duration("soon") is None
