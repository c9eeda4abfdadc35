// Command kubelet-exec answers the API server's exec and log as a kubelet does, with the kubelet's own code: the command runs on
// this machine, with the names of the pod and the container in its environment, and the log is that of a container runtime in the
// file NAMESPACE/POD.log below the directory LOGS. It prints the port at which it listens.
package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	protocols "k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/cri-client/pkg/logs"
	streaming "k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"
)

const idle, creation = 4 * time.Hour, 30 * time.Second

func main() {
	certificate, err := certificate()
	if err != nil {
		log.Fatal(err)
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{certificate}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("port", listener.Addr().String()[len("127.0.0.1:"):])
	log.Fatal(http.Serve(listener, http.HandlerFunc(serve)))
}

// serve answers /exec/NAMESPACE/POD/CONTAINER and /containerLogs/NAMESPACE/POD/CONTAINER.
func serve(w http.ResponseWriter, req *http.Request) {
	path := strings.Split(req.URL.Path, "/")
	if len(path) == 5 && path[1] == "containerLogs" {
		serveLog(w, req, filepath.Join(os.Getenv("LOGS"), path[2], path[3]+".log"))
		return
	}
	if len(path) != 5 || path[1] != "exec" {
		http.NotFound(w, req)
		return
	}
	options, err := streaming.NewOptions(req)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	command := req.URL.Query()["command"]
	streaming.ServeExec(w, req, machine{}, path[3], "", path[4], command, options, idle, creation,
		protocols.SupportedStreamingProtocols)
}

// serveLog answers with the end of a log.
func serveLog(w http.ResponseWriter, req *http.Request, file string) {
	query := req.URL.Query()
	number := func(name string) *int64 {
		if value, err := strconv.ParseInt(query.Get(name), 10, 64); err == nil {
			return &value
		}
		return nil
	}
	options := logs.LogOptions{
		Timestamp:  query.Get("timestamps") == "true",
		TailLines:  number("tailLines"),
		LimitBytes: number("limitBytes"),
	}
	options.Since, _ = time.Parse(time.RFC3339, query.Get("sinceTime"))
	if err := logs.ReadLogs(req.Context(), file, "", &options, nil, w, w); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// machine runs the commands of all containers.
type machine struct{}

func (machine) ExecInContainer(ctx context.Context, pod, _, container string, command []string,
	in io.Reader, out, err io.WriteCloser, _ bool, _ <-chan streaming.TerminalSize, _ time.Duration) error {
	process := exec.CommandContext(ctx, command[0], command[1:]...)
	process.Env = append(os.Environ(), "POD="+pod, "CONTAINER="+container)
	process.Stdin, process.Stdout, process.Stderr = in, out, err
	ended := process.Run()
	var exit *exec.ExitError
	if errors.As(ended, &exit) && exit.Exited() {
		return utilexec.CodeExitError{Err: ended, Code: exit.ExitCode()}
	}
	return ended
}

// certificate makes one that nobody has signed: API servers that are given no authority for kubelets take any.
func certificate() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}
