#!/bin/sh
# Checks the dependencies by deny.toml: licenses, sources and bans, and advisories if their database can be
# fetched.
#
#   tools/deny.sh            with cargo-deny if it is installed; without it, only licenses, sources and versions
#   tools/deny.sh install    builds cargo-deny into target/tools (some minutes, once), and checks with it
#
# To build cargo-deny takes longer than the rest of `make check`, so it is built only on request.
set -eu
cd "$(dirname "$0")/.."

version=0.20.2
deny=target/tools/bin/cargo-deny
case ${1-} in
'') ;;
install) [ -x "$deny" ] || cargo install --quiet --locked --root target/tools "cargo-deny@$version" ;;
*)
    echo 'usage: tools/deny.sh [install]' >&2
    exit 2
    ;;
esac

[ -x "$deny" ] || deny=$(command -v cargo-deny || :)
if [ -z "$deny" ]; then
    echo 'deny: cargo-deny is not installed (tools/deny.sh install): checking only licenses, sources and versions' >&2
    exec python3 tools/deny.py
fi
"$deny" --all-features check bans licenses sources
log=target/deny-advisories.log
if "$deny" fetch db >"$log" 2>&1; then
    "$deny" --all-features check --disable-fetch advisories
else
    echo "deny: advisories are not checked: their database cannot be fetched (why: $log)" >&2
fi
