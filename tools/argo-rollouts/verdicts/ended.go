package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/util/workqueue"

	run "github.com/argoproj/argo-rollouts/analysis"
	"github.com/argoproj/argo-rollouts/controller/metrics"
	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
	"github.com/argoproj/argo-rollouts/pkg/client/clientset/versioned/fake"
	argoinformers "github.com/argoproj/argo-rollouts/pkg/client/informers/externalversions"
	"github.com/argoproj/argo-rollouts/utils/record"
	timeutil "github.com/argoproj/argo-rollouts/utils/time"
)

const patience = 20 * time.Second

// ended lets the controller of analyses carry a run of metrics through, for each value that they may be measured as: a
// run that ends well with all of them can never stop a version. Metrics without a count never end, and are left out.
func ended(metrics []v1alpha1.Metric, args []v1alpha1.Argument) error {
	for _, metric := range metrics {
		if metric.Provider.Prometheus == nil || metric.EffectiveCount() == nil {
			return nil
		}
	}
	if len(metrics) == 0 {
		return nil
	}
	for _, value := range values {
		phase, err := carried(metrics, args, value)
		if err != nil || phase != v1alpha1.AnalysisPhaseSuccessful {
			return err
		}
	}
	return fmt.Errorf("the run succeeds, whatever is measured")
}

// answered is Prometheus with one value for every query.
func answered(value float64) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(to http.ResponseWriter, asked *http.Request) {
		sample := []any{float64(0), fmt.Sprint(value)}
		data := map[string]any{"resultType": "vector", "result": []any{map[string]any{"metric": map[string]string{}, "value": sample}}}
		if strings.HasPrefix(asked.FormValue("query"), "scalar(") {
			data = map[string]any{"resultType": "scalar", "result": sample}
		}
		to.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(to).Encode(map[string]any{"status": "success", "data": data})
	}))
}

// carried is the phase in which a run ends; between two looks at the clock an hour passes.
func carried(asked []v1alpha1.Metric, args []v1alpha1.Argument, value float64) (v1alpha1.AnalysisPhase, error) {
	server := answered(value)
	defer server.Close()
	object := &v1alpha1.AnalysisRun{ObjectMeta: metav1.ObjectMeta{Name: "run", Namespace: "default"}}
	for _, metric := range asked {
		metric = *metric.DeepCopy()
		metric.Provider.Prometheus.Address = server.URL
		object.Spec.Metrics = append(object.Spec.Metrics, metric)
	}
	for _, arg := range args {
		if arg.Value == nil {
			placeholder := "placeholder"
			arg.Value = &placeholder
		}
		object.Spec.Args = append(object.Spec.Args, arg)
	}
	began, looks := time.Now(), atomic.Int64{}
	timeutil.SetNowTimeFunc(func() time.Time { return began.Add(time.Duration(looks.Add(1)) * time.Hour) })
	defer timeutil.SetNowTimeFunc(time.Now)

	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	client, cluster := fake.NewSimpleClientset(object), kubefake.NewSimpleClientset()
	own, native := argoinformers.NewSharedInformerFactory(client, 0), informers.NewSharedInformerFactory(cluster, 0)
	controller := run.NewController(run.ControllerConfig{
		KubeClientSet:        cluster,
		ArgoProjClientset:    client,
		AnalysisRunInformer:  own.Argoproj().V1alpha1().AnalysisRuns(),
		JobInformer:          native.Batch().V1().Jobs(),
		JobPodsInformer:      native.Core().V1().Pods(),
		AnalysisRunWorkQueue: workqueue.NewRateLimitingQueue(workqueue.DefaultControllerRateLimiter()),
		MetricsServer:        counted(own),
		Recorder:             record.NewFakeEventRecorder(),
	})
	own.Start(ctx.Done())
	native.Start(ctx.Done())
	own.WaitForCacheSync(ctx.Done())
	go func() { _ = controller.Run(ctx, 1) }()
	for ctx.Err() == nil {
		found, err := client.ArgoprojV1alpha1().AnalysisRuns("default").Get(ctx, "run", metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		if found.Status.Phase.Completed() {
			return found.Status.Phase, nil
		}
		time.Sleep(5 * time.Millisecond)
	}
	return "", fmt.Errorf("the run does not end")
}

// counted takes the controller's counts, which nobody reads here.
func counted(own argoinformers.SharedInformerFactory) *metrics.MetricsServer {
	kinds := own.Argoproj().V1alpha1()
	return metrics.NewMetricsServer(metrics.ServerConfig{
		AnalysisRunLister:             kinds.AnalysisRuns().Lister(),
		AnalysisTemplateLister:        kinds.AnalysisTemplates().Lister(),
		ClusterAnalysisTemplateLister: kinds.ClusterAnalysisTemplates().Lister(),
		K8SRequestProvider:            &metrics.K8sRequestsCountProvider{},
	})
}
