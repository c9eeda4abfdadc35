// What the resource template of Argo Workflows concludes from jobs.
//
//	argo-workflows <QUESTIONS    each line: {"file": JOB, "success": CONDITION, "failure": CONDITION}
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	log "github.com/sirupsen/logrus"
	"k8s.io/apimachinery/pkg/labels"
)

// question is the conditions of a template, and the job that it waits for.
type question struct {
	File    string `json:"file"`
	Success string `json:"success"`
	Failure string `json:"failure"`
}

// reading is what becomes of the template: it succeeded, failed or waits.
type reading struct {
	question
	Result string `json:"result"`
}

func main() {
	log.SetOutput(io.Discard)
	output, input := json.NewEncoder(os.Stdout), json.NewDecoder(os.Stdin)
	for {
		var asked question
		err := input.Decode(&asked)
		if errors.Is(err, io.EOF) {
			return
		}
		check(err)
		job, err := os.ReadFile(asked.File)
		check(err)
		retry, err := matchConditions(job, requirements(asked.Success), requirements(asked.Failure))
		result := "succeeded"
		if retry {
			result = "waits"
		} else if err != nil {
			result = "failed"
		}
		check(output.Encode(reading{asked, result}))
	}
}

func requirements(condition string) labels.Requirements {
	if condition == "" {
		return nil
	}
	selector, err := labels.Parse(condition)
	check(err)
	all, _ := selector.Requirements()
	return all
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "argo-workflows:", err)
		os.Exit(1)
	}
}
