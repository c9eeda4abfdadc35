#!/bin/bash
# A Kubernetes cluster with real nodes on this machine, for tests and by hand. Needs root. Its state is in
# target/node/run.
#
#   lab.sh up [NODES]        start the control plane and this number of nodes (2)
#   lab.sh down              end them and remove their state
#   lab.sh cut N             cut the power of node N
#   lab.sh power N           switch node N on again
#   lab.sh exec N COMMAND    run a command in node N:  lab.sh exec 1 ctr -n k8s.io task ls
#   lab.sh load IMAGE.tar    import an image into all nodes
#
# EVICT_AFTER=SECONDS: evict the pods of a dead node after this time (300, as Kubernetes does)
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
target=$(readlink -f "$here/../../target")
lab=$target/node
run=$lab/run
bin=$lab/bin
control_plane=$target/control-plane
# Settings of this machine that the kubelet changes.
sysctls="vm.overcommit_memory vm.panic_on_oom kernel.panic kernel.panic_on_oops kernel.keys.root_maxkeys kernel.keys.root_maxbytes"
# The machine's address in the network of the nodes. Node N has 10.213.0.N, its pods 10.214.N.0/24.
address=10.213.0.254
services=10.112.0.0/16

[ "$(id -u)" = 0 ] || { echo "node: real nodes need root; run it as root, or with sudo" >&2; exit 1; }
kubectl() { "$control_plane/kubectl" --kubeconfig "$run/kubeconfig" "$@"; }
name() { echo "tj-node-$1"; }

# certificate NAME SUBJECT [ALTERNATIVE NAMES]
certificate() {
    openssl req -newkey rsa:2048 -nodes -subj "$2" -keyout "$1.key" -out "$1.csr" 2>>openssl.log
    openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days 30 -out "$1.crt" \
        -extfile <(printf '%s\n' "basicConstraints=CA:FALSE" "${3:+subjectAltName=$3}") 2>>openssl.log
}

# user NAME SUBJECT FILE: writes a kubeconfig for a new certificate.
user() {
    certificate "$1" "$2"
    cat >"$3" <<Y
apiVersion: v1
kind: Config
clusters: [{name: lab, cluster: {server: "https://$address:6443", certificate-authority: $run/pki/ca.crt}}]
users: [{name: $1, user: {client-certificate: $run/pki/$1.crt, client-key: $run/pki/$1.key}}]
contexts: [{name: lab, context: {cluster: lab, user: $1}}]
current-context: lab
Y
}

credentials() {
    mkdir -p "$run/pki"
    cd "$run/pki"
    openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=lab -keyout ca.key -out ca.crt 2>>openssl.log
    openssl genrsa -out service-accounts.key 2048 2>>openssl.log
    certificate apiserver /CN=kube-apiserver \
        "IP:$address,IP:${services%.0/16}.1,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc"
    user admin /O=system:masters/CN=admin "$run/kubeconfig"
    user manager /CN=system:kube-controller-manager "$run/manager.kubeconfig"
    user scheduler /CN=system:kube-scheduler "$run/scheduler.kubeconfig"
    user proxy /CN=system:kube-proxy "$run/proxy.kubeconfig"
    for n in $(seq "$1"); do
        user "node-$n" "/O=system:nodes/CN=system:node:node-$n" "$run/node-$n.kubeconfig"
    done
    cd "$here"
}

# start NAME COMMAND...: starts a part of the control plane. Ctrl-C does not reach it, but down ends it.
start() {
    local part=$1
    shift
    setsid "$@" >"$run/$part.log" 2>&1 &
    echo $! >"$run/$part.pid"
}

control_plane_up() {
    start etcd "$control_plane/etcd" --data-dir="$run/etcd" --listen-client-urls="http://$address:2379"
    start apiserver "$control_plane/kube-apiserver" --etcd-servers="http://$address:2379" \
        --bind-address=$address --advertise-address=$address --secure-port=6443 \
        --tls-cert-file="$run/pki/apiserver.crt" --tls-private-key-file="$run/pki/apiserver.key" \
        --client-ca-file="$run/pki/ca.crt" \
        --service-account-key-file="$run/pki/service-accounts.key" \
        --service-account-signing-key-file="$run/pki/service-accounts.key" \
        --service-account-issuer=https://kubernetes.default.svc \
        --kubelet-client-certificate="$run/pki/admin.crt" --kubelet-client-key="$run/pki/admin.key" \
        --kubelet-preferred-address-types=InternalIP --service-cluster-ip-range=$services --allow-privileged=true \
        --authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction \
        --default-not-ready-toleration-seconds="${EVICT_AFTER:-300}" \
        --default-unreachable-toleration-seconds="${EVICT_AFTER:-300}"
    await "the API server is ready" kubectl get --raw /readyz
    start manager "$control_plane/kube-controller-manager" --kubeconfig="$run/manager.kubeconfig" \
        --authentication-kubeconfig="$run/manager.kubeconfig" --leader-elect=false --secure-port=0 \
        --use-service-account-credentials --service-account-private-key-file="$run/pki/service-accounts.key" \
        --root-ca-file="$run/pki/ca.crt"
    start scheduler "$bin/kube-scheduler" --kubeconfig="$run/scheduler.kubeconfig" \
        --authentication-kubeconfig="$run/scheduler.kubeconfig" --leader-elect=false --secure-port=0
}

# await WHAT COMMAND...: repeats a command until it succeeds, for a minute.
await() {
    local what=$1
    shift
    for _ in $(seq 300); do
        ! "$@" >/dev/null 2>&1 || return 0
        sleep 0.2
    done
    echo "node: not within a minute: $what; see the logs in $run" >&2
    return 1
}

# network N NODES: a network namespace for node N, on a bridge with the others and the machine.
network() {
    local node in
    node=$(name "$1")
    in="ip -n $node"
    ip netns add "$node"
    ip link add "$node" type veth peer name eth0 netns "$node"
    ip link set "$node" master tj-nodes up
    ip route add "10.214.$1.0/24" via "10.213.0.$1"
    $in link set lo up
    $in addr add "10.213.0.$1/24" dev eth0
    $in link set eth0 up
    # kube-proxy redirects services before packets leave; this route makes packets possible, and leads nowhere.
    $in link add services type bridge
    $in link set services up
    $in route add $services dev services src "10.213.0.$1"
    for other in $(seq "$2"); do
        [ "$other" = "$1" ] || $in route add "10.214.$other.0/24" via "10.213.0.$other"
    done
}

power() {
    [ ! -e "$run/node-$1.pid" ] || { echo "node: node $1 is on" >&2; return 1; }
    RUN=$run BIN=$bin SEED=$lab/seed SERVICES=$services setsid nsenter --net="/run/netns/$(name "$1")" \
        unshare --mount --pid --fork --uts --mount-proc --kill-child=KILL "$here/node.sh" "$1" >>"$run/node-$1.log" 2>&1 &
    local outer=$!
    await "node $1 starts" pgrep -P $outer
    # The first process of the node, by its number outside.
    pgrep -P $outer >"$run/node-$1.pid"
}

cut() {
    kill -KILL "$(cat "$run/node-$1.pid")"
    rm "$run/node-$1.pid"
}

in_node() {
    local n=$1
    shift
    PATH=$bin:$PATH nsenter --target "$(cat "$run/node-$n.pid")" --mount --net --pid --uts -- "$@"
}

up() {
    local nodes=${1:-2}
    down
    mkdir -p "$run"
    # shellcheck disable=SC2086 # They are words.
    sysctl $sysctls >"$run/sysctls"
    ip link add tj-nodes type bridge
    ip addr add $address/24 dev tj-nodes
    ip link set tj-nodes up
    credentials "$nodes"
    control_plane_up
    for n in $(seq "$nodes"); do
        network "$n" "$nodes"
        power "$n"
    done
    kubectl apply -f "$here/config/cluster.yaml" >/dev/null
    for n in $(seq "$nodes"); do
        kubectl wait --for=create "node/node-$n" --timeout=120s >/dev/null
        kubectl wait --for=condition=Ready "node/node-$n" --timeout=120s >/dev/null
    done
    kubectl -n kube-system rollout status deployment/coredns --timeout=120s >/dev/null
}

down() {
    [ -d "$run" ] || return 0
    local pids=()
    for namespace in /run/netns/tj-node-*; do
        [ ! -e "$namespace" ] || ip netns pids "$(basename "$namespace")" | xargs --no-run-if-empty kill -KILL 2>/dev/null || true
    done
    for part in scheduler manager apiserver etcd; do
        [ ! -e "$run/$part.pid" ] || pids+=("$(cat "$run/$part.pid")")
    done
    if [ ${#pids[@]} != 0 ]; then
        kill -KILL "${pids[@]}" 2>/dev/null || true
    fi
    for namespace in /run/netns/tj-node-*; do
        [ -e "$namespace" ] || continue
        # With the namespace, its end of the link would go too, but later.
        ip link del "$(basename "$namespace")" 2>/dev/null || true
        ip netns del "$(basename "$namespace")"
    done
    ! ip link show tj-nodes >/dev/null 2>&1 || ip link del tj-nodes
    await "the nodes' processes end" no_control_groups
    [ ! -e "$run/sysctls" ] || sysctl -q -p "$run/sysctls"
    rm -rf "$run"
}

control_groups() { find /sys/fs/cgroup -maxdepth 2 -type d -name 'tj-node-*'; }

# Removes the control groups of the nodes. Succeeds once none is left.
no_control_groups() {
    for group in $(control_groups); do
        find "$group" -depth -type d -exec rmdir {} \;
    done
    [ -z "$(control_groups)" ]
}

load() {
    for file in "$run"/node-*.pid; do
        local n=${file##*node-}
        in_node "${n%.pid}" ctr -n k8s.io images import --all-platforms "$(readlink -f "$1")" >/dev/null
    done
}

command=${1:-}
[ $# = 0 ] || shift
case $command in
up | down | cut | power | load) "$command" "$@" ;;
exec) in_node "$@" ;;
*) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
esac
