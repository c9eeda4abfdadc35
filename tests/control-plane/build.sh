#!/bin/sh
# Builds the test control plane into target/control-plane, unless it is there and current. Takes five
# minutes on two cores the first time.
set -eu
cd "$(dirname "$0")"
out=$(cd ../.. && pwd)/target/control-plane
command -v go >/dev/null || { echo "control-plane: go is missing; install Go 1.25 or later (https://go.dev/dl)" >&2; exit 1; }
if [ ! -x "$out/control-plane" ] || [ -n "$(find . -newer "$out/control-plane" -type f)" ]; then
    echo "control-plane: building etcd, kube-apiserver, kube-controller-manager and kubectl (once)" >&2
    version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
    pkg=k8s.io/component-base/version
    minor=${version#v1.}
    mkdir -p "$out"
    go build -o "$out/control-plane" -ldflags "-s -w -X $pkg.gitVersion=$version -X $pkg.gitMajor=1 -X $pkg.gitMinor=${minor%%.*}" .
fi
for name in etcd kube-apiserver kube-controller-manager kubectl; do
    ln -sf control-plane "$out/$name"
done
