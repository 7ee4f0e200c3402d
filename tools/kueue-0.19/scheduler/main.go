// Kueue's scheduler and core controllers with a configuration: what minimalkueue of Kueue's own performance tests is
// without one. The configuration is a file; of it fairSharing and featureGates are read.
package main

import (
	"context"
	"flag"
	"log"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	crconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	configapi "sigs.k8s.io/kueue/apis/config/v1beta2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	qcache "sigs.k8s.io/kueue/pkg/cache/queue"
	schdcache "sigs.k8s.io/kueue/pkg/cache/scheduler"
	"sigs.k8s.io/kueue/pkg/constants"
	"sigs.k8s.io/kueue/pkg/controller/core"
	"sigs.k8s.io/kueue/pkg/controller/core/indexer"
	"sigs.k8s.io/kueue/pkg/controller/tas"
	tasindexer "sigs.k8s.io/kueue/pkg/controller/tas/indexer"
	_ "sigs.k8s.io/kueue/pkg/features"
	"sigs.k8s.io/kueue/pkg/scheduler"
	preemptexpectations "sigs.k8s.io/kueue/pkg/scheduler/preemption/expectations"
)

func main() {
	file := flag.String("config", "", "configuration file")
	qps := flag.Float64("qps", 200, "requests a second to the API server")
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.UseDevMode(true)))
	if err := run(*file, float32(*qps)); err != nil {
		log.Fatal(err)
	}
}

func run(file string, qps float32) error {
	config := &configapi.Configuration{}
	if file != "" {
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := yaml.Unmarshal(content, config); err != nil {
			return err
		}
	}
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(config.FeatureGates); err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(kueue.AddToScheme(scheme))
	utilruntime.Must(configapi.AddToScheme(scheme))

	rest, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	rest.QPS, rest.Burst = qps, int(2*qps)
	mgr, err := ctrl.NewManager(rest, ctrl.Options{
		Scheme:     scheme,
		Controller: crconfig.Controller{SkipNameValidation: new(true)},
		Metrics:    metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		return err
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	if err := indexer.Setup(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	if err := tasindexer.SetupIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	requeuer := qcache.NewRequeuer()
	if err := mgr.Add(requeuer); err != nil {
		return err
	}
	fair := config.FairSharing
	cache := schdcache.New(mgr.GetClient(), schdcache.WithFairSharing(fair != nil))
	expectations := preemptexpectations.New()
	queues := qcache.NewManager(mgr.GetClient(), cache, requeuer, qcache.WithPreemptionExpectations(expectations))
	go queues.CleanUpOnContext(ctx)
	go cache.CleanUpOnContext(ctx)
	if _, err := core.SetupControllers(mgr, queues, cache, config, core.SetupControllersOpts{PreemptionExpectations: expectations}); err != nil {
		return err
	}
	if _, err := tas.SetupControllers(mgr, queues, cache, config, nil); err != nil {
		return err
	}
	if err := mgr.Add(scheduler.New(
		queues, cache, mgr.GetClient(), mgr.GetEventRecorder(constants.AdmissionName),
		scheduler.WithPreemptionExpectations(expectations), scheduler.WithFairSharing(fair),
	)); err != nil {
		return err
	}
	return mgr.Start(ctx)
}
