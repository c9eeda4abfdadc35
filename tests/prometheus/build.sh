#!/bin/sh
# Builds promtool, by which Prometheus checks and tests rules, into target/prometheus, unless it is there and current, with
# the CRDs of the Prometheus operator. Takes one to two minutes on two cores the first time.
set -eu
cd "$(dirname "$0")/../.."
out=$PWD/target/prometheus
# Newer ones need Go 1.26.
prometheus=github.com/prometheus/prometheus@v0.314.0
operator=github.com/prometheus-operator/prometheus-operator@v0.85.0
command -v go >/dev/null || { echo "prometheus: go is missing; install Go 1.26 or later (https://go.dev/dl)" >&2; exit 1; }
# What they are made from, to notice a change.
recipe="$(go env GOVERSION) $prometheus $operator"
[ "$(cat "$out/recipe" 2>/dev/null)" != "$recipe" ] || exit 0

# folder MODULE: prints the folder of a module's source, whose sum Go checks.
folder() {
    (cd / && GOFLAGS=-mod=mod go mod download -json "$1") | sed -n 's/^\t"Dir": "\(.*\)",*$/\1/p'
}

echo "prometheus: building promtool of $prometheus (once)" >&2
mkdir -p "$out"
from=$(folder "$prometheus")
# The services by which Prometheus finds targets are most of the program.
(cd "$from" && GOWORK=off go build -mod=readonly -tags remove_all_sd -ldflags "-s -w" -o "$out/promtool" ./cmd/promtool)
from=$(folder "$operator")
for name in prometheusrules podmonitors; do
    cp "$from/example/prometheus-operator-crd/monitoring.coreos.com_$name.yaml" "$out/$name.yaml"
    # Files of the module cache are read-only.
    chmod u+w "$out/$name.yaml"
done
echo "$recipe" >"$out/recipe"
