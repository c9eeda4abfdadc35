// Command oldest is kube-apiserver and kube-controller-manager of the oldest Kubernetes for which the operator is, chosen by
// the name under which it is called.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	manager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

func main() {
	switch name := filepath.Base(os.Args[0]); name {
	case "kube-apiserver":
		os.Exit(cli.Run(apiserver.NewAPIServerCommand()))
	case "kube-controller-manager":
		os.Exit(cli.Run(manager.NewControllerManagerCommand()))
	default:
		fmt.Fprintln(os.Stderr, "oldest: call it kube-apiserver or kube-controller-manager")
		os.Exit(2)
	}
}
