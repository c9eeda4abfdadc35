#!/bin/bash
# Imports the images of target/node/images that are new into target/node/seed, a containerd's folder with which each
# node starts. Needs root.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
lab=$(readlink -f "$here/../../../target")/node
seed=$lab/seed
new=()
for archive in "$lab"/images/*.tar; do
    [ "$archive" -ot "$lab/seed.stamp" ] || new+=("$archive")
done
[ ${#new[@]} != 0 ] || exit 0
echo "node: importing ${#new[@]} images" >&2

# A socket's path may have 108 characters.
state=$(mktemp -d)
cat >"$state/config.toml" <<T
version = 2
root = "$seed"
state = "$state/state"
disabled_plugins = ["io.containerd.grpc.v1.cri"]
[grpc]
address = "$state/socket"
T
touch "$lab/seed.starts"
"$lab/bin/containerd" --config "$state/config.toml" >"$lab/seed.log" 2>&1 &
daemon=$!
trap 'kill "$daemon" 2>/dev/null; wait "$daemon" || true; rm -rf "$state"' EXIT
ctr() { "$lab/bin/ctr" --address "$state/socket" --namespace k8s.io "$@"; }
until ctr version >/dev/null 2>&1; do
    kill -0 "$daemon" || { tail "$lab/seed.log" >&2; exit 1; }
    sleep 0.1
done
for archive in "${new[@]}"; do
    ctr images import "$archive" >>"$lab/seed.log" 2>&1
done
# Layers are unpacked, so their archives are not needed any more.
ctr content prune references >>"$lab/seed.log" 2>&1
mv "$lab/seed.starts" "$lab/seed.stamp"
