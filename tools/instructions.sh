#!/bin/sh
# Counts the instructions of each micro-benchmark (crates/training-job-controller/benches/micro.rs) at a commit and now, by Callgrind, and prints both and
# their ratio. The counts do not depend on the load of the machine.
#
#   tools/instructions.sh COMMIT
set -eu
cd "$(dirname "$0")/.."

if [ -z "${1-}" ]; then
    echo 'make: name the commit to compare with: make bench-instructions BASE=COMMIT' >&2
    exit 2
fi
command -v valgrind >/dev/null || { echo "make: valgrind is missing; install your system's package of that name" >&2; exit 1; }
base=$(git rev-parse --verify --quiet "$1^{commit}") || { echo "make: there is no commit $1" >&2; exit 1; }
git cat-file -e "$base:crates/training-job-controller/benches/micro.rs" 2>/dev/null || { echo "make: $1 has no crates/training-job-controller/benches/micro.rs to compare with" >&2; exit 1; }

out=target/instructions
tree=$out/base
mkdir -p "$out"
git worktree prune
[ -d "$tree" ] || git worktree add --quiet --force --detach "$tree" "$base"
git -C "$tree" checkout --quiet --force --detach "$base"

# count FOLDER RESULTS TARGET: builds what is in a folder, and writes one line for each benchmark: instructions, name.
# Each build has its own target folder, because in a common one cargo gives both builds the same name.
count() {
    export CARGO_TARGET_DIR="$PWD/$3"
    built=$(cd "$1" && cargo bench --no-run --package training-job-controller --features __fuzzing --bench micro 2>&1) ||
        { echo "$built" >&2; exit 1; }
    micro=$(cd "$1" && realpath "$(echo "$built" | sed -n 's/.*Executable.*(\(.*\))$/\1/p')")
    "$micro" names >"$2.names"
    while read -r name; do
        counted=$(valgrind --tool=callgrind --callgrind-out-file=/dev/null \
            --toggle-collect='*count_instructions_here*' "$micro" once "$name" 2>&1) ||
            { echo "$counted" >&2; exit 1; }
        echo "$(echo "$counted" | sed -n 's/.*Collected : \([0-9]*\).*/\1/p') $name"
    done <"$2.names" >"$2"
}

echo "building $1 and the current state, and counting: some minutes" >&2
count "$tree" "$out/before" "$out/target"
count . "$out/now" target
awk '
    BEGIN { printf "%-16s %14s %14s %7s\n", "", "before", "now", "ratio" }
    { count = $1; sub(/^[0-9]+ /, "") }
    NR == FNR { before[$0] = count; next }
    $0 in before { printf "%-16s %14d %14d %7.3f\n", $0, before[$0], count, count / before[$0]; next }
    { printf "%-16s %14s %14d\n", $0, "-", count }
' "$out/before" "$out/now"
