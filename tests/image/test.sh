#!/bin/sh
# Builds the image twice, the second time in another folder, and checks that the programs are the same; pushes it to a
# registry of this machine with crane, and reads it from there; runs the program on a file system with nothing else;
# checks the bill of materials against the schema of CycloneDX.
set -eu
cd "$(dirname "$0")/../.."
command -v go >/dev/null || { echo "image: go is missing; install Go 1.25 or later (https://go.dev/dl)" >&2; exit 1; }
fail() {
    echo "image: $*" >&2
    exit 1
}

crane=0.22.1
tools=$PWD/target/crane
if [ "$(cat "$tools/version" 2>/dev/null)" != "$crane" ]; then
    echo "image: building crane $crane (once)" >&2
    GOBIN="$tools" GOFLAGS=-mod=mod go install "github.com/google/go-containerregistry/cmd/crane@v$crane"
    echo "$crane" >"$tools/version"
fi
tools/image.sh
image=$PWD/target/image

work=$(mktemp -d)
registry=
trap 'kill $registry 2>/dev/null || :; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

echo "image: building once more, in another folder" >&2
git ls-files --cached --others --exclude-standard -z | xargs -0 cp --parents --target-directory "$work"
git -C "$work" init --quiet
ln -s "$PWD/.venv" "$work/.venv"
(cd "$work" && git add . && git -c user.name=test -c user.email=test@example.com commit --quiet --message copy && CARGO_TARGET_DIR="$work/target" tools/image.sh amd64 >/dev/null)
cmp "$image/bin/amd64/training-operator" "$work/target/image/bin/amd64/training-operator" || fail "two builds differ"

size=$(stat -c %s "$image/bin/amd64/training-operator")
[ "$size" -lt 25000000 ] || fail "the program has $size bytes; 25,000,000 are the limit"

"$tools/crane" registry serve --address 127.0.0.1:0 >"$work/registry.log" 2>&1 &
registry=$!
for _ in $(seq 100); do
    port=$(sed -n 's/.*port \([0-9]*\).*/\1/p' "$work/registry.log")
    [ -z "$port" ] || break
    kill -0 $registry || fail "$(cat "$work/registry.log")"
    sleep 0.1
done
name=127.0.0.1:$port/training-operator:test
"$tools/crane" push --index "$image/oci" "$name" >/dev/null
"$tools/crane" validate --remote "$name" >/dev/null
[ "$("$tools/crane" digest "$name")" = "$(cat "$image/digest")" ] || fail "the registry has another digest"
for arch in amd64 arm64; do
    "$tools/crane" config --platform "linux/$arch" "$name" | grep -q '"User":"65532:65532"' || fail "$arch runs as another user"
done
mkdir "$work/root"
"$tools/crane" export --platform linux/amd64 "$name" - | tar -x -C "$work/root"
unshare --user --map-root-user chroot "$work/root" /training-operator --version

tools/venv.sh bill
.venv/bill/bin/python -I tests/image/bill.py "$image/sbom.cdx.json"
echo "image: well"
