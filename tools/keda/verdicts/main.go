// Command keda-verdicts asks KEDA's admission webhook about ScaledObjects, one after another, as they are applied.
//
// It reads a JSON list of objects a line and answers each with a line: "" where the webhook takes every ScaledObject,
// else what it says. Other objects are there before. The webhook is set up by KEDA's own code; the manager that it asks
// for clients is played, with the client that controller-runtime has for tests, and every kind that is scaled is known.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"os"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"

	keda "github.com/kedacore/keda/v2/apis/keda/v1alpha1"
)

type index struct {
	object client.Object
	field  string
	values client.IndexerFunc
}

// manager is what the webhook's setup asks for; it keeps the indexes until the client is made.
type manager struct {
	ctrl.Manager
	known   *runtime.Scheme
	mapper  *meta.DefaultRESTMapper
	indexes []index
	client  client.Client
	server  webhook.Server
}

func (m *manager) IndexField(_ context.Context, object client.Object, field string, values client.IndexerFunc) error {
	m.indexes = append(m.indexes, index{object, field, values})
	return nil
}

func (m *manager) GetFieldIndexer() client.FieldIndexer         { return m }
func (m *manager) GetScheme() *runtime.Scheme                   { return m.known }
func (m *manager) GetRESTMapper() meta.RESTMapper               { return m.mapper }
func (m *manager) GetWebhookServer() webhook.Server             { return m.server }
func (m *manager) GetConfig() *rest.Config                      { return &rest.Config{} }
func (m *manager) GetLogger() logr.Logger                       { return logr.Discard() }
func (m *manager) GetConverterRegistry() conversion.Registry    { return conversion.NewRegistry() }
func (m *manager) GetEventRecorder(string) events.EventRecorder { return events.NewFakeRecorder(1024) }

func (m *manager) GetClient() client.Client {
	building := fake.NewClientBuilder().WithScheme(m.known).WithRESTMapper(m.mapper)
	for _, each := range m.indexes {
		building = building.WithIndex(each.object, each.field, each.values)
	}
	m.client = building.Build()
	return m.client
}

// read is a line as typed objects, those of no known kind left out.
func read(known *runtime.Scheme, mapper *meta.DefaultRESTMapper, line []byte) ([]client.Object, error) {
	var raw []json.RawMessage
	if err := json.Unmarshal(line, &raw); err != nil {
		return nil, err
	}
	first, then := []client.Object{}, []client.Object{}
	for _, each := range raw {
		plain := &unstructured.Unstructured{}
		if err := json.Unmarshal(each, plain); err != nil {
			return nil, err
		}
		target, found, _ := unstructured.NestedStringMap(plain.Object, "spec", "scaleTargetRef")
		if found && target["kind"] != "" {
			group, err := schema.ParseGroupVersion(target["apiVersion"])
			if err != nil {
				return nil, err
			}
			mapper.Add(group.WithKind(target["kind"]), meta.RESTScopeNamespace)
		}
		if !known.Recognizes(plain.GroupVersionKind()) {
			continue
		}
		empty, err := known.New(plain.GroupVersionKind())
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(each, empty); err != nil {
			return nil, err
		}
		object := empty.(client.Object)
		if _, is := object.(*keda.ScaledObject); is {
			then = append(then, object)
		} else {
			first = append(first, object)
		}
	}
	return append(first, then...), nil
}

func verdict(known *runtime.Scheme, line []byte) error {
	asked := &manager{known: known, mapper: meta.NewDefaultRESTMapper(nil), server: webhook.NewServer(webhook.Options{})}
	objects, err := read(known, asked.mapper, line)
	if err != nil {
		return err
	}
	if err := (&keda.ScaledObject{}).SetupWebhookWithManager(asked, false); err != nil {
		return err
	}
	dry := false
	request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{DryRun: &dry}}
	ctx := admission.NewContextWithRequest(context.Background(), request)
	for _, object := range objects {
		if scaled, is := object.(*keda.ScaledObject); is {
			if _, err := (keda.ScaledObjectCustomValidator{}).ValidateCreate(ctx, scaled); err != nil {
				return err
			}
		}
		if err := asked.client.Create(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

func main() {
	ctrl.SetLogger(logr.Discard())
	known := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(known))
	utilruntime.Must(keda.AddToScheme(known))
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
