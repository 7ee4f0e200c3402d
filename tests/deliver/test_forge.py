import pytest

from blueprint.deliver.forge import Forge, forge, propose
from blueprint.errors import EnvironmentLacks, UsageError

from .forges import TOKEN, forge_of


@pytest.mark.parametrize(
    ("address", "kind", "api", "path"),
    [
        ("https://github.com/o/r.git", "github", "https://api.github.com", "o/r"),
        ("git@github.com:o/r.git", "github", "https://api.github.com", "o/r"),
        ("https://x:y@gitlab.example.com/a/b/r.git", "gitlab", "https://gitlab.example.com/api/v4", "a/b/r"),
        ("ssh://git@gitea.example.com:2222/o/r", "gitea", "https://gitea.example.com/api/v1", "o/r"),
        ("https://github.example.com/o/r", "github", "https://github.example.com/api/v3", "o/r"),
    ],
)
def test_the_forge_of_an_address(address, kind, api, path):
    names = {"GH_TOKEN": TOKEN, "GITLAB_TOKEN": TOKEN, "GITEA_TOKEN": TOKEN}
    assert forge(address, names) == Forge(kind, api, path, TOKEN)


def test_a_forge_that_cannot_be_told():
    with pytest.raises(UsageError, match="cannot be told"):
        forge("https://git.example.com/o/r", {})
    with pytest.raises(UsageError, match="this is a path"):
        forge("/srv/r.git", {})
    with pytest.raises(EnvironmentLacks) as caught:
        forge("https://git.example.com/o/r", {}, kind="gitea")
    assert caught.value.hint == "set GITEA_TOKEN or FORGEJO_TOKEN"


@pytest.mark.parametrize("kind", ["github", "gitlab", "gitea"])
def test_one_pull_request_is_opened_and_then_kept_up_to_date(kind):
    with forge_of(kind) as server:
        at = Forge(kind, f"http://127.0.0.1:{server.server_port}", "group/repo", TOKEN)
        first = propose(at, head="blueprint/main", base="main", title="one", body="b")
        again = propose(at, head="blueprint/main", base="main", title="two", body="c")
        other = propose(at, head="blueprint/env", base="env", title="three", body="d")
    assert first == again != other
    assert [each["title"] for each in server.opened] == ["two", "three"]


@pytest.mark.parametrize("kind", ["github", "gitea"])
def test_a_pull_request_on_a_later_page_is_found(kind):
    with forge_of(kind) as server:
        at = Forge(kind, f"http://127.0.0.1:{server.server_port}", "group/repo", TOKEN)
        for number in range(70):
            propose(at, head=f"blueprint/env-{number}", base=f"env-{number}", title="x", body="b")
        again = propose(at, head="blueprint/env-65", base="env-65", title="again", body="c")
    assert again.endswith("/66") and len(server.opened) == 70
    assert server.opened[65]["title"] == "again"


@pytest.mark.parametrize("kind", ["github", "gitlab", "gitea"])
def test_a_token_is_never_told(kind):
    wrong = "other-t0ken"
    with forge_of(kind) as server:
        at = Forge(kind, f"http://127.0.0.1:{server.server_port}", "o/r", wrong)
        with pytest.raises(EnvironmentLacks, match="answers 401") as caught:
            propose(at, head="h", base="b", title="t", body="")
    assert wrong not in caught.value.diagnostics() + repr(at)


def test_a_forge_that_is_not_there():
    at = Forge("gitea", "http://127.0.0.1:1", "o/r", TOKEN)
    with pytest.raises(EnvironmentLacks, match="does not answer"):
        propose(at, head="h", base="b", title="t", body="")
