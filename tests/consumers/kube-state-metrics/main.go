// What kube-state-metrics renders of jobs by a configuration of custom resources.
//
//	kube-state-metrics CONFIGURATION JOB...
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"gopkg.in/yaml.v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/kube-state-metrics/v2/pkg/customresourcestate"
	"k8s.io/kube-state-metrics/v2/pkg/metric_generator"
)

// reading has the samples of one job.
type reading struct {
	File    string   `json:"file"`
	Samples []string `json:"samples"`
}

func main() {
	config, err := os.Open(os.Args[1])
	check(err)
	decoder := yaml.NewDecoder(config)
	// A misspelled field would be left out in silence.
	decoder.KnownFields(true)
	var document struct {
		Kind                        string
		customresourcestate.Metrics `yaml:",inline"`
	}
	check(decoder.Decode(&document))
	kinds := map[string][]generator.FamilyGenerator{}
	for _, resource := range document.Spec.Resources {
		factory, err := customresourcestate.NewCustomResourceMetrics(resource)
		check(err)
		of := resource.GroupVersionKind
		kinds[of.Group+"/"+of.Version+"/"+of.Kind] = factory.MetricFamilyGenerators()
	}
	output := json.NewEncoder(os.Stdout)
	for _, file := range os.Args[2:] {
		text, err := os.ReadFile(file)
		check(err)
		job := &unstructured.Unstructured{}
		check(job.UnmarshalJSON(text))
		of := job.GroupVersionKind()
		families, known := kinds[of.Group+"/"+of.Version+"/"+of.Kind]
		if !known {
			check(fmt.Errorf("%s: no metrics for %s", file, of))
		}
		found := reading{File: file}
		for _, family := range families {
			samples := strings.TrimSpace(string(family.Generate(job).ByteSlice()))
			if samples != "" {
				found.Samples = append(found.Samples, strings.Split(samples, "\n")...)
			}
		}
		check(output.Encode(found))
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "kube-state-metrics:", err)
		os.Exit(1)
	}
}
