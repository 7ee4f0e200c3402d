"""Emitted YAML: canonical, and read back equal by PyYAML (C and pure) and the Rust parser.

The API server's own parser is asked in tests/conformance/test_emit_roundtrip.py.
"""

from __future__ import annotations

import json

import pytest
import yaml
import yaml_rs
from hypothesis import example, given, settings
from hypothesis import strategies as st

from blueprint.render.emit import emit, emit_all, flow, plain, quote
from tests.render.strings import NASTY, nasty_text


def read_back(text: str) -> list[object]:
    return [
        yaml.load(text, yaml.CSafeLoader),
        yaml.load(text, yaml.SafeLoader),
        yaml_rs.loads(text, parse_datetime=False),
    ]


def same(left: object, right: object) -> bool:
    """Equal in value and type: 1 is not 1.0 and not true."""
    return json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)


def assert_reads_back(obj: object) -> None:
    text = emit(obj)
    for found in read_back(text):
        assert same(found, obj), text


@pytest.mark.parametrize("text", NASTY, ids=lambda text: ascii(text)[:30])
def test_nasty_strings_read_back_everywhere(text):
    assert_reads_back({"a": text, "b": [text, [text]], text: {"c": text}, "z": [{text: text}, {"y": text, "x": 1}]})
    assert_reads_back([text, [text], [{text: [text]}]])


leaves = st.one_of(
    nasty_text,
    st.integers(-(2**63), 2**64 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.none(),
)
trees = st.recursive(
    leaves, lambda t: st.lists(t, max_size=4) | st.dictionaries(nasty_text, t, max_size=4), max_leaves=12
)


@settings(max_examples=150)
@given(st.dictionaries(nasty_text, trees, min_size=1, max_size=4) | st.lists(trees, min_size=1, max_size=4))
@example({"a": {}, "b": [], "c": [[], {}], "d": [[[]]]})
def test_every_tree_reads_back_everywhere(tree):
    assert_reads_back(tree)


@given(trees)
def test_flow_reads_back_everywhere(tree):
    for found in read_back(f"a: {flow(tree)}\n"):
        assert same(found, {"a": tree})


@given(trees)
def test_output_is_ordered_and_clean(tree):
    text = emit({"a": tree})
    assert text.endswith("\n")
    assert "\r" not in text
    assert "\t" not in text
    assert text.encode()  # no half surrogates


@given(st.dictionaries(nasty_text, st.booleans(), min_size=2, max_size=6), st.randoms())
def test_order_of_insertion_does_not_matter(entries, random):
    shuffled = list(entries.items())
    random.shuffle(shuffled)
    assert emit(dict(shuffled)) == emit(entries)


def test_shape():
    deployment = {
        "spec": {
            "template": {"containers": [{"name": "vllm", "args": ["--model=/models/a", "-c", "{{ x }}"], "env": []}]},
            "replicas": 2,
            "empty": {},
        },
        "kind": "Deployment",
        "apiVersion": "apps/v1",
        "data": {"run.sh": "set -e\n\nexec vllm serve\n", "end": "a\nb"},
        "matrix": [[1, 2], []],
    }
    assert emit(deployment) == (
        "apiVersion: apps/v1\n"
        "data:\n"
        "  end: |-\n"
        "    a\n"
        "    b\n"
        "  run.sh: |\n"
        "    set -e\n"
        "\n"
        "    exec vllm serve\n"
        "kind: Deployment\n"
        "matrix:\n"
        "- - 1\n"
        "  - 2\n"
        "- []\n"
        "spec:\n"
        "  empty: {}\n"
        "  replicas: 2\n"
        "  template:\n"
        "    containers:\n"
        "    - args:\n"
        "      - --model=/models/a\n"
        "      - -c\n"
        '      - "{{ x }}"\n'
        "      env: []\n"
        "      name: vllm\n"
    )


def test_a_document_each():
    assert emit_all([{"a": 1}, {"b": 2}]) == "a: 1\n---\nb: 2\n"
    assert emit_all([]) == ""


PLAIN = [
    "v1",
    "apps/v1",
    "64Gi",
    "100m",
    "1.35.4",
    "10.0.0.0/8",
    "50%",
    "--flag=value",
    "-c",
    "/bin/sh",
    "$(POD_NAME)",
    ".spec.replicas",
    "a b",
    "a:b",
    "a#b",
    "registry.example.com/vllm@sha256:" + "0" * 64,
]


@pytest.mark.parametrize("text", PLAIN)
def test_what_people_read_often_stays_plain(text):
    assert plain(text)
    assert emit({"a": text}) == f"a: {text}\n"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (-7, "-7"),
        (2**64 - 1, "18446744073709551615"),
        (1.0, "1.0"),
        (-0.0, "-0.0"),
        (0.1, "0.1"),
        (1e16, "10000000000000000.0"),
        (1.5e-7, "0.00000015"),
        (1e300, "1.0e+300"),
        (2.5e-300, "2.5e-300"),
        (5e-324, "5.0e-324"),
        (True, "true"),
        (None, "null"),
        ("true", '"true"'),
        ("", '""'),
        ("é", '"é"'),
        ("\u0085\u2028\ufeff\u202e", '"\\u0085\\u2028\\uFEFF\\u202E"'),
        ("\U000e0041", '"\\U000E0041"'),
        ("a\tb", '"a\\tb"'),
        ('say "x"', 'say "x"'),
        ("C:\\dir: x", '"C:\\\\dir: x"'),
    ],
)
def test_scalars(value, text):
    assert emit({"a": value}) == f"a: {text}\n"


def test_a_long_key_takes_the_explicit_form():
    tree = {"k" * 1001: {"a": "x"}, "é" * 1200: ["x"], "k" * 1000: 1}
    assert_reads_back({**tree, "nested": [tree]})
    for found in read_back(f"a: {flow([tree])}\n"):
        assert found == {"a": [tree]}


def test_top_level_scalars():
    assert emit("a: b\n") == '"a: b\\n"\n'
    assert emit({}) == "{}\n"
    assert emit([]) == "[]\n"
    assert emit(None) == "null\n"


@pytest.mark.parametrize(
    ("obj", "error", "message"),
    [
        ({"a": [{"b": {1}}]}, TypeError, r"a\[0\]\.b: set is no JSON type"),
        ({"a": {3: "x"}}, TypeError, "a: the key 3 is no string"),
        ({"a": {1: "x", "b": 1}}, TypeError, "a: "),
        ({"a": b"x"}, TypeError, "a: bytes is no"),
        ({"a": "x\ud800"}, ValueError, "a: half of a surrogate pair"),
        ({"a": float("nan")}, ValueError, "a: nan is no JSON number"),
        ({"a": [2**64]}, ValueError, r"a\[0\]: .* 64 bits"),
        ({"x" * 200 + "\ud800": 1}, ValueError, "surrogate"),
    ],
)
def test_what_cannot_be_written_says_where(obj, error, message):
    with pytest.raises(error, match=message):
        emit(obj)


@pytest.mark.parametrize("wrap", [lambda t: {"a": t}, lambda t: [t]])
@pytest.mark.parametrize("levels", [201, 100_000])
def test_too_deep_is_an_error(wrap, levels):
    tree: object = "x"
    for _ in range(levels):
        tree = wrap(tree)
    with pytest.raises(ValueError, match="nested deeper than 200"):
        emit(tree)


def test_deep_but_allowed():
    tree: object = "x"
    for _ in range(150):
        tree = {"a": [tree]} if tree == "x" else {"a": tree}
    assert_reads_back(tree)


def test_quote_is_json_below_the_astral_planes():
    assert json.loads(quote('a\\"\n\t\x01\x7f\u2028é')) == 'a\\"\n\t\x01\x7f\u2028é'
