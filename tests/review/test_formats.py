"""How a review is written: limits, markers, folding, places, and the contract of the JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from blueprint.catalog.rules import rules
from blueprint.finding import Ref, Source
from blueprint.review import documents, markdown, text
from blueprint.review.entries import entries, verdict
from blueprint.review.model import Causes, Counts, Meaning, Review, Risk, Statement, rows
from tests.review.conftest import Bench


def statement(number: int, risk: Risk = Risk.RESTART, cluster: str = "", words: str = "image 1 → 2") -> Statement:
    ref = Ref("apps", "Deployment", "web", f"server-{number}")
    place = Source(f"{cluster or 'a'}/server-{number}.yaml", 1, 1)
    return Statement(risk, "image-tag", words, ref, cluster, "spec.template", "a source", place, place)


def review(*statements: Statement, meanings: tuple[Meaning, ...] = ()) -> Review:
    clusters = tuple(sorted({each.cluster for each in statements if each.cluster}))
    return Review("main", "HEAD", clusters, Counts(changed=len(statements), same=3), statements, meanings)


def test_the_same_change_on_twelve_clusters_is_one_row() -> None:
    found = review(*(statement(1, cluster=f"prod-{n:02}") for n in range(12)))
    (row,) = rows(found.statements)
    assert row.count == 12 and len(row.clusters) == 12
    assert "[×12]" in text.text(found)


def test_objects_that_bear_their_clusters_name_are_one_row() -> None:
    """An Application for each cluster, whose name and folder have the cluster's name in them."""
    found = []
    for number in range(12):
        name = f"prod-{number:02}"
        ref = Ref("argoproj.io", "Application", "argocd", f"{name}-queues")
        place = Source(f"{name}/argocd/application.yaml", 1, 1)
        words = (
            f"reads rendered/{name}/other instead of rendered/{name}/queues: what only the old folder holds is pruned"
        )
        found.append(Statement(Risk.DESTRUCTIVE, "source", words, ref, name, "spec.source.path", "", place, place))
    (row,) = rows(found)
    assert row.count == 12 and row.refs[0].name == "{cluster}-queues"
    screen = text.text(review(*found))
    assert "Application argocd/{cluster}-queues: reads rendered/{cluster}/other" in screen and "[×12]" in screen
    (alone,) = rows(found[:1])
    assert alone.refs[0].name == "prod-00-queues" and "rendered/prod-00/other" in alone.words


def test_the_same_plan_of_waves_in_twelve_clusters_is_one_line() -> None:
    names = [f"prod-{number:02}" for number in range(12)]
    plans = tuple(Meaning(Risk.NONE, f"Application {n}-queues: 3 → 4 waves", n, f"{n}-queues", "wave") for n in names)
    found = replace(review(*(statement(1, cluster=name) for name in names)), waves=plans)
    (line,) = [line for line in text.text(found).splitlines() if line.startswith("waves")]
    assert line.endswith("Application {cluster}-queues: 3 → 4 waves  [×12]")
    assert markdown.markdown(found).count("4 waves") == 1


def test_names_that_only_look_like_clusters_stay_apart() -> None:
    one, two = statement(1, cluster="a"), statement(2, cluster="b")
    assert len(rows([one, two])) == 2


def test_the_quota_of_a_resource_is_one_row(bench: Bench) -> None:
    file = "prod-a/queues/clusterqueue-search-ai-training.yaml"
    edits = [
        {"file": file, "replace": 'nominalQuota: "64"', "with": 'nominalQuota: "48"'},
        {"file": file, "replace": 'borrowingLimit: "32"', "with": 'borrowingLimit: "16"'},
    ]
    told = [entry.words for entry in entries(bench.review(bench.tree, bench.changed(edits)))]
    (row,) = [words for words in told if words.startswith("ClusterQueue")]
    assert row == (
        "ClusterQueue search-ai-training: nvidia.com/gpu on h100-train: borrowing limit 32 → 16, nominal 64 → 48"
    )


def test_the_same_change_of_many_objects_is_one_row() -> None:
    (entry,) = entries(review(*(statement(n) for n in range(5))))
    assert entry.words.startswith("5 Deployments (web/server-0, web/server-1, web/server-2 and 2 more): image 1 → 2")


def test_the_first_screen_has_forty_lines_at_most() -> None:
    found = review(*(statement(n, words=f"image {n} → {'word ' * 60}") for n in range(200)))
    screen = text.text(found, width=80)
    assert len(screen.splitlines()) <= text.LINES
    assert "more rows" in screen and "--all" in screen
    assert screen.splitlines()[1].startswith("RESTART:")
    assert len(text.text(found, width=80, lines=None).splitlines()) > 200


def test_the_worst_stands_first() -> None:
    found = review(statement(1), statement(2, Risk.DESTRUCTIVE), statement(3, Risk.NONE), statement(4, Risk.SECURITY))
    risks = [entry.risk for entry in entries(found)]
    assert risks == [Risk.DESTRUCTIVE, Risk.SECURITY, Risk.RESTART, Risk.NONE]


def test_what_it_means_stands_before_what_it_is() -> None:
    meaning = Meaning(Risk.CAPACITY, "team web loses 4", "", "team web", "quota")
    found = review(statement(1, Risk.CAPACITY), meanings=(meaning,))
    assert entries(found)[0].words == "team web loses 4"


@pytest.mark.parametrize("limit", [2_000, 10_000, markdown.COMMENT])
def test_a_comment_keeps_its_limit(limit: int) -> None:
    found = review(*(statement(n, Risk.TRAFFIC, words=f"route {n} → {'é|<b>@all #1 ' * 20}") for n in range(1000)))
    written = markdown.markdown(found, limit=limit)
    assert len(written.encode()) <= limit
    assert written.startswith(f"{markdown.MARKER}\n")
    assert "left out here" in written
    assert written.count("<details>") == written.count("</details>")
    assert "@all" not in written and "<b>" not in written


def test_a_small_comment_has_everything() -> None:
    written = markdown.markdown(review(statement(1)), Causes({"a/server-1.yaml": Source("apps/web.yaml", 7)}))
    assert "apps/web.yaml:7" in written and "left out" not in written


def test_sarif_points_at_the_spec_and_relates_the_rendered_file() -> None:
    found = review(statement(1, Risk.SECURITY))
    value = documents.sarif_document(
        found, Risk.SECURITY, rules(), "1", Causes({"a/server-1.yaml": Source("apps/web.yaml", 7)})
    )
    (result,) = value["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == ("apps/web.yaml", 7)
    related = result["relatedLocations"][0]["physicalLocation"]
    assert related["artifactLocation"]["uri"] == "a/server-1.yaml"
    assert result["level"] == "error" and result["ruleId"] == "REV501"
    assert value["runs"][0]["tool"]["driver"]["rules"][0]["shortDescription"]["text"] == "Rights or gates change."


def test_findings_fail_from_the_limit_on() -> None:
    found = review(statement(1, Risk.CAPACITY), statement(2, Risk.SECURITY))
    for limit, failing in ((None, 0), (Risk.DESTRUCTIVE, 0), (Risk.SECURITY, 1), (Risk.RESTART, 2)):
        assert sum(finding.fails for finding in documents.as_findings(found, limit).findings) == failing
        assert found.fails(limit) is bool(failing)


def test_json_is_a_contract(bench: Bench) -> None:
    edits = [{"file": "prod-a/team-search-ai/localqueue-training.yaml", "delete": True}]
    value = documents.document(bench.review(bench.tree, bench.changed(edits)), {})
    assert list(value) == [
        *("schema", "base", "head", "risk", "clusters", "counts", "statements", "meanings", "waves", "reaches"),
        "findings",
    ]
    (one,) = value["statements"]
    assert list(one) == ["risk", "rule", "words", "object", "cluster", "path", "reason", "base", "head", "spec"]
    assert value["risk"] == "destructive" and one["head"] is None
    assert json.loads(json.dumps(value)) == value


def test_junit_is_xml(bench: Bench) -> None:
    from blueprint.report.junit import junit

    found = review(statement(1, Risk.DESTRUCTIVE))
    root = ElementTree.fromstring(junit(documents.as_findings(found, Risk.SECURITY), rules()))
    assert root.attrib["failures"] == "1"


def test_junit_tells_its_cases_apart() -> None:
    """What has no place names none, and two cases have two names."""
    from blueprint.report.junit import junit

    meanings = tuple(Meaning(Risk.CAPACITY, f"team {n} loses 4", "", f"team {n}", "quota") for n in ("a", "b"))
    found = review(
        statement(1, words="image 1 → 2"), statement(1, words="arguments 1 → 2"), statement(2), meanings=meanings
    )
    cases = ElementTree.fromstring(junit(documents.as_findings(found, None), rules())).findall(".//testcase")
    assert len({(each.attrib["classname"], each.attrib["name"]) for each in cases}) == len(cases) == 5
    assert [each.attrib.get("file") for each in cases].count(None) == 2
    assert not [each for each in cases if each.attrib.get("file") == "."]


def test_nothing_changed(bench: Bench) -> None:
    found = bench.review(bench.tree, bench.tree)
    assert found.risk is Risk.NONE and not found.statements and not found.counts.touched
    assert "NONE: applying this changes nothing that runs" in text.text(found)


def test_findings_of_both_sides_are_compared(bench: Bench) -> None:
    file = "prod-a/serve-chat-70b/analysistemplate-chat-70b-slo.yaml"
    edits = [{"file": file, "replace": "failureLimit: 1", "with": "failureLimit: 9"}]
    found = bench.review(bench.tree, bench.changed(edits), findings=True)
    assert found.findings.whole and found.findings.new
    back = bench.review(bench.changed(edits), bench.tree, findings=True)
    assert {f.code for f in back.findings.fixed} == {f.code for f in found.findings.new}


@pytest.mark.parametrize(
    ("rules_of", "words"),
    [
        (["order"], "restarts pods, and changes nothing else"),
        (["arguments"], "restarts pods with other arguments"),
        (
            ["image-tag", "arguments", "command"],
            "restarts pods with other arguments, another command and another image",
        ),
        (["arguments", "order"], "restarts pods with other arguments"),
        (["configuration"], "gives pods another configuration, from their next start on"),
        (["liveness"], "restarts pods, and changes what they start with"),
    ],
)
def test_a_restart_says_what_pods_come_back_with(rules_of: list[str], words: str) -> None:
    found = review(*(replace(statement(n), rule=rule) for n, rule in enumerate(rules_of)))
    assert verdict(found) == f"applying this {words}"
