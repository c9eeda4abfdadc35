#!/bin/sh
# Builds the client programs that tests run on `local cluster` into target/clients, unless they are there and current. Takes some
# minutes on two cores the first time.
set -eu
cd "$(dirname "$0")"
out=$(cd ../.. && pwd)/target/clients
command -v go >/dev/null || { echo "clients: go is missing; install Go 1.26 or later (https://go.dev/dl)" >&2; exit 1; }
mkdir -p "$out"
# One at a time, where the system has flock; a second caller finds the work done.
if command -v flock >/dev/null; then
    exec 9>"$out/lock"
    flock 9
fi
for name in client-go controller typed; do
    [ ! -x "$out/$name" ] || [ -n "$(find "$name" -newer "$out/$name" -type f)" ] || continue
    echo "clients: building $name (once)" >&2
    (cd "$name" && GOWORK=off go build -mod=readonly -ldflags "-s -w" -o "$out/$name" .)
done
