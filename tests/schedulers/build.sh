#!/bin/sh
# Builds what decides when and where pods run into target/schedulers, unless it is there and current: kube-scheduler,
# the coscheduling scheduler of scheduler-plugins, Volcano's scheduler and Kueue, with their definitions. Takes ten to
# fifteen minutes on two cores the first time.
#
#   tests/schedulers/build.sh            all of them
#   tests/schedulers/build.sh kueue      this one
set -eu
cd "$(dirname "$0")"
out=$(cd ../.. && pwd)/target/schedulers
command -v go >/dev/null || { echo "schedulers: go is missing; install Go 1.26 or later (https://go.dev/dl)" >&2; exit 1; }
mkdir -p "$out"
# One at a time, where the system has flock; a second caller finds the work done.
if command -v flock >/dev/null; then
    exec 9>"$out/lock"
    flock 9
fi

# source_of PATH@VERSION: the folder of a module in the module cache.
source_of() { (cd / && go mod download -json "$1" | sed -n 's/^\t"Dir": "\(.*\)",*$/\1/p'); }

# What a program below sets if its module does not build as it is: a replacement OLD=NEW of a module that the module proxy
# lacks, and a function that makes files first.
replacement='' prepare=:

# module NAME PATH@VERSION PACKAGE LDFLAGS FILE...: builds the package of a module as the module itself asks for, and
# copies these of its files to NAME.d.
module() {
    name=$1 module=$2 package=$3 flags=$4
    shift 4
    # What the program is made from, to notice a change.
    recipe="$(go env GOVERSION) $module $replacement $package $flags $*"
    [ "$(cat "$out/$name.recipe" 2>/dev/null)" != "$recipe" ] || return 0
    echo "schedulers: building $name of $module (once)" >&2
    source=$(source_of "$module")
    $prepare
    modfile=
    if [ -n "$replacement" ]; then
        cp "$source/go.mod" "$out/$name.mod"
        cp "$source/go.sum" "$out/$name.sum"
        chmod u+w "$out/$name.mod" "$out/$name.sum"
        go mod edit -replace="$replacement" "$out/$name.mod"
        modfile="-mod=mod -modfile=$out/$name.mod"
    fi
    # shellcheck disable=SC2086 # They are words.
    (cd "$source" && GOWORK=off go build $modfile -o "$out/$name" -ldflags "-s -w $flags" "$package")
    rm -rf "$out/$name.d"
    mkdir "$out/$name.d"
    for file in "$@"; do
        # Files of the module cache are read-only.
        cp "$source/$file" "$out/$name.d/"
        chmod u+w "$out/$name.d/$(basename "$file")"
    done
    echo "$recipe" >"$out/$name.recipe"
}

# That of the test control plane's Kubernetes.
kube_scheduler() (
    cd ../control-plane
    [ ! -x "$out/kube-scheduler" ] || [ -n "$(find kube-scheduler go.mod -newer "$out/kube-scheduler" -type f)" ] || exit 0
    echo "schedulers: building kube-scheduler (once)" >&2
    version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
    pkg=k8s.io/component-base/version
    minor=${version#v1.}
    go build -o "$out/kube-scheduler" \
        -ldflags "-s -w -X $pkg.gitVersion=$version -X $pkg.gitMajor=1 -X $pkg.gitMinor=${minor%%.*}" ./kube-scheduler
)

# It ends at once unless it says that it is of the Kubernetes that it is built from.
coscheduling() (
    replacement=k8s.io/csi-translation-lib=k8s.io/csi-translation-lib@v0.34.5
    pkg=k8s.io/component-base/version
    module coscheduling sigs.k8s.io/scheduler-plugins@v0.34.7 ./cmd/scheduler \
        "-X $pkg.gitVersion=v1.34.7 -X $pkg.gitMajor=1 -X $pkg.gitMinor=34" \
        manifests/coscheduling/crd.yaml
)

# Its API is 1.14.0, with the one constant that 1.15.1 has added to it.
volcano() (
    apis=$out/volcano.apis-1.14.0
    replacement=volcano.sh/apis=$apis prepare=volcano_apis
    crds=installer/helm/chart/volcano/crd/bases
    module volcano volcano.sh/volcano@v1.15.1 ./cmd/scheduler "" \
        $crds/scheduling.volcano.sh_podgroups.yaml $crds/scheduling.volcano.sh_queues.yaml \
        $crds/nodeinfo.volcano.sh_numatopologies.yaml $crds/topology.volcano.sh_hypernodes.yaml
)

volcano_apis() {
    rm -rf "$apis"
    cp -R "$(source_of volcano.sh/apis@v1.14.0)" "$apis"
    chmod -R u+w "$apis"
    echo 'const QueueAllocationGateKey = GroupName + "/queue-allocation-gate"' >>"$apis/pkg/apis/scheduling/v1beta1/labels.go"
}

# It reads the certificate of its metrics from a folder of root's; here from the folder of its webhooks.
kueue() (
    prepare=kueue_main
    crds=config/components/crd/bases
    files=config/components/webhook/manifests.yaml
    for kind in admissionchecks clusterqueues cohorts localqueues multikueueclusters multikueueconfigs \
        provisioningrequestconfigs resourceflavors topologies workloadpriorityclasses workloads; do
        files="$files $crds/kueue.x-k8s.io_$kind.yaml"
    done
    # shellcheck disable=SC2086 # They are words.
    module kueue sigs.k8s.io/kueue@v0.19.2 "$out/kueue.go" "" $files
)
kueue_main() { sed 's|"/etc/kueue/metrics/certs"|cfg.Webhook.CertDir|' "$source/cmd/kueue/main.go" >"$out/kueue.go"; }

for name in "${@:-all}"; do
    case $name in
    kube-scheduler) kube_scheduler ;;
    coscheduling) coscheduling ;;
    volcano) volcano ;;
    kueue) kueue ;;
    all) kube_scheduler; kueue; volcano; coscheduling ;;
    *) echo "schedulers: $name is none of kube-scheduler, coscheduling, volcano, kueue" >&2; exit 1 ;;
    esac
done
