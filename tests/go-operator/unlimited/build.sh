#!/bin/sh
# Builds the Kubeflow training operator v1.8.1 without its client's limits into target/go-operator/unlimited,
# unless it is there and current. Takes a minute on two cores where ../build.sh has been run.
set -eu
cd "$(dirname "$0")"
out=$(cd ../../.. && pwd)/target/go-operator
command -v go >/dev/null || { echo "go-operator: go is missing; install Go 1.22 or later (https://go.dev/dl)" >&2; exit 1; }
if [ ! -x "$out/unlimited" ] || [ -n "$(find . -newer "$out/unlimited" -type f)" ]; then
    echo "go-operator: building it without its client's limits (once)" >&2
    mkdir -p "$out"
    go build -o "$out/unlimited" .
fi
