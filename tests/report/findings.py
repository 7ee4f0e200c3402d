"""Findings of every form, and a rule."""

from __future__ import annotations

from dataclasses import dataclass

from blueprint.finding import Confidence, Finding, Ref, Report, Severity, Source
from blueprint.report import Rules


@dataclass(frozen=True)
class Row:
    code: str
    name: str
    summary: str
    why: str
    fix: str
    confidence: str
    bad: str = ""
    good: str = ""


RULES: Rules = {
    "KQ202": Row(
        "KQ202", "never-admitted", "A job asks for more than its queue can have.", "It waits for ever.",
        "Ask for less.", "certain", "spec:\n  nodes: 9\n", "spec:\n  nodes: 2\n",
    )
}  # fmt: skip

JOB = Ref("kubeflow.org", "PyTorchJob", "search-ai", "reranker-sft")

REPORT = Report.of(
    [
        Finding(
            "KQ202",
            "queue cannot ever admit this job\nPyTorchJob reranker-sft asks 24 nvidia.com/gpu (3 podsets: 8 + 8 + 8)\n"
            "h100-train   16 nominal + 4 borrowable = 20   ← binds: borrowingLimit 4",
            Source("apps/search-ai/reranker-sft.yaml", 14),
            object=JOB,
            path="spec.pytorchReplicaSpecs",
            fix="borrowingLimit 4 → 8",
        ),
        Finding(
            "WAV103",
            "wave 4 does not wait for wave 3",
            Source("argocd/platform.yaml", 9, 3),
            Severity.WARNING,
            Confidence.LIKELY,
        ),
        Finding("TRE203", "1 file is not in the lock and kept: x", Source("rendered"), Severity.NOTE, Confidence.STYLE),
        Finding("NAM101", "no place, no object"),
        *(
            Finding("SPC101", "unknown field replica", Source(f"apps/{n}.yaml", n + 1), fix="replicas")
            for n in range(6)
        ),
    ]
)
