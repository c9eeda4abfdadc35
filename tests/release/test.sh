#!/bin/sh
# Runs the steps of a release up to a registry on this machine, and checks what someone gets from it: the image for both
# architectures with its digest, the chart, the programs, and the checksums. Builds the image, Helm and kubectl first,
# which takes minutes the first time.
set -eu
cd "$(dirname "$0")/../.."

fail() {
    echo "test-release: $*" >&2
    exit 1
}

tools/image.sh --programs
tests/helm/build.sh helm3
tests/control-plane/build.sh
export HELM="$PWD/target/helm/helm3" KUBECTL="$PWD/target/control-plane/kubectl"
version=$(cargo pkgid --package training-operator | sed 's/.*[#@]//')
files=target/release-files work=target/release-test
rm -rf "$work"
mkdir -p "$work/home"

tools/release.sh files
# The chart's archive has times of its own.
grep -v -- '-chart.tgz$' $files/SHA256SUMS >"$work/first"
tools/release.sh files
grep -v -- '-chart.tgz$' $files/SHA256SUMS | diff "$work/first" - || fail 'the files of two runs differ'
find $files -type f ! -name SHA256SUMS -exec basename {} \; | sort >"$work/present"
sed 's/.*  //' $files/SHA256SUMS | sort | diff "$work/present" - || fail 'SHA256SUMS does not list each file'

tar -xzf "$files/training-operator-$version-linux-amd64.tar.gz" -C "$work"
[ "$("$work/training-operator" --version)" = "training-operator $version" ] || fail 'the program has another version'
"$work/training-operator" local run --help >"$work/help" || fail 'the program for download has no local commands'
grep -q "image: ghcr.io/training-job/training-operator:$version$" "$files/training-operator-$version-manifests.yaml" ||
    fail 'the manifests name another image'
# The manifest for krew has the sums of the archives, whose program is the plugin under its name.
sed -n 's/^ *sha256: //p' "$files/training-operator-$version-krew.yaml" >"$work/sums"
(cd $files && sha256sum "training-operator-$version-linux-amd64.tar.gz" "training-operator-$version-linux-arm64.tar.gz") |
    cut -d ' ' -f 1 | diff - "$work/sums" || fail 'the manifest for krew has other sums'
ln -s training-operator "$work/kubectl-training"
"$work/kubectl-training" list --help >"$work/help" || fail 'the program for download is no plugin'

# A push to no registry fails, and has built crane.
! REGISTRY=127.0.0.1:1/training-job tools/release.sh push 2>"$work/refused" || fail 'a push without a registry succeeds'
grep -q 'connection refused' "$work/refused" || fail "a push without a registry fails otherwise: $(cat "$work/refused")"
crane=$PWD/target/tools/bin/crane
mkfifo "$work/log"
"$crane" registry serve --address 127.0.0.1:0 2>"$work/log" &
server=$!
trap 'kill $server' EXIT
# The log has the port once it listens. It stays open, because a log without a reader ends the registry.
exec 3<"$work/log"
port=
while [ -z "$port" ] && read -r line <&3; do
    port=$(echo "$line" | sed -n 's/.*serving on port \([0-9]*\).*/\1/p')
done
[ -n "$port" ] || fail 'the registry did not start'
registry=127.0.0.1:$port/training-job

digest=$(REGISTRY=$registry tools/release.sh push)
[ "$digest" = "$(cat target/image/digest)" ] || fail "the digest is $digest"
[ "$("$crane" digest "$registry/training-operator:$version")" = "$digest" ] || fail 'the registry has another image'
"$crane" validate --remote "$registry/training-operator:$version" >&2
for arch in amd64 arm64; do
    "$crane" export --platform "linux/$arch" "$registry/training-operator:$version" - |
        tar -xOf - training-operator | cmp - "target/image/bin/$arch/training-operator" ||
        fail "the image for $arch has another program"
done
"$HELM" pull "oci://$registry/charts/training-operator" --version "$version" --plain-http --destination "$work" >&2
cmp "$work/training-operator-$version.tgz" "$files/training-operator-$version-chart.tgz" || fail 'the chart differs'
"$HELM" template operator "$work/training-operator-$version.tgz" >"$work/rendered.yaml"
grep -q "image: \"*ghcr.io/training-job/training-operator:$version\"*$" "$work/rendered.yaml" ||
    fail 'the chart names another image'

# Bytes that changed on the way are not pushed.
echo >>"$files/training-operator-$version-image.tar"
! REGISTRY=$registry tools/release.sh push 2>/dev/null || fail 'a changed file is pushed'
echo "test-release: $registry has training-operator:$version@$digest and its chart" >&2
