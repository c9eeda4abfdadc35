#!/bin/bash
# The first process of node $1, in its own mount, network, PID and UTS namespaces. It mounts the node's state, and
# keeps containerd, kubelet and kube-proxy running, as systemd does. lab.sh starts it with RUN, BIN,
# SEED and SERVICES.
set -euo pipefail
n=$1
here=$(dirname "$(readlink -f "$0")")
state=$RUN/node-$n
cgroup=tj-node-$n
export PATH=$BIN:$PATH

hostname "node-$n"
mount --make-rshared /
# /sys must belong to the network namespace, with the control groups of the machine.
mkdir -p "$state/cgroup"
mount --rbind /sys/fs/cgroup "$state/cgroup"
mount -t sysfs sysfs /sys
mount --rbind "$state/cgroup" /sys/fs/cgroup
# Paths that are fixed in programs, or too long for sockets elsewhere. /run is empty after a power cut.
rm -rf "$state/run-containerd" "$state/netns"
# The first time, the images of the seed: files as links, because layers are only read, and databases as copies.
if [ ! -e "$state/containerd" ]; then
    mkdir -p "$state"
    cp -al "$SEED" "$state/containerd"
    find "$SEED" -name '*.db' -printf '%P\n' | while read -r file; do
        cp --remove-destination "$SEED/$file" "$state/containerd/$file"
    done
fi
for pair in containerd:/var/lib/containerd cni:/var/lib/cni pods:/var/log/pods \
    containers:/var/log/containers run-containerd:/run/containerd netns:/run/netns; do
    mkdir -p "$state/${pair%%:*}" "${pair#*:}"
    mount --bind "$state/${pair%%:*}" "${pair#*:}"
    mount --make-shared "${pair#*:}"
done

# The folder of pods is a small disk of its own, which a test can fill.
mkdir -p /var/lib/kubelet
if [ ! -e "$state/kubelet.disk" ]; then
    truncate --size 512M "$state/kubelet.disk"
    mkfs.ext4 -q -m 0 "$state/kubelet.disk"
fi
mount -o loop "$state/kubelet.disk" /var/lib/kubelet
mount --make-shared /var/lib/kubelet

if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
    mkdir -p "/sys/fs/cgroup/$cgroup"
else
    for controller in /sys/fs/cgroup/*/; do
        case $controller in */unified/) ;; *) mkdir -p "$controller$cgroup" ;; esac
    done
    for setting in cpus mems; do
        cat "/sys/fs/cgroup/cpuset/cpuset.$setting" >"/sys/fs/cgroup/cpuset/$cgroup/cpuset.$setting"
    done
fi
echo 1 >/proc/sys/net/ipv4/ip_forward

mkdir -p "$state/config/net.d"
for file in containerd.toml kubelet.yaml proxy.yaml net.d/pods.conflist; do
    sed -e "s|@NODE@|$n|g" -e "s|@RUN@|$RUN|g" -e "s|@CONFIG@|$state/config|g" -e "s|@DNS@|${SERVICES%.0/16}.10|g" \
        "$here/config/$(basename "$file")" >"$state/config/$file"
done

# keep NAME COMMAND...: starts a program, and starts it again whenever it ends.
keep() {
    local program=$1
    shift
    while :; do
        "$@" >>"$RUN/node-$n.$program.log" 2>&1 || echo "$(date +%T) $program ended: $?"
        sleep 1
    done
}

keep containerd containerd --config "$state/config/containerd.toml" &
until ctr version >/dev/null 2>&1; do
    sleep 0.1
done
keep kubelet kubelet --config "$state/config/kubelet.yaml" --kubeconfig "$RUN/node-$n.kubeconfig" \
    --hostname-override "node-$n" --node-ip "10.213.0.$n" --v=2 &
keep proxy kube-proxy --config "$state/config/proxy.yaml" --v=2 &
# A first process also reaps orphans, which bash does while it waits.
while :; do
    wait -n || true
done
