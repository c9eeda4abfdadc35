#!/bin/sh
# Builds the operator's image without a container daemon and without root, for the architectures named (default: amd64
# and arm64), into target/image:
#
#   oci/                     the image as an OCI layout
#   training-operator.tar    the same as one file (OCI archive): docker load, podman load, ctr images import, skopeo, crane
#   bin/ARCH/training-operator    the static program in it, which has all but `local ...` and `kubectl training`
#   programs/ARCH/training-operator    with --programs: the static program with all commands, for people's machines
#   sbom.cdx.json            its parts with their licenses and checksums (CycloneDX)
#   licenses.txt             the texts of these licenses; also in the image
#   digest                   the image's digest, the same for each build of a commit
#
#   tools/image.sh [--programs] [amd64] [arm64]
#
# The programs are linked with the linker of Rust, which keeps equal functions once; Zig compiles the C of their
# dependencies. The paths of this machine are replaced, because they would be part of the program. The first build
# takes minutes for each architecture.
set -eu
cd "$(dirname "$0")/.."
command -v cargo >/dev/null || { echo "image: cargo is missing; install Rust with rustup (https://rustup.rs)" >&2; exit 1; }
programs=
if [ "${1-}" = --programs ]; then
    programs=yes
    shift
fi
[ $# -gt 0 ] || set -- amd64 arm64
for arch; do
    case $arch in amd64 | arm64) ;; *)
        echo "image: unknown architecture $arch; usage: tools/image.sh [--programs] [amd64] [arm64]" >&2
        exit 2
        ;;
    esac
done
tools/venv.sh image
python=$PWD/.venv/image/bin/python

cargo fetch --quiet --locked
cargo_home=${CARGO_HOME:-$HOME/.cargo}
flags="-C linker=rust-lld -C link-self-contained=yes -C link-arg=-zpack-relative-relocs -C link-arg=--icf=all --remap-path-prefix=$PWD=/source"
for sources in "$cargo_home"/registry/src/*/; do
    flags="$flags --remap-path-prefix=${sources%/}=/crates"
done

# The flags of the crate cc name the target in a form that Zig does not read.
export CRATE_CC_NO_DEFAULTS=1
export CFLAGS='-O2 -fPIC -ffunction-sections -fdata-sections -fno-sanitize=undefined'
targets=
for arch; do
    case $arch in amd64) cpu=x86_64 ;; arm64) cpu=aarch64 ;; esac
    target=$cpu-unknown-linux-musl
    rustup target list --installed | grep -qx "$target" || rustup target add "$target"
    export "CC_$(echo $target | tr - _)=$python -m ziglang cc -target $cpu-linux-musl"
    targets="$targets --target $target"
done
# build FOLDER [FLAG]: builds the program into FOLDER/ARCH.
build() {
    folder=$1
    shift
    # shellcheck disable=SC2086 # A list of flags.
    RUSTFLAGS=$flags cargo build --profile dist --locked --quiet --package training-operator $targets "$@"
    for arch in $architectures; do
        case $arch in amd64) cpu=x86_64 ;; arm64) cpu=aarch64 ;; esac
        mkdir -p "$folder/$arch"
        cp "${CARGO_TARGET_DIR:-target}/$cpu-unknown-linux-musl/dist/training-operator" "$folder/$arch/"
    done
}
architectures=$*
echo "image: building the program for $architectures" >&2
build target/image/bin --no-default-features --features cluster
if [ -n "$programs" ]; then
    echo "image: building the program with all commands" >&2
    build target/image/programs
fi
"$python" -I tools/image.py "$@"
