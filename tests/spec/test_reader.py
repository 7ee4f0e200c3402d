"""Bytes to documents."""

import re

import orjson
import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from blueprint.finding import Finding
from blueprint.spec.reader import MAX_BYTES, MAX_DEPTH, Reading, read


def _all(reading: Reading) -> list[Finding]:
    found = [finding for text in reading.texts for finding in text.findings]
    return [*found, *([reading.finding] if reading.finding else [])]


def _lines(raw: bytes) -> int:
    return len(re.split(rb"\r\n|\n|\r", raw))


def test_documents_are_counted_and_empty_ones_passed_over() -> None:
    reading = read(b"# only a comment\n---\na: 1\n---\n---\n- b\n...\n", "f")
    assert [text.data for text in reading.texts] == [{"a": 1}, ["b"]]
    assert not _all(reading)


@pytest.mark.parametrize("raw", [b"", b"\n", b"# c", b"---\n", b"---\n---\n", b"\xef\xbb\xbf"])
def test_nothing_is_no_document(raw: bytes) -> None:
    assert read(raw, "f") == Reading()


def test_documents_before_a_mistake_are_kept() -> None:
    reading = read(b"a: 1\n---\nb: [\n", "f")
    assert [text.data for text in reading.texts] == [{"a": 1}]
    assert reading.finding is not None
    assert reading.finding.source is not None
    assert reading.finding.source.line == 3


def test_byte_order_mark_and_windows_line_ends_are_fine() -> None:
    [text] = read("\ufeffa: 1\r\nb:\r\n  - x\r\n".encode(), "f").texts
    assert text.data == {"a": 1, "b": ["x"]}
    assert not text.findings
    place = text.place.child("b")
    assert place is not None
    assert (place.key_line, place.key_column) == (2, 1)


def test_columns_count_characters() -> None:
    [text] = read("{é😀: 1, b: 2}".encode(), "f").texts
    place = text.place.child("b")
    assert place is not None
    assert (place.key_column, place.column) == (9, 12)


def test_a_large_file_is_refused_at_once() -> None:
    reading = read(b"a: 1\n" * (MAX_BYTES // 5 + 1), "f")
    assert [finding.code for finding in _all(reading)] == ["SPC101"]
    assert not reading.texts


def test_the_largest_file_is_read() -> None:
    filler = b"a: " + b"x" * (MAX_BYTES - 3)
    assert not _all(read(filler, "f"))


@pytest.mark.parametrize("raw", [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", b"\x7fELF\x02\x01\x01\0", b"\0" * 100, b"a: 1\n\0"])
def test_binary_is_one_finding(raw: bytes) -> None:
    [finding] = _all(read(raw, "f"))
    assert finding.code == "SPC102"
    assert "binary" in finding.message


@pytest.mark.parametrize(
    "raw",
    [
        b"[" * 100_000,
        b"{a: " * 100_000,
        b"- " * 10_000 + b"x",
        b"".join(b" " * n + b"a:\n" for n in range(1000)),
        b"? " * 10_000,
        b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1),
    ],
    ids=["lists", "mappings", "items", "blocks", "keys", "one-too-many"],
)
def test_deep_nesting_is_one_finding(raw: bytes) -> None:
    findings = [finding for finding in _all(read(raw, "f")) if finding.code != "SPC109"]
    assert [finding.code for finding in findings] == ["SPC105"]


def test_the_deepest_document_is_read() -> None:
    assert not _all(read(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH, "f"))


def test_an_anchor_bomb_is_one_finding_and_nothing_is_expanded() -> None:
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    rows += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)]
    reading = read("\n".join(rows).encode(), "f")
    assert [finding.code for finding in _all(reading)] == ["SPC106"]
    assert len(orjson.dumps(reading.texts[0].data)) < 5000


def test_an_alias_of_itself_is_one_finding() -> None:
    [text] = read(b"a: &a [*a, {b: *a}]", "f").texts
    assert [finding.code for finding in text.findings] == ["SPC106"]
    assert text.data == {"a": [None, {"b": None}]}


def test_each_document_is_told_of_its_own_anchor() -> None:
    reading = read(b"a: &a 1\n---\nb: &b 2\n", "f")
    assert [finding.source.line for finding in _all(reading) if finding.source] == [1, 3]


def test_the_first_of_two_values_is_kept() -> None:
    [text] = read(b"a: 1\na: {b: yes}\nc: 2\n", "f").texts
    assert text.data == {"a": 1, "c": 2}


_PLAIN_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.text(st.characters(exclude_categories=["Cs", "Cc"]))
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=20,
)


@given(_PLAIN_JSON)
@example({"a": "\u2028", "b": "\x85"})
def test_json_reads_as_json(value: object) -> None:
    """JSON is YAML: quoted strings are never a surprise."""
    raw = orjson.dumps({"value": value})
    if re.search("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]", raw.decode()) or b"\\u0000" in raw:
        return
    if re.search(r"[^\"\w.][-+]?\d+(\.\d+)?[eE]", raw.decode()):
        return  # 1e16 is a number in YAML 1.2 only, and said to be
    [text] = read(raw, "f").texts
    assert text.data == {"value": value}
    assert not text.findings


@settings(max_examples=300)
@given(st.binary(max_size=200))
@example(b"\xff\xfe\0\0")
@example(b"a\r b: c")
@example(b"\r\r: [")
def test_any_bytes_give_findings_with_lines(raw: bytes) -> None:
    for finding in _all(read(raw, "f")):
        assert finding.source is not None
        assert 1 <= finding.source.line <= _lines(raw)


_YAMLISH = st.lists(
    st.sampled_from(
        ["a", "b: ", ": ", "- ", "\n", "\n  ", "\n    ", "\t", "[", "]", "{", "}", ",", "&x ", "*x", "!!str ", "? ",
         "<<: ", '"', "'", ">", "|", "---\n", "...\n", "%YAML 1.1\n", "# c", "yes", "0777", "~", "\\", "é", "\r"]
    ),
    max_size=40,
).map("".join)  # fmt: skip


@settings(max_examples=500)
@given(_YAMLISH)
def test_anything_like_yaml_gives_findings_with_lines_and_json(text: str) -> None:
    raw = text.encode()
    reading = read(raw, "f")
    for finding in _all(reading):
        assert finding.source is not None
        assert 1 <= finding.source.line <= _lines(raw)
    for document in reading.texts:
        orjson.dumps(document.data)


@settings(max_examples=200)
@given(_YAMLISH)
def test_what_gets_no_finding_is_what_pyyaml_reads(text: str) -> None:
    reading = read(text.encode(), "f")
    if _all(reading):
        return
    ours = [document.data for document in reading.texts]
    assert ours == [document for document in yaml.load_all(text, yaml.CSafeLoader) if document is not None]


def test_a_file_full_of_surprises_is_read_to_its_end() -> None:
    [text] = read(b"[" + b"y," * 20_000 + b"]", "f").texts
    assert len(text.findings) == 20_000
