"""Series on a port, and which series a query selects."""

import urllib.request

from blueprint.conform.daemon import free_ports
from blueprint.conform.exporter import Loads, fixed, named, selected, shortened

QUERY = 'sum(service:requests:rate1m{namespace="chat",service="a",code=~"2.."})'


def test_a_series_is_exposed_until_it_is_taken_out():
    [port] = free_ports(1)
    with Loads(port, values={'up{a="b"}': 1.0, "other{}": 2.5}) as exporter:

        def read():
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
                return answer.read().decode()

        assert read() == 'up{a="b"} 1.000\nother{} 2.500\n'
        exporter.values.clear()
        assert read() == ""


def test_a_query_names_its_series():
    [select] = selected(QUERY)
    assert named(select.metric, fixed(select)) == 'service:requests:rate1m{namespace="chat",service="a"}'
    assert list(selected("sum(")) == []


def test_a_counter_grows_by_its_value_each_second():
    exporter = Loads(0, frozenset({"a{}"}), {"a{}": 2.0, "b{}": 5.0})
    assert exporter.text(100.0) == "a{} 0.000\nb{} 5.000\n"
    assert exporter.text(103.0) == "a{} 6.000\nb{} 5.000\n"
    exporter.values["a{}"] = 1.0
    assert exporter.text(105.0) == "a{} 8.000\nb{} 5.000\n"


def test_only_the_windows_are_shorter():
    assert shortened("sum(rate(a[5m])) / b[1m] offset 5m", "6s") == "sum(rate(a[6s])) / b[6s] offset 5m"
