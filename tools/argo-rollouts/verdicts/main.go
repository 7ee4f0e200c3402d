// Command rollouts-verdicts asks the code of Argo Rollouts' controller about objects, as it would see them together.
//
// It reads a JSON list of objects a line and answers each with a line: "" where the controller takes them, else what it
// says. Prometheus is played: a query that is one call of scalar() gets a number, any other a vector of one element. So
// is the API server where a whole controller is asked, by the clients that client-go has for tests.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"time"

	promapi "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	log "github.com/sirupsen/logrus"
	appsv1 "k8s.io/api/apps/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argoproj/argo-rollouts/metricproviders/prometheus"
	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/validation"
	"github.com/argoproj/argo-rollouts/utils/analysis"
	"github.com/argoproj/argo-rollouts/utils/ingress"
)

// values are what a metric is measured as; one that succeeds with each of them cannot fail.
var values = []float64{0, 1, 1e12, -1e12, math.NaN()}

// played answers queries; everything else of Prometheus' API is not asked for.
type played struct {
	promapi.API
	value float64
}

func (p played) Query(_ context.Context, query string, at time.Time, _ ...promapi.Option) (model.Value, promapi.Warnings, error) {
	if strings.HasPrefix(query, "scalar(") {
		return &model.Scalar{Value: model.SampleValue(p.value), Timestamp: model.TimeFromUnix(at.Unix())}, nil, nil
	}
	return model.Vector{{Metric: model.Metric{}, Value: model.SampleValue(p.value)}}, nil, nil
}

// measured says whether a metric can be measured, and whether any value makes it fail.
func measured(metric v1alpha1.Metric) error {
	if metric.Provider.Prometheus == nil {
		return nil
	}
	if _, err := prometheus.NewPrometheusAPI(metric); err != nil {
		return err
	}
	fails := false
	for _, value := range values {
		provider, err := prometheus.NewPrometheusProvider(played{value: value}, *log.NewEntry(log.StandardLogger()), metric)
		if err != nil {
			return err
		}
		found := provider.Run(&v1alpha1.AnalysisRun{}, metric)
		if found.Phase == v1alpha1.AnalysisPhaseError {
			return errors.New(found.Message)
		}
		fails = fails || found.Phase != v1alpha1.AnalysisPhaseSuccessful
	}
	if !fails {
		return fmt.Errorf("metric %s succeeds with every value", metric.Name)
	}
	return nil
}

// judged looks at metrics as the controller does when a run starts: arguments first, then all metrics, then each.
func judged(metrics []v1alpha1.Metric, args []v1alpha1.Argument) error {
	given := []v1alpha1.Argument{}
	for _, arg := range args {
		if arg.Value == nil {
			placeholder := "placeholder"
			arg.Value = &placeholder
		}
		given = append(given, arg)
	}
	resolved := []v1alpha1.Metric{}
	for _, metric := range metrics {
		found, err := analysis.ResolveMetricArgs(metric, given)
		if err != nil {
			return err
		}
		resolved = append(resolved, *found)
	}
	if err := analysis.ValidateMetrics(resolved); err != nil {
		return err
	}
	for _, metric := range resolved {
		if err := measured(metric); err != nil {
			return err
		}
	}
	return nil
}

// objects are those of one line, by kind.
type objects struct {
	rollouts  []*v1alpha1.Rollout
	templates map[string]*v1alpha1.AnalysisTemplate
	ingresses map[string]*networkingv1.Ingress
	mesh      []*unstructured.Unstructured
}

func read(line []byte) (objects, error) {
	found := objects{templates: map[string]*v1alpha1.AnalysisTemplate{}, ingresses: map[string]*networkingv1.Ingress{}}
	var raw []json.RawMessage
	if err := json.Unmarshal(line, &raw); err != nil {
		return found, err
	}
	for _, each := range raw {
		var meta metav1.TypeMeta
		if err := json.Unmarshal(each, &meta); err != nil {
			return found, err
		}
		var err error
		switch meta.Kind {
		case "Rollout":
			object := &v1alpha1.Rollout{}
			err = json.Unmarshal(each, object)
			found.rollouts = append(found.rollouts, object)
		case "AnalysisTemplate":
			object := &v1alpha1.AnalysisTemplate{}
			err = json.Unmarshal(each, object)
			found.templates[object.Name] = object
		case "Ingress":
			object := &networkingv1.Ingress{}
			err = json.Unmarshal(each, object)
			found.ingresses[object.Name] = object
		case "VirtualService", "DestinationRule":
			object := &unstructured.Unstructured{}
			err = json.Unmarshal(each, object)
			found.mesh = append(found.mesh, object)
		}
		if err != nil {
			return found, err
		}
	}
	return found, nil
}

// analysed judges one analysis of a Rollout: what it refers to, and whether a run can be made of it.
func (o objects) analysed(rollout *v1alpha1.Rollout, asked *v1alpha1.RolloutAnalysis, kind validation.AnalysisTemplateType, step int) error {
	if asked == nil {
		return nil
	}
	all := validation.AnalysisTemplatesWithType{TemplateType: kind, CanaryStepIndex: step, Args: asked.Args}
	for _, reference := range asked.Templates {
		template, known := o.templates[reference.TemplateName]
		if !known {
			return fmt.Errorf("there is no AnalysisTemplate %s", reference.TemplateName)
		}
		all.AnalysisTemplates = append(all.AnalysisTemplates, template.DeepCopy())
	}
	if problems := validation.ValidateAnalysisTemplatesWithType(rollout, all); len(problems) > 0 {
		return problems.ToAggregate()
	}
	args, err := analysis.BuildArgumentsForRolloutAnalysisRun(asked.Args, &appsv1.ReplicaSet{}, &appsv1.ReplicaSet{}, rollout)
	if err != nil {
		return err
	}
	run, err := analysis.NewAnalysisRunFromTemplates(all.AnalysisTemplates, nil, args, nil, nil, nil, nil, "run", "", "")
	if err != nil {
		return err
	}
	return analysis.ResolveArgs(run.Spec.Args)
}

func (o objects) verdict() error {
	for _, rollout := range o.rollouts {
		canary := rollout.Spec.Strategy.Canary
		if canary == nil {
			continue
		}
		if canary.Analysis != nil {
			if err := o.analysed(rollout, &canary.Analysis.RolloutAnalysis, validation.BackgroundAnalysis, 0); err != nil {
				return err
			}
		}
		for number, step := range canary.Steps {
			if err := o.analysed(rollout, step.Analysis, validation.InlineAnalysis, number); err != nil {
				return err
			}
		}
		if canary.TrafficRouting != nil && canary.TrafficRouting.Nginx != nil {
			if found, known := o.ingresses[canary.TrafficRouting.Nginx.StableIngress]; known {
				if problems := validation.ValidateIngress(rollout, ingress.NewIngress(found)); len(problems) > 0 {
					return problems.ToAggregate()
				}
			}
		}
		if err := o.meshed(rollout); err != nil {
			return err
		}
	}
	for _, template := range o.templates {
		if err := judged(template.Spec.Metrics, template.Spec.Args); err != nil {
			return err
		}
		if err := ended(template.Spec.Metrics, template.Spec.Args); err != nil {
			return err
		}
	}
	return nil
}

func answer(line []byte) string {
	found, err := read(line)
	if err == nil {
		err = found.verdict()
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

func main() {
	log.SetOutput(os.Stderr)
	log.SetLevel(log.FatalLevel)
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 0, 1<<20), 1<<26)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		if err := out.Encode(answer(lines.Bytes())); err != nil {
			panic(err)
		}
	}
}
