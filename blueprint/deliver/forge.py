"""Pull requests through the REST interfaces of GitHub, GitLab and Gitea (Forgejo speaks Gitea's)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from blueprint.deliver.calls import call, pages
from blueprint.errors import EnvironmentLacks, UsageError

#: Forge → environment variables that may hold its token, the first that is set counts.
TOKENS: Mapping[str, tuple[str, ...]] = {
    "github": ("GH_TOKEN", "GITHUB_TOKEN"),
    "gitlab": ("GITLAB_TOKEN",),
    "gitea": ("GITEA_TOKEN", "FORGEJO_TOKEN"),
}
_SCP = re.compile(r"(?:[^@/\s]+@)?(?P<host>[^:/\s]+):(?P<path>[^/].*)")


@dataclass(frozen=True, slots=True)
class Forge:
    """One repository on a forge: `api` is the root of its interface, `path` is `owner/name` (GitLab: with groups)."""

    kind: str
    api: str
    path: str
    token: str

    def __repr__(self) -> str:
        """Without the token."""
        return f"Forge({self.kind}, {self.api}, {self.path})"


def forge(address: str, environment: Mapping[str, str], *, kind: str = "", api: str = "") -> Forge:
    """The forge behind the address of a Git repository; `kind` and `api` say what the host's name does not.

    Raises UsageError where the forge cannot be told, EnvironmentLacks where the environment holds no token for it.
    """
    host, path = _host_and_path(address)
    kind = kind or next((name for name in TOKENS if name in host), "")
    if kind not in TOKENS:
        raise UsageError(f"which forge {host or address} is cannot be told", hint=f"--forge {', '.join(TOKENS)}")
    token = next((value for name in TOKENS[kind] if (value := environment.get(name))), "")
    if not token:
        raise EnvironmentLacks(f"no token for {kind}", hint=f"set {' or '.join(TOKENS[kind])}")
    roots = {
        "github": "https://api.github.com" if host == "github.com" else f"https://{host}/api/v3",
        "gitlab": f"https://{host}/api/v4",
        "gitea": f"https://{host}/api/v1",
    }
    # GITHUB_API_URL and CI_API_V4_URL are set by the forges' own CI.
    known = {"github": environment.get("GITHUB_API_URL"), "gitlab": environment.get("CI_API_V4_URL")}
    return Forge(kind, (api or known.get(kind) or roots[kind]).rstrip("/"), path, token)


def _host_and_path(address: str) -> tuple[str, str]:
    if "://" in address:
        parts = urlsplit(address)
        host, path = parts.hostname or "", parts.path
    elif match := _SCP.fullmatch(address):
        host, path = match["host"], match["path"]
    else:
        raise UsageError("a pull request needs a forge, and this is a path", where=address)
    return host, path.strip("/").removesuffix(".git")


def propose(at: Forge, *, head: str, base: str, title: str, body: str) -> str:
    """Open a pull request from branch `head` into `base`, or bring the open one up to date; its web address.

    Raises EnvironmentLacks where the forge does not answer or says no, in its words and without the token.
    """
    if at.kind == "gitlab":
        project = f"/projects/{quote(at.path, safe='')}/merge_requests"
        find = f"{project}?state=opened&source_branch={quote(head, safe='')}&target_branch={quote(base, safe='')}"
        new = {"source_branch": head, "target_branch": base, "title": title, "description": body}
        change = {"title": title, "description": body}
        found, number, method, page = call(at, "GET", find).value, "iid", "PUT", "web_url"
    else:
        project = f"/repos/{at.path}/pulls"
        new = {"head": head, "base": base, "title": title, "body": body}
        change = {"title": title, "body": body}
        owner = at.path.partition("/")[0]
        query = f"?state=open&head={quote(f'{owner}:{head}', safe='')}&base={quote(base, safe='')}"
        every = pages(at, project + (query if at.kind == "github" else "?state=open&limit=50"))
        # Gitea has no filter by branch; GitHub's is checked again, for an old one ignores what it does not know.
        found = [each for each in every if (each["head"]["ref"], each["base"]["ref"]) == (head, base)]
        number, method, page = "number", "PATCH", "html_url"
    if found:
        return str(call(at, method, f"{project}/{found[0][number]}", change).value[page])
    return str(call(at, "POST", project, new).value[page])
