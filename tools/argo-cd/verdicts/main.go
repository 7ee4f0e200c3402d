// Command argocd-verdicts asks the code of Argo CD and of its sync engine about objects, as one reading of them.
//
// It reads a JSON list of objects a line and answers each with a line: "" where Argo CD takes them and acts on them, else
// what it says or leaves out. Clusters are played (each that is named is there), and so is the API server that a sync
// talks to: it knows the kinds of the objects, but for constraints, whose kinds Gatekeeper makes later. A ConfigMap
// argocd-cm and the environment of a repo server among the objects are those of Argo CD itself.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"

	log "github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	argo "github.com/argoproj/argo-cd/v3/pkg/apis/application/v1alpha1"
)

// objects are those of one line: Argo CD's own by kind, and what they deliver.
type objects struct {
	applications []*argo.Application
	sets         []*argo.ApplicationSet
	projects     map[string]*argo.AppProject
	settings     *corev1.ConfigMap
	delivered    []*unstructured.Unstructured
	children     []*unstructured.Unstructured
}

// everything is what a sync of the whole line would apply, Applications among it.
func (o objects) everything() []*unstructured.Unstructured {
	return append(append([]*unstructured.Unstructured{}, o.delivered...), o.children...)
}

func read(line []byte) (objects, error) {
	everything := &argo.AppProject{}
	everything.Name = "default"
	everything.Spec.SourceRepos = []string{"*"}
	everything.Spec.Destinations = []argo.ApplicationDestination{{Server: "*", Namespace: "*"}}
	everything.Spec.ClusterResourceWhitelist = []argo.ClusterResourceRestrictionItem{{Group: "*", Kind: "*"}}
	found := objects{projects: map[string]*argo.AppProject{"default": everything}, settings: &corev1.ConfigMap{}}
	var raw []map[string]any
	if err := json.Unmarshal(line, &raw); err != nil {
		return found, err
	}
	for _, each := range raw {
		object := &unstructured.Unstructured{Object: each}
		into := runtime.DefaultUnstructuredConverter.FromUnstructured
		var err error
		switch object.GetKind() {
		case "Application":
			application := &argo.Application{}
			err = into(each, application)
			found.applications = append(found.applications, application)
			found.children = append(found.children, object)
		case "ApplicationSet":
			set := &argo.ApplicationSet{}
			if err = into(each, set); err == nil {
				found.sets = append(found.sets, set)
			}
		case "AppProject":
			project := &argo.AppProject{}
			err = into(each, project)
			found.projects[project.Name] = project
		default:
			if object.GetName() == "argocd-cm" {
				err = into(each, found.settings)
			} else {
				found.delivered = append(found.delivered, object)
			}
		}
		if err != nil {
			return found, err
		}
	}
	return found, nil
}

func verdict(line []byte) error {
	found, err := read(line)
	if err != nil {
		return err
	}
	ctx := context.Background()
	for _, ask := range []func(context.Context) error{
		found.permitted, found.excluded, found.verified, found.generated, found.tracked, found.opted, found.released,
		found.repeated, found.shared, found.synced, found.waited, found.passed, found.held,
	} {
		if err := ask(ctx); err != nil {
			return err
		}
	}
	return nil
}

func main() {
	log.SetOutput(io.Discard)
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 0, 1<<20), 1<<26)
	answers := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		said := ""
		if refused := verdict(lines.Bytes()); refused != nil {
			said = refused.Error()
		}
		if err := answers.Encode(said); err != nil {
			panic(err)
		}
	}
}
