#!/bin/sh
# Builds actionlint, which checks workflows of GitHub Actions, into target/actionlint.
set -eu
cd "$(dirname "$0")/../.."
version=1.7.7
bin=target/actionlint
[ "$(cat "$bin/version" 2>/dev/null)" = "$version" ] && exit 0
mkdir -p "$bin"
echo "actionlint: building $version" >&2
GOBIN="$PWD/$bin" GOFLAGS=-mod=mod go install "github.com/rhysd/actionlint/cmd/actionlint@v$version"
echo "$version" >"$bin/version"
