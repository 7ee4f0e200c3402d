// Command trainer-verdicts asks the validation of Kubeflow Trainer's webhook about TrainJobs.
//
// It reads a JSON list of objects a line and answers each with a line: "" where Trainer takes every TrainJob, else what
// it says. The API server that it looks for runtimes in is played, with the client that controller-runtime has for tests:
// the other objects of the line are there.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"

	"github.com/go-logr/logr"
	trainer "github.com/kubeflow/trainer/v2/pkg/apis/trainer/v1alpha1"
	trainerruntime "github.com/kubeflow/trainer/v2/pkg/runtime"
	trainercore "github.com/kubeflow/trainer/v2/pkg/runtime/core"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
)

// indexes are those of a cache; the runtimes of Trainer ask for some that nothing here reads.
type indexes struct{}

func (indexes) IndexField(context.Context, client.Object, string, client.IndexerFunc) error {
	return nil
}

func read(known *runtime.Scheme, line []byte) ([]client.Object, error) {
	var raw []json.RawMessage
	if err := json.Unmarshal(line, &raw); err != nil {
		return nil, err
	}
	found := []client.Object{}
	for _, each := range raw {
		var meta metav1.TypeMeta
		if err := json.Unmarshal(each, &meta); err != nil {
			return nil, err
		}
		if !known.Recognizes(meta.GroupVersionKind()) {
			continue
		}
		object, err := known.New(meta.GroupVersionKind())
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(each, object); err != nil {
			return nil, err
		}
		found = append(found, object.(client.Object))
	}
	return found, nil
}

// started is the validator of TrainJobs: it looks the runtime up and has it judge the job (pkg/webhooks).
func started(ctx context.Context, asked client.Client, object *trainer.TrainJob) error {
	if object.Spec.RuntimeRef.APIGroup == nil {
		object.Spec.RuntimeRef.APIGroup = &trainer.GroupVersion.Group
	}
	if object.Spec.RuntimeRef.Kind == nil {
		kind := trainer.ClusterTrainingRuntimeKind
		object.Spec.RuntimeRef.Kind = &kind
	}
	runtimes, err := trainercore.New(ctx, asked, indexes{}, nil)
	if err != nil {
		return err
	}
	found, known := runtimes[trainerruntime.RuntimeRefToRuntimeRegistryKey(object.Spec.RuntimeRef)]
	if !known {
		return errors.New("unsupported runtime")
	}
	_, problems := found.ValidateObjects(ctx, nil, object)
	return problems.ToAggregate()
}

func verdict(known *runtime.Scheme, line []byte) error {
	objects, err := read(known, line)
	if err != nil {
		return err
	}
	ctx := context.Background()
	asked := fake.NewClientBuilder().WithScheme(known).WithObjects(objects...).Build()
	for _, object := range objects {
		if job, is := object.(*trainer.TrainJob); is {
			if err := started(ctx, asked, job); err != nil {
				return err
			}
		}
	}
	return nil
}

func main() {
	ctrl.SetLogger(logr.Discard())
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, trainer.AddToScheme, jobset.AddToScheme} {
		utilruntime.Must(add(known))
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 0, 1<<20), 1<<26)
	answers := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		said := ""
		if refused := verdict(known, lines.Bytes()); refused != nil {
			said = refused.Error()
		}
		if err := answers.Encode(said); err != nil {
			panic(err)
		}
	}
}
