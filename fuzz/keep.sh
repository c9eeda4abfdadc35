#!/bin/sh
# Replaces the corpus of a target by a smaller one, made from the corpus and the files that make fuzz has found. It has
# the fewest files that reach the same code, and at most 90,000 bytes of them; the choice is random, because the names
# are hashes. Files named found-… are inputs that found a bug, and are kept.
set -eu
target=$1
cd "$(dirname "$0")"
new=$(mktemp -d)
trap 'rm -rf "$new"' EXIT
CARGO_TARGET_DIR=../target/fuzz cargo fuzz run --sanitizer none "$target" \
    "$new" "../target/fuzz-corpus/$target" "corpus/$target" -- \
    -set_cover_merge=1 -max_len=8192 -timeout=20 -rss_limit_mb=4096
[ -n "$(ls "$new")" ] || { echo "keep: no files were merged; the corpus is unchanged" >&2; exit 1; }
find "corpus/$target" -type f ! -name 'found-*' -delete
size=$(cat "corpus/$target"/found-* 2>/dev/null | wc -c)
for file in "$new"/*; do
    size=$((size + $(wc -c <"$file")))
    [ "$size" -le 90000 ] || break
    cp "$file" "corpus/$target/"
done
ls "corpus/$target" | wc -l
