// Command types is a webhook that reads each job into the Go operator's types and sends back what these write, as webhooks
// that are written in Go do. What the types do not know stays, unless the job has the label "through: client": a client
// that reads and writes whole objects by these types drops it. It prints the port at which it listens.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"

	v1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	admission "k8s.io/api/admission/v1"
	strict "sigs.k8s.io/json"
)

// Annotation is what a job has that was here.
const annotation = "go-types"

var kinds = map[string]func() any{
	"MPIJob":     func() any { return &v1.MPIJob{} },
	"MXJob":      func() any { return &v1.MXJob{} },
	"PaddleJob":  func() any { return &v1.PaddleJob{} },
	"PyTorchJob": func() any { return &v1.PyTorchJob{} },
	"TFJob":      func() any { return &v1.TFJob{} },
	"XGBoostJob": func() any { return &v1.XGBoostJob{} },
}

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: types CERTIFICATE KEY")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("listening at %d\n", listener.Addr().(*net.TCPAddr).Port)
	log.Fatal(http.ServeTLS(listener, http.HandlerFunc(serve), os.Args[1], os.Args[2]))
}

func serve(w http.ResponseWriter, r *http.Request) {
	review := admission.AdmissionReview{}
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(body, &review)
	}
	if err != nil || review.Request == nil {
		http.Error(w, fmt.Sprint("no review: ", err), http.StatusBadRequest)
		return
	}
	patch, err := written(review.Request)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	kind := admission.PatchTypeJSONPatch
	review.Response = &admission.AdmissionResponse{
		UID: review.Request.UID, Allowed: true, Patch: patch, PatchType: &kind,
	}
	review.Request = nil
	if err := json.NewEncoder(w).Encode(review); err != nil {
		log.Print(err)
	}
}

// Written is the patch that gives a job what its Go type writes.
func written(request *admission.AdmissionRequest) ([]byte, error) {
	made, ok := kinds[request.Kind.Kind]
	if !ok {
		return nil, fmt.Errorf("there is no type for %s", request.Kind.Kind)
	}
	job, before, after := made(), map[string]any{}, map[string]any{}
	if err := strict.UnmarshalCaseSensitivePreserveInts(request.Object.Raw, job); err != nil {
		return nil, fmt.Errorf("the job does not fit its type: %w", err)
	}
	text, err := json.Marshal(job)
	if err != nil {
		return nil, err
	}
	if err := strict.UnmarshalCaseSensitivePreserveInts(request.Object.Raw, &before); err != nil {
		return nil, err
	}
	if err := strict.UnmarshalCaseSensitivePreserveInts(text, &after); err != nil {
		return nil, err
	}
	spec := over(before["spec"], after["spec"])
	if labels, ok := at(before, "metadata", "labels").(map[string]any); ok && labels["through"] == "client" {
		spec = after["spec"]
	}
	metadata := map[string]any{"annotations": map[string]any{annotation: "yes"}}
	type step struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	return json.Marshal([]step{
		{"replace", "/spec", spec},
		{"add", "/status", after["status"]},
		{"replace", "/metadata", over(before["metadata"], metadata)},
	})
}

// At is the member at the end of a path of members.
func at(object map[string]any, path ...string) any {
	var value any = object
	for _, key := range path {
		members, _ := value.(map[string]any)
		value = members[key]
	}
	return value
}

// Over is what stands in after, and what only before has.
func over(before, after any) any {
	switch after := after.(type) {
	case map[string]any:
		before, _ := before.(map[string]any)
		all := map[string]any{}
		for key, value := range before {
			all[key] = value
		}
		for key, value := range after {
			all[key] = over(before[key], value)
		}
		return all
	case []any:
		before, _ := before.([]any)
		if len(before) != len(after) {
			return after
		}
		all := make([]any, len(after))
		for n := range after {
			all[n] = over(before[n], after[n])
		}
		return all
	default:
		return after
	}
}
