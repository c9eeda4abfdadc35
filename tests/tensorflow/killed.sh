#!/bin/sh
# Trains examples/tensorflow/mirrored.yaml while a worker of it is killed, and fails unless the job is trained all
# the same.
#
#   tests/tensorflow/killed.sh OPERATOR
set -eu
operator=$1
root=$(cd "$(dirname "$0")/../.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp "$root/examples/tensorflow/mirrored.py" "$root/tests/tensorflow/mirrored_killed.py" "$folder"
sed 's/mirrored\.py\]/mirrored_killed.py]/' "$root/examples/tensorflow/mirrored.yaml" >"$folder/job.yaml"
grep -q 'mirrored_killed\.py\]' "$folder/job.yaml"

fail() {
    cat "$folder/log" >&2
    echo "killed: $*" >&2
    exit 1
}

"$operator" local run --venv "$root/.venv/tensorflow" "$folder/job.yaml" >"$folder/log" 2>&1 ||
    fail "the job has not succeeded"
[ -e "$folder/killed" ] || fail "nothing was killed"
grep -q 'Restarting' "$folder/log" || fail "nobody tells of a restart"
grep -q 'RESULT' "$folder/log" || fail "there is no result"
grep -E 'Restarting|RESULT|worker-1  ' "$folder/log"
