"""The CEL of a policy's spec, judged where it is written: what no engine compiles, and what is no condition.

Kubernetes takes a rule only if it is known to be a boolean (k8s.io/apiserver@v0.35.4
pkg/admission/plugin/cel/compile.go CompileCELExpression), and a variable may read those before it (composition.go).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from blueprint.cel import Scope
from blueprint.finding import Confidence, Finding
from blueprint.spec import Document, Policy
from blueprint.spec.policy import Engine

#: The variables that every policy has; the old or the new object, and who asks.
_GIVEN: Final = {"anyObject": "dyn", "byController": "bool"}


def problems(document: Document[Policy], engines: Sequence[Engine]) -> Iterator[Finding]:
    """POL102 for each expression that the engines refuse; Kyverno alone has functions that only it knows."""
    spec, types = document.model.spec, dict(_GIVEN)
    loose = list(engines) == ["Kyverno"]
    for index, variable in enumerate(spec.variables):
        answer = Scope(types, loose).judge(variable.expression)
        if answer.problem:
            yield _finding(document, f"spec.variables[{index}].expression", answer.problem)
        types[variable.name] = answer.type or "dyn"
    for index, rule in enumerate(spec.rules):
        answer = Scope(types, loose).judge(rule.expression, condition=True)
        if answer.problem:
            yield _finding(document, f"spec.rules[{index}].expression", answer.problem)


def _finding(document: Document[Policy], path: str, problem: str) -> Finding:
    at = document.locate(path)
    return Finding("POL102", f"CEL: {problem}", at, confidence=Confidence.LIKELY, path=path)
