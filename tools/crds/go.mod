module blueprint.example/tools/crds

go 1.27.0

// The modules whose CustomResourceDefinitions feed the schema pack, and the versions that the platform runs.
require (
	github.com/argoproj/argo-cd/v3 v3.6.1
	github.com/argoproj/argo-rollouts v1.10.2
	github.com/cert-manager/cert-manager v1.21.2
	github.com/cilium/cilium v1.20.2
	github.com/kedacore/keda/v2 v2.21.0
	github.com/kubeflow/trainer/v2 v2.2.0
	github.com/kubeflow/training-operator v1.9.3
	github.com/kubernetes-csi/external-snapshotter/client/v8 v8.7.0
	github.com/kyverno/kyverno v1.19.1
	github.com/open-policy-agent/gatekeeper/v3 v3.23.1
	github.com/prometheus-operator/prometheus-operator v0.93.1
	github.com/vmware-tanzu/velero v1.18.3
	istio.io/api v1.32.0
	sigs.k8s.io/gateway-api-inference-extension v1.6.0
	sigs.k8s.io/gateway-api v1.5.1
	sigs.k8s.io/jobset v0.11.1
	sigs.k8s.io/kueue v0.17.0
	sigs.k8s.io/lws v0.7.0
)
