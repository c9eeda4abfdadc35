#!/bin/sh
# Renews the corpus of a target from itself and what make fuzz has found since: the fewest files that reach the same
# code, and of these as many as fit into 90,000 bytes. Their names are hashes, so the choice is random. Files named
# found-… are inputs that found a bug, and stay.
set -eu
target=$1
cd "$(dirname "$0")"
new=$(mktemp -d)
trap 'rm -rf "$new"' EXIT
CARGO_TARGET_DIR=../target/fuzz cargo fuzz run --sanitizer none "$target" \
    "$new" "../target/fuzz-corpus/$target" "corpus/$target" -- \
    -set_cover_merge=1 -max_len=8192 -timeout=20 -rss_limit_mb=4096
[ -n "$(ls "$new")" ] || { echo "keep: nothing was merged; the corpus stays" >&2; exit 1; }
find "corpus/$target" -type f ! -name 'found-*' -delete
size=$(cat "corpus/$target"/found-* 2>/dev/null | wc -c)
for file in "$new"/*; do
    size=$((size + $(wc -c <"$file")))
    [ "$size" -le 90000 ] || break
    cp "$file" "corpus/$target/"
done
ls "corpus/$target" | wc -l
