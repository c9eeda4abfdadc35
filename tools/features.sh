#!/usr/bin/env bash
# Checks that each package compiles with each combination of its features, on the lowest supported Rust: `rust-version`
# of Cargo.toml. A feature that begins with two underscores is private and is left out.
set -euo pipefail
cd "$(dirname "$0")/.."

RUSTUP_TOOLCHAIN=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
export RUSTUP_TOOLCHAIN
rustup toolchain install "$RUSTUP_TOOLCHAIN" --profile minimal

# A line for each combination: the package, and its features separated by commas.
combinations() {
    cargo metadata --no-deps --format-version 1 | python3 -c '
import itertools, json, sys

for package in json.load(sys.stdin)["packages"]:
    # A library leaves the version of Kubernetes to the program, and does not compile without one.
    kubernetes = [d["name"] + "/latest" for d in package["dependencies"] if d["name"] == "k8s-openapi" and not d["kind"]]
    features = [name for name in package["features"] if name != "default" and not name.startswith("__")]
    for count in range(len(features) + 1):
        for chosen in itertools.combinations(sorted(features), count):
            print(package["name"], ",".join([*chosen, *kubernetes]))
'
}

combinations | while read -r package features; do
    echo "features: $package ${features:-(none)}"
    cargo check --locked --quiet --package "$package" --no-default-features --features "$features" </dev/null
done
