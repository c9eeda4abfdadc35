#!/bin/sh
# Builds the image, and its program for amd64 once more in another folder, and fails if the two programs differ. Runs the
# program on a file system with nothing else, and that for arm64 in an emulator. Checks the bill of materials against the
# schema of CycloneDX. What a registry makes of the image is a part of tests/release/test.sh.
set -eu
cd "$(dirname "$0")/../.."
fail() {
    echo "image: $*" >&2
    exit 1
}

emulator=$(command -v qemu-aarch64-static || command -v qemu-aarch64) ||
    fail "qemu-aarch64 is missing; install it: apt-get install --no-install-recommends qemu-user-static"
tools/image.sh
image=$PWD/target/image program=$PWD/target/image/bin/amd64/training-operator
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

size=$(stat -c %s "$program")
[ "$size" -lt 25000000 ] || fail "the program has $size bytes; it must have less than 25 MB"

mkdir -p "$work/root"
cp "$program" "$work/root/"
unshare --user --map-root-user chroot "$work/root" /training-operator --version

# The program for arm64 renders the same objects.
for arch in amd64 arm64; do
    run=$([ $arch = amd64 ] || echo "$emulator")
    # shellcheck disable=SC2086 # Nothing, or a program.
    $run target/image/bin/$arch/training-operator render examples/mxnet/train.yaml >"$work/$arch.yaml"
done
cmp "$work/amd64.yaml" "$work/arm64.yaml"

tools/venv.sh bill
.venv/bill/bin/python -I tests/image/bill.py "$image/sbom.cdx.json"

echo "image: building once more, in another folder" >&2
git ls-files --cached --others --exclude-standard -z | xargs -0 cp --parents --target-directory "$work/root"
ln -s "$PWD/.venv" "$work/root/.venv"
cd "$work/root"
git init --quiet
git add .
git -c user.name=test -c user.email=test@example.com commit --quiet --message copy
CARGO_TARGET_DIR=$work/target tools/image.sh amd64 >/dev/null
cmp "$program" target/image/bin/amd64/training-operator || fail "two builds differ"
echo "image: two builds have the same program of $size bytes"
