#!/bin/sh
# Builds the webhook with the Go operator's types into target/go-operator/types, unless it is there and current. Takes
# seconds where ../build.sh has been run.
set -eu
cd "$(dirname "$0")"
out=$(cd ../../.. && pwd)/target/go-operator
[ ! -x "$out/types" ] || [ -n "$(find . -newer "$out/types" -type f)" ] || exit 0
command -v go >/dev/null || { echo "go-operator: go is missing; install Go 1.22 or later (https://go.dev/dl)" >&2; exit 1; }
mkdir -p "$out"
go build -o "$out/types.$$" .
mv "$out/types.$$" "$out/types"
