// Command kubernetes-verdicts asks Kubernetes' own code about what its API server takes and others refuse.
//
// It reads one JSON object a line and answers each with a line: "" where it is taken, else what is said; of a Service
// the variables that its containers get.
//
//	{"image": TEXT}     the kubelet's parser of image names
//	{"file": TEXT}      kubectl's reader of files, as `kubectl create -f -` has it
//	{"duration": TEXT}  the type of durations in objects
//	{"service": BODY}   the kubelet's variables about a Service, as it makes them for a pod of the same namespace
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/kubernetes/pkg/kubelet/envvars"
	"k8s.io/kubernetes/pkg/util/parsers"
)

type question struct {
	Image    *string `json:"image"`
	File     *string `json:"file"`
	Duration *string `json:"duration"`

	Service *corev1.Service `json:"service"`
}

// image asks what pkg/kubelet/images/image_manager.go asks first; an error there is InvalidImageName.
func image(name string) error {
	_, _, _, err := parsers.ParseImageName(name)
	return err
}

// file reads as kubectl does, without a server: split, decode, look into lists.
func file(text string) error {
	_, err := resource.NewLocalBuilder().Unstructured().Flatten().
		Stream(strings.NewReader(text), "STDIN").Do().Infos()
	return err
}

func duration(text string) error {
	quoted, err := json.Marshal(text)
	if err != nil {
		return err
	}
	return json.Unmarshal(quoted, &metav1.Duration{})
}

func variables(service *corev1.Service) map[string]string {
	found := map[string]string{}
	for _, each := range envvars.FromServices([]*corev1.Service{service}) {
		found[each.Name] = each.Value
	}
	return found
}

func said(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func answer(line []byte) (any, error) {
	var asked question
	if err := json.Unmarshal(line, &asked); err != nil {
		return nil, err
	}
	switch {
	case asked.Image != nil:
		return said(image(*asked.Image)), nil
	case asked.File != nil:
		return said(file(*asked.File)), nil
	case asked.Duration != nil:
		return said(duration(*asked.Duration)), nil
	case asked.Service != nil:
		return variables(asked.Service), nil
	}
	return nil, fmt.Errorf("nothing is asked: %s", line)
}

func main() {
	lines := bufio.NewReader(os.Stdin)
	answers := json.NewEncoder(os.Stdout)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 1 {
			found, failed := answer(line)
			if failed == nil {
				failed = answers.Encode(found)
			}
			if failed != nil {
				fmt.Fprintln(os.Stderr, failed)
				os.Exit(1)
			}
		}
		if err != nil {
			return
		}
	}
}
