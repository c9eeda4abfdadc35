#!/bin/bash
# The four processes of examples/mxnet/tune.yaml, started by hand and all at once,
# as local mode would: each with a loopback address of its own, all on one port.
#
#   bench/local/tune.sh [RUNS]         RUNS is 1; PYTHON, PORT and TRIALS are heeded
#
# Prints each run's wall time until the tuner's end. Exits 1 if the tuner failed.
set -u
cd "$(dirname "$0")/../.." || exit 1
python=${PYTHON:-$PWD/.venv/tvm/bin/python}
[ -x "$python" ] || { echo "tune.sh: no $python; make it with tools/venv.sh tvm" >&2; exit 1; }
port=${PORT:-9091}
work=$(mktemp -d) || exit 1
groups=()
# Groups, not processes: tracker and servers have children that outlive them.
stop() {
    for group in "${groups[@]}"; do kill -KILL -- "-$group"; done
    groups=()
    wait
} 2>/dev/null
trap 'stop; rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
set -m # each job in a process group of its own
export TMPDIR=$work PYTHONUNBUFFERED=1

replica() { echo "{\"url\":\"127.0.78.$1\",\"port\":$port}"; }
cluster="{\"tuner\":[$(replica 14)],\"tunerserver\":[$(replica 12),$(replica 13)],\"tunertracker\":[$(replica 11)]}"

begin() { # role index last-octet
    MX_CONFIG="{\"cluster\":$cluster,\"labels\":{\"tuner\":\"\",\"tunerserver\":\"cpu\",\"tunertracker\":\"\"},\"task\":{\"type\":\"$1\",\"index\":$2}}" \
        POD_IP=127.0.78.$3 "$python" examples/mxnet/tune.py >"$work/$1-$2.log" 2>&1 &
    groups+=($!)
}

for run in $(seq "${1:-1}"); do
    start=$(date +%s%N)
    begin tuner 0 14
    tuner=$!
    begin tunerserver 0 12
    begin tunerserver 1 13
    begin tunertracker 0 11
    wait "$tuner"
    code=$?
    wall=$((($(date +%s%N) - start) / 1000000))
    stop
    if [ "$code" != 0 ]; then
        tail -n 20 "$work"/*.log
        echo "run $run: the tuner ended with $code"
        exit 1
    fi
    grep -h RESULT "$work/tuner-0.log"
    echo "run $run: $wall ms, candidates measured by server:" \
        "$(grep -c 'finish serving' "$work/tunerserver-0.log") and $(grep -c 'finish serving' "$work/tunerserver-1.log")"
done
