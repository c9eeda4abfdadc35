// A controller with controller-runtime: a manager with a leader election and a cache, a reconciler of jobs with a finalizer and
// an owned config map, and a client that patches, applies, writes statuses and evicts. Prints a line for each part that
// worked.
//
//	controller NAMESPACE    with KUBECONFIG set
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

var kind = schema.GroupVersionKind{Group: "kubeflow.org", Version: "v1", Kind: "PyTorchJob"}

func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
}

func worked(part string) { fmt.Println("worked:", part) }

func job(space string) *unstructured.Unstructured {
	job := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"runPolicy": map[string]any{"suspend": true},
		"pytorchReplicaSpecs": map[string]any{"Worker": map[string]any{"replicas": int64(1), "template": map[string]any{
			"spec": map[string]any{"terminationGracePeriodSeconds": int64(0), "containers": []any{map[string]any{
				"name": "pytorch", "image": "none", "command": []any{"sleep", "1000"},
			}}},
		}}},
	}}}
	job.SetGroupVersionKind(kind)
	job.SetNamespace(space)
	job.SetName("controlled")
	return job
}

// Receives until a value fits.
func until[T any](ctx context.Context, values <-chan T, fits func(T) bool) {
	for {
		select {
		case value := <-values:
			if fits(value) {
				return
			}
		case <-ctx.Done():
			check(ctx.Err())
		}
	}
}

// Gives each job a finalizer and a config map. Sends the phases of the job's life.
func reconciler(manager ctrl.Manager, phases chan<- string) reconcile.Func {
	return func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		api := manager.GetClient()
		job := job("")
		if err := api.Get(ctx, request.NamespacedName, job); err != nil {
			if apierrors.IsNotFound(err) {
				phases <- "gone"
			}
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
		if !job.GetDeletionTimestamp().IsZero() {
			if controllerutil.RemoveFinalizer(job, "example.com/finalizer") {
				return reconcile.Result{}, api.Update(ctx, job)
			}
			return reconcile.Result{}, nil
		}
		if controllerutil.AddFinalizer(job, "example.com/finalizer") {
			return reconcile.Result{}, api.Update(ctx, job)
		}
		owned := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: request.Name, Namespace: request.Namespace}}
		_, err := controllerutil.CreateOrUpdate(ctx, api, owned, func() error {
			owned.Data = map[string]string{"a": "b"}
			return controllerutil.SetControllerReference(job, owned, manager.GetScheme())
		})
		if err == nil {
			phases <- "reconciled"
		}
		return reconcile.Result{}, err
	}
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	ctrl.SetLogger(zap.New())
	space := os.Args[1]
	config := must(ctrl.GetConfig())
	manager := must(ctrl.NewManager(config, ctrl.Options{
		LeaderElection: true, LeaderElectionID: "controlled", LeaderElectionNamespace: space,
		Cache:   cache.Options{DefaultNamespaces: map[string]cache.Config{space: {}}},
		Metrics: server.Options{BindAddress: "0"},
	}))
	phases := make(chan string, 100)
	check(ctrl.NewControllerManagedBy(manager).For(job(space)).Owns(&corev1.ConfigMap{}).Complete(reconciler(manager, phases)))
	go func() { check(manager.Start(ctx)) }()

	api := must(client.NewWithWatch(config, client.Options{Scheme: manager.GetScheme()}))
	suspended := job(space)
	check(api.Create(ctx, suspended))
	until(ctx, phases, func(phase string) bool { return phase == "reconciled" })
	worked("reconcile")

	key := client.ObjectKeyFromObject(suspended)
	check(api.Patch(ctx, suspended, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`))))
	for {
		check(api.Get(ctx, key, suspended))
		resumed := suspended.DeepCopy()
		check(unstructured.SetNestedField(resumed.Object, false, "spec", "runPolicy", "suspend"))
		err := api.Patch(ctx, resumed, client.MergeFromWithOptions(suspended, client.MergeFromWithOptimisticLock{}))
		if !apierrors.IsConflict(err) {
			check(err)
			break
		}
	}
	note := client.RawPatch(types.MergePatchType, []byte(`{"status":{"reason":"Noted"}}`))
	check(api.Status().Patch(ctx, suspended, note))
	applied := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "applied", "namespace": space},
		"data": map[string]any{"a": "b"},
	}}
	check(api.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner("controller"), client.ForceOwnership))
	worked("patch")

	pods := must(api.Watch(ctx, &corev1.PodList{}, client.InNamespace(space)))
	var pod *corev1.Pod
	events := make(chan *corev1.Pod)
	go func() {
		for event := range pods.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok {
				events <- pod
			}
		}
	}()
	until(ctx, events, func(found *corev1.Pod) bool {
		pod = found
		return found.Status.Phase == corev1.PodRunning
	})
	pods.Stop()
	check(api.Patch(ctx, pod, client.RawPatch(types.StrategicMergePatchType, []byte(`{"metadata":{"annotations":{"a":"b"}}}`))))
	check(api.SubResource("eviction").Create(ctx, pod, &policyv1.Eviction{}))
	worked("evict")

	var names metav1.PartialObjectMetadataList
	names.SetGroupVersionKind(kind.GroupVersion().WithKind("PyTorchJobList"))
	check(api.List(ctx, &names, client.InNamespace(space), client.MatchingLabels{"a": "b"}))
	if len(names.Items) != 1 {
		check(fmt.Errorf("%d jobs have the label", len(names.Items)))
	}
	check(api.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace(space)))
	check(api.Delete(ctx, suspended, client.PropagationPolicy(metav1.DeletePropagationForeground)))
	until(ctx, phases, func(phase string) bool { return phase == "gone" })
	worked("delete")
}
