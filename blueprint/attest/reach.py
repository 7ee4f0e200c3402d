"""Who reads the one folder that no signature covers: an Application or Kustomization that takes it for manifests."""

from __future__ import annotations

from collections.abc import Iterator
from posixpath import normpath
from typing import Any

from blueprint.attest.filelist import Listing
from blueprint.finding import Finding
from blueprint.tree.lock import NAME as LOCK
from blueprint.tree.scan import SIGNATURES

_KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")


def reached(listing: Listing) -> Iterator[Finding]:
    """SIG208 for each signed file by which something in the signatures' folder could be deployed."""
    for path, data in sorted(listing.objects.items()):
        if any(_covers(source, listing.folder) for source in _sources(path, data)):
            yield listing.finding(
                "SIG208", path, "has a source that holds the signatures' folder, which nothing covers"
            )
        elif SIGNATURES.encode() in data and path.rpartition("/")[2] in _KUSTOMIZATIONS:
            yield listing.finding("SIG208", path, "takes in the signatures' folder, which nothing covers")


def _covers(source: dict[str, Any], folder: str) -> bool:
    """Whether a source is the signatures' folder, or a folder above it that is read with all below."""
    path = normpath(str(source.get("path") or ".")).lstrip("/")
    if SIGNATURES in path.split("/"):
        return True
    directory = source.get("directory")
    recurses = isinstance(directory, dict) and directory.get("recurse") is True
    return recurses and (path == "." or f"{folder}/".startswith(f"{path}/"))


def _sources(path: str, data: bytes) -> Iterator[dict[str, Any]]:
    """The sources of the Applications in a file, and of the templates of ApplicationSets."""
    if path == LOCK or b"Application" not in data:
        return
    from blueprint.check.parse import Reading, read_bytes  # a tenth of a second, for trees with Applications only

    reading = Reading()
    read_bytes(data, path, reading)
    for manifest in reading.manifests:
        spec = manifest.body.get("spec")
        template = spec.get("template") if isinstance(spec, dict) else None
        for one in (spec, template.get("spec") if isinstance(template, dict) else None):
            if isinstance(one, dict):
                several = one.get("sources")
                found = [one.get("source"), *(several if isinstance(several, list) else ())]
                yield from (source for source in found if isinstance(source, dict))
