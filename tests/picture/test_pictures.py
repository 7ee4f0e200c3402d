import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blueprint.errors import UsageError
from blueprint.picture import page
from blueprint.picture.draw import KINDS, clusters, drawn
from blueprint.picture.metrics import fitted, width
from blueprint.picture.model import label, node
from blueprint.picture.theme import DARK, GROUNDS, LIGHT, MEANING, TEXT, contrast

from .trees import queues, reference

SVG = "{http://www.w3.org/2000/svg}"


def every():
    return drawn(reference(), KINDS, applications=["chat-70b", "llama3-8b-sft"])


@pytest.fixture(scope="module")
def pictures():
    return every()


def test_every_cluster_has_every_picture(pictures):
    assert [each.title for each in pictures] == [
        "Quotas of preprod",
        "Waves of preprod",
        "Network and trust of preprod",
        "The way of chat-70b on preprod",
        "The way of llama3-8b-sft on preprod",
        "Quotas of prod-a",
        "Waves of prod-a",
        "Network and trust of prod-a",
        "The way of chat-70b on prod-a",
        "The way of llama3-8b-sft on prod-a",
    ]


def test_the_same_objects_give_the_same_bytes(pictures):
    assert [each.scene.svg() for each in pictures] == [each.scene.svg() for each in every()]
    assert [each.mermaid for each in pictures] == [each.mermaid for each in every()]


def test_pictures_are_whole_files_with_names_for_screen_readers(pictures):
    for each in pictures:
        root = ElementTree.fromstring(each.scene.svg())
        assert root.get("role") == "img"
        named = {element.get("id"): element.text for element in root.iter() if element.get("id")}
        title, description = (named[name] for name in root.get("aria-labelledby").split())
        assert (title, description) == (each.title, each.says)
        assert "http" not in each.scene.svg().replace("http://www.w3.org/2000/svg", "").replace(">http<", "")
        assert not list(root.iter(f"{SVG}script")) and not list(root.iter(f"{SVG}image"))


def test_words_stay_in_the_picture_and_off_each_other(pictures):
    for each in (*pictures, *drawn(queues(300), ["quota"])):
        words = sorted(each.scene.words, key=lambda word: (word.y, word.left))
        assert all(word.left >= 0 and word.right <= each.scene.width + 20 for word in words), each.title
        lines = {}
        for word in words:
            lines.setdefault(word.y, []).append(word)
        for line in lines.values():
            for one, two in pairwise(line):
                assert one.right <= two.left + 0.5, (each.title, one, two)


def test_quotas_say_what_is_own_borrowed_and_there(pictures):
    (quota,) = [each for each in pictures if each.title == "Quotas of prod-a"]
    head, rows = quota.table.head, {row[0]: row for row in quota.table.rows}
    at = head.index("h100-train gpu")
    assert rows["queue search-ai-training"][at] == "64 (keeps 16), could borrow 32"
    assert rows["in the racks"][at] == "128"
    assert "h100-train gpu: 128 promised of 128" in quota.says
    texts = {word.text for word in quota.scene.words}
    assert {"64 +32", "128 of 128", "search-ai-training"} <= texts


def test_waves_say_which_wait(pictures):
    (waves,) = [each for each in pictures if each.title == "Waves of prod-a"]
    rows = [row for row in waves.table.rows if row[1] == "queues"]
    assert [(row[2], row[3]) for row in rows] == [
        ("0", "waits until healthy"),
        ("1", "waits until healthy"),
        ("2", "last, not awaited"),
    ]
    assert not [row for row in waves.table.rows if "preprod" in row[1]]


def test_a_way_leads_from_git_to_pods(pictures):
    ways = [each for each in pictures if each.title == "The way of chat-70b on prod-a"]
    stages = [row[0] for row in ways[-1].table.rows]
    assert list(dict.fromkeys(stages)) == ["Written", "Delivered", "Objects", "Queue", "Machines", "Pods"]
    last = ways[-1].table.rows[-1]
    assert "4 gpu each" in last[3] and "2 to 4 by ScaledObject" in last[3]


def test_words_at_arrows_stand_on_the_lines_once_for_all_that_meet(pictures):
    (network,) = [each for each in pictures if each.title == "Network and trust of prod-a"]
    text = network.scene.svg()
    assert text.rindex('<path class="l-') < text.index(' halo"')
    ends = [(word.right if word.right < 300 else word.left, word.y) for word in network.scene.words if word.size == 10]
    assert ends and len(ends) == len(set(ends))


def test_what_colours_mean_is_said(pictures):
    (network,) = [each for each in pictures if each.title == "Network and trust of prod-a"]
    words = {word.text for word in network.scene.words}
    assert "closed in and out" in words and "workload with rules of its own" in words
    (over,) = drawn(queues(3, 1), ["quota"])
    assert "promised, and not there" not in {word.text for word in over.scene.words}
    (more,) = drawn(queues(30, 1), ["quota"])
    assert "promised, and not there" in {word.text for word in more.scene.words}


def test_networks_say_who_may_come_in(pictures):
    (network,) = [each for each in pictures if each.title == "Network and trust of prod-a"]
    assert ("chat", "chat-70b", "from", "istio-ingress", "http") in network.table.rows
    assert "3 of them closed in both directions" in network.says


@pytest.mark.parametrize("count", [1, 3, 300])
def test_any_number_of_queues_is_drawn(count):
    (quota,) = drawn(queues(count), ["quota"])
    ElementTree.fromstring(quota.scene.svg())
    assert len(quota.table.rows) == count + (count + 9) // 10 + 1
    names = {word.text for word in quota.scene.words}
    assert all(f"team-{number:03}-queue" in names for number in range(count))
    assert quota.scene.width < 700


@pytest.mark.parametrize("colours", [LIGHT, DARK])
def test_contrast(colours):
    for ground in GROUNDS:
        for name in TEXT:
            assert contrast(colours[name], colours[ground]) >= 4.5, (name, ground)
        for name in MEANING:
            assert contrast(colours[name], colours[ground]) >= 3, (name, ground)
    assert LIGHT.keys() == DARK.keys()


def test_contrast_is_that_of_the_standard():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@given(st.text(max_size=60), st.floats(5, 300))
def test_fitted_words_fit(words, room):
    shown = fitted(words, room, 12)
    assert width(shown, 12) <= room or shown == "…"


@given(st.text(max_size=20), st.text(max_size=20))
def test_mermaid_names_differ_where_names_differ(one, two):
    assert (node(one) == node(two)) == (one == two)
    assert re.fullmatch(r"\w+", node(one), re.ASCII)


def test_mermaid_labels_hold_anything():
    assert label('a "b" <c>\nd & e') == '"a #quot;b#quot; &lt;c&gt;<br>d &amp; e"'


def test_anybodys_manifests():
    reading = queues(3)
    (quota,) = drawn(reading, ["quota"])
    assert quota.title == "Quotas"
    (_, waves, network) = drawn(reading, ["quota", "waves", "network"])
    assert waves.table.rows == () and network.table.rows == ()
    for each, words in ((waves, "No Application of Argo CD holds"), (network, "No Namespace is here")):
        ElementTree.fromstring(each.scene.svg())
        assert words in each.says and words in each.mermaid and words in each.scene.svg()
    with pytest.raises(UsageError, match="nothing to draw"):
        drawn(reading, ["waves", "network"])


def test_what_is_not_there_is_told():
    with pytest.raises(UsageError, match="no application is called"):
        drawn(reference(), [], applications=["chat-71b"])
    with pytest.raises(UsageError, match="no cluster is called prod-z"):
        drawn(reference(), KINDS, only=["prod-z"])
    assert list(clusters(reference())) == ["preprod", "prod-a"]


def test_hostile_names_stay_words():
    reading = queues(1)
    reading.manifests[-1].body["metadata"]["name"] = '<script>"&</script>'
    (quota,) = drawn(reading, ["quota"])
    text = page.pictures("x", [quota])
    assert "<script>" not in text
    ElementTree.fromstring(quota.scene.svg())


def test_a_page_needs_nothing_else(pictures):
    text = page.pictures("All", pictures[:3])
    assert not re.search(r'(src|href)="(?!#)', text)
    assert "@import" not in text and "<script" not in text


@pytest.mark.parametrize(("file", "title"), [("quota", "Quotas of prod-a"), ("waves", "Waves of prod-a")])
def test_the_pictures_of_the_readme_are_those_of_the_reference(pictures, repository, file, title):
    """`make pictures` draws them again."""
    (found,) = [each for each in pictures if each.title == title]
    assert (repository / f"docs/pictures/{file}.svg").read_text() == found.scene.svg()
