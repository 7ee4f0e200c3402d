"""Whether the claims of a namespace fit the storage that its ResourceQuota allows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

from blueprint.finding import Finding
from blueprint.quantity import Form, format_quantity, parse_quantity
from blueprint.render.plan import Item
from blueprint.spec import Document, Team

_LIMIT = "requests.storage"


def findings(items: Sequence[Item], teams: Iterable[Document[Team]]) -> Iterator[Finding]:
    """STO101 for each quota that the namespace's own claims exceed: the API server refuses the last of them.

    Source: kubernetes v1.35.4 pkg/quota/v1/evaluator/core/persistent_volume_claims.go.
    """
    places = {team.model.namespace: team.locate("spec.storage") for team in teams}
    asked: dict[str, Fraction] = defaultdict(Fraction)
    for item in items:
        if item.manifest.kind == "PersistentVolumeClaim":
            size = item.manifest.body["spec"]["resources"]["requests"]["storage"]
            asked[item.manifest.ref.namespace] += parse_quantity(size)
    for item in items:
        if item.manifest.kind != "ResourceQuota":
            continue
        namespace, limit = item.manifest.ref.namespace, item.manifest.body["spec"]["hard"].get(_LIMIT)
        if limit is not None and asked[namespace] > parse_quantity(limit):
            wanted = format_quantity(asked[namespace], Form.BINARY)
            yield Finding(
                "STO101",
                f"the volume claims of {namespace} ask for {wanted}, its quota allows {limit}",
                places.get(namespace, item.manifest.source),
                object=item.manifest.ref,
                path="spec.storage",
                fix=f"raise storage of the team to {wanted} or more",
            )
