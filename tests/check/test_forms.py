"""Forms of names: each with what fits, what does not, and what is just too long."""

from collections.abc import Callable

import pytest

from blueprint.check import forms


@pytest.mark.parametrize(
    ("form", "good", "bad"),
    [
        (forms.label_1123, ["a", "0a", "a-b", "a" * 63], ["", "A", "a.b", "-a", "a-", "a_b", "a" * 64, "a\n"]),
        (forms.label_1035, ["a", "a0", "a-b", "a" * 63], ["", "0a", "a.b", "a-", "a" * 64]),
        (forms.subdomain, ["a", "0.a", "a-b.c", "a" * 253], ["", "a..b", ".a", "a.", "A", "a_b", "a" * 254]),
        (forms.subdomain_underscored, ["_tcp.a", "a_b"], ["", "a b", "a" * 254]),
        (forms.path_segment, ["A b_c:d", "x" * 300], [".", "..", "a/b", "a%b"]),
        (
            forms.qualified_name,
            ["a", "A.b_c", "x.y/Z", "a" * 63],
            ["", "/a", "a/", "a/b/c", "X.y/z", "-a", "a" * 64, "y/" + "a" * 64],
        ),
        (forms.annotation_key, ["X.y/z"], ["a/b/c", ""]),
        (forms.label_value, ["", "a", "A.b_c-0", "a" * 63], ["-a", "a b", "é", "a" * 64]),
        (forms.port_name, ["http", "a-1", "1a"], ["", "A", "1", "a--b", "-a", "a-", "a" * 16]),
        (forms.config_key, ["a.B_c-0", "...a"[3:], ".a"], ["", ".", "..", "..a", "a b", "a" * 254]),
        (forms.env_name, ["A", "A B", "1a", "a.b"], ["", "A=B", "é", "a\tb"]),
        (forms.header_name, ["X-A"], ["", "X A", "X_A"]),
        (forms.relative_path, ["a", "a/b", "a..b", ""], ["/a", "../a", "a/../b"]),
        (forms.local_path, ["a", "a/b"], ["..a", "../a", "/a"]),
    ],
)
def test_forms(form: Callable[[str], str], good: list[str], bad: list[str]) -> None:
    assert [text for text in good if form(text)] == []
    assert [text for text in bad if not form(text)] == []


def test_percentages() -> None:
    assert forms.percent("25%")
    assert not forms.percent("25")
    assert not forms.percent("2.5%")
