import re
from datetime import timedelta
from decimal import Decimal
from html.parser import HTMLParser

import pytest

from blueprint.admission.decide import decide
from blueprint.admission.world import world
from blueprint.errors import UsageError
from blueprint.new import examples
from blueprint.picture import blocks, promises, risks, tasks
from blueprint.picture.draw import clusters, drawn
from blueprint.picture.handbook import TITLE, handbook
from blueprint.picture.way import find
from blueprint.spec import Platform
from blueprint.spec.load import load

from .trees import REPOSITORY, reference


@pytest.fixture(scope="module")
def platform():
    return load(REPOSITORY).platform


@pytest.fixture(scope="module")
def page(platform):
    return handbook(platform, drawn(reference(), ("quota", "waves")))


def test_every_spec_is_told_of(platform, page):
    text = blocks.markdown(TITLE, page)
    for documents in (platform.clusters, platform.teams, platform.services, platform.training_jobs, platform.policies):
        for document in documents:
            assert f"[{document.source.file}:{document.source.line}]({document.source.file})" in text
            assert document.model.metadata.name in text


def test_promises_and_quotas_in_words(page):
    text = blocks.markdown(TITLE, page)
    assert "the first token within 750 ms for 90 % of requests; 40 tokens a second for 95 % of requests" in text
    assert "64 GPUs of `h100-train` on prod-a, up to 32 more from idle quota of others, lends 48" in text
    assert "canary at 5 %, 20 %, 50 %, 10 min each; a broken promise aborts it" in text
    assert "4 pods with 8 GPUs each on `h100-train`, in one rack for each 2, in one block if possible" in text
    assert "saved every 500 steps; stopped after 7 days" in text


def test_risks_come_with_a_way_back(platform):
    rows = risks.table(platform).rows
    assert all(all(cell.strip() for cell in row) for row in rows)
    text = "\n".join(row[0] for row in rows)
    assert "prod-a, `h100-dra`: GPUs are handed out by claims (DRA), and the scheduler preempts nobody" in text
    assert "prod-a, `l4-burst`: its nodes come when the autoscaler has some" in text
    assert "there is no backup" not in text
    assert (
        "prod-a: all is promised of `h100-train` (128), `h100-dra` (16), `a100-serve` (64), `a100-mig` 3g.40gb (16)"
        in text
    )


def test_a_platform_without_dra_has_no_risk_of_it():
    text = str(risks.table(load(examples()["small"]).platform).rows)
    assert "DRA" not in text
    assert "there is no backup" in text and "no identity is named" in text


def test_every_card_names_who_and_how(platform):
    found = list(tasks.cards(platform))
    assert len({card.title for card in found}) == len(found)
    for card in found:
        assert all(words.strip() for _, words in card.rows())
        assert re.search(r"`(kubectl|blueprint|curl) [^`]+`", card.acceptance), card


def test_cards_name_what_is_rendered(platform):
    """Every object and folder in a card's commands is there, under that name."""
    parts = clusters(reference())
    objects = {(m.kind, m.ref.namespace, m.ref.name) for part in parts.values() for m in part.manifests}
    folders = {m.folder for part in parts.values() for m in part.manifests}
    text = "\n".join(words for card in tasks.cards(platform) for _, words in card.rows())
    for space, name in re.findall(r"kubectl -n (\S+) get applications\.argoproj\.io (\S+)", text):
        assert ("Application", space, name) in objects
    for folder in re.findall(r"rendered/[a-z-]+/(?:bootstrap|queues)", text):
        assert folder in folders
    for space in re.findall(r"can-i .* -n (\S+)", text):
        assert ("Namespace", "", space) in objects


def test_every_run_that_a_card_explains_can_be_admitted(platform):
    parts = clusters(reference())
    found = re.findall(r"blueprint explain (\w+/[\w-]+) rendered/([\w-]+)", str(list(tasks.cards(platform))))
    assert len(found) == len(platform.training_jobs)
    for job, cluster in found:
        graph = parts[cluster]
        assert decide(world(graph.manifests, reference().aside), find(graph, job)).admissible is not False


@pytest.mark.parametrize("example", sorted(examples()))
def test_every_example_has_a_handbook(example):
    text = blocks.markdown(TITLE, handbook(load(examples()[example]).platform))
    assert "## Task cards" in text


def test_an_empty_platform_has_none():
    with pytest.raises(UsageError, match="needs a Cluster"):
        handbook(Platform())


def test_links_lead_from_where_the_page_is(page):
    moved = blocks.markdown(TITLE, blocks.below(page, ".."))
    assert "](../clusters/prod-a.yaml)" in moved and "](clusters/" not in moved
    assert "](https://" not in moved.replace("](../", "")


class Outline(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.ids, self.targets, self.levels = [], [], [], []

    def handle_starttag(self, tag, attrs):
        names = dict(attrs)
        if tag in ("h1", "h2", "h3"):
            self.levels.append(int(tag[1]))
        if "id" in names:
            self.ids.append(names["id"])
        if names.get("href", "").startswith("#"):
            self.targets.append(names["href"][1:])


def test_html_has_an_outline_without_holes(page):
    outline = Outline()
    outline.feed(blocks.html(TITLE, page))
    assert outline.levels[0] == 1 and outline.levels.count(1) == 1
    assert all(two - one <= 1 for one, two in zip(outline.levels, outline.levels[1:], strict=False))
    assert len(set(outline.ids)) == len(outline.ids)
    assert outline.targets and set(outline.targets) <= set(outline.ids)


def test_text_stays_text():
    text = '<b> `<i>` [x](javascript:alert) [y](a"b) [z](https://example.com)'
    assert blocks.inline(text) == (
        "&lt;b&gt; <code>&lt;i&gt;</code> [x](javascript:alert) "
        '<a href="a&quot;b">y</a> <a href="https://example.com">z</a>'
    )
    cell = blocks.markdown("x", [blocks.Table(("a",), (("b|c\nd",),))])
    assert "| b\\|c d |" in cell


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (timedelta(milliseconds=750), "750 ms"),
        (timedelta(seconds=5), "5 s"),
        (timedelta(seconds=90), "90 s"),
        (timedelta(minutes=10), "10 min"),
        (timedelta(days=1), "24 h"),
        (timedelta(days=7), "7 days"),
    ],
)
def test_spans_of_time(value, words):
    assert promises.duration(value) == words


def test_shares():
    assert [promises.percent(Decimal(text)) for text in ("0.005", "0.2", "1")] == ["0.5 %", "20 %", "100 %"]
