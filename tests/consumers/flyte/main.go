// What Flyte's plugins for PyTorch, TensorFlow and MPI conclude from jobs.
//
//	flyte JOB...
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"

	pluginsCore "consumers/flyte/plugins"
)

// reading is the phase of one job's task.
type reading struct {
	File   string `json:"file"`
	Phase  string `json:"phase"`
	Reason string `json:"reason"`
}

func main() {
	output := json.NewEncoder(os.Stdout)
	for _, file := range os.Args[1:] {
		text, err := os.ReadFile(file)
		check(err)
		// The status of all kinds is the same.
		var job kubeflowv1.PyTorchJob
		check(json.Unmarshal(text, &job))
		condition, err := ExtractCurrentCondition(job.Status.Conditions)
		check(err)
		info, err := GetPhaseInfo(condition, time.Now(), pluginsCore.TaskInfo{})
		check(err)
		check(output.Encode(reading{file, info.Phase, info.Reason}))
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "flyte:", err)
		os.Exit(1)
	}
}
