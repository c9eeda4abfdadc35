#!/bin/bash
# The five processes of examples/mxnet/train.yaml, started by hand: the baseline
# of `training-operator local run`, which may take 1.5 times as long.
#
#   bench/local/shell.sh [RUNS]        RUNS is 3; PYTHON, STEPS and PAUSE are heeded
#
# Prints each run's wall time and, last, the median. Exits 1 if a process failed.
set -u
cd "$(dirname "$0")/../.." || exit 1
python=${PYTHON:-$PWD/.venv/mxnet/bin/python}
[ -x "$python" ] || { echo "shell.sh: no $python; make it with tools/venv.sh mxnet" >&2; exit 1; }
logs=$(mktemp -d) || exit 1
pids=()
trap 'kill "${pids[@]}" 2>/dev/null; rm -rf "$logs"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

export DMLC_PS_ROOT_URI=127.0.0.1 DMLC_NODE_HOST=127.0.0.1 DMLC_USE_KUBERNETES=0
export DMLC_NUM_SERVER=2 DMLC_NUM_WORKER=2 OMP_NUM_THREADS=1
unset PORT # ps-lite would listen there

free_port() {
    "$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

walls=()
for run in $(seq "${1:-3}"); do
    DMLC_PS_ROOT_PORT=$(free_port)
    export DMLC_PS_ROOT_PORT
    pids=()
    start=$(date +%s%N)
    for name in scheduler-0 server-0 server-1 worker-0 worker-1; do
        DMLC_ROLE=${name%-*} timeout 300 "$python" examples/mxnet/train.py >"$logs/$name" 2>&1 &
        pids+=($!)
    done
    for _ in "${pids[@]}"; do
        # One at a time as they end: when one fails the others would hang.
        wait -n && continue
        echo "run $run: a process failed with $?"
        tail -n 20 "$logs"/*
        exit 1
    done
    wall=$((($(date +%s%N) - start) / 1000000))
    walls+=($wall)
    echo "run $run: $wall ms"
done
grep -h RESULT "$logs"/worker-*
printf '%s\n' "${walls[@]}" | sort -n | awk '{ w[NR] = $1 } END { print "median: " w[int((NR + 1) / 2)] " ms" }'
