// Command node is the part of Kubernetes that runs on machines, in one program: kubelet, kube-proxy and
// kube-scheduler, chosen by the name under which it is called.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func main() {
	commands := map[string]func() *cobra.Command{
		"kubelet":        func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
		"kube-proxy":     proxy.NewProxyCommand,
		"kube-scheduler": func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	}
	command, found := commands[filepath.Base(os.Args[0])]
	if !found {
		fmt.Fprintln(os.Stderr, "usage: kubelet|kube-proxy|kube-scheduler [argument...], each a link to this program")
		os.Exit(2)
	}
	os.Exit(cli.Run(command()))
}
