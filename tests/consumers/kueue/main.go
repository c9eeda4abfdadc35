// What Kueue's integrations of the training operator conclude from jobs.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"sigs.k8s.io/kueue/pkg/controller/jobframework"
	"sigs.k8s.io/kueue/pkg/controller/jobs/kubeflow/jobs/jaxjob"
	"sigs.k8s.io/kueue/pkg/controller/jobs/kubeflow/jobs/paddlejob"
	"sigs.k8s.io/kueue/pkg/controller/jobs/kubeflow/jobs/pytorchjob"
	"sigs.k8s.io/kueue/pkg/controller/jobs/kubeflow/jobs/tfjob"
	"sigs.k8s.io/kueue/pkg/controller/jobs/kubeflow/jobs/xgboostjob"
)

// reading is what an integration says of one job.
type reading struct {
	File      string           `json:"file"`
	Finished  bool             `json:"finished"`
	Success   bool             `json:"success"`
	Message   string           `json:"message"`
	Active    bool             `json:"active"`
	PodsReady bool             `json:"podsReady"`
	Suspended bool             `json:"suspended"`
	Selector  string           `json:"selector"`
	PodSets   map[string]int32 `json:"podSets"`
}

func main() {
	kinds := map[string]func() jobframework.GenericJob{
		"JAXJob":     jaxjob.NewJob,
		"PaddleJob":  paddlejob.NewJob,
		"PyTorchJob": pytorchjob.NewJob,
		"TFJob":      tfjob.NewJob,
		"XGBoostJob": xgboostjob.NewJob,
	}
	ctx := context.Background()
	output := json.NewEncoder(os.Stdout)
	for _, file := range os.Args[1:] {
		text, err := os.ReadFile(file)
		check(err)
		var kind struct{ Kind string }
		check(json.Unmarshal(text, &kind))
		make, known := kinds[kind.Kind]
		if !known {
			continue
		}
		job := make()
		check(json.Unmarshal(text, job.Object()))
		found := reading{
			File: file, Active: job.IsActive(), PodsReady: job.PodsReady(ctx), Suspended: job.IsSuspended(),
			PodSets: map[string]int32{},
		}
		found.Message, found.Success, found.Finished = job.Finished(ctx)
		if labeled, ok := job.(jobframework.JobWithPodLabelSelector); ok {
			found.Selector = labeled.PodLabelSelector()
		}
		sets, err := job.PodSets(ctx)
		check(err)
		for _, set := range sets {
			found.PodSets[string(set.Name)] = set.Count
		}
		check(output.Encode(found))
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "kueue:", err)
		os.Exit(1)
	}
}
