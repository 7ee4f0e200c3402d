"""Reading manifests: what a body holds, what is reported, and that nothing stops the rest."""

from __future__ import annotations

import io
import json
import os
import random
from pathlib import Path

import pytest
import yaml_rs
from hypothesis import given
from hypothesis import strategies as st

from blueprint.check.documents import documents, load_yaml, suspicious
from blueprint.check.goyaml import Decoder, compose
from blueprint.check.locate import field_path, locate, located, path_steps
from blueprint.check.read import MAX_FILE, Reading, read, read_bytes
from blueprint.check.scalars import Unreadable, resolve
from blueprint.errors import UsageError
from blueprint.finding import Finding, Severity, Source

READ_BY_KUBERNETES = json.loads((Path(__file__).parent / "goyaml.json").read_text("utf-8"))
SETTINGS = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\n"


def of(text: str | bytes, file: str = "a.yaml") -> Reading:
    reading = Reading()
    read_bytes(text if isinstance(text, bytes) else text.encode(), file, reading)
    return reading


def exact(text: str) -> object:
    node = compose(text)
    return Decoder().value(node) if node else None


def written(value: object) -> str:
    """JSON text, where 1, 1.0, True and "1" differ."""
    return json.dumps(value, sort_keys=True)


@pytest.mark.parametrize("case", READ_BY_KUBERNETES["cases"], ids=lambda case: repr(case["yaml"])[:40])
def test_values_are_those_of_the_parser_of_kubernetes(case: dict[str, str]) -> None:
    if "json" not in case:
        with pytest.raises(Unreadable):
            exact(case["yaml"])
        return
    expected = json.loads(case["json"])
    assert written(exact(case["yaml"])) == written(expected)
    assert written(load_yaml(case["yaml"])[0]) == written(expected)


WORDS = st.sampled_from([case["yaml"] for case in READ_BY_KUBERNETES["cases"] if "\n" not in case["yaml"]])
FRAMES = st.sampled_from(
    ["a: {}", "- {}", "a: [{}, b]", "a: {{b: {}}}", "{}: b", 'a: "{}"', "a: '{}'", "a: |-\n  {}", "a: {}  # c"]
)


@given(FRAMES, st.one_of(WORDS, st.text(alphabet="0123456789.:-_+eExXoOTZ yntf~", min_size=1, max_size=8)))
def test_the_fast_parser_is_used_only_where_it_agrees(frame: str, word: str) -> None:
    text = frame.format(word)
    if suspicious(text):
        return
    try:
        fast = yaml_rs.loads(text)
    except ValueError:
        return
    assert repr(fast) == repr(exact(text))


@given(st.text())
def test_any_text_is_read_without_a_crash(text: str) -> None:
    of(text.encode("utf-8", "surrogatepass"))


@given(st.binary(max_size=200))
def test_any_bytes_are_read_without_a_crash(data: bytes) -> None:
    of(data)
    of(data, "a.json")


def test_ordinary_objects_take_the_fast_way() -> None:
    text = 'a: 1\nb: "2"\nc: true\nd: [w, x]\ne: {f: 64Gi, g: 100m}\nh: 10.0.0.0/8\ni: null\nj: v1.35.4\nk: "10:00"\n'
    assert not suspicious(text.replace('k: "10:00"\n', ""))
    assert suspicious(text)


def test_an_image_with_a_digest_takes_the_fast_way() -> None:
    text = "image: registry.example.com/a@sha256:37bf51bf\nports: [a:1, b:yes]\n"
    assert not suspicious(text)
    assert yaml_rs.loads(text) == exact(text)


@pytest.mark.parametrize("text", ["k: |\n", "k: >\n\n", "k: |+\n", "k: |2 # two\n", "k: [|37]\n"])
def test_a_block_without_lines_takes_the_exact_way(text: str) -> None:
    assert suspicious(text)


def test_several_documents_keep_their_lines() -> None:
    reading = of(f"# head\n---\n{SETTINGS}---\n\n# only a comment\n---\n\n{SETTINGS}")
    assert [(m.source.line, m.source.column) for m in reading.manifests] == [(3, 1), (12, 1)]
    assert reading.counts.documents == reading.counts.objects == 2


def test_windows_line_ends_and_a_byte_order_mark_change_nothing() -> None:
    text = SETTINGS + "data:\n  a: |\n    one\n    two\n"
    windows = b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode()
    assert of(windows).manifests == of(text).manifests
    assert not of(windows).findings


def test_lists_give_their_members_with_their_places() -> None:
    text = f"""apiVersion: v1
kind: ConfigMapList
items:
- metadata: {{name: a}}
- metadata:
    name: b
---
{SETTINGS}"""
    reading = of(text)
    assert [(m.kind, m.ref.name, m.source.line, m.source.column) for m in reading.manifests] == [
        ("ConfigMap", "a", 4, 3),
        ("ConfigMap", "b", 5, 3),
        ("ConfigMap", "settings", 8, 1),
    ]
    assert locate(text, reading.manifests[1].source, "metadata.name") == Source("a.yaml", 6, 5)


def test_json_documents_follow_one_another() -> None:
    first = '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}'
    text = first + '\n\n {"apiVersion": "v1", "kind": "Pod", "spec": {"x": 2.0}}'
    reading = of(text, "pods.json")
    assert [(m.source.line, m.source.column) for m in reading.manifests] == [(1, 1), (3, 2)]
    assert repr(reading.manifests[1].body["spec"]["x"]) == "2"


def test_what_is_not_an_object_is_counted_and_left() -> None:
    reading = of(
        "name: workflow\non: push\n---\n- 1\n---\napiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"
    )
    assert (reading.counts.foreign, reading.counts.objects) == (3, 0)
    assert {f.code for f in reading.findings} <= {"YML203"}


def test_placeholders_of_running_systems_are_values() -> None:
    reading = of(SETTINGS + 'data:\n  a: "{{ $labels.pod }} {{args.name}}"\n')
    assert not reading.findings
    assert reading.counts.objects == 1


def test_bad_files_do_not_stop_the_others(tmp_path: Path) -> None:
    for name in ("a", "z"):
        (tmp_path / f"{name}.yaml").write_text(SETTINGS.replace("settings", name))
    (tmp_path / "m.yaml").write_bytes(b"\x00\x01")
    (tmp_path / "n.yaml").write_bytes(b"a: \xff\n")
    (tmp_path / "o.yaml").write_text("a: [\n")
    (tmp_path / "p.yaml").write_bytes("a: b\n".encode("utf-16"))
    (tmp_path / "r.yaml").symlink_to(tmp_path / "nowhere")
    reading = read([tmp_path])
    assert [m.ref.name for m in reading.manifests] == ["a", "z"]
    assert [f.code for f in reading.findings] == ["YML102", "YML102", "YML104", "YML102", "YML101"]
    assert (reading.counts.files, reading.counts.unreadable) == (7, 5)


def test_a_huge_file_is_refused_without_being_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.yaml"
    with path.open("wb") as stream:
        stream.truncate(50 * 2**20)
    (finding,) = read([path]).findings
    assert (finding.code, finding.message) == (
        "YML103",
        f"50 MiB is more than the {MAX_FILE // 2**20} MiB that are read from one file",
    )


@pytest.mark.parametrize("levels", [300, 5_000, 100_000])
@pytest.mark.parametrize("shape", ["[{}]", "dash", "json"])
def test_deep_nesting_is_refused(levels: int, shape: str) -> None:
    if shape == "json":
        reading = of('{"a":' * levels + "1" + "}" * levels, "a.json")
    else:
        reading = of("a:\n  " + ("- " * levels + "x" if shape == "dash" else "[" * levels + "]" * levels) + "\n")
    assert [f.code for f in reading.findings] in (["YML108"], []) if shape == "json" and levels == 300 else ["YML108"]


def test_a_billion_laughs_ends_at_once() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [" + ", ".join([f"*a{n - 1}"] * 10) + "]" for n in range(1, 20)]
    assert [f.code for f in of("\n".join(lines)).findings] == ["YML107"]


def test_anchors_used_with_measure_are_expanded() -> None:
    reading = of(SETTINGS + "data: &data {a: one}\nbinaryData: *data\n")
    body = reading.manifests[0].body
    assert body["binaryData"] == {"a": "one"}
    assert body["binaryData"] is not body["data"]
    assert not reading.findings


def test_folders_skip_what_is_hidden_and_order_does_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("b.yml", "a.yaml", "c.json", ".git/x.yaml", "node_modules/y.yaml", "d.txt", "sub/e.yaml"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text('{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}')
    names = [Path(m.source.file).name for m in read([tmp_path]).manifests]
    assert sorted(names) == ["a.yaml", "b.yml", "c.json", "e.yaml"]
    expected = read([tmp_path])
    walk = os.walk

    def shuffled(top: Path) -> object:
        for folder, folders, files in walk(top):
            random.Random(7).shuffle(files)
            yield folder, folders, files

    monkeypatch.setattr(os, "walk", shuffled)
    assert read([tmp_path]).manifests == expected.manifests
    assert read([tmp_path / "b.yml", tmp_path / "a.yaml"]) == read([tmp_path / "a.yaml", tmp_path / "b.yml"])


def test_standard_input_is_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(SETTINGS.encode())))
    (manifest,) = read(["-"]).manifests
    assert manifest.source == Source("<stdin>", 1, 1)


def test_a_missing_path_is_wrong_usage(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        read([tmp_path / "nothing"])


@given(
    st.lists(st.one_of(st.integers(0, 99), st.text(min_size=1)), min_size=1).filter(
        lambda steps: isinstance(steps[0], str)
    )
)
def test_paths_are_read_back(steps: list[str | int]) -> None:
    assert path_steps(field_path(*steps)) == steps


def test_fields_are_located(tmp_path: Path) -> None:
    text = SETTINGS.replace("  name", "  labels: {app.kubernetes.io/name: x}\n  name") + "data:\n  a: one\n"
    path = tmp_path / "a.yaml"
    path.write_text(f"---\n{text}")
    (manifest,) = read([path]).manifests
    assert (manifest.source.line, manifest.source.column) == (2, 1)
    findings = [
        Finding("NAM101", "", manifest.source, path=p)
        for p in ('metadata.labels["app.kubernetes.io/name"]', "data.a", "data.missing", "spec.replicas", "")
    ]
    assert [(f.source.line, f.source.column) for f in located(findings) if f.source] == [
        (5, 12),
        (8, 3),
        (7, 1),
        (2, 1),
        (2, 1),
    ]


@given(st.from_regex(r"[-+]?[0-9a-fxob_.]{1,8}(e[-+]?[0-9]{1,3})?", fullmatch=True))
def test_scalars_resolve_to_json_values(text: str) -> None:
    assert isinstance(resolve(text), str | int | float | None)


def test_documents_split_at_line_starts_only() -> None:
    text = "a: |\n  --- x\n---\nb: 1\n--- # c\nc: 1\n--- d: 1\n"
    assert [(start, separator) for start, _, separator in documents(text)] == [
        (0, ""),
        (3, ""),
        (5, ""),
        (7, "d: 1"),
        (7, ""),
    ]


def test_a_file_is_read_once_however_often_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.yaml").write_text(SETTINGS)
    assert read([".", "a.yaml", "./a.yaml"]).counts.files == 1


def test_a_file_that_is_asked_for_may_be_called_anything(tmp_path: Path) -> None:
    (tmp_path / "settings.txt").write_text(SETTINGS)
    assert len(read([tmp_path / "settings.txt"]).manifests) == 1
    assert not read([tmp_path]).manifests


def test_excluded_files_are_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.yaml", "vendor/b.yaml", "vendor/c/d.yaml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(SETTINGS)
    assert [m.source.file for m in read(["."], exclude=["vendor/**"]).manifests] == ["a.yaml"]


@pytest.mark.parametrize("name", ["a.yaml", "kustomization.yaml", "Chart.yaml", "values.yaml", "templates/a.yaml"])
def test_a_pipe_in_a_folder_keeps_nobody_waiting(tmp_path: Path, name: str) -> None:
    if name in ("values.yaml", "templates/a.yaml"):
        (tmp_path / "Chart.yaml").write_text("apiVersion: v2\nname: c\nversion: 0.1.0\ntype: library\n")
    (tmp_path / name).parent.mkdir(exist_ok=True)
    os.mkfifo(tmp_path / name)
    (finding,) = read([tmp_path], build=True).findings
    assert (finding.code, finding.message) == ("YML101", "cannot read the file: it is no regular file")


def test_links_to_folders_are_not_followed_around(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/b.yaml").write_text(SETTINGS)
    (tmp_path / "a/again").symlink_to(tmp_path)
    assert read([tmp_path]).counts.files == 1


def test_paths_are_named_without_their_base(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/b.yaml").write_text(SETTINGS)
    for path in (".", "a", "a/b.yaml"):
        assert [m.source.file for m in read([path], base=tmp_path).manifests] == ["a/b.yaml"]


def test_nothing_is_said_of_the_style_of_what_is_no_object() -> None:
    assert not of("since: 2024-05-10\non: yes\non: no\n").findings
    assert of(SETTINGS + "since: 2024-05-10\n").findings


@pytest.mark.parametrize(
    ("data", "sure"),
    [
        (b"title: a\nauthors: [b\n", False),
        (b"\xff\xfet\0", False),
        (b"name: caf\xe9\n", False),
        (b"apiVersion: v1\nkind: [b\n", True),
        ("apiVersion: v1".encode("utf-16"), True),
        (b"{'kind': caf\xe9\n", True),
        (b'{"kind": [}', True),
    ],
)
def test_a_broken_file_of_a_folder_is_a_fault_where_it_may_hold_objects(
    tmp_path: Path, data: bytes, sure: bool
) -> None:
    (tmp_path / "x.yaml").write_bytes(data)
    (finding,) = read([tmp_path]).findings
    assert finding.fails is sure
    (finding,) = read([tmp_path / "x.yaml"]).findings  # who asks for a file takes it for objects
    assert finding.fails


def test_templates_of_another_tool_are_one_note(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.yaml").write_text("{{- if .Values.on }}\n" + SETTINGS + "{{- end }}\n")
    (note,) = read([tmp_path]).findings
    assert (note.code, note.message.split(" of ")[0]) == ("YML301", "2 files are templates")
    assert read([tmp_path / "a.yaml"]).findings[0].message.startswith("a template of another tool")


@pytest.mark.parametrize("text", ["kind: List", "kind: List\nitems: null", "kind: ConfigMapList\nitems: null"])
def test_a_list_without_members_is_empty(text: str) -> None:
    reading = of(f"apiVersion: v1\n{text}\n")
    assert not reading.manifests
    assert not reading.findings


def test_half_of_a_surrogate_pair_is_read_as_go_reads_it() -> None:
    reading = Reading()
    body = '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"\\\\ud83d": "x\\ud83d"}}'
    read_bytes(body.encode(), "a.json", reading)
    assert [(finding.code, finding.severity) for finding in reading.findings] == [("SCH114", Severity.WARNING)]
    assert reading.manifests[0].body["data"] == {"\\ud83d": "x\ufffd"}
