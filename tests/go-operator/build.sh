#!/bin/sh
# Builds the Kubeflow training operator v1.8.1 into target/go-operator, unless it is there. Takes two
# minutes on two cores the first time.
set -eu
version=v1.8.1
out=$(cd "$(dirname "$0")/../.." && pwd)/target/go-operator

current() {
    [ -x "$out/training-operator.v1" ] && [ "$(cat "$out/version" 2>/dev/null)" = "$version" ]
}

! current || exit 0
command -v go >/dev/null || { echo "go-operator: go is missing; install Go 1.22 or later (https://go.dev/dl)" >&2; exit 1; }
mkdir -p "$out"
# One at a time, where the system has flock; a second caller finds the work done.
if command -v flock >/dev/null; then
    exec 9>"$out/lock"
    flock 9
    ! current || exit 0
fi
echo "go-operator: building the training operator $version (once)" >&2
GOBIN=$out go install "github.com/kubeflow/training-operator/cmd/training-operator.v1@$version"
echo "$version" >"$out/version"
