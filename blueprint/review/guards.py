"""What holds others back: policies, webhooks, pod security, projects of Argo CD; and whether it does more or less."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from blueprint.catalog.crds import Json
from blueprint.check.shapes import items, mapping, maps, text
from blueprint.review.diff import MISSING, Edit, same
from blueprint.review.model import Risk
from blueprint.review.risks import field
from blueprint.review.words import shown, shown_pair

if TYPE_CHECKING:
    from blueprint.review.special import Case

Said = tuple[Risk, str]

_SEVERITY = {"deny": 3, "enforce": 3, "warn": 2, "audit": 1, "dryrun": 1}
_ADMISSION = {"validation.gatekeeper.sh", "vap.k8s.io", "*"}
"""Points of Gatekeeper at which something is refused (gatekeeper v3.23.1 pkg/util/enforcement_action.go)."""
_LEVELS = {"privileged": 0, "baseline": 1, "restricted": 2}
_WORDS = ("message", "messageExpression", "reason", "description", "auditAnnotations", "title")
"""Fields of policies that say something and judge nothing."""
_BOTH = ("any", "or", "rules", "resourceRules")
"""Lists of which one item is enough: another one is one more way to be judged."""


def pod_security(case: Case) -> Said | None:
    """Labels of pod security: `enforce` decides, `warn` and `audit` only tell."""
    name = str(case.edit.steps[-1]).rpartition("/")[2]
    sides = case.edit.before, case.edit.after
    if name == "enforce-version":
        old, new = (_minor(value) for value in sides)
        verb = "fewer" if new < old else "other"
        told = " → ".join("latest" if value is MISSING else shown(value) for value in sides)
        return Risk.SECURITY, f"pod security asks for {verb} controls: those of {told}"
    if name != "enforce":
        return Risk.NONE, case.default
    before, after = (_LEVELS.get(str(value), 0) for value in sides)
    verb = "weaker" if after < before else "stricter"
    words = [shown(value) if value is not MISSING else "none" for value in sides]
    return Risk.SECURITY, f"pod security is {verb}: enforces {words[0]} → {words[1]}"


def _minor(value: Json) -> int:
    """The minor version of a label of pod security; the newest where it says `latest`, or nothing."""
    number = str(value).removeprefix("v1.")
    return int(number) if number.isdecimal() else 1000


def enforcement(case: Case) -> Said | None:
    """What a policy does about what breaks it."""
    sides = case.pair.old, case.pair.new
    bodies = [mapping(manifest.body.get("spec")) if manifest else {} for manifest in sides]
    before, after = _actions(case, bodies[0], case.edit.before), _actions(case, bodies[1], case.edit.after)
    words = [shown(v) if v is not MISSING else "nothing" for v in (case.edit.before, case.edit.after)]
    if not isinstance(case.edit.steps[-1], str) and "validationActions" in case.edit.path:
        return _one_of_several(case.edit, bodies, words)
    if case.edit.steps[-1] == "validationFailureAction" and _each_for_itself(bodies[1]):
        return Risk.NONE, f"{words[0]} → {words[1]} for rules that do not say it themselves: there is none"
    if before == after:
        same_ = "the same" if before == 3 else "neither refuses"
        return (Risk.NONE if before == 3 else Risk.SECURITY), f"{words[0]} → {words[1]}: {same_}"
    if before == 3:
        return Risk.SECURITY, f"no longer refuses: {words[0]} → {words[1]}"
    return Risk.SECURITY, f"refuses from now on: {words[0]} → {words[1]}" if after == 3 else f"{words[0]} → {words[1]}"


def _one_of_several(edit: Edit, bodies: list[Any], words: list[str]) -> Said:
    """An action beside others in a list of them."""
    old, new = (_strength(items(body.get("validationActions"))) for body in bodies)
    if edit.before is MISSING:
        one = _strength(edit.after)
        told = f"refuses from now on: {words[1]}" if one == 3 and old < 3 else f"does {words[1]}, too"
        return Risk.SECURITY, told
    if _strength(edit.before) == 3 and new < 3:
        return Risk.SECURITY, f"no longer refuses: {words[0]} → {words[1]}"
    return Risk.SECURITY, f"does {words[0]} no more"


def _actions(case: Case, spec: Mapping[str, Any], value: Json) -> int:
    """How strong a policy is; what nobody says is what its makers take for it."""
    if "constraints.gatekeeper.sh" in case.pair.ref.kind_name:
        if value == "scoped":
            rows = maps(spec.get("scopedEnforcementActions"))
            points = [(row, {text(each.get("name")) for each in maps(row.get("enforcementPoints"))}) for row in rows]
            return max((_strength(row.get("action")) for row, names in points if names & _ADMISSION), default=0)
        return 3 if value is MISSING else _strength(value)
    if value is MISSING and case.edit.steps[-1] == "failureAction":
        value = spec.get("validationFailureAction", "Audit")
    return _strength("Audit" if value is MISSING else value)


def _each_for_itself(spec: Mapping[str, Any]) -> bool:
    """Whether every rule that refuses says so itself (kyverno v1.19.1 api/kyverno/v1 Validation.FailureAction)."""
    validates = [mapping(rule.get("validate")) for rule in maps(spec.get("rules")) if "validate" in rule]
    return bool(validates) and all("failureAction" in each for each in validates)


def _strength(value: Json) -> int:
    if isinstance(value, list):
        return max((_strength(each) for each in value), default=0)
    return _SEVERITY.get(value.lower(), 0) if isinstance(value, str) else 0


def policy(case: Case) -> Said | None:
    """What a policy or a webhook judges: more or fewer objects."""
    path = case.edit.path
    names = [step for step in path if step != "[]"]
    before, after = shown_pair(case.edit)
    what = f"{field(case.edit)} {before} → {after}"
    if names[-1] in _WORDS and "pattern" not in path:
        return Risk.NONE, f"what it says, not what it refuses: {what}"
    if names[-1] == "matchPolicy" or path[-2:] == ("background", "enabled") or any("autogen" in name for name in names):
        return Risk.NONE, case.default
    if any("ailureActionOverrides" in name for name in names):
        return Risk.SECURITY, f"refuses elsewhere, or less: {what}"
    if {"clientConfig"} & set(path):
        return Risk.SECURITY, f"somebody else decides: {what}"
    if path == ("webhooks", "[]"):
        gone = case.edit.after is MISSING
        name = text(mapping(case.edit.before if gone else case.edit.after).get("name"))
        return Risk.SECURITY, f"webhook {name} {'is asked no more' if gone else 'is asked from now on'}"
    fewer = _fewer(case, names)
    if fewer is None:
        return Risk.SECURITY, f"what it judges, and by what, changes: {what}"
    return Risk.SECURITY, f"{'fewer' if fewer else 'more'} objects are judged: {what}"


def _fewer(case: Case, names: list[str]) -> bool | None:
    """Whether fewer objects are judged, None where nobody can say."""
    edit, joined = case.edit, ".".join(names).lower()
    if "preconditions" in joined or "parameters" in joined or "paramref" in joined:
        return None
    grown = _grown(edit)
    if grown is None:
        return None
    operator = _operator(case)
    if "exclude" in joined or operator in ("NotIn", "DoesNotExist"):
        return grown
    if "matchconditions" in joined or "matchlabels" in joined:
        return grown
    if not ("match" in joined or "selector" in joined or names[0] == "webhooks"):
        return None
    if edit.before is MISSING or edit.after is MISSING:
        # A filter that comes takes something out; one more of several ways to be judged adds something.
        return grown is not (names[-1] in _BOTH or (edit.path[-1] == "[]" and names[-1] != "all"))
    return not grown if operator in ("", "In", "Exists") else None


def _grown(edit: Edit) -> bool | None:
    """Whether something comes, False where something goes, None where one thing becomes another."""
    if edit.before is MISSING or edit.after is MISSING:
        return edit.before is MISSING
    if not (isinstance(edit.before, list) and isinstance(edit.after, list)):
        return None
    gone = any(not any(same(each, other) for other in edit.after) for each in edit.before)
    come = any(not any(same(each, other) for other in edit.before) for each in edit.after)
    return None if gone and come else come


def _operator(case: Case) -> str:
    """The operator of the selector's row that an edit lies in."""
    value: Any = case.pair.there.body
    found = ""
    for step in case.edit.steps:
        if isinstance(value, dict) and "operator" in value:
            found = text(value["operator"])
        if isinstance(step, str) and isinstance(value, dict):
            value = value.get(step)
        elif isinstance(step, int) and isinstance(value, list) and step < len(value):
            value = value[step]
        elif isinstance(step, tuple) and isinstance(value, list):
            keys = step[0] if isinstance(step[0], tuple) else ()
            value = next((each for each in maps(value) if all(each.get(k) == v for k, v in keys)), None)
        else:
            return found
    return found


_FORBID = ("clusterResourceBlacklist", "namespaceResourceBlacklist", "signatureKeys")
_PERMIT = (
    *("sourceRepos", "sourceNamespaces", "destinations"),
    *("clusterResourceWhitelist", "namespaceResourceWhitelist"),
)
_OPEN = ("clusterResourceBlacklist", "namespaceResourceBlacklist", "namespaceResourceWhitelist", "signatureKeys")
"""Lists of a project that hold nobody back where they are not there (argo-cd v3.6.1 pkg/apis/application/v1alpha1)."""


def project(case: Case) -> Said | None:
    """What Applications of a project of Argo CD may do: more, or less."""
    before, after = shown_pair(case.edit)
    name = case.edit.path[1] if len(case.edit.path) > 1 else ""
    what = f"what the project allows: {field(case.edit)} {before} → {after}"
    if name == "description":
        return Risk.NONE, f"description {before} → {after}"
    grown = _grown(case.edit)
    if grown is None or name not in (*_PERMIT, *_FORBID):
        wide = shown(case.edit.after) == "*" and case.edit.after is not MISSING
        return Risk.SECURITY, f"{what}{' (everything)' if wide else ''}"
    whole = len(case.edit.path) == 2 and case.edit.path[1] in _OPEN and MISSING in (case.edit.before, case.edit.after)
    wider = grown if name not in _FORBID else not grown
    wider = not wider if whole and name == "namespaceResourceWhitelist" else wider
    if isinstance(case.edit.after, str) and case.edit.after.startswith("!"):
        wider = not wider
    return Risk.SECURITY, f"{what}: {'more' if wider else 'less'} is allowed"
