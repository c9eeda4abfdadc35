#!/bin/sh
# Runs the tests of the matrix in docs/maintainers/reliability.md, and writes how they ended into it.
#
#   tools/matrix.sh [BINARY…]   those in these test binaries alone; default: all
set -eu
cd "$(dirname "$0")/.."

results=$PWD/target/matrix
all='matrix faults admission cluster_training cost election handover install kinds'
rm -rf "$results"
mkdir -p "$results"

for binary in ${*:-$all}; do
    case $binary in
        matrix) package=training-job-simulation folder=simulation ;;
        *) package=training-operator folder=operator ;;
    esac
    echo "$binary" >&2
    echo "# $(date -u +%F) $folder/tests/$binary" > "$results/$binary"
    # A failure is a result like any other.
    cargo test --package "$package" --test "$binary" >> "$results/$binary" || true
done

MATRIX_RESULTS=$results cargo test --quiet --package training-job-simulation --test matrix_table
