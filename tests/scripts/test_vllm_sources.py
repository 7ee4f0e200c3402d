import os
import subprocess
import sys
from pathlib import Path

from scripts import vllm_sources

SCRIPT = Path(vllm_sources.__file__)


def run(tools: Path) -> subprocess.CompletedProcess[str]:
    # No index and no place for wheels: what pip is asked for is nowhere.
    nowhere = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "", "PIP_CONFIG_FILE": os.devnull, "BLUEPRINT_TOOLS": str(tools)}
    return subprocess.run([sys.executable, SCRIPT], env={**os.environ, **nowhere}, capture_output=True, text=True)


def test_without_an_index_one_line_says_so_and_nothing_stays(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert done.returncode == 0
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1 and "cannot be fetched" in done.stderr
    assert list((tmp_path / "vllm").iterdir()) == []


def test_what_is_there_is_not_fetched_again(tmp_path: Path) -> None:
    (tmp_path / "vllm" / vllm_sources.version()).mkdir(parents=True)
    done = run(tmp_path)
    assert (done.returncode, done.stdout) == (0, f"vllm {vllm_sources.version()} present\n")


def test_the_tables_know_the_pinned_version() -> None:
    tables = SCRIPT.parent.parent / "blueprint/catalog/data/vllm_flags.yaml"
    assert f'"{vllm_sources.version()}"]' in tables.read_text("utf-8")
