package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/argoproj/argo-cd/gitops-engine/v3/pkg/sync/common"
	"github.com/argoproj/argo-cd/v3/controller"
	argo "github.com/argoproj/argo-cd/v3/pkg/apis/application/v1alpha1"
	util "github.com/argoproj/argo-cd/v3/util/argo"
	"github.com/argoproj/argo-cd/v3/util/db"
	"github.com/argoproj/argo-cd/v3/util/git"
	"github.com/argoproj/argo-cd/v3/util/settings"
	"github.com/argoproj/argo-cd/v3/util/sourceintegrity"
)

// clusters is the part of Argo CD's store that permissions ask for: every cluster that is named is there.
type clusters struct{ db.ArgoDB }

func (clusters) GetClusterServersByName(_ context.Context, name string) ([]string, error) {
	return []string{"https://" + name}, nil
}

func (clusters) GetCluster(_ context.Context, server string) (*argo.Cluster, error) {
	return &argo.Cluster{Server: server, Name: strings.TrimPrefix(server, "https://")}, nil
}

func (clusters) GetProjectClusters(context.Context, string) ([]*argo.Cluster, error) { return nil, nil }

// permitted is what the controller looks at before it compares, and of each object before it applies it.
func (o objects) permitted(ctx context.Context) error {
	for _, application := range o.applications {
		project, known := o.projects[application.Spec.Project]
		if !known {
			project = o.projects["default"]
		}
		conditions, err := util.ValidatePermissions(ctx, &application.Spec, project, clusters{})
		if err != nil {
			return err
		}
		if len(conditions) > 0 {
			return errors.New(util.FormatAppConditions(conditions))
		}
		cluster, err := util.GetDestinationCluster(ctx, application.Spec.Destination, clusters{})
		if err != nil {
			return err
		}
		for _, object := range o.delivered {
			kind, namespaced := object.GroupVersionKind().GroupKind(), object.GetNamespace() != ""
			if !project.IsGroupKindNamePermitted(kind, object.GetName(), namespaced) {
				return fmt.Errorf("%s is not permitted in project %s", kind, project.Name)
			}
			if !namespaced {
				continue
			}
			allowed, err := project.IsDestinationPermitted(cluster, object.GetNamespace(), func(string) ([]*argo.Cluster, error) { return nil, nil })
			if err != nil {
				return err
			}
			if !allowed {
				return fmt.Errorf("namespace %s is not permitted in project %s", object.GetNamespace(), project.Name)
			}
		}
	}
	return nil
}

// manager reads the settings of the line as Argo CD reads its own.
func (o objects) manager(ctx context.Context) *settings.SettingsManager {
	stored := o.settings.DeepCopy()
	stored.Name, stored.Namespace = "argocd-cm", "argocd"
	stored.Labels = map[string]string{"app.kubernetes.io/part-of": "argocd"}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "argocd-secret", Namespace: "argocd", Labels: stored.Labels}}
	return settings.NewSettingsManager(ctx, fake.NewClientset(stored, secret), "argocd")
}

// excluded asks the settings which kinds Argo CD does not see.
func (o objects) excluded(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	filter, err := o.manager(ctx).GetResourcesFilter()
	if err != nil {
		return err
	}
	for _, object := range o.delivered {
		kind := object.GroupVersionKind().GroupKind()
		if filter.IsExcludedResource(kind.Group, kind.Kind, "https://kubernetes.default.svc") {
			return fmt.Errorf("%s is excluded", kind)
		}
	}
	return nil
}

// unsigned is a repository whose commit nobody signed.
type unsigned struct {
	git.Client
	url string
}

func (u unsigned) RepoURL() string { return u.url }

func (unsigned) LsSignatures(context.Context, string, bool) ([]git.RevisionSignatureInfo, string, error) {
	commit := git.RevisionSignatureInfo{Revision: strings.Repeat("a", 40), VerificationResult: git.GPGVerificationResultUnsigned}
	return []git.RevisionSignatureInfo{commit}, "", nil
}

// verified has an unsigned commit of each repository of a project looked at, by the first question of a process.
func (o objects) verified(ctx context.Context) error {
	for _, object := range o.delivered {
		containers, _, _ := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
		for _, container := range containers {
			given, _, _ := unstructured.NestedSlice(container.(map[string]any), "env")
			for _, each := range given {
				variable := each.(map[string]any)
				if name, is := variable["name"].(string); is && strings.HasPrefix(name, "ARGOCD_") {
					os.Setenv(name, fmt.Sprint(variable["value"]))
					defer os.Unsetenv(name)
				}
			}
		}
	}
	for _, project := range o.projects {
		asked := project.EffectiveSourceIntegrity()
		if asked == nil {
			continue
		}
		repositories := slices.DeleteFunc(slices.Clone(project.Spec.SourceRepos), func(url string) bool { return strings.Contains(url, "*") })
		if len(repositories) == 0 {
			repositories = []string{"https://git.example.com/any.git"}
		}
		for _, url := range repositories {
			found, _, err := sourceintegrity.VerifyGit(ctx, asked, unsigned{url: url}, strings.Repeat("a", 40))
			if err == nil && found == nil {
				return fmt.Errorf("project %s takes an unsigned commit of %s", project.Name, url)
			}
		}
	}
	return nil
}

// tracked sets the tracking label of each Application on an object, and looks whether an API server takes it.
func (o objects) tracked(context.Context) error {
	method := argo.TrackingMethod(o.settings.Data["application.resourceTrackingMethod"])
	owner := ""
	for _, application := range o.applications {
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "namespace": "a"},
		}}
		tracking := util.NewResourceTracking()
		if err := tracking.SetAppInstance(object, "app.kubernetes.io/instance", application.Name, "a", method, ""); err != nil {
			return err
		}
		for _, value := range object.GetLabels() {
			if problems := validation.IsValidLabelValue(value); len(problems) > 0 {
				return errors.New(strings.Join(problems, "; "))
			}
		}
		owner = tracking.GetAppName(object, "app.kubernetes.io/instance", method, "")
		if owner != application.Name {
			return fmt.Errorf("objects of %s count as those of %s", application.Name, owner)
		}
	}
	return nil
}

// shared tracks each object for every Application that reads it from one folder into one cluster: the last one has it.
func (o objects) shared(context.Context) error {
	for _, object := range o.delivered {
		for index, application := range o.applications {
			for _, other := range o.applications[index+1:] {
				same := application.Spec.Source != nil && other.Spec.Source != nil && application.Spec.Source.Equals(other.Spec.Source)
				if one, two := application.Spec.Destination, other.Spec.Destination; !same || one.Server != two.Server || one.Name != two.Name {
					continue
				}
				live, tracking := object.DeepCopy(), util.NewResourceTracking()
				for _, each := range []*argo.Application{application, other} {
					if err := tracking.SetAppInstance(live, "", each.Name, live.GetNamespace(), "", ""); err != nil {
						return err
					}
				}
				if owner := tracking.GetAppName(live, "", "", ""); owner != application.Name {
					return fmt.Errorf("%s %s of %s is taken by %s", live.GetKind(), live.GetName(), application.Name, owner)
				}
			}
		}
	}
	return nil
}

// questions are the options of a sync by which the controller decides (controller/sync.go, controller/state.go).
var questions = []string{
	"CreateNamespace=true", "ApplyOutOfSyncOnly=true", "RespectIgnoreDifferences=true", "FailOnSharedResource=true",
	"PrunePropagationPolicy=orphan", "PrunePropagationPolicy=foreground", "PrunePropagationPolicy=background",
	common.SyncOptionSkipDryRunOnMissingResource, common.SyncOptionsDisableValidation, common.SyncOptionPruneLast,
	common.SyncOptionReplace, common.SyncOptionForce, common.SyncOptionServerSideApply,
	common.SyncOptionDisableClientSideApplyMigration,
}

// opted looks for an option that gives no other answer to any question than none.
func (o objects) opted(context.Context) error {
	policies := []*argo.SyncPolicy{}
	for _, application := range o.applications {
		policies = append(policies, application.Spec.SyncPolicy)
	}
	for _, set := range o.sets {
		policies = append(policies, set.Spec.Template.Spec.SyncPolicy)
	}
	for _, policy := range policies {
		if policy == nil {
			continue
		}
		for _, option := range policy.SyncOptions {
			alone := argo.SyncOptions{option}
			heard := slices.ContainsFunc(questions, alone.HasOption) || alone.GetOptionValue(common.SyncOptionPrune) != nil
			if !heard && !strings.Contains(option, "{{") {
				return fmt.Errorf("nothing asks for the option %s", option)
			}
		}
	}
	return nil
}

// released takes away the finalizers that Argo CD takes away, and looks whether one of its domain is left.
func (o objects) released(context.Context) error {
	for _, application := range o.applications {
		left := application.DeepCopy()
		left.UnSetCascadedDeletion()
		left.UnSetPreDeleteFinalizerAll()
		left.UnSetPostDeleteFinalizerAll()
		for _, finalizer := range left.Finalizers {
			if strings.Contains(finalizer, "argocd.argoproj.io") {
				return fmt.Errorf("nobody removes the finalizer %s", finalizer)
			}
		}
	}
	return nil
}

type scopes map[schema.GroupKind]bool

func (s scopes) IsNamespaced(kind schema.GroupKind) (bool, error) { return s[kind], nil }

// repeated is the controller's look for objects that are twice among those of an Application.
func (o objects) repeated(context.Context) error {
	known, all := scopes{}, []*unstructured.Unstructured{}
	for _, object := range o.delivered {
		known[object.GroupVersionKind().GroupKind()] = object.GetNamespace() != ""
		all = append(all, object.DeepCopy())
	}
	_, conditions, err := controller.NormalizeTargetObjects("default", all, known, func(*unstructured.Unstructured) error { return nil })
	if err != nil {
		return err
	}
	if len(conditions) > 0 {
		return errors.New(util.FormatAppConditions(conditions))
	}
	return nil
}
