// Command unlimited is the Kubeflow training operator v1.8.1 with its own controllers, webhooks and flags,
// but without what its client and its number of threads hold it back by: calls are not throttled (QPS -1),
// and eight jobs of a kind are looked after at once. No flag of the program does the first.
//
// It has the flags that the benchmarks give; the rest is as that program has it by default.
package main

import (
	"flag"
	"fmt"
	"os"

	"go.uber.org/zap/zapcore"
	"k8s.io/apimachinery/pkg/runtime"
	clientgo "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	plugins "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	kubeflow "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"github.com/kubeflow/training-operator/pkg/cert"
	"github.com/kubeflow/training-operator/pkg/config"
	controller "github.com/kubeflow/training-operator/pkg/controller.v1"
	"github.com/kubeflow/training-operator/pkg/controller.v1/common"
	"github.com/kubeflow/training-operator/pkg/webhooks"
)

type options struct {
	kinds             controller.EnabledSchemes
	namespace         string
	metrics, health   string
	webhookPort, jobs int
}

func main() {
	var o options
	flag.Var(&o.kinds, "enable-scheme", "a kind of job; may be repeated")
	flag.StringVar(&o.namespace, "namespace", "", "the namespace of the jobs")
	flag.StringVar(&o.metrics, "metrics-bind-address", ":8080", "where metrics are served; 0 for nowhere")
	flag.StringVar(&o.health, "health-probe-bind-address", ":8081", "where health is served; 0 for nowhere")
	flag.IntVar(&o.webhookPort, "webhook-server-port", 9443, "where webhooks are served")
	flag.IntVar(&o.jobs, "controller-threads", 8, "how many jobs of a kind are looked after at once")
	// Its own log, which costs CPU as well.
	logging := zap.Options{Development: true, StacktraceLevel: zapcore.DPanicLevel}
	logging.BindFlags(flag.CommandLine)
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&logging)))
	config.Config.PyTorchInitContainerImage = config.PyTorchInitContainerImageDefault
	config.Config.PyTorchInitContainerTemplateFile = config.PyTorchInitContainerTemplateFileDefault
	config.Config.PyTorchInitContainerMaxTries = config.PyTorchInitContainerMaxTriesDefault
	config.Config.MPIKubectlDeliveryImage = config.MPIKubectlDeliveryImageDefault
	if err := run(o); err != nil {
		fail(err)
	}
}

func run(o options) error {
	kinds := runtime.NewScheme()
	add := runtime.NewSchemeBuilder(clientgo.AddToScheme, kubeflow.AddToScheme, volcano.AddToScheme, plugins.AddToScheme)
	if err := add.AddToScheme(kinds); err != nil {
		return err
	}
	client, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	client.QPS, client.Burst = -1, -1
	manager, err := ctrl.NewManager(client, ctrl.Options{
		Scheme:                 kinds,
		Metrics:                metrics.Options{BindAddress: o.metrics},
		HealthProbeBindAddress: o.health,
		WebhookServer:          webhook.NewServer(webhook.Options{Port: o.webhookPort}),
		Cache:                  cache.Options{DefaultNamespaces: map[string]cache.Config{o.namespace: {}}},
	})
	if err != nil {
		return err
	}
	if err := manager.AddHealthzCheck("healthz", healthz.Ping); err != nil {
		return err
	}
	certificates := make(chan struct{})
	names := cert.Config{WebhookSecretName: "training-operator-webhook-cert", WebhookServiceName: "training-operator"}
	if err := cert.ManageCerts(manager, names, certificates); err != nil {
		return err
	}
	// The certificates come when the manager runs, and the controllers wait for them.
	go func() {
		<-certificates
		for _, kind := range o.kinds {
			if err := manage(manager, kind, o.jobs); err != nil {
				fail(err)
			}
		}
	}()
	return manager.Start(ctrl.SetupSignalHandler())
}

func manage(manager ctrl.Manager, kind string, jobs int) error {
	add, known := controller.SupportedSchemeReconciler[kind]
	if !known {
		return fmt.Errorf("unknown kind %s", kind)
	}
	if err := add(manager, common.GenNonGangSchedulerSetupFunc(), jobs); err != nil {
		return err
	}
	if check, has := webhooks.SupportedSchemeWebhook[kind]; has {
		return check(manager)
	}
	return nil
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "unlimited:", err)
	os.Exit(1)
}
