import pytest

from blueprint.conform.programs import Program, find
from blueprint.errors import EnvironmentLacks


@pytest.fixture
def bare(tmp_path, monkeypatch):
    """No program anywhere, and the working directory deep inside an empty folder."""
    monkeypatch.delenv("BLUEPRINT_TOOLS", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    deep = tmp_path / "work" / "deep"
    deep.mkdir(parents=True)
    monkeypatch.chdir(deep)
    return tmp_path


def put(folder, name, mode=0o755):
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_text("#!/bin/sh\n")
    file.chmod(mode)
    return file


def test_a_missing_program_says_what_to_run(bare):
    with pytest.raises(EnvironmentLacks, match="etcd") as lacking:
        find("etcd")
    assert "make tools" in lacking.value.diagnostics()
    assert lacking.value.exit_code == 3


def test_a_built_program_above_the_working_directory_wins_over_path(bare):
    put(bare / "path", "etcd")
    built = put(bare / "work/.tools/bin", "etcd@v3.7.3-0123456789")
    link = built.with_name("etcd")
    link.symlink_to(built.name)
    assert find("etcd") == Program("etcd", link, "v3.7.3")


def test_the_named_folder_wins(bare, monkeypatch):
    put(bare / "work/.tools/bin", "etcd")
    chosen = put(bare / "elsewhere/bin", "etcd")
    monkeypatch.setenv("BLUEPRINT_TOOLS", str(bare / "elsewhere"))
    assert find("etcd").path == chosen


def test_a_program_in_path_has_no_known_version(bare):
    file = put(bare / "path", "etcd")
    assert find("etcd") == Program("etcd", file, "")


def test_a_file_that_cannot_be_run_is_not_a_program(bare):
    put(bare / "work/.tools/bin", "etcd", 0o644)
    with pytest.raises(EnvironmentLacks):
        find("etcd")
