// What Katib concludes from the jobs of trials, by the conditions that it has by default.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	experiments "github.com/kubeflow/katib/pkg/apis/controller/experiments/v1beta1"
	trials "github.com/kubeflow/katib/pkg/apis/controller/trials/v1beta1"
	"github.com/kubeflow/katib/pkg/controller.v1beta1/trial/util"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// reading is what Katib says of one job.
type reading struct {
	File      string `json:"file"`
	Condition string `json:"condition"`
	Reason    string `json:"reason"`
	Message   string `json:"message"`
	// PrimaryPod has the labels of the pod whose metrics are collected.
	PrimaryPod map[string]string `json:"primaryPod"`
}

func main() {
	trial := &trials.Trial{}
	trial.Spec.SuccessCondition = experiments.DefaultKubeflowJobSuccessCondition
	trial.Spec.FailureCondition = experiments.DefaultKubeflowJobFailureCondition
	output := json.NewEncoder(os.Stdout)
	for _, file := range os.Args[1:] {
		text, err := os.ReadFile(file)
		check(err)
		job := &unstructured.Unstructured{}
		check(job.UnmarshalJSON(text))
		status, err := util.GetDeployedJobStatus(trial, job)
		check(err)
		check(output.Encode(reading{
			File: file, Condition: string(status.Condition), Reason: status.Reason, Message: status.Message,
			PrimaryPod: experiments.DefaultKubeflowJobPrimaryPodLabels,
		}))
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "katib:", err)
		os.Exit(1)
	}
}
