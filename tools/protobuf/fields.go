// Prints the fields of Kubernetes' built-in kinds in protobuf, from the tags of their Go types, for kube-memory. Run it by
// `make protobuf`, with the module of tests/control-plane, which has the types.
package main

import (
	"fmt"
	"reflect"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
)

// The groups whose kinds clients send.
var versions = []schema.GroupVersion{
	{Version: "v1"},
	{Group: "apps", Version: "v1"},
	{Group: "authentication.k8s.io", Version: "v1"},
	{Group: "authorization.k8s.io", Version: "v1"},
	{Group: "autoscaling", Version: "v1"},
	{Group: "autoscaling", Version: "v2"},
	{Group: "batch", Version: "v1"},
	{Group: "coordination.k8s.io", Version: "v1"},
	{Group: "discovery.k8s.io", Version: "v1"},
	{Group: "events.k8s.io", Version: "v1"},
	{Group: "networking.k8s.io", Version: "v1"},
	{Group: "policy", Version: "v1"},
	{Group: "rbac.authorization.k8s.io", Version: "v1"},
	{Group: "scheduling.k8s.io", Version: "v1"},
	{Group: "storage.k8s.io", Version: "v1"},
}

// Types with a form of their own, by a letter.
var special = map[reflect.Type]string{
	reflect.TypeFor[metav1.Time]():          "T",
	reflect.TypeFor[metav1.MicroTime]():     "U",
	reflect.TypeFor[resource.Quantity]():    "Q",
	reflect.TypeFor[intstr.IntOrString]():   "I",
	reflect.TypeFor[runtime.RawExtension](): "R",
}

// The lines of the messages found, by name.
var messages = map[string]string{}

func name(t reflect.Type) string {
	parts := strings.Split(t.PkgPath(), "/")
	return strings.Join(parts[len(parts)-2:], "/") + "." + t.Name()
}

// code returns the type of a field, or nothing for a type that clients do not send.
func code(t reflect.Type) string {
	if letter, ok := special[t]; ok {
		return letter
	}
	switch t.Kind() {
	case reflect.Pointer:
		return code(t.Elem())
	case reflect.String:
		return "t"
	case reflect.Bool:
		return "b"
	case reflect.Int32, reflect.Int64:
		return "n"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "y"
		}
		if inner := code(t.Elem()); inner != "" {
			return "[" + inner
		}
	case reflect.Map:
		if inner := code(t.Elem()); inner != "" && !strings.HasPrefix(inner, "[") {
			return "{" + inner
		}
	case reflect.Struct:
		message(t)
		return name(t)
	}
	return ""
}

// message adds the line of a type and of those that it contains.
func message(t reflect.Type) {
	if _, known := messages[name(t)]; known {
		return
	}
	messages[name(t)] = ""
	line := ""
	for i := range t.NumField() {
		field := t.Field(i)
		tag := strings.Split(field.Tag.Get("protobuf"), ",")
		json := strings.Split(field.Tag.Get("json"), ",")
		// What managers own is not compared or stored.
		if len(tag) < 2 || json[0] == "managedFields" {
			continue
		}
		type_ := code(field.Type)
		if type_ == "" {
			continue
		}
		key := json[0]
		if key == "" {
			key = "*"
		}
		// A zero value that JSON has, too.
		kept := ""
		if field.Type.Kind() == reflect.Pointer || !strings.Contains(field.Tag.Get("json"), "omitempty") {
			kept = "!"
		}
		if field.Type.Kind() == reflect.Struct {
			kept = ""
		}
		line += fmt.Sprintf(" %s:%s:%s%s", tag[1], key, type_, kept)
	}
	messages[name(t)] = line
}

func main() {
	var kinds []string
	for _, version := range versions {
		for kind, t := range scheme.Scheme.KnownTypes(version) {
			_, isObject := reflect.PointerTo(t).MethodByName("GetObjectMeta")
			isOptions := kind == "DeleteOptions" && version.Group == ""
			if !isObject && !isOptions {
				continue
			}
			message(t)
			kinds = append(kinds, fmt.Sprintf("%s %s = %s", version, kind, name(t)))
		}
	}
	sort.Strings(kinds)
	lines := []string{}
	for name, line := range messages {
		lines = append(lines, name+line)
	}
	sort.Strings(lines)
	fmt.Println("# Written by `make protobuf`: kinds and their messages; messages and their fields. See protobuf.rs.")
	fmt.Println(strings.Join(kinds, "\n"))
	fmt.Println(strings.Join(lines, "\n"))
}
