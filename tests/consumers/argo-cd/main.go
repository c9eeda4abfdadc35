// What Argo CD concludes of the health of jobs, by the health checks of a ConfigMap argocd-cm.
//
//	argo-cd CONFIGMAP JOB...
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// reading is the health of one job.
type reading struct {
	File    string `json:"file"`
	Status  string `json:"status"`
	Message string `json:"message"`
}

func main() {
	text, err := os.ReadFile(os.Args[1])
	check(err)
	var config struct{ Data map[string]string }
	check(yaml.Unmarshal(text, &config))
	output := json.NewEncoder(os.Stdout)
	for _, file := range os.Args[2:] {
		text, err := os.ReadFile(file)
		check(err)
		job := &unstructured.Unstructured{}
		check(job.UnmarshalJSON(text))
		kind := job.GroupVersionKind()
		script, found := config.Data["resource.customizations.health."+kind.Group+"_"+kind.Kind]
		if !found {
			check(fmt.Errorf("%s: no health check for %s", file, kind))
		}
		health, err := VM{}.ExecuteHealthLua(job, script)
		check(err)
		check(output.Encode(reading{file, string(health.Status), health.Message}))
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "argo-cd:", err)
		os.Exit(1)
	}
}
