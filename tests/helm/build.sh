#!/bin/sh
# Builds Helm 3 and 4, which install the chart, into target/helm, unless they are there and current. Takes some minutes
# on two cores the first time.
#
#   tests/helm/build.sh          target/helm/helm3 and target/helm/helm4
#   tests/helm/build.sh helm3    this one
set -eu
cd "$(dirname "$0")"
out=$(cd ../.. && pwd)/target/helm
command -v go >/dev/null || { echo "helm: go is missing; install Go 1.26 or later (https://go.dev/dl)" >&2; exit 1; }
mkdir -p "$out"

# module NAME PATH VERSION: builds the program of the module as the module itself asks for.
module() {
    name=$1 path=$2 version=$3
    recipe="$(go env GOVERSION) $path $version"
    [ "$(cat "$out/$name.recipe" 2>/dev/null)" != "$recipe" ] || return 0
    echo "helm: building $path $version (once)" >&2
    source=$(cd / && go mod download -json "$path@$version" | sed -n 's/^\t"Dir": "\(.*\)",*$/\1/p')
    (
        cd "$source"
        # Helm 3 assumes Kubernetes 1.20 without a cluster unless it is set, as its releases do.
        minor=$(GOWORK=off go list -mod=readonly -m -f '{{.Version}}' k8s.io/client-go | cut -d. -f2)
        GOWORK=off go build -mod=readonly -o "$out/$name" -ldflags "-s -w -X $path/internal/version.version=$version \
            -X $path/pkg/chartutil.k8sVersionMajor=1 -X $path/pkg/chartutil.k8sVersionMinor=$minor \
            -X $path/pkg/lint/rules.k8sVersionMajor=1 -X $path/pkg/lint/rules.k8sVersionMinor=$minor" ./cmd/helm
    )
    echo "$recipe" >"$out/$name.recipe"
}

for name in "${@:-all}"; do
    case $name in
    helm3) module helm3 helm.sh/helm/v3 v3.22.0 ;;
    helm4) module helm4 helm.sh/helm/v4 v4.3.1 ;;
    all) module helm3 helm.sh/helm/v3 v3.22.0; module helm4 helm.sh/helm/v4 v4.3.1 ;;
    *) echo "helm: $name is neither helm3 nor helm4" >&2; exit 1 ;;
    esac
done
