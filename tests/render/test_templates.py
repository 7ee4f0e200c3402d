"""Templates: what they render, and how each mistake is told (a code, a line of the template, the place in the spec)."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from blueprint.errors import UsageError
from blueprint.finding import Source
from blueprint.render import templates as templates_module
from blueprint.render.templates import SUFFIX, TemplateProblem, Templates, shipped_folder
from tests.render.strings import NASTY, nasty_text

SPEC = Source("apps/chat/chat-70b.yaml", 3)


class Desk:
    """A user's folder of templates and an empty shipped one."""

    def __init__(self, root: Path):
        self.folder = root / "templates"
        self.shipped = root / "shipped"
        self.folder.mkdir()
        self.shipped.mkdir()

    def write(self, text: str, name: str = "Thing") -> Path:
        path = self.folder / f"{name}{SUFFIX}"
        path.write_bytes(text.encode())
        return path

    def templates(self) -> Templates:
        return Templates([self.folder], shipped=self.shipped)

    def render(self, text: str, **values):
        self.write(text)
        return self.templates().render("Thing", source=SPEC, **values)

    def problem(self, text: str, **values):
        with pytest.raises(TemplateProblem) as caught:
            self.render(text, **values)
        return caught.value.finding


@pytest.fixture
def desk(tmp_path):
    return Desk(tmp_path)


@dataclass
class Volume:
    name: str
    size: str | None


def test_a_template_becomes_plain_data(desk):
    text = (
        "# a comment with {{ name }}\n"
        "kind: Thing\n"
        "metadata:\n"
        "  name: {{ name }}\n"
        "  labels: {{ labels }}\n"
        "spec:\n"
        "  image: {{ registry ~ '/' ~ name }}  # joined\n"
        "  capabilities: {drop: [ALL], add: {{ [] }}}\n"
        "  volumes:\n"
        "{% for volume in volumes %}\n"
        "    - name: {{ volume.name }}\n"
        "      emptyDir: {{ {'sizeLimit': volume.size} if volume.size else none }}\n"
        "{% else %}\n"
        "    []\n"
        "{% endfor %}\n"
        "  script: |\n"
        "    exec true\n"
    )
    values = {"name": "a", "labels": {"b": "c: d"}, "registry": "registry.example.com"}
    assert desk.render(text, volumes=[Volume("v", "1Gi"), Volume("w", None)], **values) == {
        "kind": "Thing",
        "metadata": {"name": "a", "labels": {"b": "c: d"}},
        "spec": {
            "image": "registry.example.com/a",
            "capabilities": {"drop": ["ALL"], "add": []},
            "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}, {"name": "w"}],
            "script": "exec true\n",
        },
    }
    assert desk.render(text, volumes=[], **values)["spec"]["volumes"] == []


def test_null_entries_are_left_out_at_every_depth(desk):
    text = "a: {{ x }}\nb: [{c: {{ x }}, d: 1}, {{ x }}]\ne: {f: {{ x }}}\ng: {{ {'h': none, 'i': 0} }}\n"
    assert desk.render(text, x=None) == {"b": [{"d": 1}, None], "e": {}, "g": {"i": 0}}


def test_nasty_values_stay_in_their_place(desk):
    desk.write("a: {{ x }}\nb: {{ [x, {x: x}] }}\n{{ key }}: 1\nz: [{{ x }}]")
    templates = desk.templates()
    for text in NASTY:
        key = text[:300]  # a longer key needs another form of YAML
        rendered = templates.render("Thing", x=text, key=key)
        assert rendered == {"a": text, "b": [text, {text: text}], key: 1, "z": [text]}, ascii(text)[:99]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(nasty_text, st.one_of(nasty_text, st.integers(-9, 9), st.floats(allow_nan=False, width=32))))
def test_values_come_back_as_they_went_in(tmp_path_factory, entries):
    finite = {key: value for key, value in entries.items() if value not in (float("inf"), float("-inf"))}
    folder = tmp_path_factory.mktemp("t")
    (folder / f"T{SUFFIX}").write_text("a: {{ x }}\n")
    assert Templates([], shipped=folder).render("T", x=finite) == {"a": finite}


def test_a_key_of_a_map_comes_before_its_methods(desk):
    assert desk.render("a: {{ x.items }}\nb: {{ x.keys() | list }}", x={"items": 3}) == {"a": 3, "b": ["items"]}


def test_texts_and_numbers_can_be_joined(desk):
    text = "a: {{ 'x-' ~ n ~ '-' ~ ('y' ~ 1.5) }}\nb: {{ ['p' ~ n] }}\n{% if 'x' ~ n == 'x3' %}\nc: 1\n{% endif %}"
    assert desk.render(text, n=3) == {"a": "x-3-y1.5", "b": ["p3"], "c": 1}


def test_deep_but_allowed(desk):
    rendered = desk.render("\n".join(" " * i + "a:" for i in range(150)) + " {{ x }}", x=1)
    for _ in range(150):
        rendered = rendered["a"]
    assert rendered == 1


def test_the_users_file_comes_first(desk):
    (desk.shipped / f"A{SUFFIX}").write_text("a: ours\n")
    (desk.shipped / f"B{SUFFIX}").write_text("b: ours\n{% include 'A.yaml.j2' %}")
    before = desk.templates().digest()
    desk.write("a: yours\nextra: 1\n", "A")
    templates = desk.templates()
    assert templates.names() == ["A", "B"]
    assert templates.render("A") == {"a": "yours", "extra": 1}
    assert templates.render("B") == {"b": "ours", "a": "yours", "extra": 1}
    assert templates.digest() != before


def test_the_digest_depends_on_names_and_texts_only(desk, tmp_path):
    desk.write("a: 1\r\nb: 2\r\n")
    other = Desk(tmp_path / "elsewhere") if (tmp_path / "elsewhere").mkdir() is None else None
    other.write("a: 1\nb: 2\n")
    assert desk.templates().digest() == other.templates().digest()
    other.write("a: 1\nb: 3\n")
    assert desk.templates().digest() != other.templates().digest()


def test_a_missing_folder_is_wrong_usage(tmp_path):
    with pytest.raises(UsageError):
        Templates([tmp_path / "nowhere"])


def test_no_such_template(desk):
    desk.write("a: 1", "Deployment")
    with pytest.raises(TemplateProblem) as caught:
        desk.templates().render("Deploymnet", source=SPEC)
    finding = caught.value.finding
    assert (finding.code, finding.source, finding.fix) == ("TPL101", SPEC, "did you mean Deployment?")


BAD = [
    # text, values, code, line, part of the message
    ("a: 1\n{% include '../secret.yaml.j2' %}", {}, "TPL101", 2, "'../secret.yaml.j2', which is not there"),
    ("a: 1\n{% include '/etc/passwd' %}", {}, "TPL101", 2, "which is not there"),
    ("a: 1\nb: {{ x", {}, "TPL102", 2, "unexpected end"),
    ("a: 1\nb: {{ x | tojson }}", {"x": 1}, "TPL102", 2, "No filter named 'tojson'"),
    ("a: 1\nb: {{ [1, 2] | random }}", {}, "TPL102", 2, "No filter named 'random'"),
    ("a: 1\n{% if x %}\nb: 2\n", {"x": 1}, "TPL102", 3, "end"),
    ("a: 1\n\nb: {{ nmae }}", {"name": 1}, "TPL103", 3, "'nmae' is undefined"),
    ("a: {{ x.y }}", {"x": {"z": 1}}, "TPL103", 1, "no attribute 'y'"),
    ("a: 1\n{% for v in vs %}\n{% endfor %}", {}, "TPL103", 2, "'vs' is undefined"),
    ("a: {{ 1 if false }}", {}, "TPL103", 1, "no else"),
    ("a: {{ x.__class__ }}", {"x": 1}, "TPL104", 1, "unsafe"),
    ("a: {{ ''.__class__.__mro__ }}", {}, "TPL104", 1, "unsafe"),
    ("a: {{ x.append(1) }}", {"x": []}, "TPL104", 1, "unsafe"),
    ("a: {{ '{}'.format(1) }}", {}, "TPL104", 1, "unsafe"),
    ("a: {{ 'x'.center(9) }}", {}, "TPL104", 1, "unsafe"),
    ("a: {{ 'x' * 1000000000 }}", {}, "TPL104", 1, "numbers only"),
    ("a: {{ '%09999999d' % 1 }}", {}, "TPL104", 1, "numbers only"),
    ("a: {{ 9 ** 9 ** 9 }}", {}, "TPL104", 1, "no powers"),
    ("a: [{% for i in range(1000000000) %}{{ i }},{% endfor %}]", {}, "TPL105", 1, "Range too big"),
    (
        "{% for i in range(9999) %}{% for j in range(9999) %}{% endfor %}{% endfor %}a: 1",
        {},
        "TPL105",
        1,
        "100,000 steps",
    ),
    ("{% set l = range(500) | list %}\n{% for i in l for j in l %}{% endfor %}a: 1", {}, "TPL102", 2, ""),
    ("{% macro f(x) %}{{ f(x) }}{% endmacro %}\na: {{ f(1) }}", {}, "TPL105", 1, "calls or includes itself"),
    ("a: 1\n{% include 'Thing.yaml.j2' %}", {}, "TPL105", 2, "calls or includes itself"),
    (
        "{% set n = namespace(t='aaaaaaaa') %}{% for i in range(99) %}{% set n.t = n.t ~ n.t %}{% endfor %}a: 1",
        {},
        "TPL105",
        1,
        "characters",
    ),
    (
        "{% set n = namespace(t='aaaaaaaa') %}{% for i in range(99) %}{% set n.t = n.t + n.t %}{% endfor %}a: 1",
        {},
        "TPL105",
        1,
        "parts",
    ),
    (
        "{% for i in range(9999) %}\n{{ i | string }}: {{ x }}\n{% endfor %}",
        {"x": "y" * 999},
        "TPL105",
        0,
        "1,500,000 characters",
    ),
    ("a: {{ x.items }}", {"x": {}}, "TPL106", 1, "a function"),
    ("a: 1\nb: {{ x }}", {"x": {1: 2}}, "TPL106", 2, "key 1 is no string"),
    ("a: {{ x }}", {"x": float("nan")}, "TPL106", 1, "nan"),
    ("a: {{ x }}", {"x": "\ud800"}, "TPL106", 1, "surrogate"),
    ("a: {{ 'x-' ~ x }}", {"x": None}, "TPL106", 1, "None cannot be part of a text"),
    ("a: 1\nb: {{ [{'c': 'x-' ~ ('y' ~ x)}] }}", {"x": True}, "TPL106", 2, "True cannot be part of a text"),
    ("a: {{ 'x-' ~ x }}", {}, "TPL103", 1, "'x' is undefined"),
    (
        "{% set n = namespace(i=9) %}{% for i in range(99) %}{% set n.i = n.i * n.i %}{% endfor %}a: 1",
        {},
        "TPL105",
        1,
        "number",
    ),
    ("a: {{ x }}", {"x": {1, 2}}, "TPL106", 1, "set is no JSON type"),
    ("a: {{ x }}", {"x": 2**70}, "TPL106", 1, "64 bits"),
    ("{% if true %}\na: 1\n   b: 2\n{% endif %}\nc: 3\n", {}, "TPL107", 3, "rendered line 2"),
    ("{% for k in ks %}\n{{ k }}: 1\n{% endfor %}", {"ks": ["a", "b", "a"]}, "TPL107", 2, "duplicate mapping key"),
    ("a:\n  x: 1\n  w: 2\nb:\n  x: 3\n  z: 4\n  x: 5\n", {}, "TPL107", 7, "duplicate mapping key"),
    ("a: [1, 2\n", {}, "TPL107", 1, "no YAML"),
    ("a: b: c", {}, "TPL107", 1, "no YAML"),
    ("a: " + "[" * 9999 + "]" * 9999, {}, "TPL107", 1, "recursion limit"),
    ("a: 1\nb:\n" + "- " * 100_000 + "x", {}, "TPL107", 3, "nested too deeply"),
    ("? " * 100_000 + "x", {}, "TPL107", 1, "nested too deeply"),
    ("\n".join(" " * i + "a:" for i in range(300)), {}, "TPL107", 251, "nested too deeply"),
    ("\n".join(" " * i + "a:" for i in range(200)) + " 1", {}, "TPL107", 0, "nested too deeply"),
    ("a: 1\nb: [{#", {}, "TPL107", 0, "no YAML"),
    ("", {}, "TPL108", 0, "nothing"),
    ("- a\n", {}, "TPL108", 0, "a list"),
    ("a: 1\n---\nb: 1\n", {}, "TPL108", 0, "several documents"),
    ("a", {}, "TPL108", 0, "a single value"),
    ("{}", {}, "TPL108", 0, "an empty map"),
    ("a:\n  {{ x }}: 1\n", {"x": 8}, "TPL108", 0, "key 8 under a is no string"),
    ("a: 1\n? {{ x }}\n: 2", {"x": {"b": 1}}, "TPL108", 0, "a map or a list under the top is no string"),
    ("a: 1\n? {{ x }}\n: 2", {"x": [{"b": 1}]}, "TPL108", 0, "no string"),
    ("a:\na:\n? \u2028  \n  @\n", {}, "TPL107", 0, "no YAML"),
    ("a: {{ 1 + x }}", {"x": "b"}, "TPL114", 1, "TypeError"),
    ("a: 1\nb: {{ 1 / 0 }}", {}, "TPL114", 2, "ZeroDivisionError"),
]


@pytest.mark.parametrize(("text", "values", "code", "line", "message"), BAD, ids=lambda v: repr(v)[:40])
def test_a_mistake_is_told_with_its_line(desk, text, values, code, line, message):
    finding = desk.problem(text, **values)
    assert finding.code == code
    assert message in finding.message
    assert "\n" not in finding.message
    assert finding.message.endswith(f"(rendering {SPEC})")
    assert finding.source == Source(str(desk.folder / f"Thing{SUFFIX}"), line)


def test_a_mistake_in_an_included_file_is_told_there(desk):
    part = desk.write("x: 1\ny: {{ nope }}\n", "Part")
    assert desk.problem("a: 1\n{% include 'Part.yaml.j2' %}").source == Source(str(part), 2)
    part = desk.write("x: 1\n   y: 2\n", "Part")
    assert desk.problem("a: 1\n{% include 'Part.yaml.j2' %}").source == Source(str(part), 2)
    part = desk.write("x: 1\ny: 'q {{ a }}'\n", "Part")
    assert desk.problem("a: 1\n{% include 'Part.yaml.j2' %}").source == Source(str(part), 2)


def test_a_template_can_be_rendered_after_a_runaway(desk):
    desk.write("{% for i in range(n) %}{% for j in range(n) %}{% endfor %}{% endfor %}a: 1")
    templates = desk.templates()
    for n, fine in [(300, True), (900, False), (300, True)]:
        if fine:
            assert templates.render("Thing", n=n) == {"a": 1}
        else:
            with pytest.raises(TemplateProblem):
                templates.render("Thing", n=n)


def test_files_that_cannot_be_used(desk, tmp_path):
    (tmp_path / "secret").write_text("a: secret\n")
    (desk.folder / f"Link{SUFFIX}").symlink_to(tmp_path / "secret")
    (desk.folder / f"Latin{SUFFIX}").write_bytes(b"a: \xe9\n")
    (desk.folder / f"Zero{SUFFIX}").write_bytes(b"a: \0\n")
    (desk.folder / f"Large{SUFFIX}").write_text("a: 1\n" * 60_000)
    (desk.folder / f"Folder{SUFFIX}").mkdir()
    templates = desk.templates()
    findings = templates.check()
    assert [Path(f.source.file).name.split(".")[0] for f in findings] == ["Folder", "Large", "Latin", "Link", "Zero"]
    assert {f.code for f in findings} == {"TPL113"}
    for name in ("Folder", "Large", "Latin", "Link", "Zero"):
        with pytest.raises(TemplateProblem) as caught:
            templates.render(name)
        assert caught.value.finding.code == "TPL113"


@pytest.mark.skipif(os.path.normcase("A") == "a", reason="needs a file system that tells A from a")
def test_two_files_that_differ_in_case_only(desk):
    desk.write("a: 1", "thing")
    desk.write("a: 1", "Thing")
    assert [f.code for f in desk.templates().check()] == ["TPL113"]


def test_a_byte_order_mark_is_no_content(desk):
    assert desk.render("\ufeffa: 1\n") == {"a": 1}


def test_check_reads_all_templates_without_values(desk):
    desk.write("a: {{ x }}\n", "Good")
    desk.write("a: {{ x\n", "Syntax")
    desk.write("a: '{{ x }}'\nb: yes\n", "Shape")
    found = [(f.code, f.source.line) for f in desk.templates().check()]
    assert found == [("TPL109", 1), ("TPL110", 2), ("TPL102", 1)]


def test_our_own_templates_are_well_formed():
    assert Templates().check() == []
    assert shipped_folder().is_dir()


def _strings(value):
    if isinstance(value, dict):
        for key, child in value.items():
            yield key
            yield from _strings(child)
    elif isinstance(value, list):
        for child in value:
            yield from _strings(child)
    elif isinstance(value, str):
        yield value


PIECES = [
    "{{ x }}",
    "\n",
    "a: ",
    "- ",
    "  ",
    '"',
    "'",
    "|\n ",
    ">\n  ",
    "{",
    "}",
    "[",
    "]",
    ", ",
    ": ",
    " # ",
    "#",
    "z",
    ":",
    "? ",
]
PIECES += ["{% if x %}", "{% else %}", "{% endif %}", '"k": ', "''", "\\", "---", "/", "{{", "{%", "{#", "&b ", "\t"]


# A user's template: ours are looked at by a test of their own, not when they are rendered.
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@example("|\n {{ x }}")
@example(">1-\n  b\n # {{ x }}")
@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
def test_any_template_fails_cleanly_or_keeps_the_value_whole(tmp_path_factory, text):
    folder, ours = tmp_path_factory.mktemp("t"), tmp_path_factory.mktemp("ours")
    (folder / f"T{SUFFIX}").write_text(f"a: {text}")
    value = "'§\": , ] } # {{ - \n\\"
    try:
        rendered = Templates([folder], shipped=ours).render("T", x=value)
    except TemplateProblem:
        return
    assert all(found == value for found in _strings(rendered) if "§" in found)


def test_every_code_has_its_row():
    rows = yaml.safe_load((Path(templates_module.__file__).parents[1] / "catalog/data/rules/tpl.yaml").read_text())
    assert {code for _, _, code, _, _ in BAD} <= {row["code"] for row in rows}
