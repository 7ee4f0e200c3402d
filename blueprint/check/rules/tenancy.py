"""Namespaces of tenants: what keeps one from the others, and what is missing where its peers have it.

A namespace is a tenant's where it has a LocalQueue. Sources: kubernetes.io docs/concepts/services-networking/
network-policies, docs/concepts/security/pod-security-standards; k8s.io/kubernetes v1.35.4
pkg/registry/resource/resourceclaim (admin access).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from blueprint.check.graph import Graph, labels_of
from blueprint.check.rules.say import note, say, warn
from blueprint.check.shapes import Body, mapping, maps, text, texts
from blueprint.finding import Finding, Ref, Severity
from blueprint.objects import Manifest

_POLICY = "NetworkPolicy.networking.k8s.io"
_OTHERS = (
    "CiliumNetworkPolicy.cilium.io",
    "NetworkPolicy.crd.projectcalico.org",
    "NetworkPolicy.projectcalico.org",
)
_CLUSTER_WIDE = (
    "CiliumClusterwideNetworkPolicy.cilium.io",
    "GlobalNetworkPolicy.projectcalico.org",
    "AdminNetworkPolicy.policy.networking.k8s.io",
    "BaselineAdminNetworkPolicy.policy.networking.k8s.io",
    "ClusterNetworkPolicy.policy.networking.k8s.io",
)
_ADMIN = "resource.kubernetes.io/admin-access"
_ENFORCE = "pod-security.kubernetes.io/enforce"
_IGNORE = "admission.gatekeeper.sh/ignore"


def _without(graph: Graph, kinds: Collection[str]) -> Iterator[Manifest]:
    """Tenant namespaces that have none of some kinds, where at least half of their peers have one."""
    tenants = [m for m in graph.kind("Namespace") if m.ref.name in graph.grants.tenant_namespaces]
    have = {manifest.ref.namespace for manifest in graph.kind(*kinds)}
    lacking = [manifest for manifest in tenants if manifest.ref.name not in have]
    if any(map(graph.generated, kinds)) or not graph.whole:
        return
    if len(tenants) - len(lacking) >= max(1, len(lacking)):
        yield from lacking


def without_network_policy(graph: Graph) -> Iterator[Finding]:
    """TEN101: a tenant namespace that everybody reaches, where its peers are closed."""
    if graph.kind(*_CLUSTER_WIDE):
        return
    for namespace in _without(graph, (_POLICY, *_OTHERS)):
        message = (
            f"{namespace.ref.name} has no NetworkPolicy, as its peers have: every pod of the cluster reaches its pods"
        )
        yield warn("TEN101", namespace, message, "", "add a policy that denies by default")


def without_quota(graph: Graph) -> Iterator[Finding]:
    """TEN102: a tenant namespace without the limits that its peers have."""
    for namespace in _without(graph, ("ResourceQuota",)):
        message = f"{namespace.ref.name} has no ResourceQuota, as its peers have"
        yield warn("TEN102", namespace, message, "", "add a ResourceQuota")


def open_deny_policies(graph: Graph) -> Iterator[Finding]:
    """TEN103: a policy that is called deny and allows everything: an empty rule matches all."""
    for policy in graph.kind(_POLICY):
        spec = mapping(policy.body.get("spec"))
        if "deny" not in policy.ref.name.lower():
            continue
        for way, peer in (("ingress", "from"), ("egress", "to")):
            for index, rule in enumerate(maps(spec.get(way))):
                if not rule.get(peer) and not rule.get("ports"):
                    message = f"the empty rule allows all {way}; to deny it leave {way} out, or give it an empty list"
                    yield say("TEN103", policy, message, f"spec.{way}[{index}]", f"{way}: []")
                    break


def no_names(graph: Graph) -> Iterator[Finding]:
    """TEN104: pods that may send nothing to port 53, so that no name resolves."""
    for namespace in graph.namespaces():
        objects = graph.namespace(namespace)
        policies = [m for m in objects if m.kind == "NetworkPolicy" and m.ref.group == "networking.k8s.io"]
        if (
            not policies
            or any(graph_kind in _OTHERS for graph_kind in map(_kind, objects))
            or graph.kind(*_CLUSTER_WIDE)
        ):
            continue
        closing = [
            m for m in policies if _egress(m) is not None and mapping(m.body.get("spec")).get("podSelector") == {}
        ]
        rules = [rule for m in policies for rule in _egress(m) or ()]
        if closing and not any(_reaches_names(rule) for rule in rules):
            message = f"no policy of {namespace} lets pods send to port 53: no name resolves"
            fix = "allow UDP and TCP 53 to the DNS of the cluster"
            yield warn("TEN104", closing[0], message, "spec.egress", fix)


def _kind(manifest: Manifest) -> str:
    return f"{manifest.kind}.{manifest.ref.group}"


def _egress(policy: Manifest) -> list[Body] | None:
    """The rules for what goes out, None where the policy does not speak of it."""
    spec = mapping(policy.body.get("spec"))
    types = texts(spec.get("policyTypes"))
    if "Egress" not in types and (types or "egress" not in spec):
        return None
    return maps(spec.get("egress"))


def _reaches_names(rule: Body) -> bool:
    ports = maps(rule.get("ports"))
    if not ports:
        return True
    return any(port.get("port") in (53, 5353, "dns", "dns-tcp", None) or port.get("endPort") for port in ports)


def past_the_policies(graph: Graph) -> Iterator[Finding]:
    """TEN105: pods on the network of the node, in a namespace whose policies then do not touch them."""
    closed = {manifest.ref.namespace for manifest in graph.kind(_POLICY, *_OTHERS)}
    for manifest, pod in graph.pods:
        if pod.spec.get("hostNetwork") is True and manifest.ref.namespace in closed:
            message = "the pod uses the network of its node: the NetworkPolicies of its namespace do not hold for it"
            yield warn("TEN105", manifest, message, f"{pod.spec_path}.hostNetwork", "leave hostNetwork out")


def loosened_namespaces(graph: Graph) -> Iterator[Finding]:
    """TEN106, TEN107, TEN108: labels that take a tenant namespace out of what guards the others."""
    grants = graph.grants
    people = {
        binding.manifest.ref.namespace
        for binding in grants.bindings
        if not binding.everywhere and any(kind in ("User", "Group") for kind, _, _ in binding.subjects)
    }
    drivers = {m.ref.namespace for m in graph.kind("DaemonSet.apps", "DeviceClass.resource.k8s.io")}
    for namespace in graph.kind("Namespace"):
        name, labels = namespace.ref.name, labels_of(namespace.body)
        tenant = name in grants.tenant_namespaces or name in people
        if labels.get(_ADMIN) == "true" and (
            tenant or not (name in drivers or name.endswith(("-system", "-operator")))
        ):
            message = "pods here may take devices that others use: the label allows claims with adminAccess"
            severity = Severity.ERROR if tenant else Severity.WARNING
            yield say("TEN106", namespace, message, f'metadata.labels["{_ADMIN}"]', "remove the label", severity)
        if name not in grants.tenant_namespaces:
            continue
        if labels.get(_ENFORCE) == "privileged":
            message = "tenants may run privileged pods, and own the nodes that way"
            yield say("TEN107", namespace, message, f'metadata.labels["{_ENFORCE}"]', "enforce: restricted")
        if _IGNORE in labels:
            message = "Gatekeeper judges nothing in this namespace of tenants"
            yield say("TEN108", namespace, message, f'metadata.labels["{_IGNORE}"]', "remove the label")


def unlabelled(graph: Graph) -> Iterator[Finding]:
    """TEN109: a tenant namespace without the level of pod security that its peers enforce."""
    tenants = [m for m in graph.kind("Namespace") if m.ref.name in graph.grants.tenant_namespaces]
    lacking = [manifest for manifest in tenants if _ENFORCE not in labels_of(manifest.body)]
    if len(tenants) - len(lacking) >= max(1, len(lacking)):
        for namespace in lacking:
            message = f"{namespace.ref.name} enforces no level of pod security, as its peers do: any pod is let in"
            yield warn("TEN109", namespace, message, "metadata.labels", f"{_ENFORCE}: restricted")


def tokens_by_default(graph: Graph) -> Iterator[Finding]:
    """TEN110: pods of tenants that carry a token of the API server without asking for it."""
    tenants = graph.grants.tenant_namespaces
    said: set[str] = set()
    for manifest, pod in graph.pods:
        namespace = manifest.ref.namespace
        if namespace not in tenants or namespace in said:
            continue
        asked = pod.spec.get("automountServiceAccountToken")
        name = text(pod.spec.get("serviceAccountName")) or "default"
        account = graph.get(Ref("", "ServiceAccount", namespace, name))
        off = account is not None and account.body.get("automountServiceAccountToken") is False
        if asked is None and not off and name == "default":
            said.add(namespace)
            message = "the pod carries a token of the account `default`, which it does not ask for"
            fix = "automountServiceAccountToken: false"
            yield note("TEN110", manifest, message, pod.spec_path, fix)


RULES = (
    without_network_policy,
    without_quota,
    open_deny_policies,
    no_names,
    past_the_policies,
    loosened_namespaces,
    unlabelled,
    tokens_by_default,
)
TREE = ()
