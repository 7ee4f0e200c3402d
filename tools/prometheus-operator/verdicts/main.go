// Command monitor-verdicts asks Prometheus Operator which monitors it takes into the configuration of a Prometheus.
//
// It reads a JSON list of objects a line and answers each with a line: "" where every ServiceMonitor and PodMonitor is
// taken by a Prometheus of its namespace that selects everything, else why the operator rejects one.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus-operator/prometheus-operator/pkg/assets"
	"github.com/prometheus-operator/prometheus-operator/pkg/operator"
	prom "github.com/prometheus-operator/prometheus-operator/pkg/prometheus"
)

// selector is the operator's, for a Prometheus of a namespace with the operator's defaults.
func selector(namespace string) (*prom.ResourceSelector, error) {
	all := &metav1.LabelSelector{}
	server := &monitoringv1.Prometheus{ObjectMeta: metav1.ObjectMeta{Name: "server", Namespace: namespace}}
	server.Spec.ScrapeInterval = "30s"
	server.Spec.ServiceMonitorSelector, server.Spec.PodMonitorSelector = all, all
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	counted := operator.NewMetrics(prometheus.NewRegistry())
	return prom.NewResourceSelector(log, server, assets.NewTestStoreBuilder(), nil, counted, operator.NewFakeRecorder(64, server))
}

// listed gives one object, as the operator's informers would.
func listed(object any) prom.ListAllByNamespaceFn {
	return func(_ string, _ labels.Selector, add cache.AppendFunc) error {
		add(object)
		return nil
	}
}

// rejected says what the operator writes into the status of monitors that it does not take.
func rejected[T operator.ConfigurationResource](found operator.TypedResourcesSelection[T]) string {
	said := ""
	for key, each := range found {
		for _, condition := range each.Conditions() {
			if condition.Status != monitoringv1.ConditionTrue {
				said = key + ": " + condition.Message
			}
		}
	}
	return said
}

func verdict(line []byte) (string, error) {
	var raw []json.RawMessage
	if err := json.Unmarshal(line, &raw); err != nil {
		return "", err
	}
	ctx := context.Background()
	for _, each := range raw {
		var meta metav1.PartialObjectMetadata
		if err := json.Unmarshal(each, &meta); err != nil {
			return "", err
		}
		asked, err := selector(meta.Namespace)
		if err != nil {
			return "", err
		}
		said := ""
		switch meta.Kind {
		case monitoringv1.ServiceMonitorsKind:
			object := &monitoringv1.ServiceMonitor{}
			if err := json.Unmarshal(each, object); err != nil {
				return "", err
			}
			found, err := asked.SelectServiceMonitors(ctx, listed(object))
			if err != nil {
				return "", err
			}
			said = rejected(found)
		case monitoringv1.PodMonitorsKind:
			object := &monitoringv1.PodMonitor{}
			if err := json.Unmarshal(each, object); err != nil {
				return "", err
			}
			found, err := asked.SelectPodMonitors(ctx, listed(object))
			if err != nil {
				return "", err
			}
			said = rejected(found)
		}
		if said != "" {
			return said, nil
		}
	}
	return "", nil
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 0, 1<<20), 1<<26)
	answers := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		said, err := verdict(lines.Bytes())
		if err != nil {
			said = err.Error()
		}
		if err := answers.Encode(said); err != nil {
			panic(err)
		}
	}
}
