import re
from importlib import resources
from pathlib import Path

import yaml

import blueprint.tree


def test_every_code_has_a_row_and_every_row_a_code():
    rows = yaml.safe_load((resources.files("blueprint") / "catalog/data/rules/tre.yaml").read_text())
    assert all(set(row) >= {"code", "confidence", "fix", "name", "summary", "why", "bad", "near"} for row in rows)
    sources = "".join(path.read_text() for path in Path(blueprint.tree.__file__).parent.glob("*.py"))
    assert [row["code"] for row in rows] == sorted(set(re.findall(r'"(TRE\d{3})"', sources)))
    assert len({row["name"] for row in rows}) == len(rows)
