// A controller's client code with client-go: bodies in protobuf, typed and dynamic informers that stream their lists, a
// leader election, a scale, logs. Prints a line for each part that worked.
//
//	client-go NAMESPACE    with KUBECONFIG set
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
)

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

var jobs = schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1", Resource: "pytorchjobs"}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	space := os.Args[1]
	config := must(clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG")))
	custom := must(dynamic.NewForConfig(config))
	binary := rest.CopyConfig(config)
	binary.ContentType = runtime.ContentTypeProtobuf
	client := must(kubernetes.NewForConfig(binary))

	objects(ctx, client, space)
	worked("protobuf")
	leads(ctx, client, space)
	worked("leader election")
	job := informed(ctx, client, custom, space)
	worked("informers")
	scaled(ctx, config, space, job)
	worked("scale")
	events(ctx, client, space, job)
	worked("events")
	check(custom.Resource(jobs).Namespace(space).Delete(ctx, job.GetName(), metav1.DeleteOptions{}))
	worked("delete")
}

// objects writes built-in kinds in protobuf, whose fields must all arrive.
func objects(ctx context.Context, client kubernetes.Interface, space string) {
	maps := client.CoreV1().ConfigMaps(space)
	made := must(maps.Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "settings", Labels: map[string]string{"a": "b"}},
		Data:       map[string]string{"key": "value"}, BinaryData: map[string][]byte{"raw": {0, 255}},
	}, metav1.CreateOptions{}))
	made.Data["key"] = "other"
	made = must(maps.Update(ctx, made, metav1.UpdateOptions{}))
	if made.Data["key"] != "other" || string(made.BinaryData["raw"]) != "\x00\xff" || made.Labels["a"] != "b" {
		check(fmt.Errorf("a config map is not what was sent: %v", made))
	}
	grace := int64(0)
	pod := must(client.CoreV1().Pods(space).Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "from-protobuf"},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: &grace,
			Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
			Containers: []corev1.Container{{
				Name: "c", Image: "none", Command: []string{"sh", "-c", "echo $WORD"},
				Env: []corev1.EnvVar{{Name: "WORD", Value: "spoken"}},
			}},
		},
	}, metav1.CreateOptions{}))
	if pod.Spec.Volumes[0].EmptyDir == nil || *pod.Spec.TerminationGracePeriodSeconds != 0 {
		check(fmt.Errorf("a pod is not what was sent: %v", pod.Spec))
	}
	watch := must(client.CoreV1().Pods(space).Watch(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", pod.Name).String(),
	}))
	for event := range watch.ResultChan() {
		if event.Object.(*corev1.Pod).Status.Phase == corev1.PodSucceeded {
			break
		}
	}
	watch.Stop()
	log := must(client.CoreV1().Pods(space).GetLogs(pod.Name, &corev1.PodLogOptions{}).Stream(ctx))
	if text := must(io.ReadAll(log)); string(text) != "spoken\n" {
		check(fmt.Errorf("a pod's log is %q", text))
	}
	patch := []byte(`{"metadata": {"annotations": {"a": "b"}}}`)
	must(client.CoreV1().Pods(space).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}))
	// A kind without a controller.
	must(client.BatchV1().Jobs(space).Create(ctx, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "stored"}}, metav1.CreateOptions{}))
	foreground := metav1.DeletePropagationForeground
	check(client.BatchV1().Jobs(space).Delete(ctx, "stored", metav1.DeleteOptions{PropagationPolicy: &foreground}))
}

// leads takes a lease.
func leads(ctx context.Context, client kubernetes.Interface, space string) {
	lock := must(resourcelock.New(resourcelock.LeasesResourceLock, space, "client-go", client.CoreV1(), client.CoordinationV1(),
		resourcelock.ResourceLockConfig{Identity: "one"}))
	ctx, cancel := context.WithCancel(ctx)
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { cancel() },
			OnStoppedLeading: func() {},
		},
	})
	lease := must(client.CoordinationV1().Leases(space).Get(context.Background(), "client-go", metav1.GetOptions{}))
	if holder := *lease.Spec.HolderIdentity; holder != "one" || lease.Spec.AcquireTime.IsZero() {
		check(fmt.Errorf("the lease has the holder %q", holder))
	}
}

// informed creates a job, and waits until informers have it in the state Running, and its pods.
func informed(ctx context.Context, client kubernetes.Interface, custom dynamic.Interface, space string) *unstructured.Unstructured {
	ours := dynamicinformer.NewFilteredDynamicSharedInformerFactory(custom, time.Minute, space, nil)
	typed := informers.NewSharedInformerFactoryWithOptions(client, time.Minute, informers.WithNamespace(space))
	running := make(chan *unstructured.Unstructured, 100)
	seen := func(object any) {
		job := object.(*unstructured.Unstructured)
		conditions, _, _ := unstructured.NestedSlice(job.Object, "status", "conditions")
		for _, condition := range conditions {
			if of := condition.(map[string]any); of["type"] == "Running" && of["status"] == "True" {
				running <- job
			}
		}
	}
	must(ours.ForResource(jobs).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: seen, UpdateFunc: func(_, object any) { seen(object) },
	}))
	pods := typed.Core().V1().Pods()
	named := make(chan struct{}, 100)
	must(pods.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(object any) {
		if object.(*corev1.Pod).Name == "from-go-worker-0" {
			named <- struct{}{}
		}
	}}))
	synced := pods.Informer().HasSynced
	ours.Start(ctx.Done())
	typed.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), synced, ours.ForResource(jobs).Informer().HasSynced) {
		check(fmt.Errorf("the informers have no list"))
	}
	container := map[string]any{"name": "pytorch", "image": "none", "command": []any{"sleep", "1000"}}
	role := map[string]any{
		"replicas": int64(1),
		"template": map[string]any{"spec": map[string]any{"terminationGracePeriodSeconds": int64(0), "containers": []any{container}}},
	}
	must(custom.Resource(jobs).Namespace(space).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": map[string]any{"name": "from-go"},
		"spec": map[string]any{"pytorchReplicaSpecs": map[string]any{"Worker": role}},
	}}, metav1.CreateOptions{}))
	// The two informers are not ordered.
	select {
	case <-named:
		must(pods.Lister().Pods(space).Get("from-go-worker-0"))
	case <-ctx.Done():
		check(fmt.Errorf("no informer has the pod of the job"))
	}
	select {
	case job := <-running:
		return job
	case <-ctx.Done():
		check(fmt.Errorf("no informer has a running job"))
	}
	return nil
}

func scaled(ctx context.Context, config *rest.Config, space string, job *unstructured.Unstructured) {
	client := must(kubernetes.NewForConfig(config))
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))
	scales := must(scale.NewForConfig(config, mapper, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(client.Discovery())))
	found := must(scales.Scales(space).Get(ctx, jobs.GroupResource(), job.GetName(), metav1.GetOptions{}))
	found.Spec.Replicas = 2
	found = must(scales.Scales(space).Update(ctx, jobs.GroupResource(), found, metav1.UpdateOptions{}))
	if found.Spec.Replicas != 2 {
		check(fmt.Errorf("a scale of 2 is %d", found.Spec.Replicas))
	}
}

// events records an event twice, of which the second is a patch of the first.
func events(ctx context.Context, client kubernetes.Interface, space string, job *unstructured.Unstructured) {
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&typedv1.EventSinkImpl{Interface: client.CoreV1().Events(space)})
	recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "client-go"})
	watch := must(client.CoreV1().Events(space).Watch(ctx, metav1.ListOptions{FieldSelector: "reason=FromGo"}))
	recorder.Event(job, corev1.EventTypeNormal, "FromGo", "A program in Go wrote this.")
	recorder.Event(job, corev1.EventTypeNormal, "FromGo", "A program in Go wrote this.")
	for event := range watch.ResultChan() {
		if found, ok := event.Object.(*corev1.Event); ok && found.Count == 2 {
			break
		}
	}
	watch.Stop()
	broadcaster.Shutdown()
}
