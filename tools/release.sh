#!/bin/sh
# What must be right before a release.
#
#   tools/release.sh api           writes docs/maintainers/public-api.txt, the library's interface, anew
#   tools/release.sh packages      fails if a package cannot be published
#   tools/release.sh check [REV]   fails if a package cannot be published, if docs/maintainers/public-api.txt
#                                  is stale, or if the version does not fit what changed
#                                  since REV (default: the last tag; without one there is
#                                  nothing to compare with)
#
# The tools are built once, into target/tools, in some minutes, from crates.io.
# cargo-public-api reads what a nightly rustdoc writes: rustup toolchain install nightly.
set -eu
cd "$(dirname "$0")/.."

listing=docs/maintainers/public-api.txt

tool() {
    [ -x "target/tools/bin/$1" ] || cargo install --quiet --locked --root target/tools "$1@$2"
}

# Without what derives and blanket implementations bring.
list() {
    tool cargo-public-api 0.52.0
    CARGO_TARGET_DIR=target/public-api target/tools/bin/cargo-public-api --package training-job --all-features -sss
}

# All that are to be published, together: each is built from its package, with the others' packages. A package
# has no profiles; with those of Cargo.toml the dependencies are what the tests have compiled. That tests and
# benchmarks stay behind is meant.
packages() {
    cargo publish --workspace --dry-run --locked --allow-dirty \
        --config 'profile.dev.debug="line-tables-only"' --config 'profile.dev.package."*".debug=false' \
        >target/packages.log 2>&1 || { cat target/packages.log >&2; return 1; }
}

case ${1-} in
packages)
    mkdir -p target
    packages
    ;;
api)
    mkdir -p target
    list >target/public-api.txt
    cp target/public-api.txt "$listing"
    ;;
check)
    mkdir -p target
    echo 'release: packing and building every package (log: target/packages.log)' >&2
    packages
    # A failure of the tool is one, and no difference.
    list >target/public-api.txt
    diff -u "$listing" target/public-api.txt || {
        echo "release: the interface is not that of $listing; look at the difference, then run: make public-api" >&2
        exit 1
    }
    since=${2-$(git describe --tags --abbrev=0 2>/dev/null || :)}
    if [ -z "$since" ]; then
        echo "release: there is no tag to compare the version with" >&2
        exit 0
    fi
    tool cargo-semver-checks 0.51.0
    target/tools/bin/cargo-semver-checks semver-checks --package training-job --baseline-rev "$since"
    ;;
*)
    echo 'usage: tools/release.sh api|packages|check [REV]' >&2
    exit 2
    ;;
esac
