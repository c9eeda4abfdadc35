#!/bin/sh
# Builds the programs of a node into target/node/bin, unless they are there and current: kubelet, kube-proxy and
# kube-scheduler of the test control plane's Kubernetes, CoreDNS, and containerd. Takes five to ten minutes on two
# cores the first time.
set -eu
cd "$(dirname "$0")"
bin=$(cd ../../.. && pwd)/target/node/bin
command -v go >/dev/null || { echo "node: go is missing; install Go 1.26 or later (https://go.dev/dl)" >&2; exit 1; }
mkdir -p "$bin"
export CGO_ENABLED=0

# stale PROGRAM FOLDER: true if a program is missing or older than its source.
stale() {
    [ ! -x "$1" ] || [ -n "$(find "$2" go.mod -newer "$1" -type f)" ]
}

if stale "$bin/node" node; then
    echo "node: building kubelet, kube-proxy and kube-scheduler (once)" >&2
    version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
    pkg=k8s.io/component-base/version
    minor=${version#v1.}
    # The kubelet needs cgo for nothing that these tests use.
    go build -o "$bin/node" -ldflags "-s -w -X $pkg.gitVersion=$version -X $pkg.gitMajor=1 -X $pkg.gitMinor=${minor%%.*}" ./node
fi
for name in kubelet kube-proxy kube-scheduler; do
    ln -sf node "$bin/$name"
done

if stale "$bin/coredns" coredns; then
    echo "node: building CoreDNS (once)" >&2
    go build -o "$bin/coredns" -ldflags "-s -w" ./coredns
fi

# With the dependencies that containerd itself is released with, so not by go.mod.
containerd=v2.2.9
if [ "$(cat "$bin/containerd.version" 2>/dev/null)" != $containerd ]; then
    echo "node: building containerd (once)" >&2
    module=github.com/containerd/containerd/v2
    source=$(cd / && go mod download -json "$module@$containerd" | sed -n 's/^\t"Dir": "\(.*\)",*$/\1/p')
    for name in containerd containerd-shim-runc-v2 ctr; do
        (cd "$source" && GOWORK=off go build -mod=readonly -tags no_btrfs,no_zfs,no_devmapper \
            -o "$bin/$name" -ldflags "-s -w -X $module/version.Version=$containerd" "./cmd/$name")
    done
    echo $containerd >"$bin/containerd.version"
fi
