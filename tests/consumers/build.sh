#!/bin/sh
# Builds the code by which other programs read jobs into target/consumers, unless it is there and current: that of Argo CD,
# Argo Workflows, Flyte, Katib, Kueue and kube-state-metrics, each as a program that prints its conclusions. Takes about
# ten minutes on two cores the first time.
#
#   tests/consumers/build.sh            all of them
#   tests/consumers/build.sh argo-cd    this one
#
# Katib, Kueue and kube-state-metrics are linked. Of the others the functions that conclude are taken from the source in
# the module cache: their packages import a thousand more, or one that the module proxy does not serve.
set -eu
cd "$(dirname "$0")"
out=$(cd ../.. && pwd)/target/consumers
command -v go >/dev/null || { echo "consumers: go is missing; install Go 1.26 or later (https://go.dev/dl)" >&2; exit 1; }
mkdir -p "$out"
# One at a time, where the system has flock; a second caller finds the work done.
if command -v flock >/dev/null; then
    exec 9>"$out/lock"
    flock 9
fi

# source PATH@VERSION SUM: prints the folder of a module's source. No go.sum has it, so that its sum is here.
source() {
    found=$(cd / && GONOSUMDB="${1%@*}" go mod download -json "$1")
    echo "$found" | grep -q "\"Sum\": \"$2\"" || { echo "consumers: $1 is not what it was: $found" >&2; exit 1; }
    echo "$found" | sed -n 's/^\t"Dir": "\(.*\)",*$/\1/p'
}

# take FILE PATTERN...: prints the declarations that begin with a line of this pattern, with what is before their end.
take() {
    file=$1
    shift
    for pattern in "$@"; do
        taken=$(sed -n "/^$pattern/,/^[})]/p" "$file")
        [ -n "$taken" ] || { echo "consumers: $file has no $pattern" >&2; exit 1; }
        printf '%s\n\n' "$taken"
    done
}

# What another program's package is here, in a copy of its folder.
take_argo_cd() {
    argo=$(source github.com/argoproj/argo-cd/v3@v3.2.12 "h1:XbOyqcoPIjMhiP+y05Zi2U+HfG3b2TNfGJgVuK5Y8g0=")
    engine=$(source github.com/argoproj/gitops-engine@v0.7.1-0.20260512161450-ff8d2f5207dc "h1:9RW8n5+dO5nL49dsIapqPPvYNQV9FMpO3FDPO312lZc=")
    take "$argo/util/lua/lua.go" 'const (' 'type VM ' 'func (vm VM) runLua(' 'func (vm VM) runLuaWithResourceActionParameters(' \
        'func (vm VM) ExecuteHealthLua(' 'func isValidHealthStatusCode(' 'func decodeValue('
    sed 's/^package lua/package main/' "$argo/util/lua/oslib_safe.go" >"$1/oslib_safe.go"
    mkdir -p "$1/health"
    { echo 'package health'; take "$engine/pkg/health/health.go" 'type HealthStatusCode string' 'type HealthStatus struct'; } >"$1/health/health.go"
}

take_argo_workflows() {
    argo=$(source github.com/argoproj/argo-workflows/v3@v3.7.0 "h1:TDijZztm6dLruB7yZLH+Ps4OJKRwu0YSAJ4/NvceON0=")
    take "$argo/workflow/executor/resource.go" 'type gjsonLabels ' 'func (g gjsonLabels) ' 'func matchConditions('
}

take_flyte() {
    plugins=$(source github.com/flyteorg/flyte/flyteplugins@v1.15.3 "h1:JngqSpjSREJntMTlb+o9snVY2J0zgFyIEhE5/8QXWL8=")
    take "$plugins/go/tasks/plugins/k8s/kfoperators/common/common_operator.go" 'func ExtractCurrentCondition(' 'func GetPhaseInfo('
}

# build NAME [TAKE]: builds a folder here, after TAKE has printed what is taken from elsewhere.
build() (
    name=$1
    [ ! -x "$out/$name" ] || [ -n "$(find "$name" build.sh -newer "$out/$name" -type f)" ] || exit 0
    echo "consumers: building $name (once)" >&2
    copy=$out/source/$name
    rm -rf "$copy"
    mkdir -p "$out/source"
    cp -R "$name" "$copy"
    if [ $# -gt 1 ]; then
        { cat "$copy/taken.go.head"; "$2" "$copy"; } >"$copy/taken.go.part"
        mv "$copy/taken.go.part" "$copy/taken.go"
    fi
    cd "$copy"
    GOWORK=off go build -mod=readonly -ldflags "-s -w" -o "$out/$name" .
)

for name in "${@:-all}"; do
    case $name in
    argo-cd) build argo-cd take_argo_cd ;;
    argo-workflows) build argo-workflows take_argo_workflows ;;
    flyte) build flyte take_flyte ;;
    katib | kueue | kube-state-metrics) build "$name" ;;
    all)
        build argo-cd take_argo_cd
        build argo-workflows take_argo_workflows
        build flyte take_flyte
        build katib
        build kube-state-metrics
        build kueue
        ;;
    *) echo "consumers: $name is none of argo-cd, argo-workflows, flyte, katib, kube-state-metrics, kueue" >&2; exit 1 ;;
    esac
done
