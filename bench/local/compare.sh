#!/bin/bash
# What `training-operator local run` adds to the processes themselves: runs
# examples/mxnet/train.yaml and shell.sh, which starts the same five processes by
# hand, in turns, so that both meet the same machine.
#
#   bench/local/compare.sh [RUNS]      RUNS is 5, of each; OPERATOR names another binary
#
# Prints the wall times, both medians and their ratio. Exits 1 if a run failed or
# the ratio is above 1.5.
set -u
cd "$(dirname "$0")/../.." || exit 1
runs=${1:-5}
limit=1.5
tools/venv.sh mxnet || exit 1
if [ -z "${OPERATOR-}" ]; then
    # As `make run` has it.
    cargo build --quiet --package training-operator || exit 1
    OPERATOR=${CARGO_TARGET_DIR:-target}/debug/training-operator
fi
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
trap 'exit 130' INT

median() { printf '%s\n' "$@" | sort -n | awk '{ w[NR] = $1 } END { print (w[int((NR + 1) / 2)] + w[int(NR / 2) + 1]) / 2 }'; }
fail() {
    cat "$log"
    echo "compare.sh: $1 failed" >&2
    exit 1
}

by_shell=() by_operator=()
for run in $(seq "$runs"); do
    bench/local/shell.sh 1 >"$log" 2>&1 || fail shell.sh
    shell=$(awk '/^median:/ { print $2 }' "$log")
    start=$(date +%s%N)
    "$OPERATOR" local run --venv .venv/mxnet examples/mxnet/train.yaml >"$log" 2>&1 || fail 'local run'
    operator=$((($(date +%s%N) - start) / 1000000))
    by_shell+=("$shell") by_operator+=("$operator")
    echo "run $run: shell $shell ms, local run $operator ms"
done
shell=$(median "${by_shell[@]}")
operator=$(median "${by_operator[@]}")
awk -v s="$shell" -v o="$operator" -v l="$limit" 'BEGIN {
    printf "medians: shell %d ms, local run %d ms; ratio %.2f (at most %s)\n", s, o, o / s, l
    exit o > l * s
}'
