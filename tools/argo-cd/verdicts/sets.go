package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	log "github.com/sirupsen/logrus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/argoproj/argo-cd/v3/applicationset/generators"
	"github.com/argoproj/argo-cd/v3/applicationset/progressivesync"
	"github.com/argoproj/argo-cd/v3/applicationset/utils"
	argo "github.com/argoproj/argo-cd/v3/pkg/apis/application/v1alpha1"
)

// kept writes the status of a set into the object, as the controller does by way of the API server.
type kept struct{}

func (kept) SetAppSetApplicationStatus(_ context.Context, _ *log.Entry, set *argo.ApplicationSet, found []argo.ApplicationSetApplicationStatus) error {
	set.Status.ApplicationStatus = found
	return nil
}

func (kept) SetApplicationSetStatusCondition(context.Context, *argo.ApplicationSet, []argo.ApplicationSetCondition, bool) error {
	return nil
}

func (kept) RecordProgressiveSyncTriggered(*argo.ApplicationSet, string) {}

func (kept) IncRefreshTriggeredCount(*argo.ApplicationSet) {}

// generated makes the Applications of each set, and has the strategy of the set say which of them are synced.
func (o objects) generated(ctx context.Context) error {
	for _, set := range o.sets {
		made := []argo.Application{}
		for _, generator := range set.Spec.Generators {
			rows, err := generators.NewListGenerator().GenerateParams(&generator, set, nil)
			if err != nil {
				return err
			}
			for _, row := range rows {
				template := &argo.Application{Spec: *set.Spec.Template.Spec.DeepCopy()}
				template.Name, template.Namespace = set.Spec.Template.Name, set.Namespace
				template.Labels, template.Annotations = set.Spec.Template.Labels, set.Spec.Template.Annotations
				application, err := (&utils.Render{}).RenderTemplateParams(template, nil, row, set.Spec.GoTemplate, set.Spec.GoTemplateOptions)
				if err != nil {
					return err
				}
				text, err := json.Marshal(application)
				if err != nil {
					return err
				}
				if strings.Contains(string(text), "{{") {
					return fmt.Errorf("the Application %s still holds a template", application.Name)
				}
				made = append(made, *application)
				if err := (objects{applications: []*argo.Application{application}, projects: o.projects}).permitted(ctx); err != nil {
					return err
				}
			}
		}
		if err := rolled(ctx, set, made); err != nil {
			return err
		}
	}
	return nil
}

// rolled asks a RollingSync until it has nothing more to sync, each Application being healthy as soon as it is synced.
func rolled(ctx context.Context, set *argo.ApplicationSet, made []argo.Application) error {
	if !progressivesync.IsRollingSyncStrategy(set) {
		return nil
	}
	known := runtime.NewScheme()
	utilruntime.Must(argo.AddToScheme(known))
	stored := []client.Object{set.DeepCopy()}
	for _, application := range made {
		stored = append(stored, application.DeepCopy())
	}
	asked := fake.NewClientBuilder().WithScheme(known).WithObjects(stored...).WithStatusSubresource(set).Build()
	manager := progressivesync.NewManager(asked, asked, nil, kept{})
	live, compared := []argo.Application{}, metav1.NewTime(time.Now().Add(time.Hour))
	for _, application := range made {
		application.Status.Sync.Status = argo.SyncStatusCodeOutOfSync
		application.Status.ReconciledAt = &compared
		live = append(live, application)
	}
	// The first look makes the list of steps, the second one asks what is due.
	due := map[string]bool{}
	for range 2 {
		found, err := manager.PerformProgressiveSyncs(ctx, log.NewEntry(log.StandardLogger()), *set, live, made, 0)
		if err != nil {
			return err
		}
		for application, is := range found {
			due[application] = due[application] || is
		}
	}
	for _, application := range made {
		if !due[application.Name] {
			return fmt.Errorf("no step syncs the Application %s", application.Name)
		}
	}
	return nil
}
