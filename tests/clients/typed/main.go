// A program with the typed clients of the training operator: creates a job, watches it, changes its status and deletes it.
// Prints a line for each part that worked.
//
//	typed NAMESPACE    with KUBECONFIG set
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	kubeflow "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	versioned "github.com/kubeflow/training-operator/pkg/client/clientset/versioned"
	externalversions "github.com/kubeflow/training-operator/pkg/client/informers/externalversions"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
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

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	space := os.Args[1]
	config := must(clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG")))
	client := must(versioned.NewForConfig(config))
	jobs := client.KubeflowV1().PyTorchJobs(space)

	one := int32(1)
	job := must(jobs.Create(ctx, &kubeflow.PyTorchJob{
		ObjectMeta: metav1.ObjectMeta{Name: "typed", Labels: map[string]string{"a": "b"}},
		Spec: kubeflow.PyTorchJobSpec{PyTorchReplicaSpecs: map[kubeflow.ReplicaType]*kubeflow.ReplicaSpec{
			kubeflow.PyTorchJobReplicaTypeMaster: {
				Replicas: &one,
				Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{
					{Name: "pytorch", Image: "none", Command: []string{"true"}},
				}}},
			},
		}},
	}, metav1.CreateOptions{}))
	worked("create")

	watch := must(jobs.Watch(ctx, metav1.ListOptions{LabelSelector: "a=b"}))
	ended := false
	for !ended {
		event := (<-watch.ResultChan()).Object.(*kubeflow.PyTorchJob)
		for _, condition := range event.Status.Conditions {
			ended = ended || condition.Type == kubeflow.JobSucceeded && condition.Status == corev1.ConditionTrue
		}
	}
	watch.Stop()
	worked("watch")

	job = must(jobs.Get(ctx, job.Name, metav1.GetOptions{}))
	if count := job.Status.ReplicaStatuses[kubeflow.PyTorchJobReplicaTypeMaster].Succeeded; count != 1 {
		check(fmt.Errorf("%d masters succeeded", count))
	}
	reconciled := metav1.NewTime(time.Unix(1_000_000_000, 0))
	job.Status.LastReconcileTime = &reconciled
	job = must(jobs.UpdateStatus(ctx, job, metav1.UpdateOptions{}))
	job.Annotations = map[string]string{"c": "d"}
	must(jobs.Update(ctx, job, metav1.UpdateOptions{}))
	worked("update")

	factory := externalversions.NewSharedInformerFactoryWithOptions(client, 0, externalversions.WithNamespace(space))
	informer := factory.Kubeflow().V1().PyTorchJobs()
	synced := informer.Informer().HasSynced
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), synced) {
		check(ctx.Err())
	}
	if found := must(informer.Lister().PyTorchJobs(space).List(labels.Everything())); len(found) != 1 || found[0].Annotations["c"] != "d" {
		check(fmt.Errorf("the informer has %v", found))
	}
	worked("list")
	check(jobs.Delete(ctx, job.Name, metav1.DeleteOptions{}))
	worked("delete")
}
