from blueprint.report import Application, Changes
from blueprint.report.table import changes, rendered


def test_golden_table():
    applications = [
        Application("prod-a", "argocd", 9, 1),
        Application("prod-a", "search-ai-queues", 1204, 3),
        Application("staging", "argocd", 8, 1),
    ]
    assert (
        rendered(applications)
        == """\
cluster     application       objects  waves
────────────────────────────────────────────
prod-a      argocd                  9      1
            search-ai-queues    1,204      3
staging     argocd                  8      1
────────────────────────────────────────────
2 clusters  3 applications      1,221
"""
    )


def test_one_of_each():
    assert rendered([Application("c", "a", 1, 1)]).splitlines()[-1] == "1 cluster  1 application        1"


def test_no_table():
    assert rendered([]) == ""


def test_changes():
    made = Changes(("a/1", "a/2", "a/3"), ("b\x1b",), (), True)
    assert changes(made, each=2) == "+ a/1\n+ a/2\n+ … and 1 more\n~ b\\x1b\n3 added, 1 changed\n"


def test_only_the_lock():
    assert changes(Changes(lock_changed=True)) == "only blueprint.lock changed\n"
    assert changes(Changes()) == "nothing changed\n"
    assert not Changes()
    assert Changes(lock_changed=True)
