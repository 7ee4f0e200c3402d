// Command kueue-verdicts asks Kueue's own validation about objects: those of its webhooks, and of its start-up.
//
// It reads one JSON object a line and answers each with a line: "" where Kueue takes it, else what Kueue says.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	configv1beta1 "sigs.k8s.io/kueue/apis/config/v1beta1"
	configv1beta2 "sigs.k8s.io/kueue/apis/config/v1beta2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/config"
	"sigs.k8s.io/kueue/pkg/controller/jobframework"
	_ "sigs.k8s.io/kueue/pkg/controller/jobs"
	jobhook "sigs.k8s.io/kueue/pkg/controller/jobs/job"
	jobsethook "sigs.k8s.io/kueue/pkg/controller/jobs/jobset"
	podhook "sigs.k8s.io/kueue/pkg/controller/jobs/pod"
	_ "sigs.k8s.io/kueue/pkg/features"
	"sigs.k8s.io/kueue/pkg/webhooks"
)

// scheme is that of the manager (cmd/kueue/main.go init), as far as the configuration needs it.
func scheme() *runtime.Scheme {
	known := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(known))
	utilruntime.Must(configv1beta1.AddToScheme(known))
	utilruntime.Must(configv1beta2.AddToScheme(known))
	utilruntime.Must(jobframework.ForEachIntegration(func(_ string, each jobframework.IntegrationCallbacks) error {
		if each.AddToScheme == nil {
			return nil
		}
		return each.AddToScheme(known)
	}))
	return known
}

// start does what the manager does with its configuration before anything else.
func start(known *runtime.Scheme, line []byte) error {
	file, err := os.CreateTemp("", "kueue-*.json")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	if _, err := file.Write(line); err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	_, loaded, err := config.Load(known, file.Name())
	if err != nil {
		return err
	}
	if err := config.ValidateFeatureGates("", loaded.FeatureGates).ToAggregate(); err != nil {
		return err
	}
	return utilfeature.DefaultMutableFeatureGate.DeepCopy().SetFromMap(loaded.FeatureGates)
}

// completed sets what the API server sets before it asks a webhook (k8s.io/kubernetes pkg/apis/batch/v1/defaults.go).
func completed(spec *batchv1.JobSpec) {
	one := int32(1)
	if spec.Completions == nil && spec.Parallelism == nil {
		spec.Completions = &one
	}
	if spec.Parallelism == nil {
		spec.Parallelism = &one
	}
}

func verdict(known *runtime.Scheme, line []byte) error {
	var meta metav1.TypeMeta
	if err := json.Unmarshal(line, &meta); err != nil {
		return err
	}
	ctx := context.Background()
	switch meta.Kind {
	case "Configuration":
		return start(known, line)
	case "ClusterQueue":
		object := &kueue.ClusterQueue{}
		if err := json.Unmarshal(line, object); err != nil {
			return err
		}
		return webhooks.ValidateClusterQueue(object).ToAggregate()
	case "Cohort":
		object := &kueue.Cohort{}
		if err := json.Unmarshal(line, object); err != nil {
			return err
		}
		_, err := (&webhooks.CohortWebhook{}).ValidateCreate(ctx, object)
		return err
	case "WorkloadPriorityClass":
		return json.Unmarshal(line, &kueue.WorkloadPriorityClass{})
	case "Job":
		object := &batchv1.Job{}
		if err := json.Unmarshal(line, object); err != nil {
			return err
		}
		completed(&object.Spec)
		_, err := (&jobhook.JobWebhook{}).ValidateCreate(ctx, object)
		return err
	case "JobSet":
		object := &jobset.JobSet{}
		if err := json.Unmarshal(line, object); err != nil {
			return err
		}
		for index := range object.Spec.ReplicatedJobs {
			replicated := &object.Spec.ReplicatedJobs[index]
			replicated.Replicas = max(replicated.Replicas, 1)
			completed(&replicated.Template.Spec)
		}
		_, err := (&jobsethook.JobSetWebhook{}).ValidateCreate(ctx, object)
		return err
	case "Pod":
		object := &corev1.Pod{}
		if err := json.Unmarshal(line, object); err != nil {
			return err
		}
		_, err := (&podhook.PodWebhook{}).ValidateCreate(ctx, object)
		return err
	}
	return nil
}

func main() {
	known := scheme()
	lines := bufio.NewReader(os.Stdin)
	answers := json.NewEncoder(os.Stdout)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 1 {
			said := ""
			if refused := verdict(known, line); refused != nil {
				said = refused.Error()
			}
			if err := answers.Encode(said); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		}
		if err != nil {
			return
		}
	}
}
