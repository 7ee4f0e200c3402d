"""Which files are read, on file systems that are not kind."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from blueprint.finding import Finding
from blueprint.spec.files import contents
from blueprint.spec.reader import MAX_BYTES


def _names(root: Path) -> list[str]:
    return [name for name, _ in contents(root)]


def _findings(root: Path) -> list[Finding]:
    return [content for _, content in contents(root) if isinstance(content, Finding)]


def test_yaml_files_below_the_four_folders_in_order(tmp_path: Path) -> None:
    read = ("clusters/b.yaml", "clusters/a.yml", "apps/z/y/x.yaml", "apps/a.yaml", "policies/p.yaml")
    passed_over = ("argocd/readme.md", "templates/t.yaml", "clusters/.hidden.yaml", "apps/.git/c.yaml", "top.yaml")
    for name in (*read, *passed_over, "apps/b.yaml.bak"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("a: 1\n")
    assert _names(tmp_path) == [
        "apps/a.yaml",
        "apps/z/y/x.yaml",
        "clusters/a.yml",
        "clusters/b.yaml",
        "policies/p.yaml",
    ]


def test_what_looks_like_a_spec_is_not_passed_over_in_silence(tmp_path: Path) -> None:
    (tmp_path / "apps").mkdir()
    for name in ("a.YAML", "b.Yml", "c.json", "d.yaml.txt", "e.md"):
        (tmp_path / "apps" / name).write_text("a: 1\n")
    assert _names(tmp_path) == ["apps/a.YAML", "apps/b.Yml", "apps/c.json", "apps/d.yaml.txt"]
    assert [(f.code, f.fails, str(f.source)) for f in _findings(tmp_path)] == [
        ("SPC123", False, "apps/c.json"),
        ("SPC123", False, "apps/d.yaml.txt"),
    ]


def test_links_that_lead_in_a_circle_end(tmp_path: Path) -> None:
    apps = tmp_path / "apps"
    apps.mkdir()
    (apps / "a.yaml").write_text("a: 1\n")
    (apps / "up").symlink_to(tmp_path)
    (apps / "here").symlink_to(apps)
    (apps / "loop.yaml").symlink_to(apps / "loop.yaml")
    assert [name for name in _names(tmp_path) if name != "apps/loop.yaml"] == ["apps/a.yaml"]
    assert [finding.code for finding in _findings(tmp_path)] == ["SPC112"]


def test_a_file_with_two_names_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "apps").mkdir()
    (tmp_path / "apps/a.yaml").write_text("a: 1\n")
    (tmp_path / "apps/b.yaml").symlink_to("a.yaml")
    assert _names(tmp_path) == ["apps/a.yaml"]


def test_a_link_out_of_the_platform_is_not_followed(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "apps").mkdir(parents=True)
    (tmp_path / "secret.yaml").write_text("password: x\n")
    (root / "apps/a.yaml").symlink_to("../../secret.yaml")
    (root / "apps/folder").symlink_to(tmp_path)
    findings = _findings(root)
    assert [finding.code for finding in findings] == ["SPC112", "SPC112"]
    assert all("out of the platform" in finding.message for finding in findings)


def test_a_broken_link_is_a_finding(tmp_path: Path) -> None:
    (tmp_path / "apps").mkdir()
    (tmp_path / "apps/a.yaml").symlink_to("nothing.yaml")
    [finding] = _findings(tmp_path)
    assert finding.source is not None
    assert (finding.code, finding.source.file, finding.source.line) == ("SPC112", "apps/a.yaml", 1)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "apps").mkdir()
    os.mkfifo(tmp_path / "apps/a.yaml")
    [finding] = _findings(tmp_path)
    assert "no regular file" in finding.message


def test_a_file_without_permission_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "apps").mkdir()
    (tmp_path / "apps/a.yaml").write_text("a: 1\n")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    [finding] = _findings(tmp_path)
    assert finding.message == "cannot be read: permission denied"


def test_fifty_megabytes_are_not_read(put: Callable[[str, str | bytes], Path], platform: Path) -> None:
    path = put("apps/large.yaml", "")
    os.truncate(path, 50 << 20)
    [content] = [content for name, content in contents(platform) if name == "apps/large.yaml"]
    assert isinstance(content, bytes)
    assert len(content) == MAX_BYTES + 1


@pytest.mark.skipif(os.name != "posix", reason="names are bytes only there")
def test_a_name_that_is_no_text_can_be_printed(tmp_path: Path) -> None:
    (tmp_path / "apps").mkdir()
    for raw in (b"apps/\xff.yaml", b"apps/a\nb.yaml"):
        (tmp_path / os.fsdecode(raw)).write_text("a: 1\n")
    names = _names(tmp_path)
    assert names == ["apps/a\\nb.yaml", "apps/\\xff.yaml"]
    assert all(name.encode().decode().isprintable() for name in names)
