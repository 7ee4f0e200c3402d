package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/argoproj/argo-cd/gitops-engine/v3/pkg/health"
	"github.com/argoproj/argo-cd/gitops-engine/v3/pkg/sync"
	"github.com/argoproj/argo-cd/gitops-engine/v3/pkg/sync/common"
	"github.com/argoproj/argo-cd/gitops-engine/v3/pkg/sync/hook"
	"github.com/argoproj/argo-cd/gitops-engine/v3/pkg/sync/syncwaves"
	"github.com/argoproj/argo-cd/gitops-engine/v3/pkg/utils/kube"
	"github.com/argoproj/argo-cd/gitops-engine/v3/pkg/utils/kube/kubetest"
	"github.com/argoproj/argo-cd/v3/util/lua"
)

const later = "constraints.gatekeeper.sh"

// discovery is an API server of which a sync asks what kinds there are; those of constraints come later.
func (o objects) discovery() *httptest.Server {
	lists := map[string]*metav1.APIResourceList{}
	for _, object := range o.delivered {
		kind := object.GroupVersionKind()
		if kind.Group == later {
			continue
		}
		path := "/apis/" + kind.GroupVersion().String()
		if kind.Group == "" {
			path = "/api/" + kind.Version
		}
		if lists[path] == nil {
			lists[path] = &metav1.APIResourceList{GroupVersion: kind.GroupVersion().String()}
		}
		resource := metav1.APIResource{
			Name: strings.ToLower(kind.Kind) + "s", Kind: kind.Kind, Group: kind.Group, Version: kind.Version,
			Namespaced: object.GetNamespace() != "", Verbs: metav1.Verbs{"get", "list", "create", "patch", "update", "delete"},
		}
		lists[path].APIResources = append(lists[path].APIResources, resource)
	}
	return httptest.NewServer(http.HandlerFunc(func(to http.ResponseWriter, asked *http.Request) {
		list, known := lists[asked.URL.Path]
		if !known {
			http.NotFound(to, asked)
			return
		}
		to.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(to).Encode(list)
	}))
}

func name(object *unstructured.Unstructured) string {
	return object.GetKind() + " " + object.GetName()
}

// synced is the first round of a sync of everything that is delivered, on a cluster that has nothing of it.
func (o objects) synced(ctx context.Context) error {
	if !slices.ContainsFunc(o.delivered, func(each *unstructured.Unstructured) bool { return len(each.GetAnnotations()) > 0 }) {
		return nil
	}
	server := o.discovery()
	defer server.Close()
	target := []*unstructured.Unstructured{}
	for _, object := range o.delivered {
		target = append(target, object.DeepCopy())
	}
	reconciled := sync.Reconcile(target, map[kube.ResourceKey]*unstructured.Unstructured{}, "default", scopes{})
	to := &rest.Config{Host: server.URL}
	run, clean, err := sync.NewSyncContext("main", reconciled, to, to, &kubetest.MockKubectlCmd{}, "default", sync.WithLogr(logr.Discard()), sync.WithOperationSettings(false, false, false, false))
	if err != nil {
		return err
	}
	defer clean()
	run.Sync(ctx)
	phase, message, results := run.GetState()
	if phase.Failed() || phase == common.OperationError {
		for _, result := range results {
			message += "; " + result.ResourceKey.String() + ": " + result.Message
		}
		return errors.New(message)
	}
	applied := map[string]bool{}
	for _, result := range results {
		applied[result.ResourceKey.Kind+" "+result.ResourceKey.Name] = true
	}
	for _, object := range o.delivered {
		if hook.IsHook(object) && phase.Completed() && !applied[name(object)] {
			return fmt.Errorf("the sync is %s, and %s was not applied", phase, name(object))
		}
		if applied[name(object)] {
			for _, need := range needs(object) {
				if !applied[need] {
					return fmt.Errorf("%s is applied before %s, which it needs", name(object), need)
				}
			}
		}
	}
	return nil
}

// needs are the ConfigMaps of Jobs that come before the Sync phase: of others a sync applies everything of a wave.
func needs(object *unstructured.Unstructured) []string {
	found := []string{}
	if !slices.Contains(hook.Types(object), common.HookTypePreSync) {
		return found
	}
	containers, _, _ := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
	for _, container := range containers {
		from, _, _ := unstructured.NestedSlice(container.(map[string]any), "envFrom")
		for _, each := range from {
			if reference, is, _ := unstructured.NestedString(each.(map[string]any), "configMapRef", "name"); is {
				found = append(found, "ConfigMap "+reference)
			}
		}
	}
	return found
}

// healthy is what Argo CD says of an object: by the scripts of argocd-cm and its own, else by its engine.
func (o objects) healthy(ctx context.Context, object *unstructured.Unstructured) (*health.HealthStatus, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	overrides, err := o.manager(ctx).GetResourceOverrides()
	if err != nil {
		return nil, err
	}
	return health.GetResourceHealth(object, lua.ResourceHealthOverrides(overrides))
}

// passed looks at waves that do not wait: a kind without a health check counts as done when it is stored. It is asked
// only where the settings are known, and only of custom resources.
func (o objects) passed(ctx context.Context) error {
	for _, object := range o.everything() {
		if o.settings.Name == "" || !o.followed(object) || !strings.Contains(object.GroupVersionKind().Group, ".") {
			continue
		}
		found, err := o.healthy(ctx, object)
		if err != nil {
			return err
		}
		if found == nil {
			return fmt.Errorf("a later wave does not wait for %s: its health is unknown", name(object))
		}
	}
	return nil
}

// held looks at waves that wait for as long as somebody likes: for an object that is suspended as it is written.
func (o objects) held(ctx context.Context) error {
	for _, object := range o.everything() {
		if !o.followed(object) {
			continue
		}
		found, err := o.healthy(ctx, object)
		if err != nil {
			return err
		}
		if found != nil && found.Status == health.HealthStatusSuspended {
			return fmt.Errorf("a later wave waits for %s, which is %s", name(object), found.Status)
		}
	}
	return nil
}

// followed says whether something stands in a later wave.
func (o objects) followed(object *unstructured.Unstructured) bool {
	return slices.ContainsFunc(o.everything(), func(other *unstructured.Unstructured) bool {
		return syncwaves.Wave(other) > syncwaves.Wave(object)
	})
}

// waited looks at the waves, at the delete policies of hooks, and at claims that wait for a pod of a later wave.
func (o objects) waited(ctx context.Context) error {
	for _, object := range o.delivered {
		marks := object.GetAnnotations()
		if said, is := marks[common.AnnotationSyncWave]; is && fmt.Sprint(syncwaves.Wave(object)) != said {
			return fmt.Errorf("the wave %q is read as %d", said, syncwaves.Wave(object))
		}
		if said, is := marks[common.AnnotationKeyHookDeletePolicy]; is {
			known := hook.DeletePolicies(object)
			for word := range strings.SplitSeq(said, ",") {
				if !slices.Contains(known, common.HookDeletePolicy(strings.TrimSpace(word))) {
					return fmt.Errorf("the delete policy %q is read as %v", said, known)
				}
			}
		}
		if object.GetKind() == "PersistentVolumeClaim" {
			if err := o.claimed(ctx, object); err != nil {
				return err
			}
		}
	}
	return nil
}

// claimed asks for the health of a claim that is as a provisioner leaves it while no pod uses it.
func (o objects) claimed(ctx context.Context, claim *unstructured.Unstructured) error {
	pending := claim.DeepCopy()
	if err := unstructured.SetNestedField(pending.Object, "Pending", "status", "phase"); err != nil {
		return err
	}
	found, err := o.healthy(ctx, pending)
	if err != nil {
		return err
	}
	if found.Status == health.HealthStatusHealthy || !o.binds(claim) {
		return nil
	}
	used := false
	for _, object := range o.delivered {
		volumes, _, _ := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "volumes")
		for _, each := range volumes {
			volume, _, _ := unstructured.NestedString(each.(map[string]any), "persistentVolumeClaim", "claimName")
			used = used || volume == claim.GetName() && syncwaves.Wave(object) <= syncwaves.Wave(claim)
		}
	}
	if !used && o.followed(claim) {
		return fmt.Errorf("%s is %s while no pod of its wave uses it, and a later wave waits", name(claim), found.Status)
	}
	return nil
}

// binds says whether the class of a claim waits for its first pod.
func (o objects) binds(claim *unstructured.Unstructured) bool {
	class, _, _ := unstructured.NestedString(claim.Object, "spec", "storageClassName")
	return slices.ContainsFunc(o.delivered, func(object *unstructured.Unstructured) bool {
		mode, _, _ := unstructured.NestedString(object.Object, "volumeBindingMode")
		return object.GetKind() == "StorageClass" && object.GetName() == class && mode == "WaitForFirstConsumer"
	})
}
