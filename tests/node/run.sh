#!/bin/bash
# Runs the tests on two real nodes, and removes the nodes at the end, however it comes. Called by make test-node.
#
#   FRAMEWORKS="jax pytorch"   train these too; all stands for pytorch, jax, paddle and tensorflow
#   ONLY=accidents::           run only the tests with this in their names
#   INSTALL=helm               install the operator by the chart, with the helm of target/helm
#   KEEP=1                     leave the nodes running
set -euo pipefail
cd "$(dirname "$0")/../.."
lab=tests/node/lab.sh
frameworks=${FRAMEWORKS:-}
[ "$frameworks" != all ] || frameworks="pytorch jax paddle tensorflow"
skipped=()
for name in pytorch jax paddle tensorflow; do
    [[ " $frameworks " = *" $name "* ]] || skipped+=(--skip "large::$name")
done

end() {
    code=$?
    trap '' INT TERM
    if [ -e target/node/times.json ]; then
        python3 -c 'import json; [print(f"{s:8.1f} s  {n}") for n, s in json.load(open("target/node/times.json")).items()]'
    fi
    if [ "$code" != 0 ]; then
        rm -rf target/node/logs
        mkdir -p target/node/logs
        cp target/node/run/*.log target/node/logs/ 2>/dev/null || true
        echo "node: the logs of the nodes are in target/node/logs" >&2
    fi
    [ -n "${KEEP:-}" ] || $lab down
    exit "$code"
}
trap end EXIT
trap 'exit 130' INT TERM

rm -f target/node/times.json
EVICT_AFTER=20 $lab up 2
export TEST_KUBECONFIG=target/node/run/kubeconfig KUBEBUILDER_ASSETS=$PWD/target/control-plane
node() { cargo test --package training-operator --all-features --quiet --test node -- "$@" "${skipped[@]}"; }
# Tests that disturb whole nodes run alone, after the others. The last one removes the operator, and installs it anew.
if [ -n "${ONLY:-}" ]; then
    node --test-threads=1 "$ONLY"
else
    node --test-threads=4 --skip alone:: --skip page::
    node --test-threads=1 alone::
    node page::
fi
