package main

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/validation"
	"github.com/argoproj/argo-rollouts/rollout/trafficrouting/istio"
	istioutil "github.com/argoproj/argo-rollouts/utils/istio"
	"github.com/argoproj/argo-rollouts/utils/record"
)

// meshed judges the objects of Istio that a Rollout shifts traffic with: the routes by the controller's validation, and
// the subsets by what its reconciler makes of them.
func (o objects) meshed(rollout *v1alpha1.Rollout) error {
	routing := rollout.Spec.Strategy.Canary.TrafficRouting
	if routing == nil || routing.Istio == nil {
		return nil
	}
	for _, object := range o.mesh {
		if object.GetKind() != "VirtualService" || object.GetNamespace() != rollout.Namespace {
			continue
		}
		if problems := validation.ValidateVirtualService(rollout, *object); len(problems) > 0 {
			return problems.ToAggregate()
		}
	}
	if routing.Istio.DestinationRule == nil {
		return nil
	}
	return o.hashed(rollout, routing.Istio.DestinationRule)
}

// hashed has the reconciler write the hashes of pods into a DestinationRule, and looks for both of them there.
func (o objects) hashed(rollout *v1alpha1.Rollout, rule *v1alpha1.IstioDestinationRule) error {
	kinds := map[schema.GroupVersionResource]string{
		istioutil.GetIstioVirtualServiceGVR():  "VirtualServiceList",
		istioutil.GetIstioDestinationRuleGVR(): "DestinationRuleList",
	}
	stored := []runtime.Object{}
	for _, object := range o.mesh {
		// The API server converts between the versions of Istio's kinds.
		converted := object.DeepCopy()
		converted.SetAPIVersion(istioutil.GetIstioDestinationRuleGVR().GroupVersion().String())
		stored = append(stored, converted)
	}
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, stored...)
	reconciler := istio.NewReconciler(rollout, client, record.NewFakeEventRecorder(), nil, nil, nil)
	if err := reconciler.UpdateHash("hash-of-canary", "hash-of-stable"); err != nil {
		return err
	}
	from := client.Resource(istioutil.GetIstioDestinationRuleGVR()).Namespace(rollout.Namespace)
	found, err := from.Get(context.Background(), rule.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	subsets, _, err := unstructured.NestedSlice(found.Object, "spec", "subsets")
	if err != nil {
		return err
	}
	hashes := map[string]string{}
	for _, each := range subsets {
		subset := each.(map[string]any)
		hash, _, _ := unstructured.NestedString(subset, "labels", v1alpha1.DefaultRolloutUniqueLabelKey)
		name, _, _ := unstructured.NestedString(subset, "name")
		hashes[name] = hash
	}
	for name, hash := range map[string]string{rule.CanarySubsetName: "hash-of-canary", rule.StableSubsetName: "hash-of-stable"} {
		if hashes[name] != hash {
			return fmt.Errorf("no subset %s of DestinationRule %s selects %s", name, rule.Name, hash)
		}
	}
	return nil
}
