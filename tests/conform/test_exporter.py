"""Series on a port, and which series a query selects."""

import urllib.request

from blueprint.conform.daemon import free_ports
from blueprint.conform.exporter import Gauges, fixed, named, selected

QUERY = 'sum(service:requests:rate1m{namespace="chat",service="a",code=~"2.."})'


def test_a_series_is_exposed_until_it_is_taken_out():
    [port] = free_ports(1)
    with Gauges(port, values={'up{a="b"}': 1.0, "other{}": 2.5}) as exporter:

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
