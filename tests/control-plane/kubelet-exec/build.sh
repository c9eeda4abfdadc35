#!/bin/sh
# Builds kubelet-exec into target/kubelet-exec, unless it is there and current. It is of the Kubernetes of the test control
# plane, and takes seconds once that is built.
set -eu
cd "$(dirname "$0")"
out=$(cd ../../.. && pwd)/target/kubelet-exec
[ ! -x "$out" ] || [ -n "$(find . ../go.mod -newer "$out" -type f)" ] || exit 0
command -v go >/dev/null || { echo "kubelet-exec: go is missing; install Go 1.26 or later (https://go.dev/dl)" >&2; exit 1; }
mkdir -p "$(dirname "$out")"
go build -o "$out.$$" .
mv "$out.$$" "$out"
