#!/bin/sh
# Checks before a release.
#
#   tools/release.sh api           writes docs/maintainers/public-api.txt, the library's interface
#   tools/release.sh packages      fails if a package cannot be published, or if a program outside of this workspace
#                                  does not compile with the packages
#   tools/release.sh check [REV]   fails if a package cannot be published, if docs/maintainers/public-api.txt
#                                  is stale, or if the version does not fit the changes
#                                  since REV (default: the last tag; without a tag the
#                                  version is not checked)
#
# The tools are built once from crates.io into target/tools, which takes some minutes.
# cargo-public-api reads the output of a nightly rustdoc: rustup toolchain install nightly.
set -eu
cd "$(dirname "$0")/.."

listing=docs/maintainers/public-api.txt
# The packages that authors of a kind and their programs use.
interface="training-job training-job-controller training-job-testing training-job-local training-job-cli"

tool() {
    [ -x "target/tools/bin/$1" ] || cargo install --quiet --locked --root target/tools "$1@$2"
}

# Leave out items of derives and blanket implementations.
list() {
    tool cargo-public-api 0.52.0
    for package in $interface; do
        CARGO_TARGET_DIR=target/public-api target/tools/bin/cargo-public-api --package "$package" --all-features -sss
    done
}

# Builds all published packages together, each from its package file with those of the others. A package file has
# no profiles. With the profiles of Cargo.toml, the dependencies are those that the tests have compiled. Package
# files have no tests and no benchmarks on purpose.
packages() {
    # Cargo takes packages of one version for the same, so it would use the sources and the objects of an earlier run.
    rm -rf "${CARGO_HOME:-$HOME/.cargo}"/registry/src/-*/
    for package in target/package/tmp-crate/*.crate; do
        name=$(basename "$package" .crate)
        rm -rf target/debug/.fingerprint/"${name%-*}"-*
    done
    cargo publish --workspace --dry-run --locked --allow-dirty \
        --config 'profile.dev.debug="line-tables-only"' --config 'profile.dev.package."*".debug=false' \
        >target/packages.log 2>&1 || { cat target/packages.log >&2; return 1; }
}

# Builds a program outside of this workspace twice: with the library from the repository, as of HEAD, and by its version,
# from the package files.
outside() {
    cargo build --quiet --package training-operator
    for source in git version; do
        program=target/outside/$source
        rm -rf "$program"
        target/debug/training-operator new-kind HiveJob "$program" >/dev/null
        sed s/farm-operator/hive-operator/ examples/add-a-framework/Cargo.lock >"$program/Cargo.lock"
        case $source in
        git)
            sed -i "s|git = \"[^\"]*\"|git = \"file://$PWD\"|" "$program/Cargo.toml"
            ;;
        version)
            sed -i 's/{ git = "[^"]*" }/"0.1"/' "$program/Cargo.toml"
            echo '[patch.crates-io]' >>"$program/Cargo.toml"
            for package in target/package/tmp-crate/*.crate; do
                tar -xzf "$package" -C "$program"
                name=$(basename "$package" .crate)
                echo "${name%-*} = { path = \"$name\" }" >>"$program/Cargo.toml"
            done
            ;;
        esac
        cargo build --quiet --manifest-path "$program/Cargo.toml" --target-dir target || return 1
    done
}

case ${1-} in
packages)
    mkdir -p target
    packages
    outside
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
    outside
    # A failure of the tool is not a difference.
    list >target/public-api.txt
    diff -u "$listing" target/public-api.txt || {
        echo "release: the interface differs from $listing; review the difference, then run: make public-api" >&2
        exit 1
    }
    since=${2-$(git describe --tags --abbrev=0 2>/dev/null || :)}
    if [ -z "$since" ]; then
        echo "release: there is no tag to compare the version with" >&2
        exit 0
    fi
    tool cargo-semver-checks 0.51.0
    for package in $interface; do
        target/tools/bin/cargo-semver-checks semver-checks --package "$package" --baseline-rev "$since"
    done
    ;;
*)
    echo 'usage: tools/release.sh api|packages|check [REV]' >&2
    exit 2
    ;;
esac
