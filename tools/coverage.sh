#!/usr/bin/env bash
# Prints how many lines and functions of the pure core (src) its tests run: those beside the code, tests/plan, tests/contract,
# and those of the kinds. Needs cargo-llvm-cov, which it builds once, and rustup component add llvm-tools.
set -euo pipefail
cd "$(dirname "$0")/.."

export CARGO_INCREMENTAL=0
[ -x target/tools/bin/cargo-llvm-cov ] || cargo install --quiet --locked --root target/tools cargo-llvm-cov@0.9.1
packages=(--package training-job)
for kind in frameworks/*; do
    packages+=(--package "training-job-${kind#*/}")
done
CARGO_TARGET_DIR=target/coverage target/tools/bin/cargo-llvm-cov llvm-cov --quiet --summary-only \
    --ignore-filename-regex '/(tests|frameworks|crates|testbed|examples|simulation)/|tests\.rs$' \
    "${packages[@]}" --all-features
