#!/bin/sh
# Builds the test control plane into target/control-plane, unless it is there and current. Takes five
# minutes on two cores the first time.
#
#   tests/control-plane/build.sh          the Kubernetes that the tests run on
#   tests/control-plane/build.sh oldest   into target/control-plane-oldest, its API server and controllers of the oldest
#                                         Kubernetes for which the operator is
set -eu
cd "$(dirname "$0")"
target=$(cd ../.. && pwd)/target
out=$target/control-plane
command -v go >/dev/null || { echo "control-plane: go is missing; install Go 1.26 or later (https://go.dev/dl)" >&2; exit 1; }

# Builds the program of the current folder, which says that it is of its version of Kubernetes.
build() {
    [ ! -x "$1" ] || [ -n "$(find . -maxdepth 1 -newer "$1" -type f)" ] || return 0
    echo "control-plane: building $2 (once)" >&2
    version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
    pkg=k8s.io/component-base/version
    minor=${version#v1.}
    mkdir -p "$(dirname "$1")"
    go build -o "$1" -ldflags "-s -w -X $pkg.gitVersion=$version -X $pkg.gitMajor=1 -X $pkg.gitMinor=${minor%%.*}" .
}

build "$out/control-plane" "etcd, kube-apiserver, kube-controller-manager and kubectl"
for name in etcd kube-apiserver kube-controller-manager kubectl; do
    ln -sf control-plane "$out/$name"
done
[ "${1:-}" = oldest ] || exit 0

out=$target/control-plane-oldest
cd oldest
build "$out/oldest" "the oldest kube-apiserver and kube-controller-manager"
for name in kube-apiserver kube-controller-manager; do
    ln -sf oldest "$out/$name"
done
for name in etcd kubectl; do
    ln -sf ../control-plane/control-plane "$out/$name"
done
