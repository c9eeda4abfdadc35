#!/bin/sh
# Checks before a release, and its steps. .github/workflows/release.yaml runs the steps for a tag; `make test-release` runs
# them here, with a registry of its own.
#
#   tools/release.sh api           writes docs/maintainers/public-api.txt, the library's interface
#   tools/release.sh packages      fails if a package cannot be published, or if a program outside of this workspace
#                                  does not compile with the packages
#   tools/release.sh check [REV]   fails if a package cannot be published, if docs/maintainers/public-api.txt
#                                  is stale, or if the version does not fit the changes
#                                  since REV (default: the last tag; without a tag the
#                                  version is not checked)
#   tools/release.sh tag TAG       fails if the tag, the packages, the manifests, the chart and CHANGELOG.md differ in the
#                                  version
#   tools/release.sh notes [VERSION]   prints the section of CHANGELOG.md about a version (default: that of the packages)
#   tools/release.sh files         writes target/release-files: the image of tools/image.sh, its parts and licenses, the
#                                  programs, the chart, the manifests, and SHA256SUMS. HELM and KUBECTL name the programs
#   tools/release.sh push          pushes the image and the chart of target/release-files to REGISTRY (default:
#                                  ghcr.io/training-job), as REGISTRY_USER with REGISTRY_PASSWORD if they are set; prints
#                                  the digest of the image
#
# The tools are built once from crates.io into target/tools, which takes some minutes.
# cargo-public-api reads the output of a nightly rustdoc: rustup toolchain install nightly.
set -eu
cd "$(dirname "$0")/.."

listing=docs/maintainers/public-api.txt
# The packages that authors of a kind and their programs use.
interface="training-job training-job-program training-job-controller training-job-testing training-job-local training-job-review
 training-job-client training-job-kubectl training-job-cli"

tool() {
    [ -x "target/tools/bin/$1" ] || cargo install --quiet --locked --root target/tools "$1@$2"
}

# Leave out items of derives and blanket implementations.
list() {
    tool cargo-public-api 0.52.0
    for package in $interface; do
        CARGO_TARGET_DIR=target/public-api target/tools/bin/cargo-public-api --package "$package" --all-features -sss
    done
}

# Builds all published packages together, each from its package file with those of the others. A package file has
# no profiles. With the profiles of Cargo.toml, the dependencies are those that the tests have compiled. Package
# files have no tests and no benchmarks on purpose.
packages() {
    # Cargo takes packages of one version for the same, so it would use the sources and the objects of an earlier run.
    rm -rf "${CARGO_HOME:-$HOME/.cargo}"/registry/src/-*/
    for package in target/package/tmp-crate/*.crate; do
        name=$(basename "$package" .crate)
        rm -rf target/debug/.fingerprint/"${name%-*}"-*
    done
    cargo publish --workspace --dry-run --locked --allow-dirty \
        --config 'profile.dev.debug="line-tables-only"' --config 'profile.dev.package."*".debug=false' \
        >target/packages.log 2>&1 || { cat target/packages.log >&2; return 1; }
}

# Builds a program outside of this workspace twice: with the library from the repository, as of HEAD, and by its version,
# from the package files.
outside() {
    cargo build --quiet --package training-operator
    for source in git version; do
        program=target/outside/$source
        rm -rf "$program"
        target/debug/training-operator new-kind HiveJob "$program" >/dev/null
        sed s/farm-operator/hive-operator/ examples/add-a-framework/Cargo.lock >"$program/Cargo.lock"
        case $source in
        git)
            sed -i "s|git = \"[^\"]*\"|git = \"file://$PWD\"|" "$program/Cargo.toml"
            ;;
        version)
            sed -i 's/{ git = "[^"]*" }/"0.1"/' "$program/Cargo.toml"
            echo '[patch.crates-io]' >>"$program/Cargo.toml"
            for package in target/package/tmp-crate/*.crate; do
                tar -xzf "$package" -C "$program"
                name=$(basename "$package" .crate)
                echo "${name%-*} = { path = \"$name\" }" >>"$program/Cargo.toml"
            done
            ;;
        esac
        cargo build --quiet --manifest-path "$program/Cargo.toml" --target-dir target || return 1
    done
}

fail() {
    echo "release: $*" >&2
    exit 1
}

# The version of all packages.
version() {
    sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"/\1/p' Cargo.toml
}

# Prints the section of a version without its heading and without empty lines around it.
notes() {
    awk -v heading="## [$1]" '
        /^## / { inside = index($0, heading) == 1; next }
        inside && (NF || started) { started = 1; lines = lines $0 "\n"; if (NF) { printf "%s", lines; lines = "" } }
    ' CHANGELOG.md
}

check_tag() {
    tag=$1 version=$(version)
    [ "$tag" = "v$version" ] || fail "the tag is $tag, but Cargo.toml has version $version; the tag must be v$version"
    image=$(sed -n 's|^ *image: ghcr.io/training-job/training-operator:||p' manifests/base/deployment.yaml)
    [ "$image" = "$version" ] || fail "manifests/base/deployment.yaml names the image of $image; name that of $version"
    for key in version appVersion; do
        chart=$(sed -n "s/^$key: *//p" manifests/helm/training-operator/Chart.yaml | tr -d '"')
        [ "$chart" = "$version" ] || fail "manifests/helm/training-operator/Chart.yaml has $key $chart; set $version"
    done
    grep -Eq "^## \[$version\] - [0-9]{4}-[0-9]{2}-[0-9]{2}\$" CHANGELOG.md ||
        fail "CHANGELOG.md has no section \"## [$version] - DATE\"; give \"Unreleased\" this version and its date"
    [ -n "$(notes "$version")" ] || fail "the section of $version in CHANGELOG.md is empty"
}

# Packs files of a folder so that the archive is the same for each run on a commit.
pack() {
    tar --directory "$2" --sort=name --owner=0 --group=0 --numeric-owner --mode=go=rX,u+w --format=ustar \
        --mtime="@$(git log -1 --format=%ct)" --create --file - . | gzip --no-name --best >"$1"
}

write_files() {
    version=$(version)
    out=target/release-files name=training-operator-$version
    [ -s target/image/digest ] || fail "target/image is missing; run: tools/image.sh --programs"
    rm -rf "$out"
    mkdir -p "$out"
    cp target/image/training-operator.tar "$out/$name-image.tar"
    cp target/image/digest "$out/$name-image.digest"
    cp target/image/sbom.cdx.json "$out/$name-sbom.cdx.json"
    cp target/image/licenses.txt "$out/$name-licenses.txt"
    for arch in amd64 arm64; do
        program=target/image/programs/$arch/training-operator
        [ -x "$program" ] || fail "$program is missing; run: tools/image.sh --programs"
        content=target/release-programs/$arch
        rm -rf "$content"
        mkdir -p "$content"
        cp "$program" LICENSE "$content"
        cp target/image/licenses.txt "$content/LICENSES-OF-DEPENDENCIES.txt"
        pack "$out/$name-linux-$arch.tar.gz" "$content"
    done
    # The manifest of the kubectl plugin names the archives.
    krew=$out/$name-krew.yaml
    sed -e '/^#/d' -e "s/RELEASE/$version/g" manifests/krew/training.yaml >"$krew"
    for arch in amd64 arm64; do
        sum=$(sha256sum "$out/$name-linux-$arch.tar.gz" | cut -d ' ' -f 1)
        sed -i "/linux-$arch.tar.gz/{n;s/SHA256/$sum/}" "$krew"
    done
    "${HELM:-helm}" package manifests/helm/training-operator --destination "$out" >/dev/null
    # Beside the programs, the name that Helm gives the file would not show that it is a chart.
    mv "$out/$name.tgz" "$out/$name-chart.tgz"
    "${KUBECTL:-kubectl}" kustomize manifests/overlays/standalone >"$out/$name-manifests.yaml"
    (cd "$out" && sha256sum -- * >SHA256SUMS)
}

push() {
    version=$(version)
    out=target/release-files name=training-operator-$version
    registry=${REGISTRY:-ghcr.io/training-job} host=${registry%%/*} helm=${HELM:-helm}
    (cd "$out" && sha256sum --quiet --check SHA256SUMS) || fail "$out is not what SHA256SUMS lists"
    crane=target/tools/bin/crane
    [ -x $crane ] || GOBIN="$PWD/target/tools/bin" GOFLAGS=-mod=mod go install \
        github.com/google/go-containerregistry/cmd/crane@v0.22.1
    # Only a registry on this machine may be without TLS.
    case $host in localhost:* | 127.0.0.1:*) plain=--plain-http ;; *) plain= ;; esac
    if [ -n "${REGISTRY_USER-}" ]; then
        echo "$REGISTRY_PASSWORD" | $crane auth login "$host" --username "$REGISTRY_USER" --password-stdin >&2
        echo "$REGISTRY_PASSWORD" | "$helm" registry login "$host" --username "$REGISTRY_USER" --password-stdin >&2
    fi
    layout=target/release-image
    rm -rf "$layout"
    mkdir -p "$layout"
    tar --extract --directory "$layout" --file "$out/$name-image.tar"
    pushed=$($crane push "$layout" "$registry/training-operator:$version")
    digest=$(cat "$out/$name-image.digest")
    [ "${pushed##*@}" = "$digest" ] || fail "the registry has $pushed, but the image is $digest"
    # shellcheck disable=SC2086 # Nothing, or a flag.
    "$helm" push "$out/$name-chart.tgz" "oci://$registry/charts" $plain >&2
    echo "$digest"
}

case ${1-} in
tag)
    check_tag "${2?tools/release.sh tag TAG}"
    ;;
notes)
    wanted=${2-$(version)}
    text=$(notes "$wanted")
    [ -n "$text" ] || fail "CHANGELOG.md has no section of $wanted"
    printf '%s\n' "$text"
    ;;
files)
    write_files
    ;;
push)
    push
    ;;
packages)
    mkdir -p target
    packages
    outside
    ;;
api)
    mkdir -p target
    list >target/public-api.txt
    cp target/public-api.txt "$listing"
    ;;
check)
    mkdir -p target
    echo 'release: packing and building every package (log: target/packages.log)' >&2
    packages
    outside
    # A failure of the tool is not a difference.
    list >target/public-api.txt
    diff -u "$listing" target/public-api.txt || {
        echo "release: the interface differs from $listing; review the difference, then run: make public-api" >&2
        exit 1
    }
    since=${2-$(git describe --tags --abbrev=0 2>/dev/null || :)}
    if [ -z "$since" ]; then
        echo "release: there is no tag to compare the version with" >&2
        exit 0
    fi
    tool cargo-semver-checks 0.51.0
    for package in $interface; do
        target/tools/bin/cargo-semver-checks semver-checks --package "$package" --baseline-rev "$since"
    done
    ;;
*)
    echo 'usage: tools/release.sh api|packages|check [REV]|tag TAG|notes [VERSION]|files|push' >&2
    exit 2
    ;;
esac
