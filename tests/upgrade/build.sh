#!/bin/sh
# Builds the previous release into target/previous, its program and its CRDs: the last tag before this version, or the
# revision that PREVIOUS names. Takes some minutes the first time.
#
#   tests/upgrade/build.sh
#   PREVIOUS=v0.1.0 tests/upgrade/build.sh
set -eu
cd "$(dirname "$0")/../.."
# Before the first release there is no tag. The status of this revision lacks `ready`, `waitingReason` and `summary`.
first=bf3ebecc
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
revision=${PREVIOUS:-$(git describe --tags --abbrev=0 --match 'v*' --exclude "v$version" 2>/dev/null || echo "$first")}
commit=$(git rev-parse --verify --quiet "$revision^{commit}") || {
    echo "upgrade: there is no revision $revision; fetch the history and the tags (git fetch --unshallow --tags), or set PREVIOUS" >&2
    exit 1
}
out=$PWD/target/previous
[ "$(cat "$out/commit" 2>/dev/null)" != "$commit" ] || exit 0
echo "upgrade: building $revision (once)" >&2
rm -rf "$out"
mkdir -p "$out/source"
git archive "$commit" | tar -x -C "$out/source"
cargo build --quiet --locked --manifest-path "$out/source/Cargo.toml" --package training-operator --target-dir "$PWD/target/previous-build"
cp target/previous-build/debug/training-operator "$out/"
mv "$out/source/crds" "$out/"
rm -rf "$out/source"
echo "$commit" >"$out/commit"
