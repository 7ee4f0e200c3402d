"""The draft for the CNCF: it claims what passed, and nothing else."""

import yaml

from blueprint.conform.product import NOT_SHOWN, draft, requirements
from blueprint.conform.stage import Case
from blueprint.conform.suites import ALL

GANG = [
    Case("kueue", "a gang of which one pod has no room starts none", negative=True),
    Case("kueue", "a gang that asks for one topology.blueprint/rack stands in one"),
    Case("kueue", "each team may use what it was promised, at the same time"),
]


def test_without_cases_nothing_is_claimed():
    assert {each.shows for each in requirements([])} == {NOT_SHOWN}


def test_a_gang_that_was_seen_is_proven():
    found = {each.id: each for each in requirements(GANG)}
    assert found["gang_scheduling"].shows == "proven"
    assert len(found["gang_scheduling"].cases) == 3
    assert found["secure_accelerator_access"].shows == NOT_SHOWN


def test_one_failed_case_takes_the_claim_away():
    failed = [*GANG[:2], Case("kueue", GANG[2].name, passed=False)]
    assert {each.id: each.shows for each in requirements(failed)}["gang_scheduling"] == NOT_SHOWN


def test_the_draft_has_the_form_of_a_submission():
    document = yaml.safe_load(draft(GANG, "v1.35.4", "prod"))
    assert document["metadata"]["kubernetesVersion"] == "v1.35"
    rows = [row for rows in document["spec"].values() for row in rows]
    assert len(rows) == 12
    assert sum(row["level"] == "MUST" for row in rows) == 9
    assert {row["status"] for row in rows} <= {"Implemented", "Partially Implemented", "Not Implemented"}
    assert [row["id"] for row in rows if row["status"] == "Implemented"] == ["gang_scheduling"]


def test_requirements_name_suites_that_are_there():
    from importlib import resources

    text = resources.files("blueprint.conform").joinpath("data/ai_conformance.yaml").read_text()
    named = {suite for row in yaml.safe_load(text) for suite in row.get("cases", {})}
    assert named <= {suite.name for suite in ALL}
